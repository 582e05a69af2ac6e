// Sums of two or three products or differences: vdmpy, vmpa, vtmpy, vdsad.
#ifndef HVX_DUAL_H
#define HVX_DUAL_H

#include "hvx_lanes.h"

// A plain form and one that adds to the accumulator; T are the lanes.
#define HVX_DUAL_V(name, accname, U, B, T, fn, ...)                                            \
    HVX_FN HVX_Vector name(U u, B y) { hvx_count(hvx_mpy); return (HVX_Vector) fn(u, __VA_ARGS__); } \
    HVX_FN HVX_Vector accname(HVX_Vector Vx, U u, B y) {                                       \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) ((hvx_##T) Vx + (hvx_##T) fn(u, __VA_ARGS__));                     \
    }
#define HVX_DUAL_W(name, accname, U, B, T, fn, ...)                                            \
    HVX_FN HVX_VectorPair name(U u, B y) { hvx_count(hvx_mpy); return fn(u, __VA_ARGS__); }    \
    HVX_FN HVX_VectorPair accname(HVX_VectorPair Vxx, U u, B y) {                              \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_VectorPair) ((hvx_##T##2) Vxx + (hvx_##T##2) fn(u, __VA_ARGS__));          \
    }
#define HVX_PAIR_OF(lo, hi) hvx_pair((HVX_Vector) (lo), (HVX_Vector) (hi))

// -- vdmpy: each element, the sum of two neighbours' products with two neighbouring bytes of Rt ----------

HVX_FN hvx_h hvx_dmpy_ub(HVX_Vector u, HVX_Vector r) {
    return hvx_ev_ub(u) * hvx_ev_b(r) + hvx_od_ub(u) * hvx_od_b(r);
}
// On a pair, the high result is one element further on.
HVX_FN HVX_VectorPair hvx_dmpy_wub(HVX_VectorPair u, HVX_Vector r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    return HVX_PAIR_OF(hvx_dmpy_ub(l, r), hvx_od_ub(l) * hvx_ev_b(r) + hvx_ev_ub(h) * hvx_od_b(r));
}
// The bytes of Rt that go with the even and the odd halfwords, in word lanes.
HVX_FN hvx_w hvx_re(Word32 r) { return (hvx_w) hvx_ev_h((HVX_Vector) hvx_turn_bh(r)); }
HVX_FN hvx_w hvx_ro(Word32 r) { return (hvx_w) hvx_od_h((HVX_Vector) hvx_turn_bh(r)); }
HVX_FN hvx_w hvx_dmpy_h(HVX_Vector u, Word32 r) { return hvx_ev_h(u) * hvx_re(r) + hvx_od_h(u) * hvx_ro(r); }
HVX_FN HVX_VectorPair hvx_dmpy_wh(HVX_VectorPair u, Word32 r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    return HVX_PAIR_OF(hvx_dmpy_h(l, r), hvx_od_h(l) * hvx_re(r) + hvx_ev_h(h) * hvx_ro(r));
}
HVX_DUAL_V(Q6_Vh_vdmpy_VubRb, Q6_Vh_vdmpyacc_VhVubRb, HVX_Vector, Word32, uh, hvx_dmpy_ub, hvx_splat_w(y))
HVX_DUAL_W(Q6_Wh_vdmpy_WubRb, Q6_Wh_vdmpyacc_WhWubRb, HVX_VectorPair, Word32, uh, hvx_dmpy_wub, hvx_splat_w(y))
HVX_DUAL_V(Q6_Vw_vdmpy_VhRb, Q6_Vw_vdmpyacc_VwVhRb, HVX_Vector, Word32, uw, hvx_dmpy_h, y)
HVX_DUAL_W(Q6_Ww_vdmpy_WhRb, Q6_Ww_vdmpyacc_WwWhRb, HVX_VectorPair, Word32, uw, hvx_dmpy_wh, y)

// Halfwords by halfwords, saturated to a word, also with the accumulator.
HVX_FN hvx_d2 hvx_dmpy2(hvx_w a, hvx_w b, hvx_w c, hvx_w d) {
    return hvx_wide(a) * hvx_wide(b) + hvx_wide(c) * hvx_wide(d);
}
#define HVX_DMPY_SAT(name, accname, U, B, sum)                                                 \
    HVX_FN HVX_Vector name(U u, B y) {                                                         \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) hvx_wsat(sum);                                                     \
    }                                                                                          \
    HVX_FN HVX_Vector accname(HVX_Vector Vx, U u, B y) {                                       \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) hvx_wsat(hvx_wide((hvx_w) Vx) + sum);                              \
    }
