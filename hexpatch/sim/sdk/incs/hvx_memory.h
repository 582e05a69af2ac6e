// Masked stores, gather and scatter.
#ifndef HVX_MEMORY_H
#define HVX_MEMORY_H

#include "hvx_lanes.h"

// -- masked stores: the address is truncated to 128 bytes; bytes outside the mask stay ---------------

// Bytes outside the mask are neither written nor read: another thread may own them.
HVX_OUT void hvx_store_masked(void * at, hvx_b mask, HVX_Vector v) {
    unsigned char * p = (unsigned char *) ((uintptr_t) at & ~(uintptr_t) 127);
    const hvx_ud m = (hvx_ud) mask, x = (hvx_ud) v;
    for (int i = 0; i < 16; i++, p += 8) {
        const uint64_t word = x[i];
        if (m[i] == ~0ull) {
            __builtin_memcpy(p, &word, 8);
        } else if (m[i] != 0) {
            for (int j = 0; j < 8; j++) {
                if (m[i] >> (8 * j) & 1) *(volatile unsigned char *) (p + j) = (unsigned char) (word >> (8 * j));
            }
        }
    }
}
HVX_FN void Q6_vmem_QRIV(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) {
    hvx_count(hvx_st);
    hvx_store_masked(Rt, Qv.m, Vs);
}
HVX_FN void Q6_vmem_QnRIV(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) {
    hvx_count(hvx_st);
    hvx_store_masked(Rt, ~Qv.m, Vs);
}
HVX_FN void Q6_vmem_QRIV_nt(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) { Q6_vmem_QRIV(Qv, Rt, Vs); }
HVX_FN void Q6_vmem_QnRIV_nt(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) { Q6_vmem_QnRIV(Qv, Rt, Vs); }

// -- gather and scatter --------------------------------------------------------------------------------
//
// The region is [Rt, Rt + Mu], Mu the length less 1, in VTCM. Vv holds byte offsets: halfwords
// unsigned, words signed. An element whose offset is negative or whose end passes the region is
// dropped: a scatter does not write it, a gather leaves the destination's element as it was. Of a
// masked element the bytes with a truth value of 0 are left. Only scatter-accumulate aligns the
// address to the element. Where elements collide, the last one wins.

HVX_FN void hvx_check_region(const void * p, size_t size) {
    if (sim_checked(SIM_FAULT_region) && !sim_in_vtcm(p, size)) {
        sim_fault(SIM_FAULT_region, p, size, __builtin_return_address(0));
    }
}
HVX_FN uint8_t * hvx_region(uint32_t rt, int32_t mu) {
    uint8_t * p = (uint8_t *) (uintptr_t) rt;
    hvx_check_region(p, (size_t) (uint32_t) mu + 1);
    return p;
}
// The part of `from` (size bytes) that the mask allows.
HVX_FN void hvx_put(uint8_t * to, const void * from, const hvx_b mask, int at, int size) {
    for (int j = 0; j < size; j++) {
        if (mask[at + j]) to[j] = ((const uint8_t *) from)[j];
    }
}

// T is the element; element i's offset is off[off_at].
#define HVX_GATHER(name, T, n, OFF, off_at)                                                       \
    HVX_OUT void name(void * dst, hvx_b mask, uint32_t rt, int32_t mu, OFF off) {                 \
        const uint8_t * region = hvx_region(rt, mu);                                              \
        uint8_t * to = (uint8_t *) ((uintptr_t) dst & ~(uintptr_t) 127);                          \
        hvx_check_region(to, 128);                                                                \
        for (int i = 0; i < (n); i++) {                                                           \
            const int64_t at = off[off_at];                                                       \
            if (at < 0 || at + (int) sizeof(T) - 1 > (uint32_t) mu) continue;                     \
            hvx_put(to + i * sizeof(T), region + at, mask, i * (int) sizeof(T), sizeof(T));       \
        }                                                                                         \
    }
#define HVX_SCATTER(name, T, n, OFF, off_at)                                                      \
    HVX_OUT void name(hvx_b mask, uint32_t rt, int32_t mu, OFF off, HVX_Vector Vw) {              \
        uint8_t * region = hvx_region(rt, mu);                                                    \
        T from[n];                                                                                \
        __builtin_memcpy(from, &Vw, 128);                                                         \
        for (int i = 0; i < (n); i++) {                                                           \
            const int64_t at = off[off_at];                                                       \
            if (at < 0 || at + (int) sizeof(T) - 1 > (uint32_t) mu) continue;                     \
            hvx_put(region + at, &from[i], mask, i * (int) sizeof(T), sizeof(T));                 \
        }                                                                                         \
    }
