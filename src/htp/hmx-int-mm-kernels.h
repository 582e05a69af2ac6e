// HVX and HMX kernels of the integer matmul, see hmx-int-utils.h for the layouts and the README for the arithmetic.

#ifndef HMX_INT_MM_KERNELS_H
#define HMX_INT_MM_KERNELS_H

#include <stdint.h>

#include "hmx-int-utils.h"
#include "hmx-utils.h"
#include "hvx-base.h"
#include "hvx-inverse.h"
#include "hvx-repl.h"
#include "matmul-int-ops.h"

// --- f32 in its fastest form: qf32 below v79, sf from v79 ---

#if __HVX_ARCH__ < 79
#define hmx_int_mul(a, b)       Q6_Vqf32_vmpy_Vqf32Vqf32(a, b)
#define hmx_int_mul_sf(a, b)    Q6_Vqf32_vmpy_VsfVsf(a, b)
#define hmx_int_add(a, b)       Q6_Vqf32_vadd_Vqf32Vqf32(a, b)
#define hmx_int_add_sf(a, b)    Q6_Vqf32_vadd_VsfVsf(a, b)
#define hmx_int_add_mixed(a, b) Q6_Vqf32_vadd_Vqf32Vsf(a, b)
#define hmx_int_to_sf(a)        Q6_Vsf_equals_Vqf32(a)
#define hmx_int_mul_hf(a, b)    Q6_Wqf32_vmpy_VhfVhf(a, b)
#define hmx_int_to_hf(a, b)     Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(a, b))
#else
#define hmx_int_mul(a, b)       Q6_Vsf_vmpy_VsfVsf(a, b)
#define hmx_int_mul_sf(a, b)    Q6_Vsf_vmpy_VsfVsf(a, b)
#define hmx_int_add(a, b)       Q6_Vsf_vadd_VsfVsf(a, b)
#define hmx_int_add_sf(a, b)    Q6_Vsf_vadd_VsfVsf(a, b)
#define hmx_int_add_mixed(a, b) Q6_Vsf_vadd_VsfVsf(a, b)
#define hmx_int_to_sf(a)        (a)
#define hmx_int_mul_hf(a, b)    Q6_Wsf_vmpy_VhfVhf(a, b)
#define hmx_int_to_hf(a, b)     Q6_Vhf_vcvt_VsfVsf(a, b)
#endif

// --- Weights: a K group of one column tile to s8 ---
//
// w8 = round((n * f + a) / 2^shift): n = the stored quant, f = a byte, |d| of the block over the largest of the group,
// a = zero * f for types with a fixed zero. Where d is negative n is complemented. Rounding is half up in even and half
// down in odd bytes: its mean error is 0, else positive activations would see K / 32 of it.

// A converter works in three passes over the group: the largest scale, then what each tile needs (bytes f, signs, ...),
// which waits in the first vectors of the tile's place in dst, then the weights.

#define HMX_INT_ONE_HF  Q6_Vh_vsplat_R(0x3C00)
#define HMX_INT_ABS_HF  Q6_Vh_vsplat_R(0x7FFF)

static inline HVX_Vector * hmx_int_tile(uint8_t * w, uint32_t t) {
    return (HVX_Vector *) (w + t * HMX_INT_WGT_TILE_SIZE);
}

// fp16 scales of two blocks, 32 each, interleaved: word c holds column c of both
static inline HVX_Vector hmx_int_load_scales_x2(const uint8_t * s0, const uint8_t * s1) {
    return Q6_V_lo_W(Q6_W_vshuff_VVR(hvx_vmem(s1), hvx_vmem(s0), -2));
}

// column maximum of interleaved |d| as f32
static inline HVX_Vector hmx_int_column_max(HVX_Vector v) {
    v = Q6_Vuh_vmax_VuhVuh(Q6_Vh_vshuffe_VhVh(v, v), Q6_Vh_vshuffo_VhVh(v, v));
    return hmx_int_to_sf(Q6_V_lo_W(hmx_int_mul_hf(v, HMX_INT_ONE_HF)));
}

// f32 to fp16, twice per column
static inline HVX_Vector hmx_int_to_hf_x2(HVX_Vector v) {
    v = hmx_int_mul_sf(v, hvx_vec_splat_f32(1.0f));
    return hmx_int_to_hf(v, v);
}

// top / max
static inline HVX_Vector hmx_int_over(float top, HVX_Vector max) {
    return hmx_int_mul_sf(hvx_vec_inverse_f32(max), hvx_vec_splat_f32(top));
}

// x rounded to a byte, four copies: the last mantissa bit of magic is 2^-8, so the integer ends in byte 1
#define HMX_INT_BYTE_MAGIC  hvx_vec_splat_f32(49152.5f)
#define HMX_INT_BYTE_REPL   Q6_V_vsplat_R(0x02010001)

static inline HVX_Vector hmx_int_round_byte(HVX_Vector x, HVX_Vector magic, HVX_Vector repl) {
    return Q6_V_vdelta_VV(hmx_int_to_sf(hmx_int_add_mixed(x, magic)), repl);
}

// all ones in the words whose low (high) half is negative
static inline HVX_Vector hmx_int_sign_lo(HVX_Vector v) {
    return Q6_Vw_vasr_VwR(Q6_Vw_vasl_VwR(v, 16), 31);
}

static inline HVX_Vector hmx_int_sign_hi(HVX_Vector v) {
    return Q6_Vw_vasr_VwR(v, 31);
}

// Two vectors (v = 0, 1) of nibble rows, byte 32 * j + c, to byte 4 * c + 2 * (j & 1) + v; low result: j < 2, high: j > 1.
// The control words choose which address bits go through the pair: (v j1 j0 c) -> (j1 c j0 v).
static inline HVX_VectorPair hmx_int_columns_first_x2(HVX_Vector v0, HVX_Vector v1) {
    const HVX_VectorPair p = Q6_W_vshuff_VVR(v1, v0, 43);
    return Q6_W_vshuff_VVR(Q6_V_hi_W(p), Q6_V_lo_W(p), 86);
}

// what a converter says of its group
struct hmx_int_group {
    HVX_Vector * bias;
    HVX_Vector * unit;
    HVX_Vector * residual;
    bool         odd;  // along k: it rounds the other way around, lest rounding follow a pattern of the activations
};

// constants and column sums of the last pass: of w8, and of what it was before it was rounded
struct hmx_int_cvt {
    HVX_Vector     ones;
    HVX_Vector     mask_h4;
    HVX_Vector     zero;
    HVX_Vector     lut;
    HVX_VectorPair round;
    HVX_Vector     sum;
    HVX_VectorPair exact;
};

