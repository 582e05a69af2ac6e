// Table lookups: vlut32, vlut16, vlut4 and the piecewise linear vmpa.
#ifndef HVX_LOOKUP_H
#define HVX_LOOKUP_H

#include "hvx_lanes.h"

// Entry (index mod 16) of a 16-byte table (repeated in every 16 bytes) for each byte.
#ifdef __AVX2__
HVX_FN hvx_w8 hvx_lut16_8(hvx_w8 table, hvx_w8 index) {
    typedef char v32 __attribute__((vector_size(32)));
    return (hvx_w8) __builtin_ia32_pshufb256((v32) table, (v32) index);
}
HVX_FN hvx_ub hvx_lut16(hvx_ub table, hvx_ub index) {
    const HVX_Vector t = (HVX_Vector) table, n = (HVX_Vector) (index & 15);
    return (hvx_ub) HVX_BY8(hvx_lut16_8, t, n);
}
#else
HVX_OUT hvx_ub hvx_lut16(hvx_ub table, hvx_ub index) {
    hvx_ub out = {0};
    for (int i = 0; i < 128; i++) out[i] = table[index[i] & 15];
    return out;
}
#endif
// Which 16 bytes of v, 16 * part on, every `step` bytes, repeated eight times.
#define HVX_REP(i) ((i) & 15)
HVX_FN hvx_ub hvx_table16(hvx_ub v) { return __builtin_shufflevector(v, v, HVX_I128(HVX_REP, 0)); }
HVX_FN hvx_ub hvx_table16_hi(hvx_ub v) {
#define HVX_REP_HI(i) (16 + ((i) & 15))
    return __builtin_shufflevector(v, v, HVX_I128(HVX_REP_HI, 0));
}

// vlut32: table of 32 bytes: byte (Rt / 2 mod 2) of halfwords 32 * (Rt mod 2) on. An index matches
// if its upper three bits are Rt mod 8; others give 0. nomatch: every index does.
HVX_FN HVX_Vector hvx_lut32(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt, bool match) {
    const hvx_uh half = Rt & 2 ? (hvx_uh) Vv >> 8 : (hvx_uh) Vv & 255;
    typedef uint8_t ub64 __attribute__((vector_size(64)));
    const ub64   bytes = HVX_CONV(ub64, half);
    const hvx_ub all = __builtin_shufflevector(bytes, bytes, HVX_I128(HVX_SAME, 0));
#define HVX_HALF(i) (32 + (i) % 64)
    const hvx_ub t = Rt & 1 ? __builtin_shufflevector(all, all, HVX_I128(HVX_HALF, 0)) : all;
    const hvx_ub n = (hvx_ub) Vu;
    const hvx_ub r = HVX_SEL(hvx_ub, (n & 16) != 0, hvx_lut16(hvx_table16_hi(t), n), hvx_lut16(hvx_table16(t), n));
    return (HVX_Vector) (match ? r & (hvx_ub) ((n >> 5) == (hvx_ub) HVX_SPLAT(hvx_ub, Rt & 7)) : r);
}
HVX_FN HVX_Vector Q6_Vb_vlut32_VbVbR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_lut32(Vu, Vv, Rt, true);
}
HVX_FN HVX_Vector Q6_Vb_vlut32_VbVbI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    hvx_count(hvx_perm);
    return hvx_lut32(Vu, Vv, Iu3, true);
}
HVX_FN HVX_Vector Q6_Vb_vlut32_VbVbR_nomatch(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_lut32(Vu, Vv, Rt, false);
}
HVX_FN HVX_Vector Q6_Vb_vlut32or_VbVbVbR(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return Vx | hvx_lut32(Vu, Vv, Rt, true);
}
HVX_FN HVX_Vector Q6_Vb_vlut32or_VbVbVbI(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    hvx_count(hvx_perm);
    return Vx | hvx_lut32(Vu, Vv, Iu3, true);
}