#define HVX_SCATTERACC(name, T, n, OFF, off_at)                                                   \
    HVX_OUT void name(uint32_t rt, int32_t mu, OFF off, HVX_Vector Vw) {                          \
        uint8_t * region = hvx_region(rt, mu);                                                    \
        T from[n], old;                                                                           \
        __builtin_memcpy(from, &Vw, 128);                                                         \
        for (int i = 0; i < (n); i++) {                                                           \
            const int64_t at = off[off_at];                                                       \
            if (at < 0 || at + (int) sizeof(T) - 1 > (uint32_t) mu) continue;                     \
            uint8_t * to = (uint8_t *) ((uintptr_t) (region + at) & ~(uintptr_t) (sizeof(T) - 1)); \
            __builtin_memcpy(&old, to, sizeof(T));                                                \
            old = (T) (old + from[i]);                                                            \
            __builtin_memcpy(to, &old, sizeof(T));                                                \
        }                                                                                         \
    }
// Halfwords by halfword offsets, words by word offsets, halfwords by a pair of word offsets (the
// even halfwords' in the low vector).
#define HVX_PAIR_AT ((i) / 2 + (i) % 2 * 32)
HVX_GATHER(hvx_gather_h, uint16_t, 64, hvx_uh, i)
HVX_GATHER(hvx_gather_w, uint32_t, 32, hvx_w, i)
HVX_GATHER(hvx_gather_hw, uint16_t, 64, hvx_w2, HVX_PAIR_AT)
HVX_SCATTER(hvx_scatter_h, uint16_t, 64, hvx_uh, i)
HVX_SCATTER(hvx_scatter_w, uint32_t, 32, hvx_w, i)
HVX_SCATTER(hvx_scatter_hw, uint16_t, 64, hvx_w2, HVX_PAIR_AT)
HVX_SCATTERACC(hvx_scatteracc_h, uint16_t, 64, hvx_uh, i)
HVX_SCATTERACC(hvx_scatteracc_w, uint32_t, 32, hvx_w, i)
HVX_SCATTERACC(hvx_scatteracc_hw, uint16_t, 64, hvx_w2, HVX_PAIR_AT)

#define HVX_ALL HVX_SPLAT(hvx_b, -1)
#define HVX_GATHER_FORMS(plain, masked, fn, VT, OFF)                                             \
    HVX_FN void plain(void * Rs, uint32_t Rt, Word32 Mu, VT Vv) {                                \
        hvx_count(hvx_gather);                                                                   \
        fn(Rs, HVX_ALL, Rt, Mu, (OFF) Vv);                                                       \
    }                                                                                            \
    HVX_FN void masked(void * Rs, HVX_VectorPred Qs, uint32_t Rt, Word32 Mu, VT Vv) {            \
        hvx_count(hvx_gather);                                                                   \
        fn(Rs, Qs.m, Rt, Mu, (OFF) Vv);                                                          \
    }
HVX_GATHER_FORMS(Q6_vgather_ARMVh, Q6_vgather_AQRMVh, hvx_gather_h, HVX_Vector, hvx_uh)
HVX_GATHER_FORMS(Q6_vgather_ARMVw, Q6_vgather_AQRMVw, hvx_gather_w, HVX_Vector, hvx_w)
HVX_GATHER_FORMS(Q6_vgather_ARMWw, Q6_vgather_AQRMWw, hvx_gather_hw, HVX_VectorPair, hvx_w2)

#define HVX_SCATTER_FORMS(plain, masked, acc, kind, VT, OFF)                                     \
    HVX_FN void plain(uint32_t Rt, Word32 Mu, VT Vv, HVX_Vector Vw) {                            \
        hvx_count(hvx_scatter);                                                                  \
        hvx_scatter_##kind(HVX_ALL, Rt, Mu, (OFF) Vv, Vw);                                       \
    }                                                                                            \
    HVX_FN void masked(HVX_VectorPred Qs, uint32_t Rt, Word32 Mu, VT Vv, HVX_Vector Vw) {        \
        hvx_count(hvx_scatter);                                                                  \
        hvx_scatter_##kind(Qs.m, Rt, Mu, (OFF) Vv, Vw);                                          \
    }                                                                                            \
    HVX_FN void acc(uint32_t Rt, Word32 Mu, VT Vv, HVX_Vector Vw) {                              \
        hvx_count(hvx_scatter);                                                                  \
        hvx_scatteracc_##kind(Rt, Mu, (OFF) Vv, Vw);                                    \
    }
HVX_SCATTER_FORMS(Q6_vscatter_RMVhV, Q6_vscatter_QRMVhV, Q6_vscatteracc_RMVhV, h, HVX_Vector, hvx_uh)
HVX_SCATTER_FORMS(Q6_vscatter_RMVwV, Q6_vscatter_QRMVwV, Q6_vscatteracc_RMVwV, w, HVX_Vector, hvx_w)
HVX_SCATTER_FORMS(Q6_vscatter_RMWwV, Q6_vscatter_QRMWwV, Q6_vscatteracc_RMWwV, hw, HVX_VectorPair, hvx_w2)

#endif
