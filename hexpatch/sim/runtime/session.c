// Sessions: which exist, and what each has mapped.
#define _GNU_SOURCE
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "AEEStdErr.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct sim_session sim_sessions[SIM_MAX_SESSIONS];
int                sim_n_sessions;

SIM_API uint8_t * sim_vtcm_base;
SIM_API uint32_t  sim_vtcm_size;

static uintptr_t       high = SIM_HIGH;
static pthread_mutex_t high_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor(103))) static void sessions_init(void) {
    sim_n_sessions = sim_device.cores * sim_device.sessions;
    sim_vtcm_size  = sim_device.vtcm * (uint32_t) sim_n_sessions;
    sim_vtcm_base  = (uint8_t *) sim_low_alloc(sim_vtcm_size, MEM_VTCM, -1, 0);
    if (!sim_vtcm_base) {
        sim_log("no room for VTCM");
        abort();
    }
    for (int i = 0; i < sim_n_sessions; i++) {
        struct sim_session * s = &sim_sessions[i];
        s->core   = i / sim_device.sessions;
        s->index  = i % sim_device.sessions;
        s->domain = CDSP_DOMAIN_ID + s->core + 16 * s->index;
        s->vtcm   = sim_vtcm_base + (size_t) i * sim_device.vtcm;
        pthread_mutex_init(&s->lock, NULL);
        pthread_mutex_init(&s->call_lock, NULL);
        pthread_mutex_init(&s->rpc_lock, NULL);
        pthread_mutex_init(&s->dma_lock, NULL);
        pthread_cond_init(&s->rpc_cond, NULL);
    }
}

struct sim_session * sim_session_by_domain(int domain) {
    for (int i = 0; i < sim_n_sessions; i++) {
        if (sim_sessions[i].domain == domain) {
            return &sim_sessions[i];
        }
    }
    return NULL;
}

// Map a whole block above 4 GiB.
static uintptr_t map_high(const struct sim_block * b) {
    pthread_mutex_lock(&high_lock);
    uintptr_t at = 0;
    for (int i = 0; i < 1024 && !at; i++) {
        void * p = mmap((void *) high, b->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, b->fd, 0);
        if (p == (void *) high) {
            at = high;
        } else if (p != MAP_FAILED) {
            munmap(p, b->size);
        }
        high += ((at ? b->size : 0) + (4u << 20)) & ~(uintptr_t) 0x1fffff;
    }
    pthread_mutex_unlock(&high_lock);
    return at;
}

static void unmap(struct sim_session * s, struct sim_map * m) {
    if (--m->refs) {
        return;
    }
    if (m->extended) {
        munmap((void *) m->base, m->size);
    } else {
        sim_low_free(m->base, m->size);
        s->vmem -= m->size;
    }
    memset(m, 0, sizeof(*m));
}

// An fd that is mapped already keeps its address and gets one more reference.
bool sim_session_map(struct sim_session * s, int fd, uint64_t len, bool extended, uint64_t * base) {
    struct sim_block b;
    if (!sim_block_by_fd(fd, &b) || len > b.size) {
        return false;
    }
    bool ok = false;
    pthread_mutex_lock(&s->lock);
    struct sim_map * slot = NULL;
    for (int i = 0; i < SIM_MAX_MAPS; i++) {
        struct sim_map * m = &s->maps[i];
        if (m->refs && m->serial == b.serial && m->extended == extended) {
            m->refs++;
            *base = m->base;
            pthread_mutex_unlock(&s->lock);
            return true;
        }
        if (!m->refs && !slot) {
            slot = m;
        }
    }
    if (slot && (extended || s->vmem + b.size <= sim_device.vmem)) {
        const uintptr_t at = extended ? map_high(&b) : sim_low_alloc(b.size, MEM_DDR, fd, 0);
        if (at) {
            *slot = (struct sim_map) { fd, b.serial, at, b.size, 1, 0, extended };
            *base = at;
            s->vmem += extended ? 0 : b.size;
            ok = true;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool sim_session_unmap(struct sim_session * s, uint64_t base) {
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SIM_MAX_MAPS && !found; i++) {
        if (s->maps[i].refs && s->maps[i].base == base) {
            found = true;
            unmap(s, &s->maps[i]);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool sim_session_pin(struct sim_session * s, int fd, uint64_t len) {
    uint64_t base;
    if (!sim_session_map(s, fd, len, false, &base)) {
        return false;
    }
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SIM_MAX_MAPS; i++) {
        if (s->maps[i].refs && s->maps[i].base == base) {
            s->maps[i].pins++;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return true;
}

void sim_session_unpin(struct sim_session * s, int fd) {
    struct sim_block b;
    if (!sim_block_by_fd(fd, &b)) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SIM_MAX_MAPS; i++) {
        struct sim_map * m = &s->maps[i];
        if (m->refs && m->serial == b.serial && m->pins) {
            m->pins--;
            unmap(s, m);
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

uint64_t sim_session_fd_base(struct sim_session * s, int fd, size_t * size) {
    struct sim_block b;
    uint64_t base = 0;
    if (!sim_block_by_fd(fd, &b)) {
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < SIM_MAX_MAPS && !base; i++) {
        const struct sim_map * m = &s->maps[i];
        if (m->refs && m->serial == b.serial && !m->extended) {
            base  = m->base;
            *size = m->size;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return base;
}
