// IEEE arithmetic of HVX, and comparisons and conversions of sf and hf vectors.
//
// Nearest even, subnormals kept, a NaN result is 0x7fffffff or 0x7fff.
#ifndef HVX_IEEE_H
#define HVX_IEEE_H

#include "hvx_float.h"

#define HVX_SF_VV(name, op)                                                      \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {                       \
        hvx_count(hvx_fp);                                                       \
        return (HVX_Vector) hvx_quiet_hvx_f((hvx_f) Vu op(hvx_f) Vv);            \
    }
HVX_SF_VV(Q6_Vsf_vadd_VsfVsf, +)
HVX_SF_VV(Q6_Vsf_vsub_VsfVsf, -)
HVX_SF_VV(Q6_Vsf_vmpy_VsfVsf, *)

// In single, then rounded to half: that is the correctly rounded result.
#define HVX_HF_VV(name, op)                                                      \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {                       \
        hvx_count(hvx_fp);                                                       \
        return hvx_hf_round(hvx_hf_values(Vu) op hvx_hf_values(Vv));             \
    }
HVX_HF_VV(Q6_Vhf_vadd_VhfVhf, +)
HVX_HF_VV(Q6_Vhf_vsub_VhfVhf, -)
HVX_HF_VV(Q6_Vhf_vmpy_VhfVhf, *)

// Even halves to the low, odd to the high vector.
#define HVX_SF_WIDE(name, op)                                                    \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu, HVX_Vector Vv) {                   \
        hvx_count(hvx_fp);                                                       \
        return hvx_pair((HVX_Vector) hvx_quiet_hvx_f(hvx_hf_even(Vu) op hvx_hf_even(Vv)), \
                        (HVX_Vector) hvx_quiet_hvx_f(hvx_hf_odd(Vu) op hvx_hf_odd(Vv)));  \
    }
HVX_SF_WIDE(Q6_Wsf_vadd_VhfVhf, +)
HVX_SF_WIDE(Q6_Wsf_vsub_VhfVhf, -)
HVX_SF_WIDE(Q6_Wsf_vmpy_VhfVhf, *)
// The product of two halves is exact in single: one rounding.
HVX_FN HVX_Vector hvx_sf_acc(HVX_Vector x, hvx_f a, hvx_f b) {
    const hvx_f p = a * b;
    return (HVX_Vector) hvx_quiet_hvx_f((hvx_f) x + p);
}
HVX_FN HVX_VectorPair Q6_Wsf_vmpyacc_WsfVhfVhf(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    return hvx_pair(hvx_sf_acc(hvx_lo(Vxx), hvx_hf_even(Vu), hvx_hf_even(Vv)),
                    hvx_sf_acc(hvx_hi(Vxx), hvx_hf_odd(Vu), hvx_hf_odd(Vv)));
}

// Product and sum, rounded once to half: the sum in single to odd (inexact: the last bit set) first.
HVX_FN hvx_f2 hvx_sum_odd(hvx_f2 p, hvx_f2 c) {
    const hvx_f2 s = p + c;
    const hvx_f2 back = s - p;
    const hvx_f2 rest = s - back;
    const hvx_f2 e1 = p - rest, e2 = c - back;
    const hvx_f2 err = e1 + e2;
    const hvx_w2 bits = (hvx_w2) s, fix = (hvx_w2) (err != 0) & ((bits & 1) - 1);  // NaN: none
    const hvx_w2 step = (((hvx_w2) err ^ bits) >> 31) | 1;  // away from zero or towards it
    return (hvx_f2) (bits + (fix & (hvx_w2) (err == err) & step));
}
HVX_FN HVX_Vector Q6_Vhf_vmpyacc_VhfVhfVhf(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    const hvx_f2 p = hvx_hf_values(Vu) * hvx_hf_values(Vv);
    return hvx_hf_round(hvx_sum_odd(p, hvx_hf_values(Vx)));
}
// Two products of neighbours: exact in single, so their sum is rounded once. With the accumulator
// the three are added in double.
HVX_FN HVX_Vector Q6_Vsf_vdmpy_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    const hvx_f p = hvx_hf_even(Vu) * hvx_hf_even(Vv);
    return hvx_sf_acc((HVX_Vector) p, hvx_hf_odd(Vu), hvx_hf_odd(Vv));
}
typedef double hvx_f64 __attribute__((vector_size(256), aligned(128)));
HVX_FN HVX_Vector Q6_Vsf_vdmpyacc_VsfVhfVhf(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    const hvx_f p = hvx_hf_even(Vu) * hvx_hf_even(Vv), q = hvx_hf_odd(Vu) * hvx_hf_odd(Vv);
    const hvx_f64 s = HVX_CONV(hvx_f64, p) + HVX_CONV(hvx_f64, q) + HVX_CONV(hvx_f64, (hvx_f) Vx);
    return (HVX_Vector) hvx_quiet_hvx_f(HVX_CONV(hvx_f, s));
}

// -- bf16, v73: the upper halves of singles ----------------------------------------------------------------

HVX_FN hvx_f hvx_bf_even(HVX_Vector v) { return (hvx_f) (v << 16); }
HVX_FN hvx_f hvx_bf_odd(HVX_Vector v) { return (hvx_f) (v & (int) 0xffff0000); }
#define HVX_BF_WIDE(name, op)                                                    \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu, HVX_Vector Vv) {                   \
        hvx_count(hvx_fp);                                                       \
        return hvx_pair((HVX_Vector) hvx_quiet_hvx_f(hvx_bf_even(Vu) op hvx_bf_even(Vv)), \
                        (HVX_Vector) hvx_quiet_hvx_f(hvx_bf_odd(Vu) op hvx_bf_odd(Vv)));  \
    }
