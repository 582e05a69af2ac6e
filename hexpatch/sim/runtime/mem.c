// Low memory: the addresses 32-bit kernels can name, and a shadow byte for every 128 of them.
#define _GNU_SOURCE
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE 4096u

uint8_t * sim_shadow;

// Ranges in use, sorted by address.
struct range {
    uintptr_t at, end;
};

static struct range *  ranges;
static size_t          n_ranges, cap_ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void insert(size_t i, uintptr_t at, uintptr_t end) {
    if (n_ranges == cap_ranges) {
        cap_ranges = cap_ranges ? cap_ranges * 2 : 64;
        ranges     = realloc(ranges, cap_ranges * sizeof(*ranges));
        if (!ranges) {
            abort();
        }
    }
    memmove(ranges + i + 1, ranges + i, (n_ranges - i) * sizeof(*ranges));
    ranges[i] = (struct range) { at, end };
    n_ranges++;
}

// With bounds checking a wild access is reported and the run goes on, so free memory is readable
// and writable then; without, it traps.
static bool reserve(uintptr_t at, size_t size, int how) {
    const int prot = sim_checked(SIM_FAULT_bounds) ? PROT_READ | PROT_WRITE : PROT_NONE;
    void * p = mmap((void *) at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);
    if (p != (void *) at && p != MAP_FAILED) {
        munmap(p, size);  // a kernel without MAP_FIXED_NOREPLACE
    }
    return p == (void *) at;
}

void sim_shadow_set(uintptr_t at, size_t size, uint8_t value) {
    memset(sim_shadow + at / SIM_GRANULE, value, (size + SIM_GRANULE - 1) / SIM_GRANULE);
}

uintptr_t sim_low_alloc(size_t size, enum mem_kind kind, int fd, size_t offset) {
    size = (size + PAGE - 1) & ~(size_t) (PAGE - 1);
    if (!size || size > SIM_LOW_END - SIM_LOW_BEGIN) {
        return 0;
    }
    const int flags = MAP_FIXED | (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    pthread_mutex_lock(&lock);
    uintptr_t at = SIM_LOW_BEGIN;
    for (size_t i = 0; i <= n_ranges; i++) {
        const uintptr_t next = i < n_ranges ? ranges[i].at : SIM_LOW_END;
        if (at + size + PAGE <= next) {
            void * p = mmap((void *) at, size, PROT_READ | PROT_WRITE, flags, fd, (off_t) offset);
            if (p != (void *) at) {
                at = 0;
                break;
            }
            insert(i, at, at + size + PAGE);
            pthread_mutex_unlock(&lock);
            sim_shadow_set(at, size, (uint8_t) kind);
            return at;
        }
        at = i < n_ranges ? ranges[i].end : 0;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

void sim_low_free(uintptr_t at, size_t size) {
    size = (size + PAGE - 1) & ~(size_t) (PAGE - 1);
    pthread_mutex_lock(&lock);
    sim_shadow_set(at, size, MEM_NONE);
    reserve(at, size, MAP_FIXED);
    for (size_t i = 0; i < n_ranges; i++) {
        if (ranges[i].at == at) {
            memmove(ranges + i, ranges + i + 1, (n_ranges - i - 1) * sizeof(*ranges));
            n_ranges--;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor(102))) static void low_init(void) {
    sim_shadow = mmap(NULL, (1ull << 32) / SIM_GRANULE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sim_shadow == MAP_FAILED) {
        sim_log("no memory for the shadow");
        abort();
    }
    if (reserve(SIM_LOW_BEGIN, SIM_LOW_END - SIM_LOW_BEGIN, MAP_FIXED_NOREPLACE)) {
        return;
    }
    // Something of the program's own lies in there: take what is free around it.
    const size_t step = 1u << 20;
    for (uintptr_t at = SIM_LOW_BEGIN; at < SIM_LOW_END; at += step) {
        if (!reserve(at, step, MAP_FIXED_NOREPLACE)) {
            insert(n_ranges, at, at + step);
        }
    }
}