HVX_FN hvx_w hvx_lo_oh(HVX_VectorPair u) { return hvx_od_h(hvx_lo(u)); }
HVX_FN hvx_w hvx_hi_eh(HVX_VectorPair u) { return hvx_ev_h(hvx_hi(u)); }
HVX_DMPY_SAT(Q6_Vw_vdmpy_VhVh_sat, Q6_Vw_vdmpyacc_VwVhVh_sat, HVX_Vector, HVX_Vector,
             hvx_dmpy2(hvx_ev_h(u), hvx_ev_h(y), hvx_od_h(u), hvx_od_h(y)))
HVX_DMPY_SAT(Q6_Vw_vdmpy_VhRh_sat, Q6_Vw_vdmpyacc_VwVhRh_sat, HVX_Vector, Word32,
             hvx_dmpy2(hvx_ev_h(u), hvx_ev_h(hvx_splat_w(y)), hvx_od_h(u), hvx_od_h(hvx_splat_w(y))))
HVX_DMPY_SAT(Q6_Vw_vdmpy_VhRuh_sat, Q6_Vw_vdmpyacc_VwVhRuh_sat, HVX_Vector, Word32,
             hvx_dmpy2(hvx_ev_h(u), hvx_ev_uh(hvx_splat_w(y)), hvx_od_h(u), hvx_od_uh(hvx_splat_w(y))))
HVX_DMPY_SAT(Q6_Vw_vdmpy_WhRh_sat, Q6_Vw_vdmpyacc_VwWhRh_sat, HVX_VectorPair, Word32,
             hvx_dmpy2(hvx_lo_oh(u), hvx_ev_h(hvx_splat_w(y)), hvx_hi_eh(u), hvx_od_h(hvx_splat_w(y))))
HVX_DMPY_SAT(Q6_Vw_vdmpy_WhRuh_sat, Q6_Vw_vdmpyacc_VwWhRuh_sat, HVX_VectorPair, Word32,
             hvx_dmpy2(hvx_lo_oh(u), hvx_ev_uh(hvx_splat_w(y)), hvx_hi_eh(u), hvx_od_uh(hvx_splat_w(y))))

// -- vmpa: elements of the low and the high vector; Rt's bytes 0, 1 for even, 2, 3 for odd ones ----------