static inline struct hmx_int_cvt hmx_int_cvt_init(int32_t zero, const int8_t * lut, uint32_t n_tiles, bool odd) {
    struct hmx_int_cvt c;
    c.ones    = Q6_Vb_vsplat_R(1);
    c.mask_h4 = Q6_Vb_vsplat_R(0x0F);
    c.zero    = Q6_Vb_vsplat_R(zero);
    c.lut     = lut ? hvx_vmem(lut) : c.zero;
    c.round   = Q6_W_vcombine_VV(Q6_Vh_vsplat_R(odd - 1), Q6_Vh_vsplat_R(-odd));
    c.sum     = Q6_V_vzero();
    c.exact   = Q6_W_vcombine_VV(c.sum, Q6_V_vsplat_R(16 * n_tiles));  // takes back what c.round subtracts
    return c;
}

// accumulators for zero * f, where d is negative for (zero + 1) * f
static inline HVX_VectorPair hmx_int_start(const struct hmx_int_cvt * c, HVX_Vector f, HVX_Vector neg) {
    return Q6_Wh_vmpyacc_WhVubVb(c->round, f, Q6_Vb_vsub_VbVb(c->zero, neg));
}

static inline void hmx_int_sum_exact(struct hmx_int_cvt * c, HVX_VectorPair p) {
    c->exact = Q6_Ww_vmpaacc_WwWhRb(c->exact, p, 0x01010101);
}

static inline void hmx_int_store_x2(struct hmx_int_cvt * c, HVX_Vector * dst0, HVX_Vector w0, HVX_Vector * dst1, HVX_Vector w1) {
    *dst0  = w0;
    *dst1  = w1;
    c->sum = Q6_Vw_vrmpyacc_VwVbVb(c->sum, w0, c->ones);
    c->sum = Q6_Vw_vrmpyacc_VwVbVb(c->sum, w1, c->ones);
}

// Two times four k of a tile. lo, hi: quants of the low (even k) and high nibbles, columns first. Narrowing puts lo and
// hi in turn, so dst[0] and dst[2] have their k in order.
static inline void hmx_int_convert_nibbles(struct hmx_int_cvt * c, HVX_Vector * dst, HVX_Vector lo, HVX_Vector hi,
                                           HVX_Vector f, HVX_VectorPair start, uint32_t shift) {
    const HVX_VectorPair pl = Q6_Wuh_vmpyacc_WuhVubVub(start, lo, f);
    const HVX_VectorPair ph = Q6_Wuh_vmpyacc_WuhVubVub(start, hi, f);
    hmx_int_sum_exact(c, pl);
    hmx_int_sum_exact(c, ph);
    hmx_int_store_x2(c, dst + 0, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_lo_W(ph), Q6_V_lo_W(pl), shift),
                        dst + 2, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_hi_W(ph), Q6_V_hi_W(pl), shift));
}

// the same for signed values
static inline void hmx_int_convert_values(struct hmx_int_cvt * c, HVX_Vector * dst, HVX_Vector lo, HVX_Vector hi,
                                          HVX_Vector f, HVX_VectorPair start, uint32_t shift) {
    const HVX_VectorPair pl = Q6_Wh_vmpyacc_WhVubVb(start, f, lo);
    const HVX_VectorPair ph = Q6_Wh_vmpyacc_WhVubVb(start, f, hi);
    hmx_int_sum_exact(c, pl);
    hmx_int_sum_exact(c, ph);
    if (shift == 8) {
        hmx_int_store_x2(c, dst + 0, Q6_Vb_vround_VhVh_sat(Q6_V_lo_W(ph), Q6_V_lo_W(pl)),
                            dst + 2, Q6_Vb_vround_VhVh_sat(Q6_V_hi_W(ph), Q6_V_hi_W(pl)));
    } else {
        hmx_int_store_x2(c, dst + 0, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_lo_W(ph), Q6_V_lo_W(pl), shift),
                            dst + 2, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_hi_W(ph), Q6_V_hi_W(pl), shift));
    }
}

// The group's bias table, unit (the weight of one step of w8) and residual: what rounding took from the column sum, in
// 1 / 16 steps, as s16 twice per column. shift: of the rounding.
static inline void hmx_int_finish_group(const struct hmx_int_group * g, const struct hmx_int_cvt * c, uint32_t shift,
                                        HVX_Vector max, float step) {
    const HVX_Vector half  = Q6_V_vsplat_R(1 << (HMX_INT_OUT_SHIFT - 1));
    const HVX_Vector exact = Q6_Vw_vadd_VwVw(Q6_V_lo_W(c->exact), Q6_V_hi_W(c->exact));
    const HVX_Vector lost  = Q6_Vw_vsub_VwVw(exact, Q6_Vw_vasl_VwR(c->sum, shift));

    g->bias[0]   = Q6_V_vsplat_R(HMX_INT_SCALE_WORD);
    g->bias[1]   = Q6_Vw_vsub_VwVw(half, Q6_Vw_vasl_VwR(c->sum, HMX_INT_OFFSET_SHIFT));
    *g->unit     = hmx_int_to_sf(hmx_int_mul_sf(max, hvx_vec_splat_f32(step)));
    *g->residual = Q6_Vh_vasr_VwVwR_sat(lost, lost, shift - 4);
}

