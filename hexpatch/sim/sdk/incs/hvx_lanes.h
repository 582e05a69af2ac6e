// Lane types and the small helpers that the HVX intrinsics are written with.
//
// A lane type's operators work lane by lane, so an expression on lane types reads as the body of a
// loop over lanes and compiles to plain vector code also with the vectorisers off. Lanes wrap.
#ifndef HVX_LANES_H
#define HVX_LANES_H

#include "hexagon_types.h"
#include "hexsim.h"

// What one intrinsic costs: it counts itself once, by the unit of the machine that it occupies (in
// the manuals' instruction types: CVI_VA and VS, VX, VP).
//   alu   the plain vector units: add, subtract, logic, compare, min, max, average, mux, vcombine,
//         vshuffe/vshuffo/vsat/vsxt/vzxt (which need no crossing of lanes), and the shift unit
//   mpy   the multiply unit: products, and what else goes through it: widening add and subtract,
//         vabsdiff, vsplat, vand between vector and predicate by scalar, vinsert
//   perm  the permute network: vshuff, vdeal, vpack, vunpack, vlut, valign, vror, vdelta, vsetq;
//         what needs permute and shift counts here
//   fp    everything with a qfloat, IEEE or conversion operand
// Taking half a pair (vlo, vhi), and copying a register, cost nothing and are not counted; vzero
// is a vxor and counts as alu. A pair counts once though it takes two units.
#define HVX_FN static inline __attribute__((always_inline, unused))

// sim_count, but out of sight of the sanitizer, which would see a load and a store each time: it
// leaves other address spaces alone, and 272 is plain memory by another name.
#if HEXSIM_COUNT && defined(__x86_64__) && !defined(__cplusplus)
#define hvx_count(what) ((void) ((*(uint64_t __attribute__((address_space(272))) *) &sim_self.n[SIM_##what])++))
#else
#define hvx_count(what) sim_count(what)
#endif

// Eight lanes of an expensive operation: one copy a file, arguments and result in registers.
#define HVX_CORE static __attribute__((noinline, unused, const, no_sanitize("kernel-address")))

// Not inlined, and never instrumented: what they touch in memory is no scalar access of the kernel.
#define HVX_OUT static __attribute__((noinline, unused, no_sanitize("kernel-address")))

#define HVX_LANES(name, type)                                                               \
    typedef type hvx_##name __attribute__((vector_size(128), aligned(128), may_alias));     \
    typedef type hvx_##name##2 __attribute__((vector_size(256), aligned(128), may_alias));
HVX_LANES(b, int8_t)
HVX_LANES(ub, uint8_t)
HVX_LANES(h, int16_t)
HVX_LANES(uh, uint16_t)
HVX_LANES(w, int32_t)
HVX_LANES(uw, uint32_t)
HVX_LANES(d, int64_t)
HVX_LANES(ud, uint64_t)
HVX_LANES(f, float)
#undef HVX_LANES

// T is a lane type, k one lane's value.
#define HVX_BITS(T)     (8 * (int) sizeof(((T) {0})[0]))
#define HVX_SPLAT(T, k) ((T) {0} + (__typeof__(((T) {0})[0])) (k))
#define HVX_CONV(T, x)  __builtin_convertvector(x, T)
#define HVX_MIN(a, b)   __builtin_elementwise_min(a, b)
#define HVX_MAX(a, b)   __builtin_elementwise_max(a, b)
#define HVX_CLAMP(T, x, lo, hi) HVX_MIN(HVX_MAX(x, HVX_SPLAT(T, lo)), HVX_SPLAT(T, hi))
// mask is a comparison of lanes: m ? a : b.
#define HVX_SEL(T, mask, a, b) ((T) (((T) (mask) & (T) (a)) | (~(T) (mask) & (T) (b))))

// Lists of shuffle indices: F(0), F(1), ...
#define HVX_I2(F, i)   F(i), F((i) + 1)
#define HVX_I4(F, i)   HVX_I2(F, i), HVX_I2(F, (i) + 2)
#define HVX_I8(F, i)   HVX_I4(F, i), HVX_I4(F, (i) + 4)
#define HVX_I16(F, i)  HVX_I8(F, i), HVX_I8(F, (i) + 8)
#define HVX_I32(F, i)  HVX_I16(F, i), HVX_I16(F, (i) + 16)
#define HVX_I64(F, i)  HVX_I32(F, i), HVX_I32(F, (i) + 32)
#define HVX_I128(F, i) HVX_I64(F, i), HVX_I64(F, (i) + 64)
#define HVX_SAME(i)    (i)

HVX_FN HVX_VectorPair hvx_pair(HVX_Vector lo, HVX_Vector hi) {
    return __builtin_shufflevector(lo, hi, HVX_I64(HVX_SAME, 0));
}
HVX_FN HVX_Vector hvx_lo(HVX_VectorPair w) { return __builtin_shufflevector(w, w, HVX_I32(HVX_SAME, 0)); }
HVX_FN HVX_Vector hvx_hi(HVX_VectorPair w) { return __builtin_shufflevector(w, w, HVX_I32(HVX_SAME, 32)); }

