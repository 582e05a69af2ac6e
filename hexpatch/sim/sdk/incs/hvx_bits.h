// Bit counts, and shifts that do not fit the table.
#ifndef HVX_BITS_H
#define HVX_BITS_H

#include "hvx_lanes.h"

// Leading zeros of a word (32 for 0): the exponent of the number as a float, made so that the
// conversion cannot round up.
HVX_FN hvx_w hvx_clz(hvx_w v) {
    const hvx_w hi = (hvx_w) ((hvx_uw) v >> 16), big = hi != 0;
    const hvx_w part = HVX_SEL(hvx_w, big, hi, v & 65535);
    const hvx_w lg = ((hvx_w) HVX_CONV(hvx_f, part) >> 23) - 127;  // -127 for 0
    return HVX_MIN(31 - lg - (big & 16), HVX_SPLAT(hvx_w, 32));
}
HVX_FN HVX_Vector Q6_Vuw_vcl0_Vuw(HVX_Vector Vu) {
    hvx_count(hvx_alu);
    return (HVX_Vector) hvx_clz((hvx_w) Vu);
}
HVX_FN HVX_Vector Q6_Vuh_vcl0_Vuh(HVX_Vector Vu) {
    hvx_count(hvx_alu);
    return hvx_il16(hvx_clz(hvx_ev_uh(Vu)) - 16, hvx_clz(hvx_od_uh(Vu)) - 16);
}
// vnormamt: bits equal to the top one, less one: what a left shift may be without overflow.
HVX_FN HVX_Vector Q6_Vw_vnormamt_Vw(HVX_Vector Vu) {
    hvx_count(hvx_alu);
    const hvx_w v = (hvx_w) Vu;
    return (HVX_Vector) (hvx_clz(v ^ (v >> 31)) - 1);
}
HVX_FN HVX_Vector Q6_Vh_vnormamt_Vh(HVX_Vector Vu) {
    hvx_count(hvx_alu);
    const hvx_w e = hvx_ev_h(Vu), o = hvx_od_h(Vu);
    return hvx_il16(hvx_clz(e ^ (e >> 31)) - 17, hvx_clz(o ^ (o >> 31)) - 17);
}

// vclb: leading bits equal to the top one.
HVX_FN hvx_w hvx_clb(hvx_w v) { return hvx_clz(v ^ (v >> 31)); }
HVX_FN HVX_Vector Q6_Vw_vadd_vclb_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return (HVX_Vector) ((hvx_uw) hvx_clb((hvx_w) Vu) + (hvx_uw) Vv);
}
HVX_FN HVX_Vector Q6_Vh_vadd_vclb_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return (HVX_Vector) ((hvx_uh) hvx_il16(hvx_clb(hvx_ev_h(Vu)) - 16, hvx_clb(hvx_od_h(Vu)) - 16) + (hvx_uh) Vv);
}
HVX_FN HVX_Vector Q6_Vh_vpopcount_Vh(HVX_Vector Vu) {
    hvx_count(hvx_alu);
    hvx_uh v = (hvx_uh) Vu;
    v = v - ((v >> 1) & 0x5555);
    v = (v & 0x3333) + ((v >> 2) & 0x3333);
    v = (v + (v >> 4)) & 0x0f0f;
    return (HVX_Vector) ((v + (v >> 8)) & 31);
}
// The 64-bit number Vu:Vv saturated to a word.
HVX_FN HVX_Vector Q6_Vw_vsatdw_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    const hvx_w u = (hvx_w) Vu, v = (hvx_w) Vv;
    return (HVX_Vector) HVX_SEL(hvx_w, u == (v >> 31), v, (u >> 31) ^ 0x7fffffff);
}
// vasrinto: Vu shifted by a count of -64..63 into 64 bits of which the low word of Vxx fills what
// becomes free: count >= 0 shifts Vu:0 right, < 0 left. -64 gives 0.
HVX_FN int64_t hvx_into(int32_t x, int32_t u, int32_t n) {
    const int count = (n & 63) - (n & 64);
    const uint64_t low = 0xffffffffu, shift = (uint64_t) (int64_t) u << 32;
    const uint64_t mask = (uint64_t) (int64_t) x << 32 | (uint32_t) x;
    if (count == -64) return 0;
    if (count < 0) return (int64_t) (shift << -count | (mask & (low << -count)));
    return (int64_t) ((uint64_t) ((int64_t) shift >> count) | (mask & (low >> count)));
}
HVX_FN HVX_VectorPair Q6_Ww_vasrinto_WwVwVw(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_perm);
    for (int i = 0; i < 32; i++) {
        const int64_t r = hvx_into(Vxx[i], Vu[i], Vv[i]);
        Vxx[i] = (int) r;
        Vxx[32 + i] = (int) (r >> 32);
    }
    return Vxx;
}

// v69: each element of the pair by its own count; the low vector gives the even elements.
#define HVX_VASR_W(name, T, il, count, LANES)                                                  \
    HVX_FN HVX_Vector name(HVX_VectorPair Vuu, HVX_Vector Vv) {                                \
        hvx_count(hvx_alu);                                                                    \
        const hvx_##T a = (hvx_##T) hvx_lo(Vuu), b = (hvx_##T) hvx_hi(Vuu);                    \
        const hvx_##T m = (hvx_##T) hvx_ev_##LANES(Vv) & (count), n = (hvx_##T) hvx_od_##LANES(Vv) & (count); \
        return il;                                                                             \
    }
#define HVX_UB_OF(x) ((hvx_h) HVX_MIN(x, HVX_SPLAT(hvx_uh, 255)))
#define HVX_UH_OF(x) HVX_CLAMP(hvx_w, x, 0, 65535)
#define HVX_RND(x, n) (((x) >> (n)) + ((((x) << 1) >> (n)) & 1))
HVX_VASR_W(Q6_Vub_vasr_WuhVub_sat, uh, hvx_il8(HVX_UB_OF(a >> m), HVX_UB_OF(b >> n)), 7, ub)
HVX_VASR_W(Q6_Vub_vasr_WuhVub_rnd_sat, uh, hvx_il8(HVX_UB_OF(HVX_RND(a, m)), HVX_UB_OF(HVX_RND(b, n))), 7, ub)
HVX_VASR_W(Q6_Vuh_vasr_WwVuh_sat, w, hvx_il16(HVX_UH_OF(a >> m), HVX_UH_OF(b >> n)), 15, uh)
HVX_VASR_W(Q6_Vuh_vasr_WwVuh_rnd_sat, w, hvx_il16(HVX_UH_OF(HVX_RND(a, m)), HVX_UH_OF(HVX_RND(b, n))), 15, uh)

#endif
