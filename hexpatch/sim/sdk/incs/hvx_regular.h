// Makes functions of the rows of hvx_table.h.
#ifndef HVX_REGULAR_H
#define HVX_REGULAR_H

#include "hvx_lanes.h"
#include "hvx_table.h"

// Words of the table's expressions.
#define HVX_5(n) (((n) << 11) >> 11)
#define HVX_6(n) (((n) << 26) >> 26)
// n >= 0: forward by FWD = n; n < 0: back, in two steps (BACK, then 1) as |n| may be the width.
#define HVX_BY(n, forward, back)                                            \
    __extension__({                                                         \
        const LT n_ = (n), FWD = n_ & ~(n_ >> 15), BACK = ~n_ & (n_ >> 15); \
        HVX_SEL(LT, n_ < 0, back, forward);                                 \
    })
#define HVX_B(x)  HVX_CLAMP(hvx_h, x, -128, 127)
#define HVX_UB(x) HVX_CLAMP(hvx_h, x, 0, 255)
#define HVX_H(x)  HVX_CLAMP(hvx_w, x, -32768, 32767)
#define HVX_UH(x) HVX_CLAMP(hvx_w, x, 0, 65535)
#define HVX_UMIN(T, x, k) ((LT) HVX_MIN((hvx_##T) (x), HVX_SPLAT(hvx_##T, k)))
// x shifted right by n, the last bit shifted out added: rounds half up, cannot overflow.
#define HVX_RSH(x, n)  (((x) >> (n)) + (((x) >> ((n) - 1)) & 1))
#define HVX_RASR(x, n) (((x) >> (n)) + ((((x) << 1) >> (n)) & 1))

