// qfloat as encoded (see hvx_qfloat.h), in integer lanes and without branches.
//
// A number here is (a, e): the value a 2^(e - p), p = 23 (qf32) or 10 (qf16), |a| < 2^(p + 1). A
// result on its way to rounding is x = 8 times what a would be, with the lowest bit set if anything
// was cut off ("sticky"). All rounding thresholds are multiples of 4 in x, so this is exact.
#ifndef HVX_QFLOAT_ENCODED_H
#define HVX_QFLOAT_ENCODED_H

#include "hvx_float.h"

// Emin = 1 - emax, bias = emax - 1: qf32 emax = 128, qf16 emax = 16.
#define HVX_QF_LANES(T, F)                                                                        \
    /* Round: gives S, and E through *eo. Below, R = x / 8 and r = R mod 4.                       \
     * Only odd multiples of the unit exist, at e; and of twice the unit, at e + 1: so the three   \
     * candidates in [0, 4) are 1, 2 and 3, and 1 and 3 if the exponent must not grow (again). */ \
    HVX_FN T hvx_qf_round_##T(T x, T e, const int p, const int emax, T * eo) {                    \
        const T ovf    = (x >= (1 << (p + 4))) | (x < -(1 << (p + 4)));                           \
        const T halve  = ovf | (e == -emax);                                                      \
        const T forced = halve | (e == emax);                                                     \
        const T y      = HVX_SEL(T, halve, (x >> 1) | (x & 1), x);                                \
        const T r      = y & 31, q = y >> 5;                                                      \
        const T mid    = ~forced & (r > 12) & (r <= 20);                                          \
        const T s      = HVX_SEL(T, mid, q, q + q - (r > (20 + (forced & -4))));                  \
        const T e2     = e - halve - mid;                                                         \
        const T big    = e2 > emax, small = e < -emax, zero = x == 0, sign = x >> 31;             \
        const T lo     = small | zero;                                                            \
        const T e3     = HVX_SEL(T, big, HVX_SPLAT(T, 2 * emax - 1), e2 + (emax - 1));            \
        const T s3     = HVX_SEL(T, big, sign ^ ((1 << p) - 1), s);                               \
        *eo = ~lo & e3;                                                                           \
        return HVX_SEL(T, lo, sign, s3);                                                          \
    }                                                                                             \
    /* x and e of a sum. The exponent is the larger operand's, normalised, but at least the       \
     * smaller operand's. */                                                                      \
    HVX_FN T hvx_qf_sum_##T(T a, T ea, T b, T eb, const int p, T * eo) {                          \
        const T swap = eb > ea;                                                                   \
        const T ah = HVX_SEL(T, swap, b, a), al = HVX_SEL(T, swap, a, b);                         \
        const T eh = HVX_MAX(ea, eb), el = HVX_MIN(ea, eb);                                       \
        const T lg = (((T) HVX_CONV(F, ah) >> 23) & 255) - 127;                                   \
        const T e  = HVX_MAX(el, eh + lg - p);                                                    \
        const T d  = HVX_MIN(e - el, HVX_SPLAT(T, 31));                                           \
        const T y = al << 3, ys = y >> d;                                                         \
        *eo = e;                                                                                  \
        return (ah << (3 + eh - e)) + (ys | ((T) ((ys << d) != y) & 1));                          \
    }                                                                                             \
    /* IEEE half from the magnitude m 2^ex and the sign mask; nearest even. The largest exponent  \
     * is an ordinary one, and what is too large is 0x7fff. */                                    \
    HVX_FN T hvx_qf_half_##T(T m, T ex, T sign) {                                                 \
        const T x    = (T) HVX_CONV(F, m) + (ex << 23);                                           \
        const T norm = (x - (112 << 23) + 0xfff + ((x >> 13) & 1)) >> 13;                         \
        const T tiny = HVX_CLAMP(T, x, 0, 113 << 23);                                             \
        const T sub  = (T) ((F) tiny + 0.5f) - 0x3f000000;                                        \
        return HVX_SEL(T, x < (113 << 23), sub, HVX_MIN(norm, HVX_SPLAT(T, 0x7fff))) | (sign & 0x8000); \
    }
HVX_QF_LANES(hvx_w, hvx_f)
HVX_QF_LANES(hvx_w2, hvx_f2)

