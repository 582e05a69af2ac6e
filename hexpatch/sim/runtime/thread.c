// DSP threads and the register of all threads that count. Every DSP thread runs on a 1 MiB stack in
// low memory, painted when its depth is checked.
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "qurt.h"

#define PAINT 0x5353535353535353ull

SIM_API __thread struct sim_thread sim_self;

static __thread struct sim_ctx * me __attribute__((tls_model("initial-exec")));

static struct sim_ctx * all;  // newest first
static unsigned         next_id = 1;
static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t    at_exit;
static uint64_t         dead_host[SIM_N_COUNTERS];  // of threads without a session

// The thread ends: keep its counts, and its entry if somebody may still join it.
static void leave(void * arg) {
    struct sim_ctx * c = arg;
    pthread_mutex_lock(&lock);
    uint64_t * dead = c->session ? c->session->dead : dead_host;
    for (int i = 0; i < SIM_N_COUNTERS; i++) {
        dead[i] += c->self->n[i];
    }
    c->self = NULL;
    if (!c->joinable) {
        struct sim_ctx ** p = &all;
        while (*p != c) {
            p = &(*p)->link;
        }
        *p = c->link;
        free(c);
    }
    pthread_mutex_unlock(&lock);
    me = NULL;
}

__attribute__((constructor(104))) static void threads_init(void) {
    pthread_key_create(&at_exit, leave);
}

static void enter(struct sim_ctx * c) {
    me          = c;
    c->self     = &sim_self;
    sim_self.op = "";
    pthread_setspecific(at_exit, c);
}

static void add(struct sim_ctx * c) {
    pthread_mutex_lock(&lock);
    c->id   = next_id++;
    c->link = all;
    all     = c;
    pthread_mutex_unlock(&lock);
}

struct sim_ctx * sim_me(void) {
    if (!me) {
        struct sim_ctx * c = calloc(1, sizeof(*c));
        if (!c) {
            abort();
        }
        snprintf(c->name, sizeof(c->name), "host");
        c->priority = 100;
        c->pthread  = pthread_self();
        c->self     = &sim_self;
        add(c);
        enter(c);
    }
    return me;
}

static struct sim_ctx * by_id(unsigned id) {
    struct sim_ctx * c = all;
    while (c && c->id != id) {
        c = c->link;
    }
    return c;
}

// The painted words that are still there end where the deepest frame was. Frames may skip words,
// so the lowest touched word counts.
void sim_stack_scan(struct sim_ctx * c) {
    if (!c->stack_top || !sim_checked(SIM_FAULT_stack)) {
        return;
    }
    const uint64_t * p   = (const uint64_t *) c->stack;
    const uint64_t * end = (const uint64_t *) (c->stack_top - c->stack_used);
    while (p < end && *p == PAINT) {
        p++;
    }
    c->stack_used = c->stack_top - (uintptr_t) p;
}

static void * run(void * arg) {
    struct sim_ctx * c = arg;
    enter(c);
    c->stack_top    = (uintptr_t) __builtin_frame_address(0);
    c->signal_stack = sim_signal_stack();
    c->entry(c->arg);
    return NULL;
}

unsigned sim_thread_start(struct sim_session * s, const char * name, int priority, size_t stack_asked,
                          void (*entry)(void *), void * arg) {
    struct sim_ctx * c = calloc(1, sizeof(*c));
    if (!c) {
        return 0;
    }
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->session     = s;
    c->priority    = priority;
    c->stack_asked = stack_asked;
    c->entry       = entry;
    c->arg         = arg;
    c->joinable    = true;
    c->stack       = sim_low_alloc(SIM_STACK, MEM_STACK, -1, 0);
    if (!c->stack) {
        free(c);
        return 0;
    }
    if (sim_checked(SIM_FAULT_stack)) {
        for (uint64_t * p = (uint64_t *) c->stack; p < (uint64_t *) (c->stack + SIM_STACK); p++) {
            *p = PAINT;
        }
    }
    add(c);
    const unsigned id = c->id;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, (void *) c->stack, SIM_STACK);
    const int err = pthread_create(&c->pthread, &attr, run, c);
    pthread_attr_destroy(&attr);
    if (err) {
        sim_low_free(c->stack, SIM_STACK);
        pthread_mutex_lock(&lock);
        struct sim_ctx ** p = &all;
        while (*p != c) {
            p = &(*p)->link;
        }
        *p = c->link;
        pthread_mutex_unlock(&lock);
        free(c);
        return 0;
    }
    return id;
}

