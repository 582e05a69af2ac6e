// Conversions between sf, hf and integers.
#ifndef HVX_CONVERT_H
#define HVX_CONVERT_H

#include "hvx_float.h"

// -- v73: single instructions, round to nearest even or truncate ------------------------------------------

HVX_FN HVX_Vector Q6_Vsf_equals_Vw(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return (HVX_Vector) HVX_CONV(hvx_f, (hvx_w) Vu);
}
// Truncated, saturated; the largest exponent is an ordinary one (what is too large saturates).
HVX_FN HVX_Vector Q6_Vw_equals_Vsf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    const hvx_w v = (hvx_w) Vu, a = v & 0x7fffffff, big = a >= 0x4f000000;
    const hvx_w i = HVX_CONV(hvx_w, (hvx_f) (v & ~big));
    return (HVX_Vector) HVX_SEL(hvx_w, big, (v >> 31) ^ 0x7fffffff, i);
}
HVX_FN HVX_Vector Q6_Vhf_equals_Vh(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_hf_round(HVX_CONV(hvx_f2, hvx_widen_h(Vu)));
}
// A half's value as an ordinary number: the largest exponent is 2^16, not infinity.
HVX_FN hvx_f2 hvx_hf_plain(HVX_Vector v) {
    const hvx_w2 h = hvx_widen_h(v), top = (h & 0x7c00) == 0x7c00;
    const hvx_f2 f = hvx_from_hf_hvx_f2(h ^ (top & 0x400));  // one exponent less, then doubled
    return (hvx_f2) ((hvx_w2) f + (top & (1 << 23)));
}
HVX_FN HVX_Vector Q6_Vh_equals_Vhf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    const hvx_w2 i = HVX_CONV(hvx_w2, hvx_hf_plain(Vu));
    return hvx_narrow_w2(HVX_CLAMP(hvx_w2, i, -32768, 32767));
}

// -- vcvt -----------------------------------------------------------------------------------------------------

// Two vectors to one of narrower elements: Vu gives the even, Vv the odd elements. Integers:
// nearest even, saturated (infinities and NaNs too, by their sign).
HVX_FN hvx_w2 hvx_hf_int(HVX_Vector v, int lo, int hi) {
    const hvx_f2 magic = (hvx_f2) {0} + 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const hvx_f2 f = hvx_hf_plain(v) + magic;
    return HVX_CLAMP(hvx_w2, HVX_CONV(hvx_w2, f - magic), lo, hi);
}
HVX_FN HVX_Vector Q6_Vhf_vcvt_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    return hvx_hf_il((hvx_f) Vu, (hvx_f) Vv);
}
HVX_FN HVX_VectorPair Q6_Wsf_vcvt_Vhf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_pair((HVX_Vector) hvx_quiet_hvx_f(hvx_hf_even(Vu)), (HVX_Vector) hvx_quiet_hvx_f(hvx_hf_odd(Vu)));
}
HVX_FN hvx_w hvx_to_bf(HVX_Vector v) {
    const hvx_w a = (hvx_w) v & 0x7fffffff;
    const hvx_w r = (hvx_w) ((hvx_uw) v + 0x7fff + (((hvx_uw) v >> 16) & 1)) >> 16;
    return HVX_SEL(hvx_w, a > 0x7f800000, HVX_SPLAT(hvx_w, 0x7fff), r);
}
HVX_FN HVX_Vector Q6_Vbf_vcvt_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    return hvx_il16(hvx_to_bf(Vu), hvx_to_bf(Vv));
}
HVX_FN HVX_Vector Q6_Vhf_vcvt_Vh(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_hf_round(HVX_CONV(hvx_f2, hvx_widen_h(Vu)));
}
HVX_FN HVX_Vector Q6_Vhf_vcvt_Vuh(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_hf_round(HVX_CONV(hvx_f2, hvx_widen_h(Vu) & 65535));
}
HVX_FN HVX_Vector Q6_Vh_vcvt_Vhf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_narrow_w2(hvx_hf_int(Vu, -32768, 32767));
}
HVX_FN HVX_Vector Q6_Vh_equals_Vhf_rnd(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_narrow_w2(hvx_hf_int(Vu, -32768, 32767));
}
HVX_FN HVX_Vector Q6_Vuh_vcvt_Vhf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_narrow_w2(hvx_hf_int(Vu, 0, 65535));
}
HVX_FN HVX_Vector hvx_hf_bytes(HVX_Vector u, HVX_Vector v, int lo, int hi) {
    return hvx_il8((hvx_h) hvx_narrow_w2(hvx_hf_int(u, lo, hi)), (hvx_h) hvx_narrow_w2(hvx_hf_int(v, lo, hi)));
}
HVX_FN HVX_Vector Q6_Vb_vcvt_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    return hvx_hf_bytes(Vu, Vv, -128, 127);
}
HVX_FN HVX_Vector Q6_Vub_vcvt_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    return hvx_hf_bytes(Vu, Vv, 0, 255);
}
// The even bytes to the low, the odd ones to the high vector.
HVX_FN HVX_Vector hvx_int_hf(hvx_h v) { return hvx_hf_round(HVX_CONV(hvx_f2, HVX_CONV(hvx_w2, v))); }
HVX_FN HVX_VectorPair Q6_Whf_vcvt_Vb(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_pair(hvx_int_hf(hvx_ev_b(Vu)), hvx_int_hf(hvx_od_b(Vu)));
}
HVX_FN HVX_VectorPair Q6_Whf_vcvt_Vub(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return hvx_pair(hvx_int_hf(hvx_ev_ub(Vu)), hvx_int_hf(hvx_od_ub(Vu)));
}

#endif