// -- operands -----------------------------------------------------------------------------------------
//
// Each gives a (with its sign, or the magnitude for the IEEE kinds) and e. For IEEE operands the
// largest exponent is an ordinary one, and subnormals count with the smallest.

#define HVX_QF32(v, a, e) const hvx_w a = ((v) >> 7) | 1, e = ((v) & 255) - 127
#define HVX_SF(v, m, e, s)                                                                        \
    const hvx_w e##f_ = ((v) >> 23) & 255, m##f_ = (v) & 0x7fffff, e = e##f_ - 127,               \
                m = HVX_SEL(hvx_w, e##f_ == 0, m##f_ << 1, m##f_ | 0x800000), s = (v) >> 31
#define HVX_QF16(v, a, e) const hvx_w2 a = ((v) >> 4) | 1, e = ((v) & 31) - 15
#define HVX_HF(T, v, m, e, s)                                                                     \
    const T e##f_ = ((v) >> 10) & 31, m##f_ = (v) & 0x3ff, e = e##f_ - 15,                        \
            m = HVX_SEL(T, e##f_ == 0, m##f_ << 1, m##f_ | 0x400), s = -(((v) >> 15) & 1)
#define HVX_SIGNED(m, s) (((m) ^ (s)) - (s))

HVX_FN HVX_Vector hvx_qf32_pack(hvx_w s, hvx_w e) { return (HVX_Vector) ((s << 8) | e); }
HVX_FN HVX_Vector hvx_qf16_pack(hvx_w2 s, hvx_w2 e) { return hvx_narrow_w2((s << 5) | e); }

// -- qf32 -----------------------------------------------------------------------------------------------

HVX_FN HVX_Vector hvx_qf32_sum(hvx_w a, hvx_w ea, hvx_w b, hvx_w eb, hvx_w flip) {
    hvx_w e, x = hvx_qf_sum_hvx_w(a, ea, b, eb, 23, &e);
    const hvx_w s = hvx_qf_round_hvx_w(x, e, 23, 128, &e);
    return hvx_qf32_pack(s ^ flip, e);
}
// Two IEEE operands that are both negative: the magnitudes' sum, then its one's complement.
HVX_FN HVX_Vector hvx_qf32_sum_sf(hvx_w u, hvx_w v) {
    HVX_SF(u, mu, eu, su);
    HVX_SF(v, mv, ev, sv);
    const hvx_w both = su & sv;
    return hvx_qf32_sum(HVX_SIGNED(mu, su ^ both), eu, HVX_SIGNED(mv, sv ^ both), ev, both);
}
HVX_FN HVX_Vector Q6_Vqf32_vadd_Vqf32Vqf32(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    HVX_QF32(Vu, a, ea);
    HVX_QF32(Vv, b, eb);
    return hvx_qf32_sum(a, ea, b, eb, (hvx_w) {0});
}
HVX_FN HVX_Vector Q6_Vqf32_vsub_Vqf32Vqf32(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    HVX_QF32(Vu, a, ea);
    HVX_QF32(Vv, b, eb);
    return hvx_qf32_sum(a, ea, -b, eb, (hvx_w) {0});
}
HVX_FN HVX_Vector Q6_Vqf32_vadd_Vqf32Vsf(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    HVX_QF32(Vu, a, ea);
    HVX_SF(Vv, m, eb, s);
    return hvx_qf32_sum(a, ea, HVX_SIGNED(m, s), eb, (hvx_w) {0});
}
HVX_FN HVX_Vector Q6_Vqf32_vsub_Vqf32Vsf(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vqf32_vadd_Vqf32Vsf(Vu, Vv ^ (int) 0x80000000);
}
HVX_FN HVX_Vector Q6_Vqf32_vsub_VsfVqf32(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    HVX_SF(Vu, m, ea, s);
    HVX_QF32(Vv, b, eb);
    return hvx_qf32_sum(HVX_SIGNED(m, s), ea, -b, eb, (hvx_w) {0});
}
HVX_FN HVX_Vector Q6_Vqf32_vadd_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    return hvx_qf32_sum_sf((hvx_w) Vu, (hvx_w) Vv);
}
HVX_FN HVX_Vector Q6_Vqf32_vsub_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    return hvx_qf32_sum_sf((hvx_w) Vu, (hvx_w) Vv ^ (int) 0x80000000);
}