// vlut16: table of 16 halfwords: half (Rt / 2 mod 2) of words 16 * (Rt mod 2) on. An index matches
// if its upper four bits are Rt mod 16. Even index bytes' results go to the low vector.
HVX_FN HVX_VectorPair hvx_lut16w(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt, bool match) {
    const hvx_uw half = Rt & 2 ? (hvx_uw) Vv >> 16 : (hvx_uw) Vv & 65535;
    typedef uint8_t ub32 __attribute__((vector_size(32)));
    const ub32 lob = HVX_CONV(ub32, half), hib = HVX_CONV(ub32, half >> 8);
#define HVX_REP16(i) ((i) % 16)
#define HVX_REP16H(i) (16 + (i) % 16)
    const hvx_ub tl = Rt & 1 ? __builtin_shufflevector(lob, lob, HVX_I128(HVX_REP16H, 0))
                             : __builtin_shufflevector(lob, lob, HVX_I128(HVX_REP16, 0));
    const hvx_ub th = Rt & 1 ? __builtin_shufflevector(hib, hib, HVX_I128(HVX_REP16H, 0))
                             : __builtin_shufflevector(hib, hib, HVX_I128(HVX_REP16, 0));
    const hvx_ub n = (hvx_ub) Vu;
    const hvx_ub ok = match ? (hvx_ub) ((n >> 4) == (hvx_ub) HVX_SPLAT(hvx_ub, Rt & 15)) : HVX_SPLAT(hvx_ub, 255);
    const hvx_h l = (hvx_h) (hvx_lut16(tl, n) & ok), h = (hvx_h) (hvx_lut16(th, n) & ok);
    return hvx_pair(hvx_il8(l, h), hvx_il8((hvx_h) ((hvx_uh) l >> 8), (hvx_h) ((hvx_uh) h >> 8)));
}
HVX_FN HVX_VectorPair Q6_Wh_vlut16_VbVhR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_lut16w(Vu, Vv, Rt, true);
}
HVX_FN HVX_VectorPair Q6_Wh_vlut16_VbVhI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    hvx_count(hvx_perm);
    return hvx_lut16w(Vu, Vv, Iu3, true);
}
HVX_FN HVX_VectorPair Q6_Wh_vlut16_VbVhR_nomatch(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_lut16w(Vu, Vv, Rt, false);
}
HVX_FN HVX_VectorPair Q6_Wh_vlut16or_WhVbVhR(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return Vxx | hvx_lut16w(Vu, Vv, Rt, true);
}
HVX_FN HVX_VectorPair Q6_Wh_vlut16or_WhVbVhI(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    hvx_count(hvx_perm);
    return Vxx | hvx_lut16w(Vu, Vv, Iu3, true);
}

// One of four halfwords of Rtt by the upper two bits of each element.
HVX_FN hvx_w hvx_quarter(hvx_w top2, Word64 Rtt, bool sgn) {
    hvx_w r = {0};
    for (int i = 0; i < 4; i++) {
        const int h = (int) (Rtt >> (16 * i));
        r |= (hvx_w) (top2 == i) & (sgn ? (int) (int16_t) h : (int) (uint16_t) h);
    }
    return r;
}
HVX_FN HVX_Vector Q6_Vh_vlut4_VuhPh(HVX_Vector Vu, Word64 Rtt) {
    hvx_count(hvx_mpy);
    return hvx_il16(hvx_quarter(hvx_ev_uh(Vu) >> 14, Rtt, true), hvx_quarter(hvx_od_uh(Vu) >> 14, Rtt, true));
}
// A line through one of four offsets: (x * u + (offset << 15)) >> 16, saturated; vmps subtracts the
// offset. The signed form doubles the product.
HVX_FN hvx_w hvx_line(hvx_w x, hvx_w u, Word64 Rtt, int kind) {
    const hvx_w top = (u >> 14) & 3;
    // In 64 bits the sum is exact; here product and offset are halved first, the lost bit of the
    // product cannot reach bit 16 as the offset's low 15 bits are 0.
    const hvx_w k = hvx_quarter(top, Rtt, kind == 2);
    const hvx_w p = x * u;
    if (kind == 2) return HVX_CLAMP(hvx_w, ((p >> 1) + (k << 13)) >> 14, -32768, 32767);
    const hvx_w ph = p >> 1, kh = k << 14;
    return HVX_CLAMP(hvx_w, (kind == 1 ? ph - kh : ph + kh) >> 15, -32768, 32767);
}
HVX_FN HVX_Vector hvx_lines(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt, int kind) {
    const hvx_w ue = kind == 2 ? hvx_ev_h(Vu) : hvx_ev_uh(Vu), uo = kind == 2 ? hvx_od_h(Vu) : hvx_od_uh(Vu);
    return hvx_il16(hvx_line(hvx_ev_h(Vx), ue, Rtt, kind), hvx_line(hvx_od_h(Vx), uo, Rtt, kind));
}
HVX_FN HVX_Vector Q6_Vh_vmpa_VhVhVuhPuh_sat(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt) {
    hvx_count(hvx_mpy);
    return hvx_lines(Vx, Vu, Rtt, 0);
}
HVX_FN HVX_Vector Q6_Vh_vmps_VhVhVuhPuh_sat(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt) {
    hvx_count(hvx_mpy);
    return hvx_lines(Vx, Vu, Rtt, 1);
}
HVX_FN HVX_Vector Q6_Vh_vmpa_VhVhVhPh_sat(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt) {
    hvx_count(hvx_mpy);
    return hvx_lines(Vx, Vu, Rtt, 2);
}

#endif
