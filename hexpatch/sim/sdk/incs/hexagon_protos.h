// Scalar intrinsics of Hexagon, by the names of the SDK, and the vector ones.
#ifndef HEXAGON_PROTOS_H
#define HEXAGON_PROTOS_H

#include "hexagon_types.h"
#include "hexsim.h"

#define HEXAGON_FN static inline __attribute__((always_inline, unused))

// -- helpers --------------------------------------------------------------------------------------

HEXAGON_FN int64_t hexagon_clamp(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }
HEXAGON_FN int64_t hexagon_sat32(int64_t x) { return hexagon_clamp(x, INT32_MIN, INT32_MAX); }
// A shift count of 7 bits with sign; negative shifts the other way, 32 (64) and more leaves nothing
// or the sign.
HEXAGON_FN int hexagon_count(Word32 r) { return (int) ((uint32_t) r << 25) >> 25; }
HEXAGON_FN uint64_t hexagon_shl(uint64_t x, int n) { return n > 63 ? 0 : x << n; }
HEXAGON_FN uint64_t hexagon_shr(uint64_t x, int n) { return n > 63 ? 0 : x >> n; }
HEXAGON_FN int64_t hexagon_sar(int64_t x, int n) { return x >> (n > 63 ? 63 : n); }
HEXAGON_FN int hexagon_clz32(uint32_t x) { return x ? __builtin_clz(x) : 32; }
HEXAGON_FN int hexagon_clz64(uint64_t x) { return x ? __builtin_clzll(x) : 64; }
HEXAGON_FN int hexagon_ctz32(uint32_t x) { return x ? __builtin_ctz(x) : 32; }
HEXAGON_FN int hexagon_ctz64(uint64_t x) { return x ? __builtin_ctzll(x) : 64; }
HEXAGON_FN uint64_t hexagon_mask(int width) { return width > 63 ? ~0ull : (1ull << width) - 1; }

// -- the table: X(name, result type, argument types, expression) --------------------------------------
//
// R a word, U an unsigned word, P and Q the 64-bit ones; s is the first argument, t the second, u
// the third, v the fourth; n = hexagon_count(t).

typedef Word32   hexagon_R;
typedef UWord32  hexagon_U;
typedef Word64   hexagon_P;
typedef UWord64  hexagon_Q;

#define HEXAGON_TABLE1(X)                                                                  \
    X(Q6_R_equals_R, R, R, s)                                                              \
    X(Q6_P_equals_P, P, P, s)                                                              \
    X(Q6_R_equals_I, R, R, s)                                                              \
    X(Q6_P_equals_I, P, R, s)                                                              \
    X(Q6_R_abs_R, R, U, (int) s < 0 ? -s : s)                                              \
    X(Q6_P_abs_P, P, Q, (int64_t) s < 0 ? -s : s)                                          \
    X(Q6_R_abs_R_sat, R, R, hexagon_sat32(s < 0 ? -(int64_t) s : s))                       \
    X(Q6_R_neg_R, R, U, -s)                                                                \
    X(Q6_P_neg_P, P, Q, -s)                                                                \
    X(Q6_R_neg_R_sat, R, R, hexagon_sat32(-(int64_t) s))                                   \
    X(Q6_R_not_R, R, R, ~s)                                                                \
    X(Q6_P_not_P, P, P, ~s)                                                                \
    X(Q6_R_aslh_R, R, U, s << 16)                                                          \
    X(Q6_R_asrh_R, R, R, s >> 16)                                                          \
    X(Q6_R_sxtb_R, R, R, (int8_t) s)                                                       \
    X(Q6_R_sxth_R, R, R, (int16_t) s)                                                      \
    X(Q6_P_sxtw_R, P, R, s)                                                                \
    X(Q6_R_zxtb_R, R, R, (uint8_t) s)                                                      \
    X(Q6_R_zxth_R, R, R, (uint16_t) s)                                                     \
    X(Q6_R_sat_P, R, P, hexagon_sat32(s))                                                  \
    X(Q6_R_satb_R, R, R, hexagon_clamp(s, -128, 127))                                      \
    X(Q6_R_sath_R, R, R, hexagon_clamp(s, -32768, 32767))                                  \
    X(Q6_R_satub_R, R, R, hexagon_clamp(s, 0, 255))                                        \
    X(Q6_R_satuh_R, R, R, hexagon_clamp(s, 0, 65535))                                      \
    X(Q6_R_swiz_R, R, U, __builtin_bswap32(s))                                             \
    X(Q6_R_brev_R, R, U, __builtin_bitreverse32(s))                                        \
    X(Q6_P_brev_P, P, Q, __builtin_bitreverse64(s))                                        \
    X(Q6_R_cl0_R, R, U, hexagon_clz32(s))                                                  \
    X(Q6_R_cl1_R, R, U, hexagon_clz32(~s))                                                 \
    X(Q6_R_clb_R, R, R, hexagon_clz32((uint32_t) (s ^ (s >> 31))))                         \
    X(Q6_R_cl0_P, R, Q, hexagon_clz64(s))                                                  \
    X(Q6_R_cl1_P, R, Q, hexagon_clz64(~s))                                                 \
    X(Q6_R_clb_P, R, P, hexagon_clz64((uint64_t) (s ^ (s >> 63))))                         \
    X(Q6_R_normamt_R, R, R, s == 0 ? 0 : hexagon_clz32((uint32_t) (s ^ (s >> 31))) - 1)    \
    X(Q6_R_normamt_P, R, P, s == 0 ? 0 : hexagon_clz64((uint64_t) (s ^ (s >> 63))) - 1)    \
    X(Q6_R_ct0_R, R, U, hexagon_ctz32(s))                                                  \
    X(Q6_R_ct1_R, R, U, hexagon_ctz32(~s))                                                 \
    X(Q6_R_ct0_P, R, Q, hexagon_ctz64(s))                                                  \
    X(Q6_R_ct1_P, R, Q, hexagon_ctz64(~s))                                                 \
    X(Q6_R_popcount_P, R, Q, __builtin_popcountll(s))                                      \
    X(Q6_R_vsplatb_R, R, U, (s & 255) * 0x01010101u)                                       \
    X(Q6_P_vsplatb_R, P, U, (s & 255) * 0x0101010101010101ull)                             \
    X(Q6_P_vsplath_R, P, U, (s & 65535) * 0x0001000100010001ull)

