// The DSP's heap, in low memory: upstream's link flags send malloc and friends to __wrap_*.
// Blocks are whole granules with one free granule behind them, so that bounds checks see overruns.
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAP_STEP (16u << 20)

// Books are kept outside of the heap: kernels can't damage them.
struct block {
    struct block * next;  // by address
    uintptr_t      at, end;
    size_t         size;  // asked for
};

struct area {
    struct area *  next;
    uintptr_t      at, end;
    struct block * first;
};

static struct area *   areas;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t fit(struct area * a, size_t align, size_t size, size_t asked) {
    uintptr_t       at = a->at;
    struct block ** p  = &a->first;
    for (;; p = &(*p)->next) {
        const uintptr_t begin = (at + align - 1) & ~(uintptr_t) (align - 1);
        const uintptr_t limit = *p ? (*p)->at : a->end;
        if (begin + size <= limit) {
            struct block * b = malloc(sizeof(*b));
            if (!b) {
                return 0;
            }
            *b = (struct block) { *p, begin, begin + size, asked };
            *p = b;
            return begin;
        }
        if (!*p) {
            return 0;
        }
        at = (*p)->end;
    }
}

void * sim_dsp_malloc(size_t align, size_t size) {
    if (align < SIM_GRANULE) {
        align = SIM_GRANULE;
    }
    if ((align & (align - 1)) || size > SIM_LOW_END) {
        return NULL;
    }
    const size_t body  = (size + (size == 0) + SIM_GRANULE - 1) & ~(size_t) (SIM_GRANULE - 1);
    const size_t whole = body + SIM_GRANULE;
    uintptr_t    at    = 0;
    pthread_mutex_lock(&lock);
    for (struct area * a = areas; a && !at; a = a->next) {
        at = fit(a, align, whole, size);
    }
    if (!at) {
        const size_t    room = (whole + align + HEAP_STEP - 1) & ~(size_t) (HEAP_STEP - 1);
        struct area *   a    = malloc(sizeof(*a));
        const uintptr_t from = a ? sim_low_alloc(room, MEM_NONE, -1, 0) : 0;
        if (from) {
            *a    = (struct area) { areas, from, from + room, NULL };
            areas = a;
            at    = fit(a, align, whole, size);
        } else {
            free(a);
        }
    }
    if (at) {
        sim_shadow_set(at, body, MEM_HEAP);
    }
    pthread_mutex_unlock(&lock);
    return (void *) at;
}

// Take a block out of the books; its size, or -1 if there is none.
static size_t drop(uintptr_t at) {
    for (struct area * a = areas; a; a = a->next) {
        if (at < a->at || at >= a->end) {
            continue;
        }
        for (struct block ** p = &a->first; *p; p = &(*p)->next) {
            if ((*p)->at == at) {
                struct block * b    = *p;
                const size_t   size = b->size;
                sim_shadow_set(at, b->end - at, MEM_NONE);
                *p = b->next;
                free(b);
                return size;
            }
        }
    }
    return (size_t) -1;
}

static size_t size_of(uintptr_t at) {
    for (struct area * a = areas; a; a = a->next) {
        for (struct block * b = a->first; b; b = b->next) {
            if (b->at == at) {
                return b->size;
            }
        }
    }
    return (size_t) -1;
}

void sim_dsp_free(void * p) {
    if (!p) {
        return;
    }
    pthread_mutex_lock(&lock);
    const size_t size = drop((uintptr_t) p);
    pthread_mutex_unlock(&lock);
    if (size == (size_t) -1) {
        free(p);  // libc gave it, for instance by strdup
    }
}

SIM_API void * __wrap_malloc(size_t size) {
    return sim_dsp_malloc(8, size);
}

SIM_API void * __wrap_calloc(size_t n, size_t size) {
    size_t all;
    void * p = __builtin_mul_overflow(n, size, &all) ? NULL : sim_dsp_malloc(8, all);
    return p ? memset(p, 0, all) : NULL;
}

SIM_API void * __wrap_realloc(void * p, size_t size) {
    if (!p) {
        return sim_dsp_malloc(8, size);
    }
    pthread_mutex_lock(&lock);
    const size_t old = size_of((uintptr_t) p);
    pthread_mutex_unlock(&lock);
    if (old == (size_t) -1) {
        return realloc(p, size);
    }
    void * q = sim_dsp_malloc(8, size);
    if (q) {
        memcpy(q, p, old < size ? old : size);
        sim_dsp_free(p);
    }
    return q;
}

SIM_API void __wrap_free(void * p) {
    sim_dsp_free(p);
}

SIM_API void * __wrap_memalign(size_t align, size_t size) {
    return sim_dsp_malloc(align, size);
}

SIM_API void * __wrap_aligned_alloc(size_t align, size_t size) {
    return sim_dsp_malloc(align, size);
}

SIM_API int __wrap_posix_memalign(void ** out, size_t align, size_t size) {
    void * p = sim_dsp_malloc(align, size);
    if (!p) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}
