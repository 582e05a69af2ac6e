// Vector predicates: one truth value a byte.
#ifndef HVX_PREDICATE_H
#define HVX_PREDICATE_H

#include "hvx_lanes.h"

#define HVX_Q_QQ(name, ...)                                                        \
    HVX_FN HVX_VectorPred name(HVX_VectorPred Qs, HVX_VectorPred Qt) {             \
        hvx_count(hvx_alu);                                                        \
        const hvx_b s = Qs.m, t = Qt.m;                                            \
        return hvx_pred(__VA_ARGS__);                                              \
    }
HVX_Q_QQ(Q6_Q_and_QQ, s & t)
HVX_Q_QQ(Q6_Q_and_QQn, s & ~t)
HVX_Q_QQ(Q6_Q_or_QQ, s | t)
HVX_Q_QQ(Q6_Q_or_QQn, s | ~t)
HVX_Q_QQ(Q6_Q_xor_QQ, s ^ t)
// The even elements' bits of Qt to the even, of Qs to the odd places of half the size.
HVX_Q_QQ(Q6_Qb_vshuffe_QhQh, (hvx_b) (((hvx_h) t & 255) | ((hvx_h) s << 8)))
HVX_Q_QQ(Q6_Qh_vshuffe_QwQw, (hvx_b) (((hvx_w) t & 65535) | ((hvx_w) s << 16)))
HVX_FN HVX_VectorPred Q6_Q_not_Q(HVX_VectorPred Qs) {
    hvx_count(hvx_alu);
    return hvx_pred(~Qs.m);
}

HVX_FN hvx_b hvx_byte_index(void) {
    return (hvx_b) {HVX_I128(HVX_SAME, 0)};
}
// vsetq: bytes below Rt mod 128; vsetq2: the same, but a multiple of 128 sets all.
HVX_FN HVX_VectorPred Q6_Q_vsetq_R(Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_pred(hvx_byte_index() < HVX_SPLAT(hvx_b, Rt & 127));
}
HVX_FN HVX_VectorPred Q6_Q_vsetq2_R(Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_pred(hvx_byte_index() <= HVX_SPLAT(hvx_b, (Rt - 1) & 127));
}

HVX_FN HVX_Vector Q6_V_vmux_QVV(HVX_VectorPred Qt, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return HVX_SEL(HVX_Vector, Qt.m, Vu, Vv);
}
HVX_FN HVX_VectorPair Q6_W_vswap_QVV(HVX_VectorPred Qt, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return hvx_pair(HVX_SEL(HVX_Vector, Qt.m, Vu, Vv), HVX_SEL(HVX_Vector, Qt.m, Vv, Vu));
}
HVX_FN HVX_Vector Q6_V_vand_QV(HVX_VectorPred Qv, HVX_Vector Vu) {
    hvx_count(hvx_alu);
    return (HVX_Vector) Qv.m & Vu;
}
HVX_FN HVX_Vector Q6_V_vand_QnV(HVX_VectorPred Qv, HVX_Vector Vu) {
    hvx_count(hvx_alu);
    return ~(HVX_Vector) Qv.m & Vu;
}
// By scalar: Rt in every word; a vector byte becomes a truth value if any common bit is set.
HVX_FN HVX_Vector Q6_V_vand_QR(HVX_VectorPred Qu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) Qu.m & hvx_splat_w(Rt);
}
HVX_FN HVX_Vector Q6_V_vand_QnR(HVX_VectorPred Qu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return ~(HVX_Vector) Qu.m & hvx_splat_w(Rt);
}
HVX_FN HVX_Vector Q6_V_vandor_VQR(HVX_Vector Vx, HVX_VectorPred Qu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return Vx | ((HVX_Vector) Qu.m & hvx_splat_w(Rt));
}
HVX_FN HVX_Vector Q6_V_vandor_VQnR(HVX_Vector Vx, HVX_VectorPred Qu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return Vx | (~(HVX_Vector) Qu.m & hvx_splat_w(Rt));
}
HVX_FN HVX_VectorPred Q6_Q_vand_VR(HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return hvx_pred_nz((hvx_b) (Vu & hvx_splat_w(Rt)));
}
HVX_FN HVX_VectorPred Q6_Q_vandor_QVR(HVX_VectorPred Qx, HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return hvx_pred(Qx.m | ((hvx_b) (Vu & hvx_splat_w(Rt)) != 0));
}

