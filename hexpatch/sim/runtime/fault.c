// Faults: counted per kind, op and place. The run goes on.
#define _GNU_SOURCE
#include "sim.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define N_BUCKETS 4096

struct fault {
    struct fault *  next;
    enum sim_fault  kind;
    const char *    op;  // interned
    const void *    pc;
    const void *    addr;  // of the first one
    size_t          size;
    uint64_t        count;
    char            where[160];
};

static struct fault *  buckets[N_BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char * const names[] = {
#define X(name, sw, text) #name,
    SIM_FAULTS(X)
#undef X
};

static const char * const texts[] = {
#define X(name, sw, text) text,
    SIM_FAULTS(X)
#undef X
};

// Strings that outlive a DSP library.
const char * sim_intern(const char * s) {
    static struct str { struct str * next; char text[]; } * all;
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&guard);
    struct str * p = all;
    while (p && strcmp(p->text, s)) {
        p = p->next;
    }
    if (!p) {
        const size_t n = strlen(s) + 1;
        p = malloc(sizeof(*p) + n);
        if (!p) {
            abort();
        }
        memcpy(p->text, s, n);
        p->next = all;
        all     = p;
    }
    pthread_mutex_unlock(&guard);
    return p->text;
}

// The address as the file has it, so that addr2line -e FILE understands it.
void sim_where(const void * pc, char * out, size_t size) {
    Dl_info           info;
    struct link_map * map = NULL;
    if (pc && dladdr1(pc, &info, (void **) &map, RTLD_DL_LINKMAP) && info.dli_fname && map) {
        const char * slash = strrchr(info.dli_fname, '/');
        snprintf(out, size, "%s+0x%zx", slash ? slash + 1 : info.dli_fname, (size_t) pc - (size_t) map->l_addr);
    } else {
        snprintf(out, size, "%p", pc);
    }
}

void sim_fault_in(const char * op, enum sim_fault kind, const void * addr, size_t size, const void * pc) {
    if (!sim_checked(kind)) {
        return;
    }
    struct sim_session * s = sim_me()->session;
    if (s) {
        __atomic_fetch_add(&s->n_faults[kind], 1, __ATOMIC_RELAXED);
    }
    const size_t h = (((uintptr_t) pc >> 2) ^ ((uintptr_t) op >> 4) * 31 ^ (size_t) kind * 977) % N_BUCKETS;
    pthread_mutex_lock(&lock);
    struct fault * f = buckets[h];
    while (f && (f->pc != pc || f->kind != kind || f->op != op)) {
        f = f->next;
    }
    if (!f) {
        f = calloc(1, sizeof(*f));
        if (!f) {
            abort();
        }
        *f = (struct fault) { .next = buckets[h], .kind = kind, .op = op, .pc = pc, .addr = addr, .size = size };
        // A return address belongs to the instruction before it.
        sim_where(pc ? (const char *) pc - 1 : NULL, f->where, sizeof(f->where));
        buckets[h] = f;
    }
    f->count++;
    pthread_mutex_unlock(&lock);
}

SIM_API void sim_fault(enum sim_fault kind, const void * addr, size_t size, const void * pc) {
    const struct sim_session * s = sim_me()->session;
    const char * op = s && s->op ? s->op : "";
    if (!sim_checked(kind)) {
        static int said;
        if (kind == SIM_FAULT_dma_bad && __atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) < 4) {
            sim_log("%s: a DMA descriptor was refused: address %p", op, addr);
        }
        return;
    }
    sim_fault_in(op, kind, addr, size, pc ? pc : __builtin_return_address(0));
}

static int by_place(const void * a, const void * b) {
    const struct fault * x = a;
    const struct fault * y = b;
    const int where = strcmp(x->where, y->where);
    return x->kind != y->kind ? (int) x->kind - (int) y->kind : where ? where : strcmp(x->op, y->op);
}

static int by_count(const void * a, const void * b) {
    const struct fault * x = a;
    const struct fault * y = b;
    if (x->kind != y->kind) {
        return (int) x->kind - (int) y->kind;
    }
    return x->count < y->count ? 1 : x->count > y->count ? -1 : by_place(a, b);
}

// Copies of all faults, the frequent ones of a kind first. Sessions have their own copies of a
// library: one place in the file is one entry.
static struct fault * sorted(size_t * n) {
    size_t all = 0;
    for (int i = 0; i < N_BUCKETS; i++) {
        for (const struct fault * f = buckets[i]; f; f = f->next) {
            all++;
        }
    }
    struct fault * list = malloc((all + 1) * sizeof(*list));
    *n = 0;
    if (!list) {
        return NULL;
    }
    size_t k = 0;
    for (int i = 0; i < N_BUCKETS; i++) {
        for (const struct fault * f = buckets[i]; f && k < all; f = f->next) {
            list[k++] = *f;
        }
    }
    qsort(list, k, sizeof(*list), by_place);
    for (size_t i = 0; i < k; i++) {
        if (*n && !by_place(&list[*n - 1], &list[i])) {
            list[*n - 1].count += list[i].count;
        } else {
            list[(*n)++] = list[i];
        }
    }
    qsort(list, *n, sizeof(*list), by_count);
    return list;
}

void sim_faults_json(FILE * out) {
    size_t n;
    struct fault * list = sorted(&n);
    for (size_t i = 0; i < n && list; i++) {
        const struct fault * f = &list[i];
        fprintf(out, "%s{\"kind\": \"%s\", \"op\": \"%s\", \"count\": %llu, \"where\": \"%s\", \"addr\": \"0x%zx\", \"size\": %zu}",
                i ? ", " : "", names[f->kind], f->op, (unsigned long long) f->count, f->where, (size_t) f->addr,
                f->size);
    }
    free(list);
}

// For runs without a report file.
void sim_faults_text(void) {
    size_t n;
    struct fault * list = sorted(&n);
    for (size_t i = 0; i < n && list; i++) {
        const struct fault * f = &list[i];
        sim_log("%s: %s: %llu times at %s, first address %p", f->op, texts[f->kind], (unsigned long long) f->count,
                f->where, f->addr);
    }
    free(list);
}

const char * sim_fault_name(enum sim_fault kind) {
    return names[kind];
}