int sim_thread_join(unsigned id, int * status) {
    pthread_mutex_lock(&lock);
    struct sim_ctx * c = by_id(id);
    const bool ok = c && c->joinable;
    pthread_mutex_unlock(&lock);
    if (!ok || pthread_join(c->pthread, NULL)) {
        return QURT_ENOTHREAD;
    }
    if (status) {
        *status = c->status;
    }
    sim_stack_scan(c);
    sim_report_stack(c);
    if (c->stack) {
        sim_low_free(c->stack, SIM_STACK);
    }
    free(c->signal_stack);
    pthread_mutex_lock(&lock);
    struct sim_ctx ** p = &all;
    while (*p != c) {
        p = &(*p)->link;
    }
    *p = c->link;
    pthread_mutex_unlock(&lock);
    free(c);
    return QURT_EOK;
}

void sim_session_counts(struct sim_session * s, uint64_t n[SIM_N_COUNTERS]) {
    pthread_mutex_lock(&lock);
    memcpy(n, s ? s->dead : dead_host, SIM_N_COUNTERS * sizeof(*n));
    for (const struct sim_ctx * c = all; c; c = c->link) {
        if (c->session == s && c->self) {
            for (int i = 0; i < SIM_N_COUNTERS; i++) {
                n[i] += ((volatile uint64_t *) c->self->n)[i];
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

void sim_total_counts(uint64_t n[SIM_N_COUNTERS]) {
    uint64_t part[SIM_N_COUNTERS];
    sim_session_counts(NULL, n);
    if (!me) {
        for (int i = 0; i < SIM_N_COUNTERS; i++) {
            n[i] += sim_self.n[i];
        }
    }
    for (int k = 0; k < sim_n_sessions; k++) {
        sim_session_counts(&sim_sessions[k], part);
        for (int i = 0; i < SIM_N_COUNTERS; i++) {
            n[i] += part[i];
        }
    }
}

void sim_each_thread(struct sim_session * s, void (*visit)(struct sim_ctx *, void *), void * arg) {
    pthread_mutex_lock(&lock);
    for (struct sim_ctx * c = all; c; c = c->link) {
        if (c->session == s) {
            visit(c, arg);
        }
    }
    pthread_mutex_unlock(&lock);
}

// -- QuRT ---------------------------------------------------------------------------------------

SIM_API int qurt_thread_create(qurt_thread_t * thread_id, qurt_thread_attr_t * attr, void (*entrypoint)(void *),
                               void * arg) {
    *thread_id = sim_thread_start(sim_me()->session, attr->name, attr->priority, attr->stack_size, entrypoint, arg);
    return *thread_id ? QURT_EOK : QURT_EMEM;
}

SIM_API int qurt_thread_join(unsigned int tid, int * status) {
    return sim_thread_join(tid, status);
}

SIM_API void qurt_thread_exit(int status) {
    sim_me()->status = status;
    pthread_exit(NULL);
}

SIM_API qurt_thread_t qurt_thread_get_id(void) {
    return sim_me()->id;
}

SIM_API int qurt_thread_get_priority(qurt_thread_t thread_id) {
    pthread_mutex_lock(&lock);
    const struct sim_ctx * c = by_id(thread_id);
    const int priority = c ? c->priority : -1;
    pthread_mutex_unlock(&lock);
    return priority;
}

// Remembered only: this machine's scheduler does as it likes.
SIM_API int qurt_thread_set_priority(qurt_thread_t thread_id, unsigned short priority) {
    pthread_mutex_lock(&lock);
    struct sim_ctx * c = by_id(thread_id);
    if (c) {
        c->priority = priority;
    }
    pthread_mutex_unlock(&lock);
    return c ? QURT_EOK : QURT_EINVALID;
}
