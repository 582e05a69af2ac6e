// Masked stores, gather and scatter.
#ifndef HVX_MEMORY_H
#define HVX_MEMORY_H

#include "hvx_lanes.h"

// -- masked stores: the address is truncated to 128 bytes; bytes outside the mask stay ---------------

HVX_OUT void hvx_store_masked(void * at, hvx_b mask, HVX_Vector v) {
    HVX_Vector * p = (HVX_Vector *) ((uintptr_t) at & ~(uintptr_t) 127);
    const hvx_b  x = (hvx_b) v;
    for (int k = 0; k < 128; k += 8) {  // no byte outside the mask is written, nor read
        for (int j = k; j < k + 8; j++) {
            if (mask[j]) ((volatile signed char *) p)[j] = x[j];
        }
    }
}
HVX_FN void Q6_vmem_QRIV(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) {
    sim_count(hvx_st);
    hvx_store_masked(Rt, Qv.m, Vs);
}
HVX_FN void Q6_vmem_QnRIV(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) {
    sim_count(hvx_st);
    hvx_store_masked(Rt, ~Qv.m, Vs);
}
HVX_FN void Q6_vmem_QRIV_nt(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) { Q6_vmem_QRIV(Qv, Rt, Vs); }
HVX_FN void Q6_vmem_QnRIV_nt(HVX_VectorPred Qv, void * Rt, HVX_Vector Vs) { Q6_vmem_QnRIV(Qv, Rt, Vs); }

// -- gather and scatter --------------------------------------------------------------------------------
//
// The region is [Rt, Rt + Mu], Mu the length less 1, in VTCM. Vv holds byte offsets. An element
// whose offset is negative or whose end passes the region is dropped: a scatter does not write it,
// a gather leaves the destination's element as it was (so does a mask byte of 0). Only
// scatter-accumulate aligns the address to the element. A masked element needs all of its bytes.

HVX_OUT void hvx_check_region(const void * p, size_t size) {
    if (sim_checked(SIM_FAULT_region) && !sim_in_vtcm(p, size)) {
        sim_fault(SIM_FAULT_region, p, size, __builtin_return_address(0));
    }
}
HVX_FN uint8_t * hvx_region(uint32_t rt, int32_t mu) {
    uint8_t * p = (uint8_t *) (uintptr_t) rt;
    hvx_check_region(p, (size_t) (uint32_t) mu + 1);
    return p;
}

// Element i of `size` bytes has its offset in 32-bit lane at[i].
#define HVX_GATHER(name, T, n, OFF, off_at)                                                       \
    HVX_OUT void name(void * dst, hvx_b mask, uint32_t rt, int32_t mu, OFF off) {                 \
        const uint8_t * region = hvx_region(rt, mu);                                              \
        uint8_t * to = (uint8_t *) ((uintptr_t) dst & ~(uintptr_t) 127);                          \
        hvx_check_region(to, 128);                                                                \
        for (int i = 0; i < (n); i++) {                                                           \
            const int64_t at = off[off_at];                                                       \
            if (!mask[i * (int) sizeof(T)] || at < 0 || at + (int) sizeof(T) - 1 > (uint32_t) mu) \
                continue;                                                                         \
            __builtin_memcpy(to + i * sizeof(T), region + at, sizeof(T));                         \
        }                                                                                         \
    }
#define HVX_SCATTER(name, T, n, OFF, off_at, acc)                                                 \
    HVX_OUT void name(hvx_b mask, uint32_t rt, int32_t mu, OFF off, HVX_Vector Vw) {              \
        uint8_t * region = hvx_region(rt, mu);                                                    \
        T from[n];                                                                                \
        __builtin_memcpy(from, &Vw, 128);                                                         \
        for (int i = 0; i < (n); i++) {                                                           \
            const int64_t at = off[off_at];                                                       \
            if (!mask[i * (int) sizeof(T)] || at < 0 || at + (int) sizeof(T) - 1 > (uint32_t) mu) \
                continue;                                                                         \
            T x = from[i];                                                                        \
            uint8_t * to = region + at;                                                           \
            if (acc) {                                                                            \
                T old;                                                                            \
                to = (uint8_t *) ((uintptr_t) to & ~(uintptr_t) (sizeof(T) - 1));                 \
                __builtin_memcpy(&old, to, sizeof(T));                                            \
                x = (T) (x + old);                                                                \
            }                                                                                     \
            __builtin_memcpy(to, &x, sizeof(T));                                                  \
        }                                                                                         \
    }