// The product of two 25-bit numbers, from the even and the odd lanes' 64-bit products: bits 20 to
// 51, and the sticky bit from those below.
HVX_FN HVX_Vector hvx_qf32_product(hvx_w a, hvx_w ea, hvx_w b, hvx_w eb, hvx_w flip) {
    const hvx_ud pe = (hvx_ud) (hvx_ev_w((HVX_Vector) a) * hvx_ev_w((HVX_Vector) b));
    const hvx_ud po = (hvx_ud) (hvx_od_w((HVX_Vector) a) * hvx_od_w((HVX_Vector) b));
    const hvx_w  x  = (hvx_w) (((pe >> 20) & 0xffffffffull) | ((po << 12) & ~0xffffffffull));
    const hvx_w  lo = (hvx_w) ((pe & 0xffffffffull) | (po << 32)) & 0xfffff;
    hvx_w e;
    const hvx_w s = hvx_qf_round_hvx_w(x | ((hvx_w) (lo != 0) & 1), ea + eb, 23, 128, &e);
    return hvx_qf32_pack(s ^ flip, e);
}
HVX_FN HVX_Vector Q6_Vqf32_vmpy_Vqf32Vqf32(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    HVX_QF32(Vu, a, ea);
    HVX_QF32(Vv, b, eb);
    return hvx_qf32_product(a, ea, b, eb, (hvx_w) {0});
}
// IEEE operands: the magnitudes' product, then its one's complement if the signs differ.
HVX_FN HVX_Vector Q6_Vqf32_vmpy_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    sim_count(hvx_fp);
    HVX_SF(Vu, a, ea, sa);
    HVX_SF(Vv, b, eb, sb);
    return hvx_qf32_product(a, ea, b, eb, sa ^ sb);
}

// -- products of halves to qf32: even elements to the low, odd to the high vector -------------------------

HVX_FN HVX_Vector hvx_qf32_hproduct(hvx_w a, hvx_w ea, hvx_w b, hvx_w eb, hvx_w flip) {
    hvx_w e;
    const hvx_w s = hvx_qf_round_hvx_w((a * b) << 6, ea + eb, 23, 128, &e);
    return hvx_qf32_pack(s ^ flip, e);
}
HVX_FN HVX_Vector hvx_qf32_hfhf(hvx_w u, hvx_w v) {
    HVX_HF(hvx_w, u, a, ea, sa);
    HVX_HF(hvx_w, v, b, eb, sb);
    return hvx_qf32_hproduct(a, ea, b, eb, sa ^ sb);
}
HVX_FN HVX_Vector hvx_qf32_qfqf(hvx_w u, hvx_w v) {  // sign-extended halfwords
    return hvx_qf32_hproduct((u >> 4) | 1, (u & 31) - 15, (v >> 4) | 1, (v & 31) - 15, (hvx_w) {0});
}
HVX_FN HVX_Vector hvx_qf32_qfhf(hvx_w u, hvx_w v) {
    HVX_HF(hvx_w, v, b, eb, sb);
    return hvx_qf32_hproduct((u >> 4) | 1, (u & 31) - 15, HVX_SIGNED(b, sb), eb, (hvx_w) {0});
}
#define HVX_QF32_WIDE(name, fn)                                                    \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu, HVX_Vector Vv) {                     \
        sim_count(hvx_fp);                                                         \
        return hvx_pair(fn(hvx_ev_h(Vu), hvx_ev_h(Vv)), fn(hvx_od_h(Vu), hvx_od_h(Vv))); \
    }
HVX_QF32_WIDE(Q6_Wqf32_vmpy_VhfVhf, hvx_qf32_hfhf)
HVX_QF32_WIDE(Q6_Wqf32_vmpy_Vqf16Vqf16, hvx_qf32_qfqf)
HVX_QF32_WIDE(Q6_Wqf32_vmpy_Vqf16Vhf, hvx_qf32_qfhf)

// -- qf16 -----------------------------------------------------------------------------------------------