#define HEXAGON_TABLE2(X)                                                                  \
    X(Q6_R_add_RR, R, U, U, s + t)                                                         \
    X(Q6_P_add_PP, P, Q, Q, s + t)                                                         \
    X(Q6_R_add_RR_sat, R, R, R, hexagon_sat32((int64_t) s + t))                            \
    X(Q6_R_sub_RR, R, U, U, s - t)                                                         \
    X(Q6_P_sub_PP, P, Q, Q, s - t)                                                         \
    X(Q6_R_sub_RR_sat, R, R, R, hexagon_sat32((int64_t) s - t))                            \
    X(Q6_R_and_RR, R, R, R, s & t)                                                         \
    X(Q6_R_or_RR, R, R, R, s | t)                                                          \
    X(Q6_R_xor_RR, R, R, R, s ^ t)                                                         \
    X(Q6_R_and_RnR, R, R, R, s & ~t)                                                       \
    X(Q6_R_or_RnR, R, R, R, s | ~t)                                                        \
    X(Q6_P_and_PP, P, P, P, s & t)                                                         \
    X(Q6_P_or_PP, P, P, P, s | t)                                                          \
    X(Q6_P_xor_PP, P, P, P, s ^ t)                                                         \
    X(Q6_R_max_RR, R, R, R, s > t ? s : t)                                                 \
    X(Q6_R_min_RR, R, R, R, s < t ? s : t)                                                 \
    X(Q6_R_maxu_RR, U, U, U, s > t ? s : t)                                                \
    X(Q6_R_minu_RR, U, U, U, s < t ? s : t)                                                \
    X(Q6_P_max_PP, P, P, P, s > t ? s : t)                                                 \
    X(Q6_P_min_PP, P, P, P, s < t ? s : t)                                                 \
    X(Q6_P_maxu_PP, Q, Q, Q, s > t ? s : t)                                                \
    X(Q6_P_minu_PP, Q, Q, Q, s < t ? s : t)                                                \
    X(Q6_R_combine_RhRh, R, U, U, (s & 0xffff0000) | t >> 16)                              \
    X(Q6_R_combine_RhRl, R, U, U, (s & 0xffff0000) | (t & 65535))                          \
    X(Q6_R_combine_RlRh, R, U, U, s << 16 | t >> 16)                                       \
    X(Q6_R_combine_RlRl, R, U, U, s << 16 | (t & 65535))                                   \
    X(Q6_P_combine_RR, P, U, U, (uint64_t) s << 32 | t)                                    \
    X(Q6_P_combine_II, P, U, U, (uint64_t) s << 32 | t)                                    \
    X(Q6_P_combine_IR, P, U, U, (uint64_t) s << 32 | t)                                    \
    X(Q6_P_combine_RI, P, U, U, (uint64_t) s << 32 | t)                                    \
    X(Q6_P_packhl_RR, P, U, U, ((uint64_t) ((s & 0xffff0000) | t >> 16) << 32) |           \
                                   (s << 16 | (t & 65535)))                                \
    X(Q6_P_bitsplit_RR, P, U, U, ((uint64_t) hexagon_shr(s, t & 31) << 32) |               \
                                     (s & hexagon_mask(t & 31)))                           \
    X(Q6_P_bitsplit_RI, P, U, U, ((uint64_t) hexagon_shr(s, t & 31) << 32) |               \
                                     (s & hexagon_mask(t & 31)))                           \
    X(Q6_R_asl_RI, R, U, U, s << (t & 31))                                                 \
    X(Q6_R_asr_RI, R, R, U, s >> (t & 31))                                                 \
    X(Q6_R_lsr_RI, R, U, U, s >> (t & 31))                                                 \
    X(Q6_R_rol_RI, R, U, U, s << (t & 31) | s >> (-t & 31))                                \
    X(Q6_R_asr_RI_rnd, R, R, U, (((s >> (t & 31)) + 1) >> 1))                              \
    X(Q6_P_asl_PI, P, Q, U, s << (t & 63))                                                 \
    X(Q6_P_asr_PI, P, P, U, s >> (t & 63))                                                 \
    X(Q6_P_lsr_PI, P, Q, U, s >> (t & 63))                                                 \
    X(Q6_P_rol_PI, P, Q, U, s << (t & 63) | s >> (-t & 63))                                \
    X(Q6_R_asl_RR, R, R, R, n < 0 ? (uint64_t) hexagon_sar(s, -n) : hexagon_shl((uint64_t) s, n))       \
    X(Q6_R_asr_RR, R, R, R, n < 0 ? hexagon_shl((uint64_t) s, -n) : (uint64_t) hexagon_sar(s, n))       \
    X(Q6_R_lsr_RR, R, U, R, n < 0 ? hexagon_shl(s, -n) : hexagon_shr(s, n))                \
    X(Q6_R_lsl_RR, R, U, R, n < 0 ? hexagon_shr(s, -n) : hexagon_shl(s, n))                \
    X(Q6_P_asl_PR, P, P, R, n < 0 ? (uint64_t) hexagon_sar(s, -n) : hexagon_shl((uint64_t) s, n))       \
    X(Q6_P_asr_PR, P, P, R, n < 0 ? hexagon_shl((uint64_t) s, -n) : (uint64_t) hexagon_sar(s, n))       \
    X(Q6_P_lsr_PR, P, Q, R, n < 0 ? hexagon_shl(s, -n) : hexagon_shr(s, n))                \
    X(Q6_R_setbit_RI, R, U, U, s | 1u << (t & 31))                                         \
    X(Q6_R_clrbit_RI, R, U, U, s & ~(1u << (t & 31)))                                      \
    X(Q6_R_togglebit_RI, R, U, U, s ^ 1u << (t & 31))                                      \
    X(Q6_R_mpyi_RR, R, U, U, s * t)                                                        \
    X(Q6_R_mpyi_RI, R, U, U, s * t)                                                        \
    X(Q6_R_mpy_RR, R, R, R, ((int64_t) s * t) >> 32)                                       \
    X(Q6_R_mpyu_RR, U, U, U, ((uint64_t) s * t) >> 32)                                     \
    X(Q6_P_mpy_RR, P, R, R, (int64_t) s * t)                                               \
    X(Q6_P_mpyu_RR, Q, U, U, (uint64_t) s * t)                                             \
    X(Q6_R_parity_PP, R, Q, Q, __builtin_parityll(s & t))

