// Permutes: shuffles, rotates, packs, delta networks, splats.
#ifndef HVX_PERMUTE_H
#define HVX_PERMUTE_H

#include "hvx_lanes.h"

// -- moves and splats ---------------------------------------------------------------------------

HVX_FN HVX_Vector Q6_V_lo_W(HVX_VectorPair Vss) { return hvx_lo(Vss); }
HVX_FN HVX_Vector Q6_V_hi_W(HVX_VectorPair Vss) { return hvx_hi(Vss); }
HVX_FN HVX_Vector Q6_V_equals_V(HVX_Vector Vu) { return Vu; }
HVX_FN HVX_VectorPair Q6_W_equals_W(HVX_VectorPair Vuu) { return Vuu; }
HVX_FN HVX_Vector Q6_Vw_vfmv_Vw(HVX_Vector Vu) { return Vu; }
HVX_FN HVX_VectorPair Q6_W_vcombine_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return hvx_pair(Vv, Vu);
}
HVX_FN HVX_Vector Q6_V_vzero(void) {
    hvx_count(hvx_alu);
    return (HVX_Vector) {0};
}
HVX_FN HVX_VectorPair Q6_W_vzero(void) {
    hvx_count(hvx_alu);
    return (HVX_VectorPair) {0};
}
HVX_FN HVX_Vector Q6_V_vsplat_R(Word32 Rt) {
    hvx_count(hvx_mpy);
    return hvx_splat_w(Rt);
}
HVX_FN HVX_Vector Q6_Vh_vsplat_R(Word32 Rt) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) HVX_SPLAT(hvx_h, Rt);
}
HVX_FN HVX_Vector Q6_Vb_vsplat_R(Word32 Rt) {
    hvx_count(hvx_mpy);
    return (HVX_Vector) HVX_SPLAT(hvx_b, Rt);
}
HVX_FN HVX_Vector Q6_Vw_vinsert_VwR(HVX_Vector Vx, Word32 Rt) {
    hvx_count(hvx_mpy);
    Vx[0] = Rt;
    return Vx;
}
// Rs is a byte index; the word that holds the byte. (The load unit does it; no vector unit.)
HVX_FN Word32 Q6_R_vextract_VR(HVX_Vector Vu, Word32 Rs) {
    hvx_count(hvx_alu);
    return Vu[(Rs & 127) >> 2];
}

// -- one vector -----------------------------------------------------------------------------------

// vshuff.h: the two halves interleaved; vdeal.h: the even elements, then the odd ones.
#define HVX_IL_H(i) ((i) / 2 + ((i) % 2) * 32)
#define HVX_IL_B(i) ((i) / 2 + ((i) % 2) * 64)
#define HVX_DL_H(i) ((i) % 32 * 2 + (i) / 32)
#define HVX_DL_B(i) ((i) % 64 * 2 + (i) / 64)
HVX_FN HVX_Vector Q6_Vh_vshuff_Vh(HVX_Vector Vu) {
    hvx_count(hvx_perm);
    return (HVX_Vector) __builtin_shufflevector((hvx_h) Vu, (hvx_h) Vu, HVX_I64(HVX_IL_H, 0));
}
HVX_FN HVX_Vector Q6_Vb_vshuff_Vb(HVX_Vector Vu) {
    hvx_count(hvx_perm);
    return (HVX_Vector) __builtin_shufflevector((hvx_b) Vu, (hvx_b) Vu, HVX_I128(HVX_IL_B, 0));
}
HVX_FN HVX_Vector Q6_Vh_vdeal_Vh(HVX_Vector Vu) {
    hvx_count(hvx_perm);
    return (HVX_Vector) __builtin_shufflevector((hvx_h) Vu, (hvx_h) Vu, HVX_I64(HVX_DL_H, 0));
}
HVX_FN HVX_Vector Q6_Vb_vdeal_Vb(HVX_Vector Vu) {
    hvx_count(hvx_perm);
    return (HVX_Vector) __builtin_shufflevector((hvx_b) Vu, (hvx_b) Vu, HVX_I128(HVX_DL_B, 0));
}
// vdeale: the even bytes of the even halfwords: first a quarter of each word of Vv, then byte 2 of
// each; then the same of Vu.
#define HVX_DEALE(i) ((i) % 32 * 4 + (i) / 32 % 2 * 2 + (i) / 64 * 128)
HVX_FN HVX_Vector Q6_Vb_vdeale_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_perm);
    return (HVX_Vector) __builtin_shufflevector((hvx_b) Vv, (hvx_b) Vu, HVX_I128(HVX_DEALE, 0));
}