HVX_FN HVX_Vector hvx_qf16_sum(hvx_w2 a, hvx_w2 ea, hvx_w2 b, hvx_w2 eb, hvx_w2 flip) {
    hvx_w2 e, x = hvx_qf_sum_hvx_w2(a, ea, b, eb, 10, &e);
    const hvx_w2 s = hvx_qf_round_hvx_w2(x, e, 10, 16, &e);
    return hvx_qf16_pack(s ^ flip, e);
}
HVX_FN HVX_Vector hvx_qf16_sum_hf(hvx_w2 u, hvx_w2 v) {
    HVX_HF(hvx_w2, u, mu, eu, su);
    HVX_HF(hvx_w2, v, mv, ev, sv);
    const hvx_w2 both = su & sv;
    return hvx_qf16_sum(HVX_SIGNED(mu, su ^ both), eu, HVX_SIGNED(mv, sv ^ both), ev, both);
}
HVX_FN HVX_Vector hvx_qf16_sum_mix(hvx_w2 u, hvx_w2 v) {
    HVX_QF16(u, a, ea);
    HVX_HF(hvx_w2, v, m, eb, s);
    return hvx_qf16_sum(a, ea, HVX_SIGNED(m, s), eb, (hvx_w2) {0});
}
HVX_FN HVX_Vector hvx_qf16_sum_qf(hvx_w2 u, hvx_w2 v) {
    HVX_QF16(u, a, ea);
    HVX_QF16(v, b, eb);
    return hvx_qf16_sum(a, ea, b, eb, (hvx_w2) {0});
}
HVX_FN HVX_Vector hvx_qf16_dif_qf(hvx_w2 u, hvx_w2 v) {
    HVX_QF16(u, a, ea);
    HVX_QF16(v, b, eb);
    return hvx_qf16_sum(a, ea, -b, eb, (hvx_w2) {0});
}
HVX_FN HVX_Vector hvx_qf16_dif_hfqf(hvx_w2 u, hvx_w2 v) {
    HVX_HF(hvx_w2, u, m, ea, s);
    HVX_QF16(v, b, eb);
    return hvx_qf16_sum(HVX_SIGNED(m, s), ea, -b, eb, (hvx_w2) {0});
}
HVX_FN HVX_Vector hvx_qf16_product(hvx_w2 a, hvx_w2 ea, hvx_w2 b, hvx_w2 eb, hvx_w2 flip) {
    const hvx_w2 p = a * b, x = (p >> 7) | ((hvx_w2) ((p & 127) != 0) & 1);
    hvx_w2 e;
    const hvx_w2 s = hvx_qf_round_hvx_w2(x, ea + eb, 10, 16, &e);
    return hvx_qf16_pack(s ^ flip, e);
}
HVX_FN HVX_Vector hvx_qf16_mul_qf(hvx_w2 u, hvx_w2 v) {
    HVX_QF16(u, a, ea);
    HVX_QF16(v, b, eb);
    return hvx_qf16_product(a, ea, b, eb, (hvx_w2) {0});
}
HVX_FN HVX_Vector hvx_qf16_mul_hf(hvx_w2 u, hvx_w2 v) {
    HVX_HF(hvx_w2, u, a, ea, sa);
    HVX_HF(hvx_w2, v, b, eb, sb);
    return hvx_qf16_product(a, ea, b, eb, sa ^ sb);
}
HVX_FN HVX_Vector hvx_qf16_mul_mix(hvx_w2 u, hvx_w2 v) {
    HVX_QF16(u, a, ea);
    HVX_HF(hvx_w2, v, b, eb, sb);
    return hvx_qf16_product(a, ea, HVX_SIGNED(b, sb), eb, (hvx_w2) {0});
}
#define HVX_QF16_VV(name, fn, flip)                                      \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {               \
        sim_count(hvx_fp);                                               \
        return fn(hvx_widen_h(Vu), hvx_widen_h(Vv) ^ (flip));            \
    }
HVX_QF16_VV(Q6_Vqf16_vadd_VhfVhf, hvx_qf16_sum_hf, 0)
HVX_QF16_VV(Q6_Vqf16_vsub_VhfVhf, hvx_qf16_sum_hf, 0x8000)
HVX_QF16_VV(Q6_Vqf16_vadd_Vqf16Vhf, hvx_qf16_sum_mix, 0)
HVX_QF16_VV(Q6_Vqf16_vsub_Vqf16Vhf, hvx_qf16_sum_mix, 0x8000)
HVX_QF16_VV(Q6_Vqf16_vadd_Vqf16Vqf16, hvx_qf16_sum_qf, 0)
HVX_QF16_VV(Q6_Vqf16_vsub_Vqf16Vqf16, hvx_qf16_dif_qf, 0)
HVX_QF16_VV(Q6_Vqf16_vsub_VhfVqf16, hvx_qf16_dif_hfqf, 0)
HVX_QF16_VV(Q6_Vqf16_vmpy_Vqf16Vqf16, hvx_qf16_mul_qf, 0)
HVX_QF16_VV(Q6_Vqf16_vmpy_VhfVhf, hvx_qf16_mul_hf, 0)
HVX_QF16_VV(Q6_Vqf16_vmpy_Vqf16Vhf, hvx_qf16_mul_mix, 0)