HVX_BF_WIDE(Q6_Wsf_vadd_VbfVbf, +)
HVX_BF_WIDE(Q6_Wsf_vsub_VbfVbf, -)
HVX_BF_WIDE(Q6_Wsf_vmpy_VbfVbf, *)
HVX_FN HVX_VectorPair Q6_Wsf_vmpyacc_WsfVbfVbf(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_fp);
    return hvx_pair(hvx_sf_acc(hvx_lo(Vxx), hvx_bf_even(Vu), hvx_bf_even(Vv)),
                    hvx_sf_acc(hvx_hi(Vxx), hvx_bf_odd(Vu), hvx_bf_odd(Vv)));
}

// -- sign ------------------------------------------------------------------------------------------------

HVX_FN HVX_Vector Q6_Vsf_vfneg_Vsf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return Vu ^ (int) 0x80000000;
}
HVX_FN HVX_Vector Q6_Vhf_vfneg_Vhf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return Vu ^ (int) 0x80008000;
}
HVX_FN HVX_Vector Q6_Vsf_vabs_Vsf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return Vu & 0x7fffffff;
}
HVX_FN HVX_Vector Q6_Vhf_vabs_Vhf(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return Vu & 0x7fff7fff;
}

// -- order -----------------------------------------------------------------------------------------------
//
// Before v79 numbers compare as sign and magnitude, the largest exponent included, and max and min
// take +0 for larger than -0. From v79 on a comparison with a NaN is false and max and min give a
// NaN: 0x7fffffff (max), 0xffffffff (min), the like for halves.

#define HVX_ORDER(ty, T, MAG, INF)                                                                \
    HVX_FN hvx_##T hvx_key_##ty(hvx_##T v) { return v ^ ((v >> (HVX_BITS(hvx_##T) - 1)) & (MAG)); } \
    HVX_FN hvx_##T hvx_nans_##ty(hvx_##T a, hvx_##T b) {                                          \
        return ((a & (MAG)) > (INF)) | ((b & (MAG)) > (INF));                                     \
    }                                                                                             \
    HVX_FN HVX_VectorPred hvx_cmp_gt_##ty(HVX_Vector Vu, HVX_Vector Vv) {                         \
        hvx_count(hvx_fp);                                                                        \
        const hvx_##T a = (hvx_##T) Vu, b = (hvx_##T) Vv, zeros = ((a | b) & (MAG)) == 0;         \
        const hvx_##T gt = (hvx_key_##ty(a) > hvx_key_##ty(b)) & ~zeros;                          \
        return hvx_pred((hvx_b) (__HVX_ARCH__ < 79 ? gt : gt & ~hvx_nans_##ty(a, b)));            \
    }                                                                                             \
    HVX_FN HVX_VectorPred hvx_cmp_eq_##ty(HVX_Vector Vu, HVX_Vector Vv) {                         \
        hvx_count(hvx_fp);                                                                        \
        const hvx_##T a = (hvx_##T) Vu, b = (hvx_##T) Vv, zeros = ((a | b) & (MAG)) == 0;         \
        return hvx_pred((hvx_b) (((a == b) | zeros) & ~hvx_nans_##ty(a, b)));                     \
    }                                                                                             \
    HVX_FN HVX_Vector hvx_max_##ty(HVX_Vector Vu, HVX_Vector Vv, bool nan) {                      \
        hvx_count(hvx_fp);                                                                        \
        const hvx_##T a = (hvx_##T) Vu, b = (hvx_##T) Vv, bad = hvx_nans_##ty(a, b);              \
        const hvx_##T m = HVX_SEL(hvx_##T, hvx_key_##ty(a) > hvx_key_##ty(b), a, b);              \
        return (HVX_Vector) (nan ? HVX_SEL(hvx_##T, bad, HVX_SPLAT(hvx_##T, MAG), m) : m);        \
    }                                                                                             \
    HVX_FN HVX_Vector hvx_min_##ty(HVX_Vector Vu, HVX_Vector Vv, bool nan) {                      \
        hvx_count(hvx_fp);                                                                        \
        const hvx_##T a = (hvx_##T) Vu, b = (hvx_##T) Vv;                                         \
        const hvx_##T m = HVX_SEL(hvx_##T, hvx_key_##ty(a) > hvx_key_##ty(b), b, a);              \
        return (HVX_Vector) (nan ? m | hvx_nans_##ty(a, b) : m);                                  \
    }                                                                                             \
    HVX_CMP_FORMS(gt, ty)                                                                         \
    HVX_FMINMAX(ty, vmax, max, __HVX_ARCH__ >= 79)                                                \
    HVX_FMINMAX(ty, vmin, min, __HVX_ARCH__ >= 79)
#define HVX_FMINMAX(ty, name, fn, nan)                                                            \
    HVX_FN HVX_Vector Q6_V##ty##_##name##_V##ty##V##ty(HVX_Vector Vu, HVX_Vector Vv) {            \
        return hvx_##fn##_##ty(Vu, Vv, nan);                                                      \
    }
HVX_ORDER(sf, w, 0x7fffffff, 0x7f800000)
HVX_ORDER(hf, h, (short) 0x7fff, (short) 0x7c00)
HVX_ORDER(bf, h, (short) 0x7fff, (short) 0x7f80)
HVX_CMP_FORMS(eq, sf)
HVX_CMP_FORMS(eq, hf)
HVX_FMINMAX(sf, vfmax, max, true)
HVX_FMINMAX(sf, vfmin, min, true)
HVX_FMINMAX(hf, vfmax, max, true)
HVX_FMINMAX(hf, vfmin, min, true)

#endif