// -- vshuff and vdeal of a pair ---------------------------------------------------------------------

// The rule for any Rt: v0 = Vv, v1 = Vu; for each power of two in Rt, upwards for vshuff and
// downwards for vdeal: where k has not that bit, swap v1[k] and v0[k + off] (bytes).
#define HVX_SWAP_STEP(off)                                                                  \
    if (Rt & (off)) {                                                                       \
        const hvx_b n0 = __builtin_shufflevector(v0, v1, HVX_I128(HVX_SWAP0_##off, 0));     \
        const hvx_b n1 = __builtin_shufflevector(v0, v1, HVX_I128(HVX_SWAP1_##off, 0));     \
        v0 = n0;                                                                            \
        v1 = n1;                                                                            \
    }
#define HVX_SWAP0(i, off) ((i) & (off) ? 128 + (i) - (off) : (i))
#define HVX_SWAP1(i, off) ((i) & (off) ? 128 + (i) : (i) + (off))
#define HVX_SWAP0_1(i)  HVX_SWAP0(i, 1)
#define HVX_SWAP0_2(i)  HVX_SWAP0(i, 2)
#define HVX_SWAP0_4(i)  HVX_SWAP0(i, 4)
#define HVX_SWAP0_8(i)  HVX_SWAP0(i, 8)
#define HVX_SWAP0_16(i) HVX_SWAP0(i, 16)
#define HVX_SWAP0_32(i) HVX_SWAP0(i, 32)
#define HVX_SWAP0_64(i) HVX_SWAP0(i, 64)
#define HVX_SWAP1_1(i)  HVX_SWAP1(i, 1)
#define HVX_SWAP1_2(i)  HVX_SWAP1(i, 2)
#define HVX_SWAP1_4(i)  HVX_SWAP1(i, 4)
#define HVX_SWAP1_8(i)  HVX_SWAP1(i, 8)
#define HVX_SWAP1_16(i) HVX_SWAP1(i, 16)
#define HVX_SWAP1_32(i) HVX_SWAP1(i, 32)
#define HVX_SWAP1_64(i) HVX_SWAP1(i, 64)

HVX_OUT HVX_VectorPair hvx_shuff_any(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_b v0 = (hvx_b) Vv, v1 = (hvx_b) Vu;
    HVX_SWAP_STEP(1) HVX_SWAP_STEP(2) HVX_SWAP_STEP(4) HVX_SWAP_STEP(8)
    HVX_SWAP_STEP(16) HVX_SWAP_STEP(32) HVX_SWAP_STEP(64)
    return hvx_pair((HVX_Vector) v0, (HVX_Vector) v1);
}
HVX_OUT HVX_VectorPair hvx_deal_any(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_b v0 = (hvx_b) Vv, v1 = (hvx_b) Vu;
    HVX_SWAP_STEP(64) HVX_SWAP_STEP(32) HVX_SWAP_STEP(16) HVX_SWAP_STEP(8)
    HVX_SWAP_STEP(4) HVX_SWAP_STEP(2) HVX_SWAP_STEP(1)
    return hvx_pair((HVX_Vector) v0, (HVX_Vector) v1);
}

// Rt = -size: elements of that size of Vv and Vu alternate (vshuff), or part (vdeal).
#define HVX_INTER(i, per, vec) ((i) / (2 * (per)) * (per) + (i) % (per) + (i) / (per) % 2 * (vec))
#define HVX_PART(i, per, vec)  ((i) % (vec) / (per) * 2 * (per) + (i) % (per) + (i) / (vec) * (per))
#define HVX_SH1(i)  HVX_INTER(i, 1, 128)
#define HVX_SH2(i)  HVX_INTER(i, 1, 64)
#define HVX_SH4(i)  HVX_INTER(i, 1, 32)
#define HVX_SH8(i)  HVX_INTER(i, 2, 32)
#define HVX_SH16(i) HVX_INTER(i, 4, 32)
#define HVX_SH32(i) HVX_INTER(i, 8, 32)
#define HVX_SH64(i) HVX_INTER(i, 16, 32)
#define HVX_DE1(i)  HVX_PART(i, 1, 128)
#define HVX_DE2(i)  HVX_PART(i, 1, 64)
#define HVX_DE4(i)  HVX_PART(i, 1, 32)
#define HVX_DE8(i)  HVX_PART(i, 2, 32)
#define HVX_DE16(i) HVX_PART(i, 4, 32)
#define HVX_DE32(i) HVX_PART(i, 8, 32)
#define HVX_DE64(i) HVX_PART(i, 16, 32)
#define HVX_TWO(T, LIST, F, half)                                                        \
    hvx_pair((HVX_Vector) __builtin_shufflevector((T) Vv, (T) Vu, LIST(F, 0)),           \
             (HVX_Vector) __builtin_shufflevector((T) Vv, (T) Vu, LIST(F, half)))

HVX_FN HVX_VectorPair hvx_shuff(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    if (!__builtin_constant_p(Rt)) return hvx_shuff_any(Vu, Vv, Rt);
    switch (Rt & 127) {
    case 127: return HVX_TWO(hvx_b, HVX_I128, HVX_SH1, 128);
    case 126: return HVX_TWO(hvx_h, HVX_I64, HVX_SH2, 64);
    case 124: return HVX_TWO(hvx_w, HVX_I32, HVX_SH4, 32);
    case 120: return HVX_TWO(hvx_w, HVX_I32, HVX_SH8, 32);
    case 112: return HVX_TWO(hvx_w, HVX_I32, HVX_SH16, 32);
    case 96:  return HVX_TWO(hvx_w, HVX_I32, HVX_SH32, 32);
    case 64:  return HVX_TWO(hvx_w, HVX_I32, HVX_SH64, 32);
    default:  return hvx_shuff_any(Vu, Vv, Rt);
    }
}
HVX_FN HVX_VectorPair hvx_deal(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    if (!__builtin_constant_p(Rt)) return hvx_deal_any(Vu, Vv, Rt);
    switch (Rt & 127) {
    case 127: return HVX_TWO(hvx_b, HVX_I128, HVX_DE1, 128);
    case 126: return HVX_TWO(hvx_h, HVX_I64, HVX_DE2, 64);
    case 124: return HVX_TWO(hvx_w, HVX_I32, HVX_DE4, 32);
    case 120: return HVX_TWO(hvx_w, HVX_I32, HVX_DE8, 32);
    case 112: return HVX_TWO(hvx_w, HVX_I32, HVX_DE16, 32);
    case 96:  return HVX_TWO(hvx_w, HVX_I32, HVX_DE32, 32);
    case 64:  return HVX_TWO(hvx_w, HVX_I32, HVX_DE64, 32);
    default:  return hvx_deal_any(Vu, Vv, Rt);
    }
}
HVX_FN HVX_VectorPair Q6_W_vshuff_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_shuff(Vu, Vv, Rt);
}
HVX_FN HVX_VectorPair Q6_W_vdeal_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_deal(Vu, Vv, Rt);
}
HVX_FN HVX_VectorPair Q6_Wb_vshuffoe_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return hvx_pair(hvx_il8((hvx_h) Vv, (hvx_h) Vu), hvx_il8((hvx_h) Vv >> 8, (hvx_h) Vu >> 8));
}
HVX_FN HVX_VectorPair Q6_Wh_vshuffoe_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_alu);
    return hvx_pair(hvx_il16((hvx_w) Vv, (hvx_w) Vu), hvx_il16((hvx_w) Vv >> 16, (hvx_w) Vu >> 16));
}