// -- conversions ------------------------------------------------------------------------------------------

// Exact but for the smallest exponent, where the last bit is rounded to even. There is no overflow:
// the largest exponent is an ordinary one.
HVX_FN HVX_Vector Q6_Vsf_equals_Vqf32(HVX_Vector Vu) {
    sim_count(hvx_fp);
    const hvx_w a = ((hvx_w) Vu >> 7) | 1, e = (hvx_w) Vu & 255, m = HVX_MAX(a, -a);
    const hvx_w f = (hvx_w) HVX_CONV(hvx_f, m) + ((e - 150) << 23), half = m >> 1;
    const hvx_w sub = HVX_SEL(hvx_w, e == 0, half + (half & 1), m << ((e - 1) & 31));
    return (HVX_Vector) (HVX_SEL(hvx_w, f < (1 << 23), sub, f) | (a & (int) 0x80000000));
}
HVX_FN hvx_w hvx_qf32_half(HVX_Vector v) {
    const hvx_w a = ((hvx_w) v >> 7) | 1, e = (hvx_w) v & 255;
    return hvx_qf_half_hvx_w(HVX_MAX(a, -a), e - 150, a >> 31);
}
HVX_FN HVX_Vector Q6_Vhf_equals_Wqf32(HVX_VectorPair Vuu) {
    sim_count(hvx_fp);
    return hvx_il16(hvx_qf32_half(hvx_lo(Vuu)), hvx_qf32_half(hvx_hi(Vuu)));
}
HVX_FN HVX_Vector Q6_Vhf_equals_Vqf16(HVX_Vector Vu) {
    sim_count(hvx_fp);
    const hvx_w2 v = hvx_widen_h(Vu), a = (v >> 4) | 1, e = v & 31;
    return hvx_narrow_w2(hvx_qf_half_hvx_w2(HVX_MAX(a, -a), e - 25, a >> 31));
}
// v81's forms, should they be used here: from IEEE as a sum with +0; the negative of a qfloat is the
// one's complement of S.
HVX_FN HVX_Vector hvx_qf32_of(HVX_Vector v) { return hvx_qf32_sum_sf((hvx_w) v, (hvx_w) {0}); }
HVX_FN HVX_Vector hvx_qf16_of(HVX_Vector v) { return hvx_qf16_sum_hf(hvx_widen_h(v), (hvx_w2) {0}); }
#define HVX_QF_V(name, ...) \
    HVX_FN HVX_Vector name(HVX_Vector Vu) { sim_count(hvx_fp); return (HVX_Vector) (__VA_ARGS__); }
HVX_QF_V(Q6_Vqf32_equals_Vsf, hvx_qf32_of(Vu))
HVX_QF_V(Q6_Vqf16_equals_Vhf, hvx_qf16_of(Vu))
HVX_QF_V(Q6_Vqf32_equals_Vqf32, Vu)
HVX_QF_V(Q6_Vqf16_equals_Vqf16, Vu)
HVX_QF_V(Q6_Vqf32_vneg_Vqf32, Vu ^ ~255)
HVX_QF_V(Q6_Vqf32_vabs_Vqf32, Vu ^ ((Vu >> 31) & ~255))
HVX_QF_V(Q6_Vqf16_vneg_Vqf16, (hvx_h) Vu ^ (short) ~31)
HVX_QF_V(Q6_Vqf16_vabs_Vqf16, (hvx_h) Vu ^ (((hvx_h) Vu >> 15) & (short) ~31))
HVX_QF_V(Q6_Vqf32_vneg_Vsf, hvx_qf32_of(Vu ^ (int) 0x80000000))
HVX_QF_V(Q6_Vqf32_vabs_Vsf, hvx_qf32_of(Vu & 0x7fffffff))
HVX_QF_V(Q6_Vqf16_vneg_Vhf, hvx_qf16_of(Vu ^ (int) 0x80008000))
HVX_QF_V(Q6_Vqf16_vabs_Vhf, hvx_qf16_of(Vu & 0x7fff7fff))

#endif
