// Integer multiplies that are not in hvx_table.h.
#ifndef HVX_MULTIPLY_H
#define HVX_MULTIPLY_H

#include "hvx_lanes.h"

// -- vrmpy: each word, the sum of four byte products --------------------------------------------------

#define HVX_RMPY(TU, TV, sum_ev, sum_od)                                                       \
    HVX_FN HVX_Vector hvx_rmpy_##TU##_##TV(HVX_Vector Vu, HVX_Vector Vv) {                     \
        const HVX_Vector e = (HVX_Vector) (hvx_ev_##TU(Vu) * hvx_ev_##TV(Vv));                 \
        const HVX_Vector o = (HVX_Vector) (hvx_od_##TU(Vu) * hvx_od_##TV(Vv));                 \
        return (HVX_Vector) (sum_ev(e) + sum_od(e) + sum_ev(o) + sum_od(o));                   \
    }
HVX_RMPY(b, b, hvx_ev_h, hvx_od_h)
HVX_RMPY(ub, b, hvx_ev_h, hvx_od_h)
HVX_RMPY(ub, ub, hvx_ev_uh, hvx_od_uh)

#define HVX_RMPY_FORMS(vv, vvacc, TU, TV)                                                      \
    HVX_FN HVX_Vector vv(HVX_Vector Vu, HVX_Vector Vv) {                                       \
        hvx_count(hvx_mpy);                                                                    \
        return hvx_rmpy_##TU##_##TV(Vu, Vv);                                                   \
    }                                                                                          \
    HVX_FN HVX_Vector vvacc(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {                     \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) ((hvx_uw) Vx + (hvx_uw) hvx_rmpy_##TU##_##TV(Vu, Vv));             \
    }
HVX_RMPY_FORMS(Q6_Vw_vrmpy_VbVb, Q6_Vw_vrmpyacc_VwVbVb, b, b)
HVX_RMPY_FORMS(Q6_Vw_vrmpy_VubVb, Q6_Vw_vrmpyacc_VwVubVb, ub, b)
HVX_RMPY_FORMS(Q6_Vuw_vrmpy_VubVub, Q6_Vuw_vrmpyacc_VuwVubVub, ub, ub)
#define HVX_RMPY_RFORMS(vr, vracc, TU, TV)                                                     \
    HVX_FN HVX_Vector vr(HVX_Vector Vu, Word32 Rt) {                                           \
        hvx_count(hvx_mpy);                                                                    \
        return hvx_rmpy_##TU##_##TV(Vu, hvx_splat_w(Rt));                                      \
    }                                                                                          \
    HVX_FN HVX_Vector vracc(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {                         \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) ((hvx_uw) Vx + (hvx_uw) hvx_rmpy_##TU##_##TV(Vu, hvx_splat_w(Rt))); \
    }
HVX_RMPY_RFORMS(Q6_Vw_vrmpy_VubRb, Q6_Vw_vrmpyacc_VwVubRb, ub, b)
HVX_RMPY_RFORMS(Q6_Vuw_vrmpy_VubRub, Q6_Vuw_vrmpyacc_VuwVubRub, ub, ub)

#define HVX_ADDW(x, y) ((HVX_Vector) ((hvx_uw) (x) + (hvx_uw) (y)))

// Pairs with a scalar: a window of four bytes that starts 1 - Iu1 (low) or 3 - Iu1 (high) bytes
// into {low, high}. E(x, y) is one byte of the vectors with one of the scalar, in word lanes.
HVX_FN hvx_w hvx_ubyte(HVX_Vector v, int k) { return (hvx_w) (((hvx_uw) v >> (8 * k)) & 255); }
HVX_FN int   hvx_rb(Word32 r, int k) { return (int8_t) (r >> (8 * (k & 3))); }
HVX_FN int   hvx_rub(Word32 r, int k) { return (uint8_t) (r >> (8 * (k & 3))); }
#define HVX_RPAIR(name, E, rbyte)                                                              \
    HVX_FN HVX_VectorPair name(HVX_VectorPair Vuu, Word32 Rt, Word32 u) {                      \
        const HVX_Vector l = hvx_lo(Vuu), h = hvx_hi(Vuu), m = u ? h : l;                      \
        const hvx_w lo = E(hvx_ubyte(m, 0), rbyte(Rt, -u)) + E(hvx_ubyte(l, 1), rbyte(Rt, 1 - u)) + \
                         E(hvx_ubyte(l, 2), rbyte(Rt, 2 - u)) + E(hvx_ubyte(l, 3), rbyte(Rt, 3 - u)); \
        const hvx_w hi = E(hvx_ubyte(h, 0), rbyte(Rt, 2 - u)) + E(hvx_ubyte(h, 1), rbyte(Rt, 3 - u)) + \
                         E(hvx_ubyte(m, 2), rbyte(Rt, -u)) + E(hvx_ubyte(l, 3), rbyte(Rt, 1 - u));    \
        return hvx_pair((HVX_Vector) lo, (HVX_Vector) hi);                                     \
    }
#define HVX_E_MUL(x, y) ((x) * (y))
#define HVX_E_SAD(x, y) HVX_MAX((x) - (y), (y) - (x))
HVX_RPAIR(hvx_rmpy_w_b, HVX_E_MUL, hvx_rb)
HVX_RPAIR(hvx_rmpy_w_ub, HVX_E_MUL, hvx_rub)
HVX_RPAIR(hvx_rsad_w, HVX_E_SAD, hvx_rub)
#define HVX_RPAIR_FORMS(plain, acc, fn)                                                        \
    HVX_FN HVX_VectorPair plain(HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {                   \
        hvx_count(hvx_mpy);                                                                    \
        return fn(Vuu, Rt, Iu1 & 1);                                                           \
    }                                                                                          \
    HVX_FN HVX_VectorPair acc(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) { \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_VectorPair) ((hvx_uw2) Vxx + (hvx_uw2) fn(Vuu, Rt, Iu1 & 1));              \
    }
HVX_RPAIR_FORMS(Q6_Ww_vrmpy_WubRbI, Q6_Ww_vrmpyacc_WwWubRbI, hvx_rmpy_w_b)
HVX_RPAIR_FORMS(Q6_Wuw_vrmpy_WubRubI, Q6_Wuw_vrmpyacc_WuwWubRubI, hvx_rmpy_w_ub)
HVX_RPAIR_FORMS(Q6_Wuw_vrsad_WubRubI, Q6_Wuw_vrsadacc_WuwWubRubI, hvx_rsad_w)

// -- a scalar's bytes or halfwords, in turn for the elements ------------------------------------------

#define HVX_TURN(T, F, LIST, r) \
    HVX_CONV(T, __builtin_shufflevector((F) hvx_splat_w(r), (F) hvx_splat_w(r), LIST(HVX_SAME, 0)))
HVX_FN hvx_h hvx_turn_bh(Word32 r) { return HVX_TURN(hvx_h, hvx_b, HVX_I64, r); }
HVX_FN hvx_w hvx_turn_bw(Word32 r) { return HVX_TURN(hvx_w, hvx_b, HVX_I32, r); }
HVX_FN hvx_w hvx_turn_ubw(Word32 r) { return hvx_turn_bw(r) & 255; }
HVX_FN hvx_w hvx_turn_hw(Word32 r) { return HVX_TURN(hvx_w, hvx_h, HVX_I32, r); }

// Low half of the product, plain and accumulating. b gives the second factor from Vv or Rt.
#define HVX_MPYI(name, accname, T, B, b)                                                       \
    HVX_FN HVX_Vector name(HVX_Vector Vu, B y) {                                               \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) ((hvx_##T) Vu * (hvx_##T) (b));                                    \
    }                                                                                          \
    HVX_FN HVX_Vector accname(HVX_Vector Vx, HVX_Vector Vu, B y) {                             \
        hvx_count(hvx_mpy);                                                                    \
        return (HVX_Vector) ((hvx_##T) Vx + (hvx_##T) Vu * (hvx_##T) (b));                     \
    }
HVX_MPYI(Q6_Vh_vmpyi_VhVh, Q6_Vh_vmpyiacc_VhVhVh, uh, HVX_Vector, y)
HVX_MPYI(Q6_Vh_vmpyi_VhRb, Q6_Vh_vmpyiacc_VhVhRb, uh, Word32, hvx_turn_bh(y))
HVX_MPYI(Q6_Vw_vmpyi_VwRb, Q6_Vw_vmpyiacc_VwVwRb, uw, Word32, hvx_turn_bw(y))
HVX_MPYI(Q6_Vw_vmpyi_VwRub, Q6_Vw_vmpyiacc_VwVwRub, uw, Word32, hvx_turn_ubw(y))
HVX_MPYI(Q6_Vw_vmpyi_VwRh, Q6_Vw_vmpyiacc_VwVwRh, uw, Word32, hvx_turn_hw(y))
HVX_MPYI(Q6_Vw_vmpyie_VwVuh, Q6_Vw_vmpyieacc_VwVwVuh, uw, HVX_Vector, hvx_ev_uh(y))
HVX_FN HVX_Vector Q6_Vw_vmpyieacc_VwVwVh(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return HVX_ADDW(Vx, (hvx_uw) Vu * (hvx_uw) hvx_ev_h(Vv));
}
HVX_FN HVX_Vector Q6_Vw_vmpyio_VwVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) ((hvx_uw) Vu * (hvx_uw) hvx_od_h(Vv));
}
HVX_FN HVX_Vector Q6_Vw_vmpyieo_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) ((hvx_uw) (hvx_ev_h(Vu) * hvx_od_h(Vv)) << 16);
}
HVX_FN HVX_Vector Q6_Vuw_vmpye_VuhRuh(HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) ((hvx_uw) hvx_ev_uh(Vu) * (uint32_t) (uint16_t) Rt);
}
HVX_FN HVX_Vector Q6_Vuw_vmpyeacc_VuwVuhRuh(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return HVX_ADDW(Vx, (hvx_uw) hvx_ev_uh(Vu) * (uint32_t) (uint16_t) Rt);
}
HVX_FN HVX_Vector Q6_Vuh_vmpy_VuhVuh_rs16(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return hvx_il16((hvx_w) ((hvx_uw) (hvx_ev_uh(Vu) * hvx_ev_uh(Vv)) >> 16),
                    (hvx_w) ((hvx_uw) (hvx_od_uh(Vu) * hvx_od_uh(Vv)) >> 16));
}

// -- vmpy with shift, round, saturate -----------------------------------------------------------------

// p * 2, rounded to the upper half or cut, saturated to 16 bits.
HVX_FN hvx_w hvx_frac(hvx_w p, int rnd) {
    return HVX_CLAMP(hvx_w, ((p >> 14) + rnd) >> 1, -32768, 32767);
}
HVX_FN HVX_Vector hvx_fracs(HVX_Vector u, HVX_Vector v, int rnd) {
    return hvx_il16(hvx_frac(hvx_ev_h(u) * hvx_ev_h(v), rnd), hvx_frac(hvx_od_h(u) * hvx_od_h(v), rnd));
}
HVX_FN HVX_Vector Q6_Vh_vmpy_VhVh_s1_rnd_sat(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return hvx_fracs(Vu, Vv, 1);
}
HVX_FN HVX_Vector Q6_Vh_vmpy_VhRh_s1_rnd_sat(HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return hvx_fracs(Vu, hvx_splat_w(Rt), 1);
}
HVX_FN HVX_Vector Q6_Vh_vmpy_VhRh_s1_sat(HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_mpy);
    return hvx_fracs(Vu, hvx_splat_w(Rt), 0);
}