// -- byte windows -----------------------------------------------------------------------------------

// 128 bytes from byte n (0..127) of {Vv low, Vu high}: through memory, or for a constant by shuffles.
HVX_OUT HVX_Vector hvx_window_any(HVX_Vector Vu, HVX_Vector Vv, unsigned n) {
    HVX_Vector two[2], out;
    two[0] = Vv;
    two[1] = Vu;
    __builtin_memcpy(&out, (const char *) two + n, 128);
    return out;
}
#define HVX_DOWN_1(i)  ((i) + 1)
#define HVX_DOWN_2(i)  ((i) + 2)
#define HVX_DOWN_4(i)  ((i) + 4)
#define HVX_DOWN_8(i)  ((i) + 8)
#define HVX_DOWN_16(i) ((i) + 16)
#define HVX_DOWN_32(i) ((i) + 32)
#define HVX_DOWN_64(i) ((i) + 64)
#define HVX_WINDOW_STEP(off)                                                   \
    if (n & (off)) {                                                           \
        lo = __builtin_shufflevector(lo, hi, HVX_I128(HVX_DOWN_##off, 0));     \
        hi = __builtin_shufflevector(hi, hi, HVX_I128(HVX_DOWN_##off, 0));     \
    }
HVX_FN HVX_Vector hvx_window(HVX_Vector Vu, HVX_Vector Vv, unsigned n) {
    if (!__builtin_constant_p(n)) return hvx_window_any(Vu, Vv, n);
    hvx_b lo = (hvx_b) Vv, hi = (hvx_b) Vu;
    HVX_WINDOW_STEP(64) HVX_WINDOW_STEP(32) HVX_WINDOW_STEP(16) HVX_WINDOW_STEP(8)
    HVX_WINDOW_STEP(4) HVX_WINDOW_STEP(2) HVX_WINDOW_STEP(1)
    return (HVX_Vector) lo;
}
HVX_FN HVX_Vector Q6_V_vror_VR(HVX_Vector Vu, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_window(Vu, Vu, Rt & 127);
}
HVX_FN HVX_Vector Q6_V_valign_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_window(Vu, Vv, Rt & 127);
}
HVX_FN HVX_Vector Q6_V_valign_VVI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    hvx_count(hvx_perm);
    return hvx_window(Vu, Vv, Iu3 & 7);
}
// vlalign by n starts at byte 128 - n; by 0 that is all of Vu.
HVX_FN HVX_Vector hvx_lwindow(HVX_Vector Vu, HVX_Vector Vv, unsigned n) {
    return n == 0 ? Vu : hvx_window(Vu, Vv, 128 - n);
}
HVX_FN HVX_Vector Q6_V_vlalign_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_count(hvx_perm);
    return hvx_lwindow(Vu, Vv, Rt & 127);
}
HVX_FN HVX_Vector Q6_V_vlalign_VVI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    hvx_count(hvx_perm);
    return hvx_lwindow(Vu, Vv, Iu3 & 7);
}