// Halfwords by halfword offsets, words by word offsets, halfwords by a pair of word offsets (the
// even halfwords' in the low vector).
#define HVX_PAIR_AT ((i) / 2 + (i) % 2 * 32)
HVX_GATHER(hvx_gather_h, uint16_t, 64, hvx_uh, i)
HVX_GATHER(hvx_gather_w, uint32_t, 32, hvx_w, i)
HVX_GATHER(hvx_gather_hw, uint16_t, 64, hvx_w2, HVX_PAIR_AT)
HVX_SCATTER(hvx_scatter_h, uint16_t, 64, hvx_uh, i, 0)
HVX_SCATTER(hvx_scatter_w, uint32_t, 32, hvx_w, i, 0)
HVX_SCATTER(hvx_scatter_hw, uint16_t, 64, hvx_w2, HVX_PAIR_AT, 0)
HVX_SCATTER(hvx_scatteracc_h, uint16_t, 64, hvx_uh, i, 1)
HVX_SCATTER(hvx_scatteracc_w, uint32_t, 32, hvx_w, i, 1)
HVX_SCATTER(hvx_scatteracc_hw, uint16_t, 64, hvx_w2, HVX_PAIR_AT, 1)

#define HVX_ALL HVX_SPLAT(hvx_b, -1)
#define HVX_GATHER_FORMS(plain, masked, fn, VT, OFF)                                             \
    HVX_FN void plain(void * Rs, uint32_t Rt, Word32 Mu, VT Vv) {                                \
        sim_count(hvx_gather);                                                                   \
        fn(Rs, HVX_ALL, Rt, Mu, (OFF) Vv);                                                       \
    }                                                                                            \
    HVX_FN void masked(void * Rs, HVX_VectorPred Qs, uint32_t Rt, Word32 Mu, VT Vv) {            \
        sim_count(hvx_gather);                                                                   \
        fn(Rs, Qs.m, Rt, Mu, (OFF) Vv);                                                          \
    }
HVX_GATHER_FORMS(Q6_vgather_ARMVh, Q6_vgather_AQRMVh, hvx_gather_h, HVX_Vector, hvx_uh)
HVX_GATHER_FORMS(Q6_vgather_ARMVw, Q6_vgather_AQRMVw, hvx_gather_w, HVX_Vector, hvx_w)
HVX_GATHER_FORMS(Q6_vgather_ARMWw, Q6_vgather_AQRMWw, hvx_gather_hw, HVX_VectorPair, hvx_w2)

#define HVX_SCATTER_FORMS(plain, masked, acc, kind, VT, OFF)                                     \
    HVX_FN void plain(uint32_t Rt, Word32 Mu, VT Vv, HVX_Vector Vw) {                            \
        sim_count(hvx_scatter);                                                                  \
        hvx_scatter_##kind(HVX_ALL, Rt, Mu, (OFF) Vv, Vw);                                       \
    }                                                                                            \
    HVX_FN void masked(HVX_VectorPred Qs, uint32_t Rt, Word32 Mu, VT Vv, HVX_Vector Vw) {        \
        sim_count(hvx_scatter);                                                                  \
        hvx_scatter_##kind(Qs.m, Rt, Mu, (OFF) Vv, Vw);                                          \
    }                                                                                            \
    HVX_FN void acc(uint32_t Rt, Word32 Mu, VT Vv, HVX_Vector Vw) {                              \
        sim_count(hvx_scatter);                                                                  \
        hvx_scatteracc_##kind(HVX_ALL, Rt, Mu, (OFF) Vv, Vw);                                    \
    }
HVX_SCATTER_FORMS(Q6_vscatter_RMVhV, Q6_vscatter_QRMVhV, Q6_vscatteracc_RMVhV, h, HVX_Vector, hvx_uh)
HVX_SCATTER_FORMS(Q6_vscatter_RMVwV, Q6_vscatter_QRMVwV, Q6_vscatteracc_RMVwV, w, HVX_Vector, hvx_w)
HVX_SCATTER_FORMS(Q6_vscatter_RMWwV, Q6_vscatter_QRMWwV, Q6_vscatteracc_RMWwV, hw, HVX_VectorPair, hvx_w2)

#endif