// Types with one fp16 scale per block: returns the largest; f and the sign of d to vectors 0 and 1 of the tiles
static inline HVX_Vector hmx_int_prepare(uint8_t * restrict dst, const uint8_t * restrict scales, uint32_t n_tiles,
                                         uint32_t tile_stride, float top) {
    const HVX_Vector abs_hf = HMX_INT_ABS_HF;
    const HVX_Vector repl   = HMX_INT_BYTE_REPL;

    HVX_Vector vmax = Q6_Vh_vsplat_R(1);
    for (uint32_t t = 0; t < n_tiles; t += 2) {
        const uint8_t *  s = scales + t * tile_stride;
        const HVX_Vector d = hmx_int_load_scales_x2(s, t + 1 < n_tiles ? s + tile_stride : s);
        const HVX_Vector a = Q6_V_vand_VV(d, abs_hf);
        vmax = Q6_Vuh_vmax_VuhVuh(vmax, a);

        HVX_Vector * tile = hmx_int_tile(dst, t);
        tile[0] = a;
        tile[1] = d;
    }
    vmax = hmx_int_column_max(vmax);

    // top / max = m * 2^k: m as fp16, 2^k goes to the magic
    const HVX_Vector inv   = hmx_int_to_sf(hmx_int_over(top, vmax));
    const HVX_Vector exp   = Q6_V_vand_VV(inv, Q6_V_vsplat_R(0x7F800000));
    const HVX_Vector m     = hmx_int_to_hf_x2(Q6_Vw_vadd_VwVw(Q6_Vw_vsub_VwVw(inv, exp), hvx_vec_splat_f32(1.0f)));
    const HVX_Vector magic = Q6_Vw_vsub_VwVw(Q6_Vw_vadd_VwVw(HMX_INT_BYTE_MAGIC, hvx_vec_splat_f32(1.0f)), exp);
    for (uint32_t t = 0; t < n_tiles; t += 2) {
        HVX_Vector *         tile = hmx_int_tile(dst, t);
        const HVX_Vector     d    = tile[1];
        const HVX_VectorPair x    = hmx_int_mul_hf(tile[0], m);

        tile[0] = hmx_int_round_byte(Q6_V_lo_W(x), magic, repl);
        tile[1] = hmx_int_sign_lo(d);
        if (t + 1 < n_tiles) {
            tile = hmx_int_tile(dst, t + 1);
            tile[0] = hmx_int_round_byte(Q6_V_hi_W(x), magic, repl);
            tile[1] = hmx_int_sign_hi(d);
        }
    }
    return vmax;
}

// Q4_0: n - 8
static void hmx_int_convert_q4_0(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                 const struct hmx_int_group * g) {
    const HVX_Vector   vmax = hmx_int_prepare(dst, src + 512, n_tiles, tile_stride, 255.0f);
    struct hmx_int_cvt c    = hmx_int_cvt_init(-8, NULL, n_tiles, g->odd);

    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector *   vsrc  = (const HVX_Vector *) (src + t * tile_stride);
        HVX_Vector *         vdst  = hmx_int_tile(dst, t);
        const HVX_Vector     f     = vdst[0];
        const HVX_Vector     neg   = vdst[1];
        const HVX_VectorPair start = hmx_int_start(&c, f, neg);

        #pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const HVX_VectorPair v  = hmx_int_columns_first_x2(vsrc[2 * i], vsrc[2 * i + 1]);
            const HVX_Vector     v0 = Q6_V_vxor_VV(Q6_V_lo_W(v), neg);
            const HVX_Vector     v1 = Q6_V_vxor_VV(Q6_V_hi_W(v), neg);
            hmx_int_convert_nibbles(&c, vdst + 4 * i + 0, Q6_V_vand_VV(v0, c.mask_h4), Q6_Vub_vlsr_VubR(v0, 4), f, start, 4);
            hmx_int_convert_nibbles(&c, vdst + 4 * i + 1, Q6_V_vand_VV(v1, c.mask_h4), Q6_Vub_vlsr_VubR(v1, 4), f, start, 4);
        }
    }
    hmx_int_finish_group(g, &c, 4, vmax, 16.0f / 255.0f);
}

static const int8_t hmx_int_iq4_nl_lut[VLEN] __attribute__((aligned(VLEN))) = {
    -127, 0, -104, 0, -83, 0, -65, 0, -49, 0, -35, 0, -22, 0, -10, 0, 1, 0, 13, 0, 25, 0, 38, 0, 53, 0, 69, 0, 89, 0, 113, 0,
};

// IQ4_NL: signed values of up to 127
static void hmx_int_convert_iq4_nl(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                   const struct hmx_int_group * g) {
    const HVX_Vector   vmax = hmx_int_prepare(dst, src + 512, n_tiles, tile_stride, 255.0f);
    struct hmx_int_cvt c    = hmx_int_cvt_init(0, hmx_int_iq4_nl_lut, n_tiles, g->odd);

    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector *   vsrc  = (const HVX_Vector *) (src + t * tile_stride);
        HVX_Vector *         vdst  = hmx_int_tile(dst, t);
        const HVX_Vector     f     = vdst[0];
        const HVX_Vector     neg   = vdst[1];
        const HVX_VectorPair start = hmx_int_start(&c, f, neg);

        #pragma nounroll
        for (uint32_t i = 0; i < 2; i++) {
            const HVX_VectorPair v   = hmx_int_columns_first_x2(vsrc[2 * i], vsrc[2 * i + 1]);
            const HVX_Vector     lo0 = Q6_Vb_vlut32_VbVbI(Q6_V_vand_VV(Q6_V_lo_W(v), c.mask_h4), c.lut, 0);
            const HVX_Vector     hi0 = Q6_Vb_vlut32_VbVbI(Q6_Vub_vlsr_VubR(Q6_V_lo_W(v), 4), c.lut, 0);
            const HVX_Vector     lo1 = Q6_Vb_vlut32_VbVbI(Q6_V_vand_VV(Q6_V_hi_W(v), c.mask_h4), c.lut, 0);
            const HVX_Vector     hi1 = Q6_Vb_vlut32_VbVbI(Q6_Vub_vlsr_VubR(Q6_V_hi_W(v), 4), c.lut, 0);
            hmx_int_convert_values(&c, vdst + 4 * i + 0, Q6_V_vxor_VV(lo0, neg), Q6_V_vxor_VV(hi0, neg), f, start, 8);
            hmx_int_convert_values(&c, vdst + 4 * i + 1, Q6_V_vxor_VV(lo1, neg), Q6_V_vxor_VV(hi1, neg), f, start, 8);
        }
    }
    hmx_int_finish_group(g, &c, 8, vmax, 256.0f / 255.0f);
}

// Q8_0: row p of 64 bytes holds k = 2p and 2p + 1 of the columns in turn
static void hmx_int_convert_q8_0(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                 const struct hmx_int_group * g) {
    const HVX_Vector   vmax = hmx_int_prepare(dst, src + 1024, n_tiles, tile_stride, 255.0f);
    struct hmx_int_cvt c    = hmx_int_cvt_init(0, NULL, n_tiles, g->odd);

    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector *   vsrc  = (const HVX_Vector *) (src + t * tile_stride);
        HVX_Vector *         vdst  = hmx_int_tile(dst, t);
        const HVX_Vector     f     = vdst[0];
        const HVX_Vector     neg   = vdst[1];
        const HVX_VectorPair start = hmx_int_start(&c, f, neg);

        for (uint32_t i = 0; i < 8; i += 2) {
            const HVX_VectorPair p0 = Q6_Wh_vmpyacc_WhVubVb(start, f, Q6_V_vxor_VV(Q6_Vh_vshuff_Vh(vsrc[i + 0]), neg));
            const HVX_VectorPair p1 = Q6_Wh_vmpyacc_WhVubVb(start, f, Q6_V_vxor_VV(Q6_Vh_vshuff_Vh(vsrc[i + 1]), neg));
            hmx_int_sum_exact(&c, p0);
            hmx_int_sum_exact(&c, p1);
            hmx_int_store_x2(&c, vdst + i + 0, Q6_Vb_vround_VhVh_sat(Q6_V_hi_W(p0), Q6_V_lo_W(p0)),
                                 vdst + i + 1, Q6_Vb_vround_VhVh_sat(Q6_V_hi_W(p1), Q6_V_lo_W(p1)));
        }
    }
    hmx_int_finish_group(g, &c, 8, vmax, 256.0f / 255.0f);
}