// -- delta networks ---------------------------------------------------------------------------------

// Each stage: byte k comes from k ^ off where its control byte has that bit.
#define HVX_XOR_1(i)  ((i) ^ 1)
#define HVX_XOR_2(i)  ((i) ^ 2)
#define HVX_XOR_4(i)  ((i) ^ 4)
#define HVX_XOR_8(i)  ((i) ^ 8)
#define HVX_XOR_16(i) ((i) ^ 16)
#define HVX_XOR_32(i) ((i) ^ 32)
#define HVX_XOR_64(i) ((i) ^ 64)
#define HVX_DELTA_STEP(off)                                                            \
    t = HVX_SEL(hvx_b, (c & (off)) != 0,                                               \
                __builtin_shufflevector(t, t, HVX_I128(HVX_XOR_##off, 0)), t);
HVX_FN HVX_Vector Q6_V_vdelta_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_perm);
    hvx_b t = (hvx_b) Vu;
    const hvx_b c = (hvx_b) Vv;
    HVX_DELTA_STEP(64) HVX_DELTA_STEP(32) HVX_DELTA_STEP(16) HVX_DELTA_STEP(8)
    HVX_DELTA_STEP(4) HVX_DELTA_STEP(2) HVX_DELTA_STEP(1)
    return (HVX_Vector) t;
}
HVX_FN HVX_Vector Q6_V_vrdelta_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_count(hvx_perm);
    hvx_b t = (hvx_b) Vu;
    const hvx_b c = (hvx_b) Vv;
    HVX_DELTA_STEP(1) HVX_DELTA_STEP(2) HVX_DELTA_STEP(4) HVX_DELTA_STEP(8)
    HVX_DELTA_STEP(16) HVX_DELTA_STEP(32) HVX_DELTA_STEP(64)
    return (HVX_Vector) t;
}

