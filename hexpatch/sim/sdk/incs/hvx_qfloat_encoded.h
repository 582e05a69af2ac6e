// qfloat as encoded (see hvx_qfloat.h), in integer lanes and without branches.
//
// A number here is (a, e): the value a 2^(e - p), p = 23 (qf32) or 10 (qf16), |a| < 2^(p + 1). A
// result on its way to rounding is x = 8 times what a would be, with the lowest bit set if anything
// was cut off ("sticky"). All rounding thresholds are multiples of 4 in x, so this is exact.
#ifndef HVX_QFLOAT_ENCODED_H
#define HVX_QFLOAT_ENCODED_H

#include "hvx_float.h"

typedef float   hvx_f8 __attribute__((vector_size(32), may_alias));
typedef int64_t hvx_d4 __attribute__((vector_size(32), may_alias));
typedef struct {
    hvx_w8 m;  // S
    hvx_w8 e;  // E
} hvx_qf8;

// Round: S and E of x 2^(e - p) / 8. Below, R = x / 8 and r = R mod 4. emin = 1 - emax.
// Only odd multiples of the unit exist, at e; and of twice the unit, at e + 1: so the candidates in
// (0, 4) are 1, 2 and 3, and only 1 and 3 if the exponent must not grow (again).
HVX_FN hvx_qf8 hvx_qf_round(hvx_w8 x, hvx_w8 e, const int p, const int emax) {
    const hvx_w8 ovf    = (x >= (1 << (p + 4))) | (x < -(1 << (p + 4)));
    const hvx_w8 halve  = ovf | (e == -emax);
    const hvx_w8 forced = halve | (e == emax);
    const hvx_w8 y      = HVX_SEL(hvx_w8, halve, (x >> 1) | (x & 1), x);
    const hvx_w8 r = y & 31, q = y >> 5;
    const hvx_w8 mid = ~forced & (r > 12) & (r <= 20);
    const hvx_w8 s   = HVX_SEL(hvx_w8, mid, q, q + q - (r > (20 + (forced & -4))));
    const hvx_w8 e2  = e - halve - mid;
    const hvx_w8 big = e2 > emax, sign = x >> 31, none = (e < -emax) | (x == 0);
    const hvx_w8 e3  = HVX_SEL(hvx_w8, big, HVX_SPLAT(hvx_w8, 2 * emax - 1), e2 + (emax - 1));
    const hvx_w8 s3  = HVX_SEL(hvx_w8, big, sign ^ ((1 << p) - 1), s);
    return (hvx_qf8) {HVX_SEL(hvx_w8, none, sign, s3), ~none & e3};
}
// A sum. Its exponent is the larger operand's, normalised, but at least the smaller operand's.
HVX_FN hvx_qf8 hvx_qf_sum(hvx_w8 a, hvx_w8 ea, hvx_w8 b, hvx_w8 eb, const int p, const int emax) {
    const hvx_w8 swap = eb > ea;
    const hvx_w8 ah = HVX_SEL(hvx_w8, swap, b, a), al = HVX_SEL(hvx_w8, swap, a, b);
    const hvx_w8 eh = HVX_MAX(ea, eb), el = HVX_MIN(ea, eb);
    const hvx_w8 lg = (((hvx_w8) HVX_CONV(hvx_f8, ah) >> 23) & 255) - 127;
    const hvx_w8 e  = HVX_MAX(el, eh + lg - p);
    const hvx_w8 d  = HVX_MIN(e - el, HVX_SPLAT(hvx_w8, 31));
    const hvx_w8 y = al << 3, ys = y >> d;
    return hvx_qf_round((ah << (3 + eh - e)) + (ys | ((hvx_w8) ((ys << d) != y) & 1)), e, p, emax);
}
// IEEE half from the magnitude m 2^ex and the sign mask; nearest even. The largest exponent is an
// ordinary one, and what is too large is 0x7fff.
HVX_FN hvx_w8 hvx_qf_half(hvx_w8 a, hvx_w8 ex) {
    const hvx_w8 m    = HVX_MAX(a, -a);
    const hvx_w8 x    = (hvx_w8) HVX_CONV(hvx_f8, m) + (ex << 23);
    const hvx_w8 norm = (x - (112 << 23) + 0xfff + ((x >> 13) & 1)) >> 13;
    const hvx_w8 tiny = HVX_CLAMP(hvx_w8, x, 0, 113 << 23);
    const hvx_w8 sub  = (hvx_w8) ((hvx_f8) tiny + 0.5f) - 0x3f000000;
    const hvx_w8 h    = HVX_SEL(hvx_w8, x < (113 << 23), sub, HVX_MIN(norm, HVX_SPLAT(hvx_w8, 0x7fff)));
    return h | ((a >> 31) & 0x8000);
}