#define HEXAGON_TABLE3(X)                                                                  \
    X(Q6_R_mpyiacc_RR, R, U, U, U, s + t * u)                                              \
    X(Q6_P_mpyacc_RR, P, Q, R, R, s + (uint64_t) ((int64_t) t * u))                        \
    X(Q6_P_mpynac_RR, P, Q, R, R, s - (uint64_t) ((int64_t) t * u))                        \
    X(Q6_P_mpyuacc_RR, P, Q, U, U, s + (uint64_t) t * u)                                   \
    /* t bits from bit u */                                                                \
    X(Q6_R_extractu_RII, R, U, U, U, (s >> (u & 31)) & hexagon_mask(t & 31))               \
    X(Q6_P_extractu_PII, P, Q, U, U, (s >> (u & 63)) & hexagon_mask(t & 63))               \
    X(Q6_R_extract_RII, R, U, U, U, hexagon_sign((s >> (u & 31)) & hexagon_mask(t & 31), t & 31))       \
    X(Q6_P_extract_PII, P, Q, U, U, hexagon_sign((s >> (u & 63)) & hexagon_mask(t & 63), t & 63))

HEXAGON_FN int64_t hexagon_sign(uint64_t x, int width) {
    return width == 0 ? 0 : (int64_t) (x << (64 - width)) >> (64 - width);
}
#define HEXAGON_DEF1(name, ret, S, ...)                                                    \
    HEXAGON_FN hexagon_##ret name(hexagon_##S s) { return (hexagon_##ret) (__VA_ARGS__); }