// MXFP4: ten times the values are exact for the largest scale and, nearly, for the next three powers of two
static const int8_t hmx_int_mxfp4_lut[VLEN] __attribute__((aligned(VLEN))) = {
    0, 0, 10, 0, 20, 0, 30, 0, 40, 0, 60, 0, 80, 0, 120, 0, 0, 0, -10, 0, -20, 0, -30, 0, -40, 0, -60, 0, -80, 0, -120, 0,
};

// 32 e8m0 scales as f32
static inline HVX_Vector hmx_int_load_e8m0(const uint8_t * src) {
    const HVX_Vector h = Q6_V_lo_W(Q6_Wuh_vunpack_Vub(hvx_vmem(src)));
    return Q6_Vw_vasl_VwR(Q6_V_lo_W(Q6_Wuw_vunpack_Vuh(h)), 23);
}

static void hmx_int_convert_mxfp4(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                  const struct hmx_int_group * g) {
    HVX_Vector vmax = Q6_V_vsplat_R(0x20000000);  // 2^-63: 1 / max must be a number
    for (uint32_t t = 0; t < n_tiles; t++) {
        vmax = Q6_Vw_vmax_VwVw(vmax, hmx_int_load_e8m0(src + t * tile_stride + 512));
    }

    const HVX_Vector inv   = hmx_int_to_sf(hmx_int_over(128.0f, vmax));
    const HVX_Vector magic = HMX_INT_BYTE_MAGIC;
    const HVX_Vector repl  = HMX_INT_BYTE_REPL;
    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector d = hmx_int_load_e8m0(src + t * tile_stride + 512);
        hmx_int_tile(dst, t)[0] = hmx_int_round_byte(hmx_int_mul_sf(d, inv), magic, repl);
    }

    struct hmx_int_cvt c = hmx_int_cvt_init(0, hmx_int_mxfp4_lut, n_tiles, g->odd);
    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector * vsrc = (const HVX_Vector *) (src + t * tile_stride);
        HVX_Vector *       vdst = hmx_int_tile(dst, t);
        const HVX_Vector   f    = vdst[0];

        #pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const HVX_VectorPair v   = hmx_int_columns_first_x2(vsrc[2 * i], vsrc[2 * i + 1]);
            const HVX_Vector     lo0 = Q6_Vb_vlut32_VbVbI(Q6_V_vand_VV(Q6_V_lo_W(v), c.mask_h4), c.lut, 0);
            const HVX_Vector     hi0 = Q6_Vb_vlut32_VbVbI(Q6_Vub_vlsr_VubR(Q6_V_lo_W(v), 4), c.lut, 0);
            const HVX_Vector     lo1 = Q6_Vb_vlut32_VbVbI(Q6_V_vand_VV(Q6_V_hi_W(v), c.mask_h4), c.lut, 0);
            const HVX_Vector     hi1 = Q6_Vb_vlut32_VbVbI(Q6_Vub_vlsr_VubR(Q6_V_hi_W(v), 4), c.lut, 0);
            hmx_int_convert_values(&c, vdst + 4 * i + 0, lo0, hi0, f, c.round, 7);
            hmx_int_convert_values(&c, vdst + 4 * i + 1, lo1, hi1, f, c.round, 7);
        }
    }
    hmx_int_finish_group(g, &c, 7, vmax, 0.5f / 10.0f);  // the format's values are doubled in the table
}

// Q4_1, Q4_K, Q5_K: d * n + m with (d, m) in turn, n of `bits` bits, mid = 2^(bits - 1). |d * n + m| is at most
// |m + (mid - 0.5) * d| + (mid - 0.5) * |d|; with mid * |d| instead both this and f fit. n' = n or, where d is negative, its
// complement: the value is center + |d| * (n' - mid), center = m + (mid - 0.5) * d + 0.5 * |d|.
// Returns the unit of w8 times 127.5; f, the sign of d and the accumulators to start from go to vectors 0 .. 3 of the tiles.
static inline HVX_Vector hmx_int_prepare_offset(uint8_t * restrict dst, const uint8_t * restrict scales, uint32_t n_tiles,
                                                uint32_t tile_stride, uint32_t bits, uint32_t shift, bool odd) {
    const HVX_Vector one_hf = HMX_INT_ONE_HF;
    const HVX_Vector abs_sf = Q6_V_vsplat_R(0x7FFFFFFF);
    const HVX_Vector middle = hvx_vec_splat_f32((float) (1 << (bits - 1)) - 0.5f);

    {
        const HVX_Vector half = hvx_vec_splat_f32((float) (1 << (bits - 1)));
        HVX_Vector       vmax = hvx_vec_splat_f32(0x1p-24f);
        for (uint32_t t = 0; t < n_tiles; t++) {
            const HVX_VectorPair dm = hmx_int_mul_hf(hvx_vmem(scales + t * tile_stride), one_hf);
            const HVX_Vector     d  = hmx_int_to_sf(Q6_V_lo_W(dm));
            const HVX_Vector     c  = hmx_int_to_sf(hmx_int_add(hmx_int_mul_sf(d, middle), Q6_V_hi_W(dm)));
            const HVX_Vector     h  = hmx_int_to_sf(hmx_int_mul_sf(d, half));
            const HVX_Vector     v  = hmx_int_add_sf(Q6_V_vand_VV(c, abs_sf), Q6_V_vand_VV(h, abs_sf));
            vmax = Q6_Vw_vmax_VwVw(vmax, hmx_int_to_sf(v));
        }
        *hmx_int_tile(dst, 0) = vmax;
    }

    const HVX_Vector     vmax  = *hmx_int_tile(dst, 0);
    const HVX_Vector     inv   = hmx_int_to_sf(hmx_int_over(127.5f * (1 << shift), vmax));
    const HVX_Vector     magic = HMX_INT_BYTE_MAGIC;
    const HVX_Vector     repl  = HMX_INT_BYTE_REPL;
    const HVX_Vector     zero  = Q6_Vb_vsplat_R(-(1 << (bits - 1)));
    const HVX_Vector     half  = hvx_vec_splat_f32(0.5f);
    const HVX_Vector     lift  = hvx_vec_splat_f32(8192.5f);  // conversion cuts
    const HVX_VectorPair drop  = Q6_W_vcombine_VV(Q6_Vh_vsplat_R(odd - 8193), Q6_Vh_vsplat_R(-8192 - odd));
    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector     s    = hvx_vmem(scales + t * tile_stride);
        const HVX_VectorPair dm   = hmx_int_mul_hf(s, one_hf);
        const HVX_Vector     d    = hmx_int_to_sf(hmx_int_mul_sf(hmx_int_to_sf(Q6_V_lo_W(dm)), inv));
        const HVX_Vector     m    = hmx_int_mul_sf(hmx_int_to_sf(Q6_V_hi_W(dm)), inv);
        const HVX_Vector     size = Q6_V_vand_VV(d, abs_sf);
        const HVX_Vector     c    = hmx_int_add(hmx_int_add(m, hmx_int_mul_sf(d, middle)), hmx_int_mul_sf(size, half));
        const HVX_Vector     w    = Q6_Vw_equals_Vsf(hmx_int_to_sf(hmx_int_add_mixed(c, lift)));
        const HVX_Vector     a    = Q6_Vh_vshuffe_VhVh(w, w);
        const HVX_Vector     f    = Q6_V_vdelta_VV(hmx_int_to_sf(hmx_int_add_sf(size, magic)), repl);
        const HVX_VectorPair st   = Q6_Wh_vmpyacc_WhVubVb(Q6_Wh_vadd_WhWh(Q6_W_vcombine_VV(a, a), drop), f, zero);

        HVX_Vector * tile = hmx_int_tile(dst, t);
        tile[0] = f;
        tile[1] = hmx_int_sign_lo(s);
        tile[2] = Q6_V_lo_W(st);
        tile[3] = Q6_V_hi_W(st);
    }
    return vmax;
}