// -- operands -----------------------------------------------------------------------------------------
//
// Each declares a (with its sign; for the IEEE kinds the magnitude m, and the sign mask s) and e.
// For IEEE operands the largest exponent is an ordinary one, and subnormals have the smallest.

#define HVX_QF32(v, a, e) const hvx_w8 a = ((v) >> 7) | 1, e = ((v) & 255) - 127
#define HVX_QF16(v, a, e) const hvx_w8 a = ((v) >> 4) | 1, e = ((v) & 31) - 15
#define HVX_SF(v, m, e, s) HVX_IEEE(v, m, e, s, 23, 255, 127)
#define HVX_HF(v, m, e, s) HVX_IEEE(v, m, e, s, 10, 31, 15)
#define HVX_IEEE(v, m, e, s, p, emask, bias)                                                      \
    const hvx_w8 e##f_ = ((v) >> (p)) & (emask), m##f_ = (v) & ((1 << (p)) - 1), e = e##f_ - (bias), \
                 m = HVX_SEL(hvx_w8, e##f_ == 0, m##f_ << 1, m##f_ | (1 << (p))), s = (v) >> 31
#define HVX_SIGNED(m, s) (((m) ^ (s)) - (s))

// The operations on eight lanes: u and v are words, or halfwords sign-extended to words. Two IEEE
// operands that are both negative: the sum of the magnitudes, then the one's complement of S. A
// product of IEEE operands: the magnitudes' product, then the one's complement if the signs differ.
#define HVX_QF_OPS(bits, QF, IEEE, p, emax, product)                                              \
    HVX_FN hvx_w8 hvx_pack##bits(hvx_qf8 r, hvx_w8 flip) { return ((r.m ^ flip) << ((p) == 23 ? 8 : 5)) | r.e; } \
    HVX_CORE hvx_w8 hvx_add##bits(hvx_w8 u, hvx_w8 v) {                                             \
        QF(u, a, ea);                                                                             \
        QF(v, b, eb);                                                                             \
        return hvx_pack##bits(hvx_qf_sum(a, ea, b, eb, p, emax), (hvx_w8) {0});                   \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_sub##bits(hvx_w8 u, hvx_w8 v) {                                             \
        QF(u, a, ea);                                                                             \
        QF(v, b, eb);                                                                             \
        return hvx_pack##bits(hvx_qf_sum(a, ea, -b, eb, p, emax), (hvx_w8) {0});                  \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_add_mix##bits(hvx_w8 u, hvx_w8 v) {                                         \
        QF(u, a, ea);                                                                             \
        IEEE(v, m, eb, s);                                                                        \
        return hvx_pack##bits(hvx_qf_sum(a, ea, HVX_SIGNED(m, s), eb, p, emax), (hvx_w8) {0});    \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_sub_mix##bits(hvx_w8 u, hvx_w8 v) {                                         \
        QF(u, a, ea);                                                                             \
        IEEE(v, m, eb, s);                                                                        \
        return hvx_pack##bits(hvx_qf_sum(a, ea, HVX_SIGNED(m, ~s), eb, p, emax), (hvx_w8) {0});   \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_sub_xim##bits(hvx_w8 u, hvx_w8 v) {                                         \
        IEEE(u, m, ea, s);                                                                        \
        QF(v, b, eb);                                                                             \
        return hvx_pack##bits(hvx_qf_sum(HVX_SIGNED(m, s), ea, -b, eb, p, emax), (hvx_w8) {0});   \
    }                                                                                             \
    HVX_FN hvx_w8 hvx_sum_ieee##bits(hvx_w8 u, hvx_w8 v, hvx_w8 flip) {                           \
        IEEE(u, m, ea, su);                                                                       \
        IEEE(v, n, eb, s0);                                                                       \
        const hvx_w8 sv = s0 ^ flip, both = su & sv;                                              \
        return hvx_pack##bits(hvx_qf_sum(HVX_SIGNED(m, su ^ both), ea, HVX_SIGNED(n, sv ^ both),  \
                                         eb, p, emax), both);                                     \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_add_ieee##bits(hvx_w8 u, hvx_w8 v) { return hvx_sum_ieee##bits(u, v, (hvx_w8) {0}); } \
    HVX_CORE hvx_w8 hvx_sub_ieee##bits(hvx_w8 u, hvx_w8 v) { return hvx_sum_ieee##bits(u, v, ~(hvx_w8) {0}); } \
    HVX_CORE hvx_w8 hvx_mul##bits(hvx_w8 u, hvx_w8 v) {                                             \
        QF(u, a, ea);                                                                             \
        QF(v, b, eb);                                                                             \
        return hvx_pack##bits(hvx_qf_round(product(a, b), ea + eb, p, emax), (hvx_w8) {0});       \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_mul_mix##bits(hvx_w8 u, hvx_w8 v) {                                         \
        QF(u, a, ea);                                                                             \
        IEEE(v, m, eb, s);                                                                        \
        return hvx_pack##bits(hvx_qf_round(product(a, HVX_SIGNED(m, s)), ea + eb, p, emax), (hvx_w8) {0}); \
    }                                                                                             \
    HVX_CORE hvx_w8 hvx_mul_ieee##bits(hvx_w8 u, hvx_w8 v) {                                        \
        IEEE(u, m, ea, s);                                                                        \
        IEEE(v, n, eb, t);                                                                        \
        return hvx_pack##bits(hvx_qf_round(product(m, n), ea + eb, p, emax), s ^ t);              \
    }