// A vector as four of the host's: eight words each.
typedef int32_t hvx_w8 __attribute__((vector_size(32), may_alias));
HVX_FN hvx_w8 hvx_q0(HVX_Vector v) { return __builtin_shufflevector(v, v, HVX_I8(HVX_SAME, 0)); }
HVX_FN hvx_w8 hvx_q1(HVX_Vector v) { return __builtin_shufflevector(v, v, HVX_I8(HVX_SAME, 8)); }
HVX_FN hvx_w8 hvx_q2(HVX_Vector v) { return __builtin_shufflevector(v, v, HVX_I8(HVX_SAME, 16)); }
HVX_FN hvx_w8 hvx_q3(HVX_Vector v) { return __builtin_shufflevector(v, v, HVX_I8(HVX_SAME, 24)); }
HVX_FN HVX_Vector hvx_join(hvx_w8 a, hvx_w8 b, hvx_w8 c, hvx_w8 d) {
    typedef int32_t w16 __attribute__((vector_size(64)));
    const w16 ab = __builtin_shufflevector(a, b, HVX_I16(HVX_SAME, 0));
    const w16 cd = __builtin_shufflevector(c, d, HVX_I16(HVX_SAME, 0));
    return __builtin_shufflevector(ab, cd, HVX_I32(HVX_SAME, 0));
}
#define HVX_BY8(fn, u, v)                                                    \
    hvx_join(fn(hvx_q0(u), hvx_q0(v)), fn(hvx_q1(u), hvx_q1(v)),             \
             fn(hvx_q2(u), hvx_q2(v)), fn(hvx_q3(u), hvx_q3(v)))

HVX_FN HVX_VectorPred hvx_pred(hvx_b mask) {
    HVX_VectorPred q;
    q.m = mask;
    return q;
}
// Only bytes 0 and -1 in a predicate; this one takes any.
HVX_FN HVX_VectorPred hvx_pred_nz(hvx_b v) { return hvx_pred(v != 0); }

// The even and the odd elements of a vector, widened.
HVX_FN hvx_h hvx_ev_b(HVX_Vector v) { return ((hvx_h) v << 8) >> 8; }
HVX_FN hvx_h hvx_od_b(HVX_Vector v) { return (hvx_h) v >> 8; }
HVX_FN hvx_h hvx_ev_ub(HVX_Vector v) { return (hvx_h) v & 255; }
HVX_FN hvx_h hvx_od_ub(HVX_Vector v) { return (hvx_h) ((hvx_uh) v >> 8); }
HVX_FN hvx_w hvx_ev_h(HVX_Vector v) { return ((hvx_w) v << 16) >> 16; }
HVX_FN hvx_w hvx_od_h(HVX_Vector v) { return (hvx_w) v >> 16; }
HVX_FN hvx_w hvx_ev_uh(HVX_Vector v) { return (hvx_w) v & 65535; }
HVX_FN hvx_w hvx_od_uh(HVX_Vector v) { return (hvx_w) ((hvx_uw) v >> 16); }
HVX_FN hvx_d hvx_ev_w(HVX_Vector v) { return ((hvx_d) v << 32) >> 32; }
HVX_FN hvx_d hvx_od_w(HVX_Vector v) { return (hvx_d) v >> 32; }

// Wider lanes to a vector of half as wide ones: e gives the even, o the odd elements (low bits).
HVX_FN HVX_Vector hvx_il8(hvx_h e, hvx_h o) { return (HVX_Vector) ((e & 255) | (o << 8)); }
HVX_FN HVX_Vector hvx_il16(hvx_w e, hvx_w o) { return (HVX_Vector) ((e & 65535) | (o << 16)); }

HVX_FN HVX_Vector hvx_splat_w(int32_t r) { return HVX_SPLAT(HVX_Vector, r); }

// Saturating add and subtract.
#if __has_builtin(__builtin_elementwise_add_sat) && __has_builtin(__builtin_elementwise_sub_sat)
#define HVX_ADD_SAT(T, a, b) __builtin_elementwise_add_sat(a, b)
#define HVX_SUB_SAT(T, a, b) __builtin_elementwise_sub_sat(a, b)
#else
// Signed: the sum overflows if both operands' signs differ from its. Unsigned: max and min do it.
#define HVX_IS_SIGNED(T) ((__typeof__(((T) {0})[0])) -1 < 0)
#define HVX_TOP(T, a) (((a) >> (HVX_BITS(T) - 1)) ^ HVX_SPLAT(T, ~(1ull << (HVX_BITS(T) - 1))))
#define HVX_ADD_SAT(T, a, b)                                                                     \
    (HVX_IS_SIGNED(T)                                                                            \
         ? HVX_SEL(T, ((((a) ^ ((a) + (b))) & ((b) ^ ((a) + (b)))) >> (HVX_BITS(T) - 1)),        \
                   HVX_TOP(T, a), (a) + (b))                                                     \
         : (T) (HVX_MIN(a, ~(b)) + (b)))
#define HVX_SUB_SAT(T, a, b)                                                                     \
    (HVX_IS_SIGNED(T)                                                                            \
         ? HVX_SEL(T, ((((a) ^ (b)) & ((a) ^ ((a) - (b)))) >> (HVX_BITS(T) - 1)),                \
                   HVX_TOP(T, a), (a) - (b))                                                     \
         : (T) (HVX_MAX(a, b) - (b)))
#endif

#endif