// if (Q) Vx += Vu and so on, byte by byte of the result.
#define HVX_COND(ty, T, op, word)                                                               \
    HVX_FN HVX_Vector Q6_V##ty##_##word##_QV##ty##V##ty(HVX_VectorPred Qv, HVX_Vector Vx,       \
                                                        HVX_Vector Vu) {                        \
        hvx_count(hvx_alu);                                                                     \
        return HVX_SEL(HVX_Vector, Qv.m, (hvx_##T) Vx op(hvx_##T) Vu, Vx);                      \
    }                                                                                           \
    HVX_FN HVX_Vector Q6_V##ty##_##word##_QnV##ty##V##ty(HVX_VectorPred Qv, HVX_Vector Vx,      \
                                                         HVX_Vector Vu) {                       \
        hvx_count(hvx_alu);                                                                     \
        return HVX_SEL(HVX_Vector, Qv.m, Vx, (hvx_##T) Vx op(hvx_##T) Vu);                      \
    }
HVX_COND(b, ub, +, condacc)
HVX_COND(h, uh, +, condacc)
HVX_COND(w, uw, +, condacc)
HVX_COND(b, ub, -, condnac)
HVX_COND(h, uh, -, condnac)
HVX_COND(w, uw, -, condnac)

// The carry of a word is its lowest byte's bit; a result fills all four bytes.
HVX_FN hvx_uw hvx_carry_in(HVX_VectorPred q) { return (hvx_uw) q.m & 1; }
HVX_FN HVX_Vector Q6_Vw_vadd_VwVwQ_carry(HVX_Vector Vu, HVX_Vector Vv, HVX_VectorPred * Qx) {
    hvx_count(hvx_alu);
    const hvx_uw a = (hvx_uw) Vu, b = (hvx_uw) Vv, c = hvx_carry_in(*Qx), s = a + b + c;
    *Qx = hvx_pred((hvx_b) ((((a & b) | ((a | b) & ~s)) >> 31) != 0));
    return (HVX_Vector) s;
}
HVX_FN HVX_Vector Q6_Vw_vsub_VwVwQ_carry(HVX_Vector Vu, HVX_Vector Vv, HVX_VectorPred * Qx) {
    return Q6_Vw_vadd_VwVwQ_carry(Vu, ~Vv, Qx);
}
HVX_FN HVX_Vector Q6_Vw_vadd_VwVwQ_carry_sat(HVX_Vector Vu, HVX_Vector Vv, HVX_VectorPred Qs) {
    hvx_count(hvx_alu);
    const hvx_uw a = (hvx_uw) Vu, b = (hvx_uw) Vv, s = a + b + hvx_carry_in(Qs);
    const hvx_w over = (hvx_w) ((a ^ s) & (b ^ s)) >> 31;
    return HVX_SEL(HVX_Vector, over, (hvx_w) (Vu >> 31) ^ 0x7fffffff, s);
}

// Running sum of the truth values of the bytes up to and including each element's.
#define HVX_PREFIX_STEP(T, LIST, n) \
    s += __builtin_shufflevector((T) {0}, s, LIST(HVX_PFX_##n, 0));
HVX_FN hvx_ub hvx_prefix(HVX_VectorPred q) {
    hvx_ub s = (hvx_ub) q.m & 1;
#define HVX_PFX(i, n) ((i) < (n) ? 0 : 128 + (i) - (n))
#define HVX_PFX_1(i)  HVX_PFX(i, 1)
#define HVX_PFX_2(i)  HVX_PFX(i, 2)
#define HVX_PFX_4(i)  HVX_PFX(i, 4)
#define HVX_PFX_8(i)  HVX_PFX(i, 8)
#define HVX_PFX_16(i) HVX_PFX(i, 16)
#define HVX_PFX_32(i) HVX_PFX(i, 32)
#define HVX_PFX_64(i) HVX_PFX(i, 64)
    HVX_PREFIX_STEP(hvx_ub, HVX_I128, 1) HVX_PREFIX_STEP(hvx_ub, HVX_I128, 2)
    HVX_PREFIX_STEP(hvx_ub, HVX_I128, 4) HVX_PREFIX_STEP(hvx_ub, HVX_I128, 8)
    HVX_PREFIX_STEP(hvx_ub, HVX_I128, 16) HVX_PREFIX_STEP(hvx_ub, HVX_I128, 32)
    HVX_PREFIX_STEP(hvx_ub, HVX_I128, 64)
    return s;
}
HVX_FN HVX_Vector Q6_Vb_prefixsum_Q(HVX_VectorPred Qv) {
    hvx_count(hvx_alu);
    return (HVX_Vector) hvx_prefix(Qv);
}
HVX_FN HVX_Vector Q6_Vh_prefixsum_Q(HVX_VectorPred Qv) {
    hvx_count(hvx_alu);
    return (HVX_Vector) ((hvx_uh) hvx_prefix(Qv) >> 8);
}
HVX_FN HVX_Vector Q6_Vw_prefixsum_Q(HVX_VectorPred Qv) {
    hvx_count(hvx_alu);
    return (HVX_Vector) ((hvx_uw) hvx_prefix(Qv) >> 24);
}

#endif
