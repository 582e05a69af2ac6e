// What the compiler calls before every load and store of a *checked* DSP library, and what vectors
// and block copies call. Everything here is on the kernels' hot path.
#include "sim.h"

#include <string.h>

// One access of size bytes, vectors excepted.
static inline __attribute__((always_inline)) void scalar(uintptr_t at, size_t size, bool store, const void * pc);

static __attribute__((noinline)) void outside(uintptr_t at, size_t size, const void * pc) {
    if ((uintptr_t) &sim_self - at + sizeof(sim_self) <= 2 * sizeof(sim_self)) {
        return;  // a counter
    }
    const struct sim_session * s = sim_me()->session;
    if (!s || (at >= s->lib_lo && at + size <= s->lib_hi)) {
        return;
    }
    if (at >> 32 && !(at >> 36)) {
        sim_fault(SIM_FAULT_bounds, (const void *) at, size, pc);  // an extended mapping: for DMA only
        return;
    }
    if (at >> 32) {
        return;  // this process's own: libc, thread-local data
    }
    sim_fault(SIM_FAULT_bounds, (const void *) at, size, pc);
}

static __attribute__((noinline)) void in_flight(uintptr_t at, size_t size, bool store, const void * pc) {
    if (sim_dma_conflict(at, size, store)) {
        sim_fault(SIM_FAULT_dma_order, (const void *) at, size, pc);
    }
}

static inline __attribute__((always_inline)) void scalar(uintptr_t at, size_t size, bool store, const void * pc) {
    if (__builtin_expect((at + size) >> 32 != 0, 0)) {
        outside(at, size, pc);
        return;
    }
    const uint8_t first = sim_shadow[at / SIM_GRANULE];
    const uint8_t last  = sim_shadow[(at + size - 1) / SIM_GRANULE];
    if (__builtin_expect((first | last) & (store ? MEM_DMA_SRC | MEM_DMA_DST : MEM_DMA_DST), 0)) {
        in_flight(at, size, store, pc);
    }
    const int kind = first & MEM_KIND;
    if (__builtin_expect(kind == MEM_NONE || (last & MEM_KIND) == MEM_NONE, 0)) {
        outside(at, size, pc);
    } else if (kind == MEM_DDR) {
        if (store) {
            sim_self.n[SIM_ddr_wr] += size;
        } else {
            sim_self.n[SIM_ddr_rd] += size;
        }
    } else if (kind == MEM_VTCM) {
        sim_self.n[SIM_vtcm_scalar]++;
        if (sim_checked(SIM_FAULT_scalar_vtcm)) {
            sim_fault(SIM_FAULT_scalar_vtcm, (const void *) at, size, pc);
        }
    }
}

static inline __attribute__((always_inline)) void vector(uintptr_t at, size_t size, bool store, const void * pc) {
    if (__builtin_expect((at + size) >> 32 != 0, 0)) {
        outside(at, size, pc);
        return;
    }
    const uint8_t first = sim_shadow[at / SIM_GRANULE];
    const uint8_t last  = sim_shadow[(at + size - 1) / SIM_GRANULE];
    if (__builtin_expect((first | last) & (store ? MEM_DMA_SRC | MEM_DMA_DST : MEM_DMA_DST), 0)) {
        in_flight(at, size, store, pc);
    }
    if (__builtin_expect((first & MEM_KIND) == MEM_NONE || (last & MEM_KIND) == MEM_NONE, 0)) {
        outside(at, size, pc);
    } else if ((first & MEM_KIND) == MEM_DDR) {
        if (store) {
            sim_self.n[SIM_ddr_wr] += size;
        } else {
            sim_self.n[SIM_ddr_rd] += size;
        }
    }
}

// -- vectors --------------------------------------------------------------------------------------

static inline __attribute__((always_inline)) uintptr_t aligned(const void * p, const void * pc) {
    const uintptr_t at = (uintptr_t) p;
    if (__builtin_expect(at & 127, 0)) {
        sim_self.n[SIM_misaligned]++;
        sim_fault(SIM_FAULT_misaligned, p, 128, pc);
    }
    return at & ~(uintptr_t) 127;
}

SIM_API void sim_vld(const void * p) {
    const void * pc = __builtin_return_address(0);
    sim_self.n[SIM_hvx_ld]++;
    vector(aligned(p, pc), 128, false, pc);
}