// 8 times the product in units of 2^-23: of the even and the odd lanes' 64-bit products, bits 20 to
// 51, and the sticky bit from those below.
HVX_FN hvx_w8 hvx_product32(hvx_w8 a, hvx_w8 b) {
    const hvx_d4 x = (hvx_d4) a, y = (hvx_d4) b, low = HVX_SPLAT(hvx_d4, 0xffffffff);
    const hvx_d4 pe = ((x << 32) >> 32) * ((y << 32) >> 32), po = (x >> 32) * (y >> 32);
    const hvx_w8 top = (hvx_w8) (((pe >> 20) & low) | ((po << 12) & ~low));
    const hvx_w8 cut = (hvx_w8) ((pe & low) | (po << 32)) & 0xfffff;
    return top | ((hvx_w8) (cut != 0) & 1);
}
HVX_FN hvx_w8 hvx_product16(hvx_w8 a, hvx_w8 b) {  // in units of 2^-10
    const hvx_w8 p = a * b;
    return (p >> 7) | ((hvx_w8) ((p & 127) != 0) & 1);
}
HVX_QF_OPS(32, HVX_QF32, HVX_SF, 23, 128, hvx_product32)
HVX_QF_OPS(16, HVX_QF16, HVX_HF, 10, 16, hvx_product16)

// Halves or qf16 to qf32: the product is exact.
HVX_FN hvx_w8 hvx_wide_product(hvx_w8 a, hvx_w8 b, hvx_w8 e, hvx_w8 flip) {
    return hvx_pack32(hvx_qf_round((a * b) << 6, e, 23, 128), flip);
}
HVX_CORE hvx_w8 hvx_wide_ieee(hvx_w8 u, hvx_w8 v) {
    HVX_HF(u, m, ea, s);
    HVX_HF(v, n, eb, t);
    return hvx_wide_product(m, n, ea + eb, s ^ t);
}
HVX_CORE hvx_w8 hvx_wide_qf(hvx_w8 u, hvx_w8 v) {
    HVX_QF16(u, a, ea);
    HVX_QF16(v, b, eb);
    return hvx_wide_product(a, b, ea + eb, (hvx_w8) {0});
}
HVX_CORE hvx_w8 hvx_wide_mix(hvx_w8 u, hvx_w8 v) {
    HVX_QF16(u, a, ea);
    HVX_HF(v, m, eb, s);
    return hvx_wide_product(a, HVX_SIGNED(m, s), ea + eb, (hvx_w8) {0});
}

// -- the intrinsics ------------------------------------------------------------------------------------