// -- packs: Vv gives the low half, Vu the high one ----------------------------------------------------

HVX_FN HVX_Vector hvx_pack_h(HVX_Vector Vu, HVX_Vector Vv) {  // low bytes of halfwords
    return (HVX_Vector) HVX_CONV(hvx_b, (hvx_h2) hvx_pair(Vv, Vu));
}
HVX_FN HVX_Vector hvx_pack_w(HVX_Vector Vu, HVX_Vector Vv) {
    return (HVX_Vector) HVX_CONV(hvx_h, (hvx_w2) hvx_pair(Vv, Vu));
}
#define HVX_PACK(name, T, conv, ...)                                \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {          \
        hvx_count(hvx_perm);                                        \
        hvx_##T a = (hvx_##T) Vu, b = (hvx_##T) Vv, s;              \
        s = a;                                                      \
        a = (hvx_##T) (__VA_ARGS__);                                \
        s = b;                                                      \
        b = (hvx_##T) (__VA_ARGS__);                                \
        return conv((HVX_Vector) a, (HVX_Vector) b);                \
    }
HVX_PACK(Q6_Vb_vpacke_VhVh, h, hvx_pack_h, s)
HVX_PACK(Q6_Vb_vpacko_VhVh, h, hvx_pack_h, s >> 8)
HVX_PACK(Q6_Vh_vpacke_VwVw, w, hvx_pack_w, s)
HVX_PACK(Q6_Vh_vpacko_VwVw, w, hvx_pack_w, s >> 16)
HVX_PACK(Q6_Vb_vpack_VhVh_sat, h, hvx_pack_h, HVX_CLAMP(hvx_h, s, -128, 127))
HVX_PACK(Q6_Vub_vpack_VhVh_sat, h, hvx_pack_h, HVX_CLAMP(hvx_h, s, 0, 255))
HVX_PACK(Q6_Vh_vpack_VwVw_sat, w, hvx_pack_w, HVX_CLAMP(hvx_w, s, -32768, 32767))
HVX_PACK(Q6_Vuh_vpack_VwVw_sat, w, hvx_pack_w, HVX_CLAMP(hvx_w, s, 0, 65535))

// vunpack: low result from the first half of Vu; vunpacko: into the upper halves, or-ed.
#define HVX_UNPACK(name, T, T2) \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu) {                        \
        hvx_count(hvx_perm);                                           \
        return (HVX_VectorPair) HVX_CONV(hvx_##T2, (hvx_##T) Vu);      \
    }
HVX_UNPACK(Q6_Wh_vunpack_Vb, b, h2)
HVX_UNPACK(Q6_Wuh_vunpack_Vub, ub, uh2)
HVX_UNPACK(Q6_Ww_vunpack_Vh, h, w2)
HVX_UNPACK(Q6_Wuw_vunpack_Vuh, uh, uw2)
HVX_FN HVX_VectorPair Q6_Wh_vunpackoor_WhVb(HVX_VectorPair Vxx, HVX_Vector Vu) {
    hvx_count(hvx_perm);
    return Vxx | (HVX_VectorPair) (HVX_CONV(hvx_uh2, (hvx_ub) Vu) << 8);
}
HVX_FN HVX_VectorPair Q6_Ww_vunpackoor_WwVh(HVX_VectorPair Vxx, HVX_Vector Vu) {
    hvx_count(hvx_perm);
    return Vxx | (HVX_VectorPair) (HVX_CONV(hvx_uw2, (hvx_uh) Vu) << 16);
}

// vsxt, vzxt: the even elements to the low, the odd ones to the high vector.
#define HVX_XT(name, T) \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu) { \
        hvx_count(hvx_alu); \
        return hvx_pair((HVX_Vector) hvx_ev_##T(Vu), (HVX_Vector) hvx_od_##T(Vu)); \
    }
HVX_XT(Q6_Wh_vsxt_Vb, b)
HVX_XT(Q6_Ww_vsxt_Vh, h)
HVX_XT(Q6_Wuh_vzxt_Vub, ub)
HVX_XT(Q6_Wuw_vzxt_Vuh, uh)

#endif