// Word by halfword, 48 bits, in 64-bit lanes.
HVX_FN hvx_d2 hvx_wide(hvx_w v) { return HVX_CONV(hvx_d2, v); }
HVX_FN hvx_w hvx_wlow(hvx_d2 v) { return HVX_CONV(hvx_w, v); }
HVX_FN hvx_w hvx_wsat(hvx_d2 v) { return hvx_wlow(HVX_CLAMP(hvx_d2, v, INT32_MIN, INT32_MAX)); }
HVX_FN hvx_d2 hvx_w_euh(HVX_Vector u, HVX_Vector v) { return hvx_wide((hvx_w) u) * hvx_wide(hvx_ev_uh(v)); }
HVX_FN hvx_d2 hvx_w_oh(HVX_Vector u, HVX_Vector v) { return hvx_wide((hvx_w) u) * hvx_wide(hvx_od_h(v)); }

HVX_FN HVX_Vector Q6_Vw_vmpye_VwVuh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) hvx_wlow(hvx_w_euh(Vu, Vv) >> 16);
}
HVX_FN HVX_VectorPair Q6_W_vmpye_VwVuh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    const hvx_d2 p = hvx_w_euh(Vu, Vv);
    return hvx_pair((HVX_Vector) hvx_wlow(p << 16), (HVX_Vector) hvx_wlow(p >> 16));
}
HVX_FN HVX_VectorPair Q6_W_vmpyoacc_WVwVh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    const hvx_d2 p = hvx_w_oh(Vu, Vv) + hvx_wide((hvx_w) hvx_hi(Vxx));
    const hvx_w low = hvx_od_uh(hvx_lo(Vxx)) | (hvx_wlow(p) << 16);
    return hvx_pair((HVX_Vector) low, (HVX_Vector) hvx_wlow(p >> 16));
}
HVX_FN HVX_Vector Q6_Vw_vmpyo_VwVh_s1_sat(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) hvx_wsat(hvx_w_oh(Vu, Vv) >> 15);
}
HVX_FN HVX_Vector Q6_Vw_vmpyo_VwVh_s1_rnd_sat(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) hvx_wsat(((hvx_w_oh(Vu, Vv) >> 14) + 1) >> 1);
}
// ":shift": the accumulator joins before the shift.
HVX_FN hvx_d2 hvx_mpyo_acc(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return (hvx_wide((hvx_w) Vx) + hvx_w_oh(Vu, Vv)) >> 14;
}
HVX_FN HVX_Vector Q6_Vw_vmpyoacc_VwVwVh_s1_sat_shift(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) hvx_wsat(hvx_mpyo_acc(Vx, Vu, Vv) >> 1);
}
HVX_FN HVX_Vector Q6_Vw_vmpyoacc_VwVwVh_s1_rnd_sat_shift(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) hvx_wsat((hvx_mpyo_acc(Vx, Vu, Vv) + 1) >> 1);
}

#include "hvx_dual.h"

#endif