static void hmx_int_convert_q4_1(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                 const struct hmx_int_group * g) {
    const HVX_Vector   vmax = hmx_int_prepare_offset(dst, src + 512, n_tiles, tile_stride, 4, 4, g->odd);
    struct hmx_int_cvt c    = hmx_int_cvt_init(0, NULL, n_tiles, g->odd);

    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector *   vsrc  = (const HVX_Vector *) (src + t * tile_stride);
        HVX_Vector *         vdst  = hmx_int_tile(dst, t);
        const HVX_Vector     f     = vdst[0];
        const HVX_Vector     neg   = vdst[1];
        const HVX_VectorPair start = Q6_W_vcombine_VV(vdst[3], vdst[2]);

        #pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const HVX_VectorPair v  = hmx_int_columns_first_x2(vsrc[2 * i], vsrc[2 * i + 1]);
            const HVX_Vector     v0 = Q6_V_vxor_VV(Q6_V_lo_W(v), neg);
            const HVX_Vector     v1 = Q6_V_vxor_VV(Q6_V_hi_W(v), neg);
            hmx_int_convert_nibbles(&c, vdst + 4 * i + 0, Q6_V_vand_VV(v0, c.mask_h4), Q6_Vub_vlsr_VubR(v0, 4), f, start, 4);
            hmx_int_convert_nibbles(&c, vdst + 4 * i + 1, Q6_V_vand_VV(v1, c.mask_h4), Q6_Vub_vlsr_VubR(v1, 4), f, start, 4);
        }
    }
    hmx_int_finish_group(g, &c, 4, vmax, 1.0f / 127.5f);
}

// the flag plane has bits 2i (low nibble) and 2i + 1 (high nibble) for nibble vector i
static void hmx_int_convert_q5_k(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                 const struct hmx_int_group * g) {
    const HVX_Vector   vmax = hmx_int_prepare_offset(dst, src + 512, n_tiles, tile_stride, 5, 5, g->odd);
    const HVX_Vector   bit4 = Q6_Vb_vsplat_R(0x10);
    struct hmx_int_cvt c    = hmx_int_cvt_init(0, NULL, n_tiles, g->odd);

    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector *   vsrc  = (const HVX_Vector *) (src + t * tile_stride);
        HVX_Vector *         vdst  = hmx_int_tile(dst, t);
        const HVX_Vector     f     = vdst[0];
        const HVX_Vector     neg   = vdst[1];
        const HVX_VectorPair start = Q6_W_vcombine_VV(vdst[3], vdst[2]);
        const HVX_Vector     plane = vsrc[5];

        #pragma nounroll
        for (uint32_t i = 0; i < 2; i++) {
            const HVX_VectorPair v = hmx_int_columns_first_x2(vsrc[2 * i], vsrc[2 * i + 1]);
            const HVX_VectorPair h = hmx_int_columns_first_x2(Q6_Vub_vlsr_VubR(plane, 4 * i), Q6_Vub_vlsr_VubR(plane, 4 * i + 2));

            #pragma unroll
            for (uint32_t j = 0; j < 2; j++) {
                const HVX_Vector n  = Q6_V_vxor_VV(j ? Q6_V_hi_W(v) : Q6_V_lo_W(v), neg);
                const HVX_Vector b  = Q6_V_vxor_VV(j ? Q6_V_hi_W(h) : Q6_V_lo_W(h), neg);
                const HVX_Vector lo = Q6_V_vor_VV(Q6_V_vand_VV(n, c.mask_h4), Q6_V_vand_VV(Q6_Vh_vasl_VhR(b, 4), bit4));
                const HVX_Vector hi = Q6_V_vor_VV(Q6_Vub_vlsr_VubR(n, 4), Q6_V_vand_VV(Q6_Vh_vasl_VhR(b, 3), bit4));
                hmx_int_convert_nibbles(&c, vdst + 4 * i + j, lo, hi, f, start, 5);
            }
        }
    }
    hmx_int_finish_group(g, &c, 5, vmax, 1.0f / 127.5f);
}