HVX_FN HVX_VectorPair hvx_mpa_ub_b(HVX_VectorPair u, Word32 r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    return HVX_PAIR_OF(hvx_ev_ub(l) * (short) hvx_rb(r, 0) + hvx_ev_ub(h) * (short) hvx_rb(r, 1),
                       hvx_od_ub(l) * (short) hvx_rb(r, 2) + hvx_od_ub(h) * (short) hvx_rb(r, 3));
}
HVX_FN HVX_VectorPair hvx_mpa_ub_ub(HVX_VectorPair u, Word32 r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    return HVX_PAIR_OF(hvx_ev_ub(l) * (short) hvx_rub(r, 0) + hvx_ev_ub(h) * (short) hvx_rub(r, 1),
                       hvx_od_ub(l) * (short) hvx_rub(r, 2) + hvx_od_ub(h) * (short) hvx_rub(r, 3));
}
HVX_FN HVX_VectorPair hvx_mpa_h_b(HVX_VectorPair u, Word32 r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    return HVX_PAIR_OF(hvx_ev_h(l) * hvx_rb(r, 0) + hvx_ev_h(h) * hvx_rb(r, 1),
                       hvx_od_h(l) * hvx_rb(r, 2) + hvx_od_h(h) * hvx_rb(r, 3));
}
HVX_FN HVX_VectorPair hvx_mpa_uh_b(HVX_VectorPair u, Word32 r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    return HVX_PAIR_OF(hvx_ev_uh(l) * hvx_rb(r, 0) + hvx_ev_uh(h) * hvx_rb(r, 1),
                       hvx_od_uh(l) * hvx_rb(r, 2) + hvx_od_uh(h) * hvx_rb(r, 3));
}
HVX_DUAL_W(Q6_Wh_vmpa_WubRb, Q6_Wh_vmpaacc_WhWubRb, HVX_VectorPair, Word32, uh, hvx_mpa_ub_b, y)
HVX_DUAL_W(Q6_Wh_vmpa_WubRub, Q6_Wh_vmpaacc_WhWubRub, HVX_VectorPair, Word32, uh, hvx_mpa_ub_ub, y)
HVX_DUAL_W(Q6_Ww_vmpa_WhRb, Q6_Ww_vmpaacc_WwWhRb, HVX_VectorPair, Word32, uw, hvx_mpa_h_b, y)
HVX_DUAL_W(Q6_Ww_vmpa_WuhRb, Q6_Ww_vmpaacc_WwWuhRb, HVX_VectorPair, Word32, uw, hvx_mpa_uh_b, y)
#define HVX_MPA_WW(name, TV)                                                                   \
    HVX_FN HVX_VectorPair name(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {                       \
        hvx_count(hvx_mpy);                                                                    \
        const HVX_Vector l = hvx_lo(Vuu), h = hvx_hi(Vuu), x = hvx_lo(Vvv), y = hvx_hi(Vvv);   \
        return HVX_PAIR_OF(hvx_ev_ub(l) * hvx_ev_##TV(x) + hvx_ev_ub(h) * hvx_ev_##TV(y),      \
                           hvx_od_ub(l) * hvx_od_##TV(x) + hvx_od_ub(h) * hvx_od_##TV(y));     \
    }
HVX_MPA_WW(Q6_Wh_vmpa_WubWb, b)
HVX_MPA_WW(Q6_Wh_vmpa_WubWub, ub)

// -- vtmpy: two products and the third element as it is; the high result one element further on ----------

#define HVX_TMPY(name, E, O, re, ro, B)                                                        \
    HVX_FN HVX_VectorPair name(HVX_VectorPair u, B r) {                                        \
        const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);                                         \
        return HVX_PAIR_OF(E(l) * re(r) + O(l) * ro(r) + E(h), O(l) * re(r) + E(h) * ro(r) + O(h)); \
    }
HVX_TMPY(hvx_tmpy_b, hvx_ev_b, hvx_od_b, hvx_ev_b, hvx_od_b, HVX_Vector)
HVX_TMPY(hvx_tmpy_ub, hvx_ev_ub, hvx_od_ub, hvx_ev_b, hvx_od_b, HVX_Vector)
HVX_TMPY(hvx_tmpy_h, hvx_ev_h, hvx_od_h, hvx_re, hvx_ro, Word32)
HVX_DUAL_W(Q6_Wh_vtmpy_WbRb, Q6_Wh_vtmpyacc_WhWbRb, HVX_VectorPair, Word32, uh, hvx_tmpy_b, hvx_splat_w(y))
HVX_DUAL_W(Q6_Wh_vtmpy_WubRb, Q6_Wh_vtmpyacc_WhWubRb, HVX_VectorPair, Word32, uh, hvx_tmpy_ub, hvx_splat_w(y))
HVX_DUAL_W(Q6_Ww_vtmpy_WhRb, Q6_Ww_vtmpyacc_WwWhRb, HVX_VectorPair, Word32, uw, hvx_tmpy_h, y)

// -- vdsad: sums of two absolute differences of unsigned halfwords ------------------------------------------

HVX_FN hvx_w hvx_ad(hvx_w a, int b) { return HVX_MAX(a - b, b - a); }
HVX_FN HVX_VectorPair hvx_dsad(HVX_VectorPair u, Word32 r) {
    const HVX_Vector l = hvx_lo(u), h = hvx_hi(u);
    const int r0 = (uint16_t) r, r1 = (uint16_t) (r >> 16);
    return HVX_PAIR_OF(hvx_ad(hvx_ev_uh(l), r0) + hvx_ad(hvx_od_uh(l), r1),
                       hvx_ad(hvx_od_uh(l), r0) + hvx_ad(hvx_ev_uh(h), r1));
}
HVX_DUAL_W(Q6_Wuw_vdsad_WuhRuh, Q6_Wuw_vdsadacc_WuwWuhRuh, HVX_VectorPair, Word32, uw, hvx_dsad, y)

#endif