// Eight lanes at a time: the whole vector's intermediate values would not fit the host's registers.
#define HVX_QF32_VV(name, fn)                                                           \
    HVX_FN HVX_Vector name(HVX_Vector u, HVX_Vector v) {                                \
        hvx_count(hvx_fp);                                                              \
        return HVX_BY8(fn, u, v);                                                       \
    }
HVX_QF32_VV(Q6_Vqf32_vadd_Vqf32Vqf32, hvx_add32)
HVX_QF32_VV(Q6_Vqf32_vsub_Vqf32Vqf32, hvx_sub32)
HVX_QF32_VV(Q6_Vqf32_vadd_Vqf32Vsf, hvx_add_mix32)
HVX_QF32_VV(Q6_Vqf32_vsub_Vqf32Vsf, hvx_sub_mix32)
HVX_QF32_VV(Q6_Vqf32_vsub_VsfVqf32, hvx_sub_xim32)
HVX_QF32_VV(Q6_Vqf32_vadd_VsfVsf, hvx_add_ieee32)
HVX_QF32_VV(Q6_Vqf32_vsub_VsfVsf, hvx_sub_ieee32)
HVX_QF32_VV(Q6_Vqf32_vmpy_Vqf32Vqf32, hvx_mul32)
HVX_QF32_VV(Q6_Vqf32_vmpy_VsfVsf, hvx_mul_ieee32)