// Q6_K: n - 32, columns first already, scales for each 16 k (in vectors 0 .. 3 of the tile with their signs)
static void hmx_int_convert_q6_k(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                 const struct hmx_int_group * g) {
    HVX_Vector vmax = Q6_Vh_vsplat_R(1);  // 1 / max must be a number
    {
        const HVX_Vector abs_hf = HMX_INT_ABS_HF;
        const HVX_Vector one_hf = HMX_INT_ONE_HF;
        const HVX_Vector magic  = HMX_INT_BYTE_MAGIC;
        const HVX_Vector repl   = HMX_INT_BYTE_REPL;

        for (uint32_t t = 0; t < n_tiles; t++) {
            vmax = Q6_Vuh_vmax_VuhVuh(vmax, Q6_V_vand_VV(hvx_vmem(src + t * tile_stride + 768), abs_hf));
        }
        vmax = hmx_int_column_max(Q6_Vh_vshuff_Vh(vmax));

        const HVX_Vector inv = hmx_int_over(255.0f, vmax);
        for (uint32_t t = 0; t < n_tiles; t++) {
            const HVX_Vector     d = Q6_Vh_vshuff_Vh(hvx_vmem(src + t * tile_stride + 768));
            const HVX_VectorPair a = hmx_int_mul_hf(Q6_V_vand_VV(d, abs_hf), one_hf);

            HVX_Vector * tile = hmx_int_tile(dst, t);
            tile[4] = hmx_int_round_byte(hmx_int_mul(Q6_V_lo_W(a), inv), magic, repl);
            tile[5] = hmx_int_sign_lo(d);
            tile[6] = hmx_int_round_byte(hmx_int_mul(Q6_V_hi_W(a), inv), magic, repl);
            tile[7] = hmx_int_sign_hi(d);
        }
    }

    const HVX_Vector   mask = Q6_Vb_vsplat_R(0x30);
    const HVX_Vector   bits = Q6_Vb_vsplat_R(0x3F);
    struct hmx_int_cvt c    = hmx_int_cvt_init(-32, NULL, n_tiles, g->odd);

    #pragma nounroll
    for (uint32_t t = 0; t < 2 * n_tiles; t++) {
        const HVX_Vector *   vsrc  = (const HVX_Vector *) (src + (t / 2) * tile_stride);
        HVX_Vector *         vdst  = hmx_int_tile(dst, t / 2) + 4 * (t & 1);
        const HVX_Vector *   prep  = hmx_int_tile(dst, t / 2) + 4 + 2 * (t & 1);
        const HVX_Vector     f     = prep[0];
        const HVX_Vector     neg   = prep[1];
        const HVX_VectorPair start = hmx_int_start(&c, f, neg);
        const HVX_Vector     flip  = Q6_V_vand_VV(neg, bits);
        const HVX_Vector     l0    = vsrc[2 * (t & 1) + 0];
        const HVX_Vector     l1    = vsrc[2 * (t & 1) + 1];
        const HVX_Vector     h     = vsrc[4 + (t & 1)];

        HVX_VectorPair p0, p1;
        HVX_Vector     n0, n1;
        n0 = Q6_V_vor_VV(Q6_V_vand_VV(l0, c.mask_h4), Q6_V_vand_VV(Q6_Vh_vasl_VhR(h, 4), mask));
        n1 = Q6_V_vor_VV(Q6_Vub_vlsr_VubR(l0, 4), Q6_V_vand_VV(Q6_Vh_vasl_VhR(h, 2), mask));
        p0 = Q6_Wuh_vmpyacc_WuhVubVub(start, Q6_V_vxor_VV(n0, flip), f);
        p1 = Q6_Wuh_vmpyacc_WuhVubVub(start, Q6_V_vxor_VV(n1, flip), f);
        hmx_int_sum_exact(&c, p0);
        hmx_int_sum_exact(&c, p1);
        hmx_int_store_x2(&c, vdst + 0, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_hi_W(p0), Q6_V_lo_W(p0), 6),
                             vdst + 1, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_hi_W(p1), Q6_V_lo_W(p1), 6));

        n0 = Q6_V_vor_VV(Q6_V_vand_VV(l1, c.mask_h4), Q6_V_vand_VV(h, mask));
        n1 = Q6_V_vor_VV(Q6_Vub_vlsr_VubR(l1, 4), Q6_V_vand_VV(Q6_Vub_vlsr_VubR(h, 2), mask));
        p0 = Q6_Wuh_vmpyacc_WuhVubVub(start, Q6_V_vxor_VV(n0, flip), f);
        p1 = Q6_Wuh_vmpyacc_WuhVubVub(start, Q6_V_vxor_VV(n1, flip), f);
        hmx_int_sum_exact(&c, p0);
        hmx_int_sum_exact(&c, p1);
        hmx_int_store_x2(&c, vdst + 2, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_hi_W(p0), Q6_V_lo_W(p0), 6),
                             vdst + 3, Q6_Vb_vasr_VhVhR_rnd_sat(Q6_V_hi_W(p1), Q6_V_lo_W(p1), 6));
    }
    hmx_int_finish_group(g, &c, 6, vmax, 64.0f / 255.0f);
}

// --- Group scales of a column tile ---

#define HMX_INT_GROUP_SCALE_MAX 2047

// Rounding errors of w8 don't cancel where activations have a mean, so mean times residual is added at the end. The mean
// is in units of 2^MEAN_SHIFT activation steps; up to MEAN_MIN (1 / 15 to 1 / 7 of the standard deviation) it is taken as 0.
#define HMX_INT_MEAN_SHIFT  2
#define HMX_INT_MEAN_MIN    24

// Groups differ in their units. They are added in integers: r = unit / largest unit in 11 bits, twice per column for a
// pair of tokens, may replace unit. column turns the sum into weights times activation steps.
// skew: the residuals in units of the sum, for a mean of 2^MEAN_SHIFT steps, twice per column.
static __attribute__((noinline)) void hmx_int_group_scales(HVX_Vector * column, HVX_Vector * skew, HVX_Vector * r, const HVX_Vector * unit,
                                                           const HVX_Vector * residual, uint32_t n_groups) {
    HVX_Vector ref = unit[0];
    for (uint32_t g = 1; g < n_groups; g++) {
        ref = Q6_Vw_vmax_VwVw(ref, unit[g]);  // positive f32 order like integers
    }

    const HVX_Vector inv  = hmx_int_to_sf(hmx_int_mul_sf(hvx_vec_inverse_f32(ref), hvx_vec_splat_f32(HMX_INT_GROUP_SCALE_MAX)));
    HVX_VectorPair   lost = Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero());
    for (uint32_t g = 0; g < n_groups; g++) {
        const HVX_Vector q = hmx_int_add_mixed(hmx_int_mul_sf(unit[g], inv), hvx_vec_splat_f32(0.5f));
        const HVX_Vector w = Q6_Vw_equals_Vsf(hmx_int_to_sf(q));
        const HVX_Vector h = Q6_Vh_vshuffe_VhVh(w, w);
        lost = Q6_Ww_vmpyacc_WwVhVh(lost, residual[g], h);
        r[g] = h;
    }
    // a step of the sum is 2^(8 + OUT_SHIFT) of activation steps times w8, one of lost 1 / 16 w8
    *skew = Q6_Vh_vasr_VwVwR_rnd_sat(Q6_V_lo_W(lost), Q6_V_lo_W(lost), 4 + 8 + HMX_INT_OUT_SHIFT - HMX_INT_MEAN_SHIFT);

    const float step = (float) (1 << (8 + HMX_INT_OUT_SHIFT)) / HMX_INT_GROUP_SCALE_MAX;
    *column = hmx_int_to_sf(hmx_int_mul_sf(ref, hvx_vec_splat_f32(step)));
}