#define HVX_DEF_V_V(name, cls, T, ...)                    \
    HVX_FN HVX_Vector name(HVX_Vector Vu) {               \
        typedef hvx_##T LT;                               \
        hvx_count(hvx_##cls);                             \
        const LT a = (LT) Vu;                             \
        return (HVX_Vector) (__VA_ARGS__);                \
    }
#define HVX_DEF_V_VV(name, cls, T, ...)                   \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) { \
        typedef hvx_##T LT;                               \
        hvx_count(hvx_##cls);                             \
        const LT a = (LT) Vu, b = (LT) Vv;                \
        return (HVX_Vector) (__VA_ARGS__);                \
    }
#define HVX_DEF_W_WW(name, cls, T, ...)                   \
    HVX_FN HVX_VectorPair name(HVX_VectorPair Vuu, HVX_VectorPair Vvv) { \
        typedef hvx_##T##2 LT;                            \
        hvx_count(hvx_##cls);                             \
        const LT a = (LT) Vuu, b = (LT) Vvv;              \
        return (HVX_VectorPair) (__VA_ARGS__);            \
    }
#define HVX_DEF_V_VR(name, cls, T, ...)                   \
    HVX_FN HVX_Vector name(HVX_Vector Vu, Word32 r) {     \
        typedef hvx_##T LT;                               \
        hvx_count(hvx_##cls);                             \
        const LT a = (LT) Vu;                             \
        return (HVX_Vector) (__VA_ARGS__);                \
    }
#define HVX_DEF_V_XVR(name, cls, T, ...)                  \
    HVX_FN HVX_Vector name(HVX_Vector Vx, HVX_Vector Vu, Word32 r) { \
        typedef hvx_##T LT;                               \
        hvx_count(hvx_##cls);                             \
        const LT x = (LT) Vx, a = (LT) Vu;                \
        return (HVX_Vector) (__VA_ARGS__);                \
    }

#define HVX_DEF_Q_VV(op, ty, T, ...)                                                       \
    HVX_FN HVX_VectorPred hvx_cmp_##op##_##ty(HVX_Vector Vu, HVX_Vector Vv) {              \
        const hvx_##T a = (hvx_##T) Vu, b = (hvx_##T) Vv;                                  \
        hvx_count(hvx_alu);                                                                \
        return hvx_pred((hvx_b) (__VA_ARGS__));                                            \
    }                                                                                      \
    HVX_CMP_FORMS(op, ty)
// The four forms of a comparison.
#define HVX_CMP_FORMS(op, ty)                                                              \
    HVX_FN HVX_VectorPred Q6_Q_vcmp_##op##_V##ty##V##ty(HVX_Vector Vu, HVX_Vector Vv) {    \
        return hvx_cmp_##op##_##ty(Vu, Vv);                                                \
    }                                                                                      \
    HVX_FN HVX_VectorPred Q6_Q_vcmp_##op##and_QV##ty##V##ty(HVX_VectorPred Qx, HVX_Vector Vu, \
                                                            HVX_Vector Vv) {               \
        return hvx_pred(Qx.m & hvx_cmp_##op##_##ty(Vu, Vv).m);                             \
    }                                                                                      \
    HVX_FN HVX_VectorPred Q6_Q_vcmp_##op##or_QV##ty##V##ty(HVX_VectorPred Qx, HVX_Vector Vu, \
                                                           HVX_Vector Vv) {                \
        return hvx_pred(Qx.m | hvx_cmp_##op##_##ty(Vu, Vv).m);                             \
    }                                                                                      \
    HVX_FN HVX_VectorPred Q6_Q_vcmp_##op##xacc_QV##ty##V##ty(HVX_VectorPred Qx, HVX_Vector Vu, \
                                                             HVX_Vector Vv) {              \
        return hvx_pred(Qx.m ^ hvx_cmp_##op##_##ty(Vu, Vv).m);                             \
    }

#define HVX_EO_BODY(T, TU, TV, ...)                                                    \
    HVX_Vector lo_, hi_;                                                               \
    {                                                                                  \
        const hvx_##T a = hvx_ev_##TU(Vu), b = hvx_ev_##TV(Vv), x = (hvx_##T) xl_;     \
        (void) x;                                                                      \
        lo_ = (HVX_Vector) (__VA_ARGS__);                                              \
    }                                                                                  \
    {                                                                                  \
        const hvx_##T a = hvx_od_##TU(Vu), b = hvx_od_##TV(Vv), x = (hvx_##T) xh_;     \
        (void) x;                                                                      \
        hi_ = (HVX_Vector) (__VA_ARGS__);                                              \
    }                                                                                  \
    return hvx_pair(lo_, hi_);
#define HVX_DEF_E_VV(name, cls, T, TU, TV, ...)                                        \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu, HVX_Vector Vv) {                         \
        hvx_count(hvx_##cls);                                                          \
        const HVX_Vector xl_ = {0}, xh_ = {0};                                         \
        HVX_EO_BODY(T, TU, TV, __VA_ARGS__)                                            \
    }
#define HVX_DEF_E_XVV(name, cls, T, TU, TV, ...)                                       \
    HVX_FN HVX_VectorPair name(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {     \
        hvx_count(hvx_##cls);                                                          \
        const HVX_Vector xl_ = hvx_lo(Vxx), xh_ = hvx_hi(Vxx);                         \
        HVX_EO_BODY(T, TU, TV, __VA_ARGS__)                                            \
    }
#define HVX_DEF_E_VR(name, cls, T, TU, TV, ...)                                        \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu, Word32 r) {                              \
        hvx_count(hvx_##cls);                                                          \
        const HVX_Vector xl_ = {0}, xh_ = {0}, Vv = hvx_splat_w(r);                    \
        HVX_EO_BODY(T, TU, TV, __VA_ARGS__)                                            \
    }
#define HVX_DEF_E_XVR(name, cls, T, TU, TV, ...)                                       \
    HVX_FN HVX_VectorPair name(HVX_VectorPair Vxx, HVX_Vector Vu, Word32 r) {          \
        hvx_count(hvx_##cls);                                                          \
        const HVX_Vector xl_ = hvx_lo(Vxx), xh_ = hvx_hi(Vxx), Vv = hvx_splat_w(r);    \
        HVX_EO_BODY(T, TU, TV, __VA_ARGS__)                                            \
    }

#define hvx_narrow_h hvx_il8
#define hvx_narrow_w hvx_il16
#define HVX_COUNT_h 7
#define HVX_COUNT_w 15
#define HVX_N_BODY(T, ...)                                    \
    LT e_, o_;                                                \
    {                                                         \
        const LT s = (LT) Vv;                                 \
        e_ = (LT) (__VA_ARGS__);                              \
    }                                                         \
    {                                                         \
        const LT s = (LT) Vu;                                 \
        o_ = (LT) (__VA_ARGS__);                              \
    }                                                         \
    return hvx_narrow_##T(e_, o_);
#define HVX_DEF_N_VV(name, cls, T, ...)                       \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {    \
        typedef hvx_##T LT;                                   \
        hvx_count(hvx_##cls);                                 \
        HVX_N_BODY(T, __VA_ARGS__)                            \
    }
#define HVX_DEF_N_VVR(name, cls, T, ...)                      \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) { \
        typedef hvx_##T LT;                                   \
        hvx_count(hvx_##cls);                                 \
        const LT r = HVX_SPLAT(LT, Rt & HVX_COUNT_##T);       \
        HVX_N_BODY(T, __VA_ARGS__)                            \
    }

#define HVX_DEF(kind, ...) HVX_DEF_##kind(__VA_ARGS__)
HVX_TABLE_ADD(HVX_DEF)
HVX_TABLE_WIDE(HVX_DEF)
HVX_TABLE_LOGIC(HVX_DEF)
HVX_TABLE_SHIFT(HVX_DEF)
HVX_TABLE_NARROW(HVX_DEF)
HVX_TABLE_COMPARE(HVX_DEF)

#endif