#define HEXAGON_DEF2(name, ret, S, T, ...)                                                 \
    HEXAGON_FN hexagon_##ret name(hexagon_##S s, hexagon_##T t) {                          \
        const int n = hexagon_count((Word32) t);                                           \
        (void) n;                                                                          \
        return (hexagon_##ret) (__VA_ARGS__);                                              \
    }
#define HEXAGON_DEF3(name, ret, S, T, UU, ...)                                             \
    HEXAGON_FN hexagon_##ret name(hexagon_##S s, hexagon_##T t, hexagon_##UU u) {          \
        return (hexagon_##ret) (__VA_ARGS__);                                              \
    }
HEXAGON_TABLE1(HEXAGON_DEF1)
HEXAGON_TABLE2(HEXAGON_DEF2)
HEXAGON_TABLE3(HEXAGON_DEF3)

// t's low bits, `width` of them, into s from bit `offset`.
HEXAGON_FN Word32 Q6_R_insert_RII(Word32 s, Word32 t, Word32 width, Word32 offset) {
    const uint32_t m = (uint32_t) hexagon_mask(width & 31) << (offset & 31);
    return (Word32) (((uint32_t) s & ~m) | (((uint32_t) t << (offset & 31)) & m));
}
HEXAGON_FN Word64 Q6_P_insert_PII(Word64 s, Word64 t, Word32 width, Word32 offset) {
    const uint64_t m = hexagon_mask(width & 63) << (offset & 63);
    return (Word64) (((uint64_t) s & ~m) | (((uint64_t) t << (offset & 63)) & m));
}

// -- caches: memory is coherent here ------------------------------------------------------------------

HEXAGON_FN void Q6_dccleana_A(const void * Rs) { (void) Rs; }
HEXAGON_FN void Q6_dcinva_A(const void * Rs) { (void) Rs; }
HEXAGON_FN void Q6_dccleaninva_A(const void * Rs) { (void) Rs; }
HEXAGON_FN void Q6_dcfetch_A(const void * Rs) { (void) Rs; }
HEXAGON_FN void Q6_dczeroa_A(void * Rs) { __builtin_memset((void *) ((uintptr_t) Rs & ~(uintptr_t) 31), 0, 32); }
HEXAGON_FN void Q6_l2fetch_AR(const void * Rs, Word32 Rt) {
    (void) Rs;
    (void) Rt;
    sim_count(l2fetch);
}
HEXAGON_FN void Q6_l2fetch_AP(const void * Rs, Word64 Rtt) {
    (void) Rs;
    (void) Rtt;
    sim_count(l2fetch);
}

// -- user DMA -----------------------------------------------------------------------------------------

HEXAGON_FN void Q6_dmstart_A(void * Rs) { sim_dmstart(Rs); }
HEXAGON_FN void Q6_dmlink_AA(void * Rs, void * Rt) { sim_dmlink(Rs, Rt); }
HEXAGON_FN void Q6_dmresume_A(void * Rs) { sim_dmresume(Rs); }
HEXAGON_FN Word32 Q6_R_dmpoll(void) { return (Word32) sim_dmpoll(); }
HEXAGON_FN Word32 Q6_R_dmwait(void) { return (Word32) sim_dmwait(); }
HEXAGON_FN Word32 Q6_R_dmpause(void) { return (Word32) sim_dmpause(); }

#include "hvx_hexagon_protos.h"

#endif