// --- Activations: two tokens of a K chunk to u16 ---
//
// Each token gets a power of two 2^p so that the 2-norm of its largest K group is in (2^14, 2^15): then |w8| <= 128 and
// Cauchy-Schwarz keep every 16-bit result of a group of up to 1024 k in range, whatever the data. p = 79 - e.

#define HMX_INT_EXP_MIN  19
#define HMX_INT_EXP_MAX  129
#define HMX_INT_EXP_ONE  79

// words 0 and 16: the sums of s0 and s1
static inline HVX_Vector hmx_int_pair_sums(HVX_Vector s0, HVX_Vector s1) {
    const HVX_VectorPair m = Q6_W_vshuff_VVR(s1, s0, 64);
    HVX_Vector           v = hmx_int_add(Q6_V_lo_W(m), Q6_V_hi_W(m));
    v = hmx_int_add(v, Q6_V_vror_VR(v, 32));
    v = hmx_int_add(v, Q6_V_vror_VR(v, 16));
    v = hmx_int_add(v, Q6_V_vror_VR(v, 8));
    v = hmx_int_add(v, Q6_V_vror_VR(v, 4));
    return hmx_int_to_sf(v);
}

// e of two tokens, in words 0 and 16, and the sums of their values
static inline HVX_Vector hmx_int_pair_exponents(const HVX_Vector * restrict x0, const HVX_Vector * restrict x1,
                                                uint32_t n_tiles, uint32_t group, HVX_Vector * sums) {
    HVX_Vector vmax = Q6_V_vzero();
    HVX_Vector m0   = Q6_V_vzero();
    HVX_Vector m1   = Q6_V_vzero();
    for (uint32_t k = 0; k < n_tiles; k += group) {
        const uint32_t n  = hex_smin(group, n_tiles - k);
        HVX_Vector     s0 = Q6_V_vzero();
        HVX_Vector     s1 = Q6_V_vzero();
        for (uint32_t t = 0; t < n; t++) {
            s0 = hmx_int_add(s0, hmx_int_mul_sf(x0[k + t], x0[k + t]));
            s1 = hmx_int_add(s1, hmx_int_mul_sf(x1[k + t], x1[k + t]));
            m0 = hmx_int_add_mixed(m0, x0[k + t]);
            m1 = hmx_int_add_mixed(m1, x1[k + t]);
        }
        vmax = Q6_Vw_vmax_VwVw(vmax, hmx_int_pair_sums(s0, s1));  // positive f32 order like integers
    }
    *sums = hmx_int_pair_sums(m0, m1);

    // half the exponent, rounded up; the square is raised by 1/64 at least so that rounding can't pass the bound
    vmax = Q6_Vw_vadd_VwVw(vmax, Q6_V_vsplat_R((3 << 23) + (1 << 18)));
    return Q6_Vw_vmax_VwVw(Q6_Vuw_vlsr_VuwR(vmax, 24), Q6_V_vsplat_R(HMX_INT_EXP_MIN));
}

// means of two tokens as s16 in word 0; inv: 1 / number of values
static inline HVX_Vector hmx_int_pair_means(HVX_Vector sums, HVX_Vector e, float inv) {
    const HVX_Vector scale = Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(127 + HMX_INT_EXP_ONE - HMX_INT_MEAN_SHIFT), e), 23);
    const HVX_Vector mean  = hmx_int_to_sf(hmx_int_mul_sf(sums, hvx_vec_splat_f32(inv)));
    const HVX_Vector w     = Q6_Vw_equals_Vsf(hmx_int_to_sf(hmx_int_mul_sf(mean, scale)));
    const HVX_Vector h     = Q6_Vh_vasr_VwVwR_sat(Q6_V_vror_VR(w, 64), w, 0);
    return Q6_V_vand_QV(Q6_Q_vcmp_gt_VhVh(Q6_Vh_vabs_Vh_sat(h), Q6_Vh_vsplat_R(HMX_INT_MEAN_MIN)), h);
}

// x + magic has 32768 + x * 2^p, rounded, in bits 6..21: 1.75 * 2^17 and half a unit, the last mantissa bit is 2^-6
#define HMX_INT_MAGIC        0x48600020
#define HMX_INT_MAGIC_SHIFT  6

static inline HVX_Vector hmx_int_magic(HVX_Vector e) {
    return Q6_Vw_vadd_VwVw(Q6_Vw_vasl_VwR(e, 23), Q6_V_vsplat_R(HMX_INT_MAGIC - (HMX_INT_EXP_ONE << 23)));
}

// dst: the pair's row of the first activation tile, exps: e of both tokens, means: s16 of both
static __attribute__((noinline)) void hmx_int_pack_pair(uint8_t * restrict dst, uint8_t * restrict exps, int32_t * restrict means,
                                                        const uint8_t * restrict src0, const uint8_t * restrict src1,
                                                        uint32_t n_tiles, uint32_t group, float inv) {
    const HVX_Vector * x0 = (const HVX_Vector *) src0;
    const HVX_Vector * x1 = (const HVX_Vector *) src1;

    HVX_Vector       sums;
    const HVX_Vector e  = hmx_int_pair_exponents(x0, x1, n_tiles, group, &sums);
    const HVX_Vector e0 = hvx_vec_repl_u32(e);
    const HVX_Vector e1 = hvx_vec_repl_u32(Q6_V_vror_VR(e, 64));
    const HVX_Vector k0 = hmx_int_magic(e0);
    const HVX_Vector k1 = hmx_int_magic(e1);

    exps[0] = (uint8_t) hvx_vec_get_i32(e0);
    exps[1] = (uint8_t) hvx_vec_get_i32(e1);
    *means  = hvx_vec_get_i32(hmx_int_pair_means(sums, e, inv));

    for (uint32_t t = 0; t < n_tiles; t++) {
        const HVX_Vector v0 = hmx_int_to_sf(hmx_int_add_sf(x0[t], k0));
        const HVX_Vector v1 = hmx_int_to_sf(hmx_int_add_sf(x1[t], k1));
        hvx_vmem(dst + t * HMX_INT_ACT_TILE_SIZE) = Q6_Vh_vasr_VwVwR(v1, v0, HMX_INT_MAGIC_SHIFT);
    }
}