#define HVX_EVEN(x) (((x) << 16) >> 16)
#define HVX_ODD(x)  ((x) >> 16)
#define HVX_IL(e, o) (((e) & 65535) | ((o) << 16))
#define HVX_QF16_VV(name, fn)                                                           \
    HVX_FN hvx_w8 name##_8(hvx_w8 u, hvx_w8 v) {                                        \
        return HVX_IL(fn(HVX_EVEN(u), HVX_EVEN(v)), fn(HVX_ODD(u), HVX_ODD(v)));        \
    }                                                                                   \
    HVX_QF32_VV(name, name##_8)
HVX_QF16_VV(Q6_Vqf16_vadd_Vqf16Vqf16, hvx_add16)
HVX_QF16_VV(Q6_Vqf16_vsub_Vqf16Vqf16, hvx_sub16)
HVX_QF16_VV(Q6_Vqf16_vadd_Vqf16Vhf, hvx_add_mix16)
HVX_QF16_VV(Q6_Vqf16_vsub_Vqf16Vhf, hvx_sub_mix16)
HVX_QF16_VV(Q6_Vqf16_vsub_VhfVqf16, hvx_sub_xim16)
HVX_QF16_VV(Q6_Vqf16_vadd_VhfVhf, hvx_add_ieee16)
HVX_QF16_VV(Q6_Vqf16_vsub_VhfVhf, hvx_sub_ieee16)
HVX_QF16_VV(Q6_Vqf16_vmpy_Vqf16Vqf16, hvx_mul16)
HVX_QF16_VV(Q6_Vqf16_vmpy_Vqf16Vhf, hvx_mul_mix16)
HVX_QF16_VV(Q6_Vqf16_vmpy_VhfVhf, hvx_mul_ieee16)

// Even elements to the low, odd to the high vector.
#define HVX_QF_WIDE(name, fn)                                                           \
    HVX_FN hvx_w8 name##_e(hvx_w8 u, hvx_w8 v) { return fn(HVX_EVEN(u), HVX_EVEN(v)); } \
    HVX_FN hvx_w8 name##_o(hvx_w8 u, hvx_w8 v) { return fn(HVX_ODD(u), HVX_ODD(v)); }   \
    HVX_FN HVX_VectorPair name(HVX_Vector u, HVX_Vector v) {                            \
        hvx_count(hvx_fp);                                                              \
        return hvx_pair(HVX_BY8(name##_e, u, v), HVX_BY8(name##_o, u, v));              \
    }
HVX_QF_WIDE(Q6_Wqf32_vmpy_VhfVhf, hvx_wide_ieee)
HVX_QF_WIDE(Q6_Wqf32_vmpy_Vqf16Vqf16, hvx_wide_qf)
HVX_QF_WIDE(Q6_Wqf32_vmpy_Vqf16Vhf, hvx_wide_mix)

// -- conversions -----------------------------------------------------------------------------------------

// Exact but for the smallest exponent, where the last bit is rounded to even. There is no overflow:
// the largest exponent is an ordinary one.
HVX_FN HVX_Vector Q6_Vsf_equals_Vqf32(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    const hvx_w a = ((hvx_w) Vu >> 7) | 1, e = (hvx_w) Vu & 255, m = HVX_MAX(a, -a);
    const hvx_w f = (hvx_w) HVX_CONV(hvx_f, m) + ((e - 150) << 23), half = m >> 1;
    const hvx_w sub = HVX_SEL(hvx_w, e == 0, half + (half & 1), m << ((e - 1) & 31));
    return (HVX_Vector) (HVX_SEL(hvx_w, f < (1 << 23), sub, f) | (a & (int) 0x80000000));
}
HVX_FN hvx_w8 hvx_half_of32(hvx_w8 v) { return hvx_qf_half((v >> 7) | 1, (v & 255) - 150); }
HVX_FN hvx_w8 hvx_half_of16(hvx_w8 v) { return hvx_qf_half((v >> 4) | 1, (v & 31) - 25); }
HVX_CORE hvx_w8 hvx_halves_of32(hvx_w8 lo, hvx_w8 hi) { return HVX_IL(hvx_half_of32(lo), hvx_half_of32(hi)); }
HVX_CORE hvx_w8 hvx_halves_of16(hvx_w8 v, hvx_w8 unused) {
    (void) unused;
    return HVX_IL(hvx_half_of16(HVX_EVEN(v)), hvx_half_of16(HVX_ODD(v)));
}
HVX_FN HVX_Vector Q6_Vhf_equals_Wqf32(HVX_VectorPair Vuu) {
    hvx_count(hvx_fp);
    const HVX_Vector lo = hvx_lo(Vuu), hi = hvx_hi(Vuu);
    return HVX_BY8(hvx_halves_of32, lo, hi);
}
HVX_FN HVX_Vector Q6_Vhf_equals_Vqf16(HVX_Vector Vu) {
    hvx_count(hvx_fp);
    return HVX_BY8(hvx_halves_of16, Vu, Vu);
}

// v81's forms, should they be used here: from IEEE as a sum with +0; the negative of a qfloat is the
// one's complement of S.
#define HVX_QF_V(name, ...) \
    HVX_FN HVX_Vector name(HVX_Vector Vu) { hvx_count(hvx_fp); return (HVX_Vector) (__VA_ARGS__); }
#define HVX_QF_OF(name, add, flip, keep) \
    HVX_FN HVX_Vector name(HVX_Vector Vu) { return add((Vu ^ (int) (flip)) & (int) (keep), (HVX_Vector) {0}); }
HVX_QF_V(Q6_Vqf32_equals_Vqf32, Vu)
HVX_QF_V(Q6_Vqf16_equals_Vqf16, Vu)
HVX_QF_V(Q6_Vqf32_vneg_Vqf32, Vu ^ ~255)
HVX_QF_V(Q6_Vqf32_vabs_Vqf32, Vu ^ ((Vu >> 31) & ~255))
HVX_QF_V(Q6_Vqf16_vneg_Vqf16, (hvx_h) Vu ^ (short) ~31)
HVX_QF_V(Q6_Vqf16_vabs_Vqf16, (hvx_h) Vu ^ (((hvx_h) Vu >> 15) & (short) ~31))
HVX_QF_OF(Q6_Vqf32_equals_Vsf, Q6_Vqf32_vadd_VsfVsf, 0, -1)
HVX_QF_OF(Q6_Vqf16_equals_Vhf, Q6_Vqf16_vadd_VhfVhf, 0, -1)
HVX_QF_OF(Q6_Vqf32_vneg_Vsf, Q6_Vqf32_vadd_VsfVsf, 0x80000000, -1)
HVX_QF_OF(Q6_Vqf32_vabs_Vsf, Q6_Vqf32_vadd_VsfVsf, 0, 0x7fffffff)
HVX_QF_OF(Q6_Vqf16_vneg_Vhf, Q6_Vqf16_vadd_VhfVhf, 0x80008000, -1)
HVX_QF_OF(Q6_Vqf16_vabs_Vhf, Q6_Vqf16_vadd_VhfVhf, 0, 0x7fff7fff)

#endif
