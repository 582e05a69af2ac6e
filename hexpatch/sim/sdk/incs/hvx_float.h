// Half and single precision in lanes: conversions that are exact in every bit on any host.
#ifndef HVX_FLOAT_H
#define HVX_FLOAT_H

#include "hvx_lanes.h"

// The same code for one vector of words (32 lanes) and for a pair (64 lanes: a vector of halves).
#define HVX_FLOAT_LANES(T, F)                                                                     \
    /* IEEE half (low 16 bits of each lane) to single. */                                         \
    HVX_FN F hvx_from_hf_##F(T h) {                                                               \
        const T u = (h & 0x7fff) << 13, o = u + (112 << 23);                                      \
        const T inf = (T) (u >= 0x0f800000) & (112 << 23);                                        \
        const T sub = (T) ((F) (o + (1 << 23)) - (F) HVX_SPLAT(T, 113 << 23));                    \
        return (F) (HVX_SEL(T, u < (1 << 23), sub, o + inf) | ((h & 0x8000) << 16));              \
    }                                                                                             \
    /* Single to IEEE half in the low 16 bits: nearest even, overflow to infinity, NaN 0x7fff. */ \
    HVX_FN T hvx_to_hf_##F(F f) {                                                                 \
        const T v = (T) f, a = v & 0x7fffffff;                                                    \
        const T norm = (a - (112 << 23) + 0xfff + ((a >> 13) & 1)) >> 13;                         \
        const T sub = (T) ((F) HVX_MIN(a, HVX_SPLAT(T, 0x38800000)) + 0.5f) - 0x3f000000;         \
        T h = HVX_SEL(T, a < 0x38800000, sub, HVX_MIN(norm, HVX_SPLAT(T, 0x7c00)));               \
        h |= (v >> 16) & 0x8000;                                                                  \
        return HVX_SEL(T, a > 0x7f800000, HVX_SPLAT(T, 0x7fff), h);                               \
    }                                                                                             \
    /* The sum and so on of IEEE numbers; a NaN result is 0x7fffffff. */                          \
    HVX_FN F hvx_quiet_##F(F r) { return (F) HVX_SEL(T, r != r, HVX_SPLAT(T, 0x7fffffff), r); }
HVX_FLOAT_LANES(hvx_w, hvx_f)
HVX_FLOAT_LANES(hvx_w2, hvx_f2)

// A vector of halfwords in word lanes and back.
HVX_FN hvx_w2 hvx_widen_h(HVX_Vector v) { return HVX_CONV(hvx_w2, (hvx_h) v); }
HVX_FN HVX_Vector hvx_narrow_w2(hvx_w2 v) { return (HVX_Vector) HVX_CONV(hvx_h, v); }

// A vector of halves as singles (exact) and back (nearest even).
#if defined(__F16C__) || defined(__aarch64__)
// By the host's instructions, sixteen at a time (clang 14 takes longer vectors to pieces).
typedef __fp16 hvx_hf16 __attribute__((vector_size(32), may_alias));
typedef float  hvx_f16 __attribute__((vector_size(64), may_alias));
typedef float  hvx_f32 __attribute__((vector_size(128), aligned(128), may_alias));
#if __has_builtin(__builtin_ia32_vcvtph2ps256)
HVX_FN hvx_f16 hvx_from_hf16(hvx_w8 q) {  // an older clang converts through scalars otherwise
    typedef short h8 __attribute__((vector_size(16)));
    typedef int   w4 __attribute__((vector_size(16)));
    const w4 lo = __builtin_shufflevector(q, q, HVX_I4(HVX_SAME, 0));
    const w4 hi = __builtin_shufflevector(q, q, HVX_I4(HVX_SAME, 4));
    return __builtin_shufflevector(__builtin_ia32_vcvtph2ps256((h8) lo), __builtin_ia32_vcvtph2ps256((h8) hi),
                                   HVX_I16(HVX_SAME, 0));
}
#else
HVX_FN hvx_f16 hvx_from_hf16(hvx_w8 q) { return HVX_CONV(hvx_f16, (hvx_hf16) q); }
#endif
HVX_FN hvx_f2 hvx_hf_values(HVX_Vector v) {
    const hvx_f16 a = hvx_from_hf16(hvx_q0(v)), b = hvx_from_hf16(hvx_q1(v));
    const hvx_f16 c = hvx_from_hf16(hvx_q2(v)), d = hvx_from_hf16(hvx_q3(v));
    const hvx_f32 ab = __builtin_shufflevector(a, b, HVX_I32(HVX_SAME, 0));
    const hvx_f32 cd = __builtin_shufflevector(c, d, HVX_I32(HVX_SAME, 0));
    return __builtin_shufflevector(ab, cd, HVX_I64(HVX_SAME, 0));
}
HVX_FN hvx_w8 hvx_to_hf16(hvx_f16 f) { return (hvx_w8) HVX_CONV(hvx_hf16, f); }
#define HVX_F16(f, at) __builtin_shufflevector(f, f, HVX_I16(HVX_SAME, at))
HVX_FN HVX_Vector hvx_hf_round(hvx_f2 f) {
    const hvx_h h = (hvx_h) hvx_join(hvx_to_hf16(HVX_F16(f, 0)), hvx_to_hf16(HVX_F16(f, 16)),
                                     hvx_to_hf16(HVX_F16(f, 32)), hvx_to_hf16(HVX_F16(f, 48)));
    const hvx_h nan = (h & 0x7fff) > (short) 0x7c00;
    return (HVX_Vector) HVX_SEL(hvx_h, nan, HVX_SPLAT(hvx_h, 0x7fff), h);
}
#else
HVX_FN hvx_f2 hvx_hf_values(HVX_Vector v) { return hvx_from_hf_hvx_f2(hvx_widen_h(v)); }
HVX_FN HVX_Vector hvx_hf_round(hvx_f2 f) { return hvx_narrow_w2(hvx_to_hf_hvx_f2(f)); }
#endif
// The even and the odd halves as singles, and two vectors of singles as even and odd halves.
HVX_FN hvx_f hvx_hf_even(HVX_Vector v) { return hvx_from_hf_hvx_f((hvx_w) v); }
HVX_FN hvx_f hvx_hf_odd(HVX_Vector v) { return hvx_from_hf_hvx_f((hvx_w) v >> 16); }
HVX_FN HVX_Vector hvx_hf_il(hvx_f e, hvx_f o) { return hvx_il16(hvx_to_hf_hvx_f(e), hvx_to_hf_hvx_f(o)); }

#endif