// --- Multiply: row tiles x one column tile ---
//
// act: tile k of row tile r at act + r * act_stride + k * 2048; out: group g of row tile r at out + g * out_stride + r * 2048

static void hmx_int_multiply(uint8_t * restrict out, uint32_t out_stride, const uint8_t * restrict act, uint32_t act_stride,
                             const uint8_t * restrict wgt, const uint8_t * restrict bias,
                             uint32_t n_row_tiles, uint32_t n_tiles, uint32_t group) {
    for (uint32_t k = 0; k < n_tiles; k += group) {
        const uint32_t n     = hex_smin(group, n_tiles - k);
        const uint32_t range = n * HMX_INT_ACT_TILE_SIZE - 1;

        asm volatile(HMX_SET_BIAS("%0") :: "r"(bias) : "memory");
        asm volatile(HMX_INT_CLRACC());

        for (uint32_t r = 0; r < n_row_tiles; r++) {
            asm volatile(HMX_INT_LOAD_MPY_DEEP("%0", "%1", "%2") :: "r"(act + r * act_stride), "r"(wgt), "r"(range));
            asm volatile(HMX_INT_STORE_AFTER("%0", "%1") :: "r"(out + r * HMX_INT_OUT_TILE_SIZE), "r"(0) : "memory");
        }

        act  += n * HMX_INT_ACT_TILE_SIZE;
        wgt  += n * HMX_INT_WGT_TILE_SIZE;
        bias += HMX_INT_BIAS_SIZE;
        out  += out_stride;
    }
}

// --- Output: s16 of all groups to f32 rows of 32 columns ---

// scales[e - e_min]: column scale times 2^-p
static __attribute__((noinline)) void hmx_int_token_scales(HVX_Vector * restrict scales, const HVX_Vector * restrict column, uint32_t e_min, uint32_t e_max) {
    for (uint32_t e = e_min; e <= e_max; e++) {
        scales[e - e_min] = Q6_Vw_vadd_VwVw(*column, Q6_V_vsplat_R((int32_t) (e - HMX_INT_EXP_ONE) << 23));
    }
}

struct hmx_int_reduce_args {
    const uint8_t *    stage;         // pair of tokens p of group g at g * stage_stride + p * 128
    uint32_t           stage_stride;
    uint32_t           n_groups;
    const HVX_Vector * r;             // group scales
    const HVX_Vector * skew;
    const HVX_Vector * scales;        // token scales
    const uint8_t *    exps;          // e of the tokens
    const int32_t *    means;         // of pairs of tokens
    uint32_t           e_min;
    const uint8_t *    acc;           // f32 rows to add, or NULL
    uint32_t           acc_stride;
    uint8_t *          out;           // f32 rows, 128 bytes each; may be acc
};

static inline HVX_Vector hmx_int_output(const struct hmx_int_reduce_args * a, HVX_Vector sum, uint32_t row, bool add) {
    HVX_Vector y = hmx_int_mul_sf(Q6_Vsf_equals_Vw(sum), a->scales[a->exps[row] - a->e_min]);
    if (add) {
        y = hmx_int_add_mixed(y, hvx_vmem(a->acc + row * a->acc_stride));
    }
    return hmx_int_to_sf(y);
}

// n pairs from pair p on; inlined with constant n, add and skewed
static inline __attribute__((always_inline)) void hmx_int_reduce_pairs(const struct hmx_int_reduce_args * a, uint32_t p,
                                                                       uint32_t n, bool add, bool skewed) {
    const uint8_t * s = a->stage + p * VLEN;
    HVX_VectorPair  sum[4];

    #pragma unroll
    for (uint32_t i = 0; i < n; i++) {
        sum[i] = Q6_Ww_vmpy_VhVh(hvx_vmem(s + i * VLEN), a->r[0]);
    }

    #pragma nounroll
    for (uint32_t g = 1; g < a->n_groups; g++) {
        s += a->stage_stride;
        #pragma unroll
        for (uint32_t i = 0; i < n; i++) {
            sum[i] = Q6_Ww_vmpyacc_WwVhVh(sum[i], hvx_vmem(s + i * VLEN), a->r[g]);
        }
    }

    if (skewed) {
        #pragma unroll
        for (uint32_t i = 0; i < n; i++) {
            sum[i] = Q6_Ww_vmpyacc_WwVhVh(sum[i], Q6_V_vsplat_R(a->means[p + i]), *a->skew);
        }
    }

    #pragma unroll
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = (p + i) * 2;
        hvx_vmem(a->out + (row + 0) * VLEN) = hmx_int_output(a, Q6_V_lo_W(sum[i]), row + 0, add);
        hvx_vmem(a->out + (row + 1) * VLEN) = hmx_int_output(a, Q6_V_hi_W(sum[i]), row + 1, add);
    }
}

static inline __attribute__((always_inline)) void hmx_int_reduce_all(const struct hmx_int_reduce_args * a, uint32_t n_pairs, bool add) {
    uint32_t p = 0;
    for (; p + 4 <= n_pairs; p += 4) {
        if (a->means[p] | a->means[p + 1] | a->means[p + 2] | a->means[p + 3]) {
            hmx_int_reduce_pairs(a, p, 4, add, true);
        } else {
            hmx_int_reduce_pairs(a, p, 4, add, false);
        }
    }
    for (; p < n_pairs; p++) {
        hmx_int_reduce_pairs(a, p, 1, add, true);
    }
}

static __attribute__((noinline)) void hmx_int_reduce(const struct hmx_int_reduce_args * a, uint32_t n_pairs) {
    if (a->acc) {
        hmx_int_reduce_all(a, n_pairs, true);
    } else {
        hmx_int_reduce_all(a, n_pairs, false);
    }
}

#endif // HMX_INT_MM_KERNELS_H