SIM_API void sim_vst(const void * p) {
    const void * pc = __builtin_return_address(0);
    sim_self.n[SIM_hvx_st]++;
    vector(aligned(p, pc), 128, true, pc);
}

SIM_API void sim_touch_read(const void * p, size_t size, const void * pc) {
    if (size && sim_kind((uintptr_t) p) == MEM_VTCM) {
        vector((uintptr_t) p, size, false, pc);
    }
}

SIM_API void sim_touch_write(const void * p, size_t size, const void * pc) {
    if (size && sim_kind((uintptr_t) p) == MEM_VTCM) {
        vector((uintptr_t) p, size, true, pc);
    }
}

// -- the compiler's callbacks -----------------------------------------------------------------------

#define CALLBACKS(size)                                                          \
    SIM_API void __asan_load##size##_noabort(uintptr_t at);                      \
    SIM_API void __asan_load##size##_noabort(uintptr_t at) {                     \
        scalar(at, size, false, __builtin_return_address(0));                    \
    }                                                                            \
    SIM_API void __asan_store##size##_noabort(uintptr_t at);                     \
    SIM_API void __asan_store##size##_noabort(uintptr_t at) {                    \
        scalar(at, size, true, __builtin_return_address(0));                     \
    }

CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(4)
CALLBACKS(8)
CALLBACKS(16)

// 128 bytes and multiples are vectors that need not be aligned: one or two hardware accesses.
static inline __attribute__((always_inline)) void any(uintptr_t at, size_t size, bool store, const void * pc) {
    if (!size) {
        return;
    }
    if (size % 128) {
        scalar(at, size, store, pc);
        return;
    }
    sim_self.n[store ? (at & 127 ? SIM_hvx_stu : SIM_hvx_st) : (at & 127 ? SIM_hvx_ldu : SIM_hvx_ld)] += size / 128;
    vector(at, size, store, pc);
}

SIM_API void __asan_loadN_noabort(uintptr_t at, size_t size);
SIM_API void __asan_storeN_noabort(uintptr_t at, size_t size);
SIM_API void __asan_handle_no_return(void);

SIM_API void __asan_loadN_noabort(uintptr_t at, size_t size) {
    any(at, size, false, __builtin_return_address(0));
}

SIM_API void __asan_storeN_noabort(uintptr_t at, size_t size) {
    any(at, size, true, __builtin_return_address(0));
}

SIM_API void __asan_handle_no_return(void) {}

// -- block copies -----------------------------------------------------------------------------------

// The DSP's libc copies 8 bytes at a time: that many scalar accesses when VTCM is touched.
static void block(const void * p, size_t n, bool store, const void * pc) {
    const uintptr_t at = (uintptr_t) p;
    if (!n) {
        return;
    }
    scalar(at, n, store, pc);
    if (sim_kind(at) == MEM_VTCM) {
        sim_self.n[SIM_vtcm_scalar] += (n + 7) / 8 - 1;
    }
}

#define PC __builtin_return_address(0)

SIM_API void * __wrap_memcpy(void * to, const void * from, size_t n);
SIM_API void * __wrap_memmove(void * to, const void * from, size_t n);
SIM_API void * __wrap_memset(void * to, int c, size_t n);
SIM_API void * __asan_memcpy(void * to, const void * from, size_t n);
SIM_API void * __asan_memmove(void * to, const void * from, size_t n);
SIM_API void * __asan_memset(void * to, int c, size_t n);

SIM_API void * __wrap_memcpy(void * to, const void * from, size_t n) {
    block(from, n, false, PC);
    block(to, n, true, PC);
    return memcpy(to, from, n);
}

SIM_API void * __wrap_memmove(void * to, const void * from, size_t n) {
    block(from, n, false, PC);
    block(to, n, true, PC);
    return memmove(to, from, n);
}

SIM_API void * __wrap_memset(void * to, int c, size_t n) {
    block(to, n, true, PC);
    return memset(to, c, n);
}

SIM_API void * __asan_memcpy(void * to, const void * from, size_t n) {
    block(from, n, false, PC);
    block(to, n, true, PC);
    return memcpy(to, from, n);
}

SIM_API void * __asan_memmove(void * to, const void * from, size_t n) {
    block(from, n, false, PC);
    block(to, n, true, PC);
    return memmove(to, from, n);
}

SIM_API void * __asan_memset(void * to, int c, size_t n) {
    block(to, n, true, PC);
    return memset(to, c, n);
}
