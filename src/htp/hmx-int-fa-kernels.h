// HVX and HMX kernels of attention on the integer HMX. Layouts: see hmx-int-utils.h.

#ifndef HMX_INT_FA_KERNELS_H
#define HMX_INT_FA_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "flash-attn-int-ops.h"
#include "hmx-int-utils.h"
#include "hmx-utils.h"
#include "hvx-utils.h"

// For variants by constant arguments
#define FA_INT_INLINE static inline __attribute__((always_inline))
#define FA_INT_KERNEL static __attribute__((noinline))

#define HMX_INT_STORE_RETAIN(out, zero) \
    "mxmem(" out ", " zero "):after:retain.uh = acc:2x1\n"

// scale words: out = acc >> n
#define FA_INT_SCALE_WORD(n) ((16 - (n)) << 10)

// Scores in fixed point: 4096 per octave (log2)
#define FA_INT_OCTAVE        4096.0f
#define FA_INT_SCORE_UNIT    (FA_INT_OCTAVE * EXP_LOG2E_F)
// Where the running maximum starts: what is below it counts as masked, as in the other kernels
#define FA_INT_SCORE_FLOOR   ((int32_t) (HTP_FA_M_INITIAL_VAL * FA_INT_SCORE_UNIT))
#define FA_INT_SCORE_NONE    INT32_MIN
// The reference of the running sums moves when a block's maximum is this much higher
#define FA_INT_SCORE_RESCALE (40 << 12)

// exp2(0) of fa_int_exp2
#define FA_INT_P_ONE         32736.0f

// --- little helpers ---

static inline HVX_Vector fa_int_lane(HVX_Vector v, uint32_t i) {
    return hvx_vec_repl_f32(Q6_V_vror_VR(v, 4 * i));
}

// the first 32 halves as f32
static inline HVX_Vector fa_int_hf_to_sf(HVX_Vector v) {
    const HVX_VectorPair w = Q6_Wuw_vunpack_Vuh(v);
    return Q6_Vsf_equals_Vqf32(Q6_V_lo_W(Q6_Wqf32_vmpy_VhfVhf(Q6_V_lo_W(w), Q6_Vh_vsplat_R(0x3C00))));
}

// 32 f32 to both halves of each word
static inline HVX_Vector fa_int_sf_to_hf_x2(HVX_Vector v) {
    const HVX_Vector q = Q6_Vqf32_vadd_VsfVsf(v, Q6_V_vzero());
    return Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(q, q));
}

#define FA_INT_FOLD(op, b, a, bytes)                                  \
    ({                                                                \
        const HVX_VectorPair fold_w = Q6_W_vshuff_VVR(b, a, -(bytes)); \
        op(Q6_V_hi_W(fold_w), Q6_V_lo_W(fold_w));                     \
    })

// Reduce 8 vectors of words: lane i is the result of v[i % 8]
#define FA_INT_REDUCE_X8(name, op)                                         \
    static inline HVX_Vector name(const HVX_Vector * restrict v) {         \
        const HVX_Vector a0 = FA_INT_FOLD(op, v[1], v[0], 4);              \
        const HVX_Vector a1 = FA_INT_FOLD(op, v[3], v[2], 4);              \
        const HVX_Vector a2 = FA_INT_FOLD(op, v[5], v[4], 4);              \
        const HVX_Vector a3 = FA_INT_FOLD(op, v[7], v[6], 4);              \
        const HVX_Vector b0 = FA_INT_FOLD(op, a1, a0, 8);                  \
        const HVX_Vector b1 = FA_INT_FOLD(op, a3, a2, 8);                  \
        HVX_Vector       c  = FA_INT_FOLD(op, b1, b0, 16);                 \
        c = op(c, Q6_V_vror_VR(c, 32));                                    \
        return op(c, Q6_V_vror_VR(c, 64));                                 \
    }

FA_INT_REDUCE_X8(fa_int_reduce_max_w_x8, Q6_Vw_vmax_VwVw)
FA_INT_REDUCE_X8(fa_int_reduce_sum_w_x8, Q6_Vw_vadd_VwVw)
FA_INT_REDUCE_X8(fa_int_reduce_sum_sf_x8, hvx_vec_add_f32_f32)

// Maximum of 32 vectors of unsigned halves: lane i is the result of v[i % 32]
static inline HVX_Vector fa_int_reduce_max_uh_x32(const HVX_Vector * restrict v) {
    HVX_Vector d[4];
    #pragma unroll
    for (uint32_t i = 0; i < 4; i++, v += 8) {
        const HVX_Vector a0 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, v[1], v[0], 2);
        const HVX_Vector a1 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, v[3], v[2], 2);
        const HVX_Vector a2 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, v[5], v[4], 2);
        const HVX_Vector a3 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, v[7], v[6], 2);
        const HVX_Vector b0 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, a1, a0, 4);
        const HVX_Vector b1 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, a3, a2, 4);
        d[i] = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, b1, b0, 8);
    }
    const HVX_Vector e0 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, d[1], d[0], 16);
    const HVX_Vector e1 = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, d[3], d[2], 16);
    const HVX_Vector f  = FA_INT_FOLD(Q6_Vuh_vmax_VuhVuh, e1, e0, 32);
    return Q6_Vuh_vmax_VuhVuh(f, Q6_V_vror_VR(f, 64));
}

// 2^-f = 1 - f * (c1 - f * (c2 - f * (c3 - f * c4))), f in [0, 1)
struct fa_int_exp2_coef {
    HVX_Vector c0, c1, c2, c3, c4, zero;
};

static inline struct fa_int_exp2_coef fa_int_exp2_init(void) {
    return (struct fa_int_exp2_coef) {
        Q6_Vh_vsplat_R(2 * (int) FA_INT_P_ONE), Q6_Vh_vsplat_R(45376), Q6_Vh_vsplat_R(15678), Q6_Vh_vsplat_R(3485), Q6_Vh_vsplat_R(447),
        Q6_V_vzero()
    };
}

// 2^(-d / 4096) * FA_INT_P_ONE, rounded: at most 1.3 units off. d unsigned, 65535 (and more) gives 0.
FA_INT_INLINE HVX_Vector fa_int_exp2(HVX_Vector d, struct fa_int_exp2_coef c) {
    const HVX_Vector f = Q6_Vh_vasl_VhR(d, 4);
    const HVX_Vector n = Q6_Vuh_vlsr_VuhR(d, 12);

    HVX_Vector h = Q6_Vh_vsub_VhVh(c.c3, Q6_Vuh_vmpy_VuhVuh_rs16(f, c.c4));
    h = Q6_Vh_vsub_VhVh(c.c2, Q6_Vuh_vmpy_VuhVuh_rs16(f, h));
    h = Q6_Vh_vsub_VhVh(c.c1, Q6_Vuh_vmpy_VuhVuh_rs16(f, h));
    h = Q6_Vh_vsub_VhVh(c.c0, Q6_Vuh_vmpy_VuhVuh_rs16(f, h));
    return Q6_Vuh_vavg_VuhVuh_rnd(Q6_Vh_vlsr_VhVh(h, n), c.zero);
}

// tanh(u) * 32768 of h = u * FA_INT_TANH_UNIT, saturated: at most 3 units off.
// 1 - r * k(r), r = e^(-2 |u|), k = 2 / (1 + r) as a polynomial like the one above
#define FA_INT_TANH_UNIT (2.0f * EXP_LOG2E_F * FA_INT_OCTAVE / 2)

struct fa_int_tanh_coef {
    struct fa_int_exp2_coef e;
    HVX_Vector c0, c1, c2, c3, c4, c5, one;
};

static inline struct fa_int_tanh_coef fa_int_tanh_init(void) {
    return (struct fa_int_tanh_coef) {
        fa_int_exp2_init(), Q6_Vh_vsplat_R(65534), Q6_Vh_vsplat_R(64440), Q6_Vh_vsplat_R(57789), Q6_Vh_vsplat_R(40321),
        Q6_Vh_vsplat_R(17635), Q6_Vh_vsplat_R(3413), Q6_Vh_vsplat_R(32767)
    };
}

FA_INT_INLINE HVX_Vector fa_int_tanh(HVX_Vector h, const struct fa_int_tanh_coef * c) {
    const HVX_Vector a    = Q6_Vh_vasl_VhR(Q6_Vh_vabs_Vh_sat(h), 1);
    const HVX_Vector r    = Q6_Vh_vasl_VhR(fa_int_exp2(a, c->e), 1);
    const HVX_Vector sign = Q6_Vh_vasr_VhR(h, 15);

    HVX_Vector k = Q6_Vh_vsub_VhVh(c->c4, Q6_Vuh_vmpy_VuhVuh_rs16(r, c->c5));
    k = Q6_Vh_vsub_VhVh(c->c3, Q6_Vuh_vmpy_VuhVuh_rs16(r, k));
    k = Q6_Vh_vsub_VhVh(c->c2, Q6_Vuh_vmpy_VuhVuh_rs16(r, k));
    k = Q6_Vh_vsub_VhVh(c->c1, Q6_Vuh_vmpy_VuhVuh_rs16(r, k));
    k = Q6_Vh_vsub_VhVh(c->c0, Q6_Vuh_vmpy_VuhVuh_rs16(r, k));
    k = Q6_Vh_vsub_VhVh(c->one, Q6_Vuh_vmpy_VuhVuh_rs16(r, k));
    return Q6_Vh_vsub_VhVh(Q6_V_vxor_VV(k, sign), sign);
}

// --- K: channel statistics ---
//
// Keys are centered and scaled by a power of two per channel; Q takes the inverse. Any center and scale are right (softmax
// ignores what is added to all scores of a row), good ones keep the int8 error small. They come from a sample of keys.
// Keys much larger than the others are left out, they'd hide them.

struct fa_int_stats {
    HVX_Vector * mu;      // f32, per 64 channels: center * 2^-e of the even, then of the odd ones
    HVX_Vector * inv;     // hf, per 64 channels: 2^-e
    HVX_Vector * q_scale; // f32, per 32 channels: 2^e * scale
};

static inline struct fa_int_stats fa_int_stats_at(uint8_t * p, uint32_t n_vec) {
    struct fa_int_stats s;
    s.mu      = (HVX_Vector *) p;
    s.inv     = s.mu + 2 * n_vec;
    s.q_scale = s.inv + n_vec;
    return s;
}

// Which of n_keys (up to 32) keys from first on to use: list[] gets their numbers, the number of them is returned. tmp: 32 vectors
FA_INT_KERNEL uint32_t fa_int_pick_keys(const uint8_t * rows, size_t pitch, uint32_t n_keys, uint32_t n_vec, uint32_t first,
                                        uint8_t * list, HVX_Vector * restrict tmp) {
    uint16_t         amax[64] __attribute__((aligned(128)));
    const HVX_Vector mask = Q6_Vh_vsplat_R(0x7FFF);

    for (uint32_t k = 0; k < 32; k++) {
        HVX_Vector m = Q6_V_vzero();
        for (uint32_t j = 0; k < n_keys && j < n_vec; j++) {
            m = Q6_Vuh_vmax_VuhVuh(m, Q6_V_vand_VV(hvx_vmem(rows + (first + k) * pitch + j * 128), mask));
        }
        tmp[k] = m;
    }
    hvx_vmem(amax) = fa_int_reduce_max_uh_x32(tmp);

    // bits of a half are about its logarithm. Keys with an infinity or NaN (masked, if all is well) don't count.
    uint32_t sum = 0;
    uint32_t n   = 0;
    #pragma clang loop vectorize(disable)
    for (uint32_t k = 0; k < n_keys; k++) {
        amax[k] = amax[k] < 0x7C00 ? amax[k] : 0;
        sum += amax[k];
        n   += amax[k] != 0;
    }
    sum += 2048 * n;

    uint32_t n_list = 0;
    #pragma clang loop vectorize(disable)
    for (uint32_t k = 0; k < n_keys; k++) {
        if (amax[k] != 0 && amax[k] * n <= sum) {
            list[n_list++] = first + k;
        }
    }
    return n_list;
}

// lanes of a vector of words that belong to channels c, c + step ... below dk
static inline HVX_Vector fa_int_first_channels(HVX_Vector v, int32_t n) {
    return n > 0 ? Q6_V_vand_QV(Q6_Q_vsetq2_R(4 * MIN(n, 32)), v) : Q6_V_vzero();
}

// Sums of values and of squares over the n listed keys: of the even, then of the odd channels of each vector
FA_INT_KERNEL void fa_int_k_sums(HVX_Vector * restrict sum, HVX_Vector * restrict sqr, const uint8_t * restrict rows, size_t pitch,
                                 uint32_t n_vec, const uint8_t * restrict list, uint32_t n) {
    const HVX_Vector zero = Q6_V_vzero();
    const HVX_Vector one  = Q6_Vh_vsplat_R(0x3C00);
    for (uint32_t j = 0; j < n_vec; j++) {
        HVX_Vector s0 = zero, s1 = zero, q0 = zero, q1 = zero;
        for (uint32_t i = 0; i < n; i++) {
            const HVX_Vector     v = hvx_vmem(rows + list[i] * pitch + j * 128);
            const HVX_VectorPair w = Q6_Wqf32_vmpy_VhfVhf(v, one);
            const HVX_VectorPair x = Q6_Wqf32_vmpy_VhfVhf(v, v);
            s0 = Q6_Vqf32_vadd_Vqf32Vqf32(s0, Q6_V_lo_W(w));
            s1 = Q6_Vqf32_vadd_Vqf32Vqf32(s1, Q6_V_hi_W(w));
            q0 = Q6_Vqf32_vadd_Vqf32Vqf32(q0, Q6_V_lo_W(x));
            q1 = Q6_Vqf32_vadd_Vqf32Vqf32(q1, Q6_V_hi_W(x));
        }
        sum[2 * j]     = Q6_Vsf_equals_Vqf32(s0);
        sum[2 * j + 1] = Q6_Vsf_equals_Vqf32(s1);
        sqr[2 * j]     = Q6_Vsf_equals_Vqf32(q0);
        sqr[2 * j + 1] = Q6_Vsf_equals_Vqf32(q1);
    }
}

// From exponents in q_scale and centers in mu to what fa_int_stats says
FA_INT_KERNEL void fa_int_k_scales(struct fa_int_stats s, uint32_t n_vec, uint32_t dk, HVX_Vector e_min, float scale) {
    const HVX_Vector e_max = Q6_V_vsplat_R(14);
    const HVX_Vector vs    = hvx_vec_splat_f32(scale);
    for (uint32_t j = 0; j < n_vec; j++) {
        HVX_Vector h[2], f[2];
        #pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const HVX_Vector e = Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(s.q_scale[2 * j + i], e_min), e_max);
            h[i] = Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(15), e), 10);
            f[i] = hvx_vec_mul_f32_f32(Q6_Vw_vasl_VwR(Q6_Vw_vadd_VwVw(Q6_V_vsplat_R(127), e), 23), vs);
            s.mu[2 * j + i] = fa_int_first_channels(hvx_vec_mul_f32_f32(s.mu[2 * j + i], Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(127), e), 23)),
                                                    ((int32_t) (dk - 64 * j) + 1 - (int32_t) i) / 2);
        }
        s.inv[j] = Q6_Vh_vshuffe_VhVh(h[1], h[0]);
        // channel order; zero behind the last one
        const HVX_VectorPair w = Q6_W_vshuff_VVR(f[1], f[0], -4);
        s.q_scale[2 * j + 0] = fa_int_first_channels(Q6_V_lo_W(w), dk - 64 * j);
        s.q_scale[2 * j + 1] = fa_int_first_channels(Q6_V_hi_W(w), (int32_t) (dk - 64 * j) - 32);
    }
}

// rows: n_keys (up to 64) keys, pitch bytes apart. scale: what Q is multiplied with besides. tmp: FA_INT_TMP_VECS vectors.
// False: the centers are near enough to zero to do without.
FA_INT_KERNEL bool fa_int_k_stats(struct fa_int_stats s, const uint8_t * rows, size_t pitch, uint32_t n_keys,
                                                     uint32_t dk, bool center, float scale, HVX_Vector * restrict tmp) {
    const uint32_t n_vec = hmx_ceil_div(dk, 64);

    uint8_t  list[64];
    uint32_t n = fa_int_pick_keys(rows, pitch, hex_smin(32, n_keys), n_vec, 0, list, tmp);
    if (n_keys > 32) {
        n += fa_int_pick_keys(rows, pitch, n_keys - 32, n_vec, 32, list + n, tmp);
    }
    fa_int_k_sums(s.mu, s.q_scale, rows, pitch, n_vec, list, n);

    const HVX_Vector zero  = Q6_V_vzero();
    const HVX_Vector tiny  = hvx_vec_splat_f32(1e-12f);
    const HVX_Vector four  = hvx_vec_splat_f32(4.0f);
    const HVX_Vector half  = Q6_V_vsplat_R((1 << 23) - (127 << 23));
    const HVX_Vector inv_n = hvx_vec_splat_f32(n ? 1.0f / n : 0.0f);

    HVX_Vector e_sum = zero;
    HVX_Vector far   = zero; // largest (4 * center^2 - variance): is a center more than half a deviation off?
    for (uint32_t j = 0; j < 2 * n_vec; j++) {
        const HVX_Vector m  = hvx_vec_mul_f32_f32(s.mu[j], inv_n);
        const HVX_Vector q  = hvx_vec_mul_f32_f32(s.q_scale[j], inv_n);
        const HVX_Vector m2 = hvx_vec_mul_f32_f32(m, m);
        const HVX_Vector v  = Q6_Vsf_vmax_VsfVsf(center ? hvx_vec_sub_f32_f32(q, m2) : q, tiny);
        far = Q6_Vsf_vmax_VsfVsf(far, hvx_vec_sub_f32_f32(hvx_vec_mul_f32_f32(m2, four), v));

        // e = log2 of the deviation, from the exponent of the variance
        const HVX_Vector e = fa_int_first_channels(Q6_Vw_vasr_VwR(Q6_Vw_vadd_VwVw(v, half), 24),
                                                   ((int32_t) (dk - 64 * (j / 2)) + 1 - (int32_t) (j % 2)) / 2);
        e_sum = Q6_Vw_vadd_VwVw(e_sum, e);
        s.mu[j]      = m;
        s.q_scale[j] = e;
    }
    center = center && hvx_vec_get_f32(hvx_vec_reduce_max_f32(far)) > 0.0f;

    // A channel that is quiet in the sample must not get loud later and drown the others
    const HVX_Vector e_all = Q6_Vsf_equals_Vw(hvx_vec_reduce_sum_i32(e_sum));
    const HVX_Vector mean  = Q6_Vw_equals_Vsf(hvx_vec_mul_f32_f32(e_all, hvx_vec_splat_f32(1.0f / dk)));
    const HVX_Vector e_min = Q6_Vw_vmax_VwVw(Q6_Vw_vsub_VwVw(mean, Q6_V_vsplat_R(3)), Q6_V_vsplat_R(-14));
    fa_int_k_scales(s, n_vec, dk, e_min, scale);
    return center;
}

// --- K: 32 keys to a column tile ---

#define FA_INT_W8_BITS 5 // fraction bits before rounding to 8 bits

FA_INT_INLINE HVX_Vector fa_int_smooth(HVX_Vector v, HVX_Vector inv, HVX_Vector mu0, HVX_Vector mu1, const bool center) {
    if (!center) {
        return Q6_Vhf_equals_Vqf16(Q6_Vqf16_vmpy_VhfVhf(v, inv));
    }
    // a difference in qf16 would keep the precision of the minuend only
    const HVX_VectorPair w = Q6_Wqf32_vmpy_VhfVhf(v, inv);
    return Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(Q6_Vqf32_vsub_Vqf32Vsf(Q6_V_hi_W(w), mu1), Q6_Vqf32_vsub_Vqf32Vsf(Q6_V_lo_W(w), mu0)));
}

// Smoothed keys to buf, the absolute maximum of each (halves, to be reduced) to tmp. What is missing to 32 keys is a copy of the last.
FA_INT_INLINE void fa_int_k_smooth(HVX_Vector * restrict buf, HVX_Vector * restrict tmp, const uint8_t * restrict rows, size_t pitch,
                                   uint32_t n_keys, uint32_t n_vec, struct fa_int_stats st, const bool center) {
    const HVX_Vector zero = Q6_V_vzero();
    const HVX_Vector mask = Q6_Vh_vsplat_R(0x7FFF);
    for (uint32_t k = 0; k < 32; k += 2) {
        const uint8_t * r0 = rows + MIN(k, n_keys - 1) * pitch;
        const uint8_t * r1 = rows + MIN(k + 1, n_keys - 1) * pitch;
        HVX_Vector *    b0 = buf + k * n_vec;
        HVX_Vector *    b1 = b0 + n_vec;
        HVX_Vector      m0 = zero;
        HVX_Vector      m1 = zero;
        for (uint32_t j = 0; j < n_vec; j++) {
            const HVX_Vector y0 = fa_int_smooth(hvx_vmem(r0 + j * 128), st.inv[j], st.mu[2 * j], st.mu[2 * j + 1], center);
            const HVX_Vector y1 = fa_int_smooth(hvx_vmem(r1 + j * 128), st.inv[j], st.mu[2 * j], st.mu[2 * j + 1], center);
            m0 = Q6_Vuh_vmax_VuhVuh(m0, Q6_V_vand_VV(y0, mask));
            m1 = Q6_Vuh_vmax_VuhVuh(m1, Q6_V_vand_VV(y1, mask));
            b0[j] = y0;
            b1[j] = y1;
        }
        tmp[k + 0] = m0;
        tmp[k + 1] = m1;
    }
}

// rows: n_keys keys in fp16, zero up to 64 * n_vec channels. tiles: n_k tiles of 32 channels. bias: HMX bias of the scores.
// scale: f32 step of each key. buf: 32 * n_vec vectors, tmp: 32
FA_INT_KERNEL void fa_int_k_convert(uint8_t * restrict tiles, HVX_Vector * restrict bias, HVX_Vector * restrict scale,
                                                       const uint8_t * restrict rows, size_t pitch, uint32_t n_keys, uint32_t n_vec,
                                                       uint32_t n_k, uint32_t shift, struct fa_int_stats st, bool center,
                                                       HVX_Vector * restrict buf, HVX_Vector * restrict tmp) {
    const HVX_Vector zero = Q6_V_vzero();

    if (center) {
        fa_int_k_smooth(buf, tmp, rows, pitch, n_keys, n_vec, st, true);
    } else {
        fa_int_k_smooth(buf, tmp, rows, pitch, n_keys, n_vec, st, false);
    }

    // per key: factor = 127 << bits / max as a half, step = what undoes it
    const HVX_Vector tiny = hvx_vec_splat_f32(127.0f * (1 << FA_INT_W8_BITS) / 65504.0f);
    const HVX_Vector bits = Q6_Vuh_vmin_VuhVuh(fa_int_reduce_max_uh_x32(tmp), Q6_Vh_vsplat_R(0x7BFF)); // finite
    const HVX_Vector amax = Q6_Vsf_vmax_VsfVsf(fa_int_hf_to_sf(bits), tiny);
    const HVX_Vector over = hvx_vec_mul_f32_f32(hvx_vec_inverse_f32(amax), hvx_vec_splat_f32(127.0f * (1 << FA_INT_W8_BITS)));
    const HVX_Vector fact = Q6_Vhf_vmin_VhfVhf(fa_int_sf_to_hf_x2(over), Q6_Vh_vsplat_R(0x7BFF));
    const HVX_Vector back = Q6_Vsf_equals_Vqf32(Q6_V_lo_W(Q6_Wqf32_vmpy_VhfVhf(fact, Q6_Vh_vsplat_R(0x3C00))));
    *scale = hvx_vec_mul_f32_f32(hvx_vec_inverse_f32(back), hvx_vec_splat_f32((float) (1 << FA_INT_W8_BITS)));

    const HVX_Vector ones = Q6_Vb_vsplat_R(1);
    HVX_Vector       sum  = zero;
    for (uint32_t j = 0; j < n_vec; j += 2) {
        for (uint32_t k = 0; k < 32; k++) {
            const HVX_Vector * b = buf + k * n_vec + j;
            const HVX_Vector   f = fa_int_lane(fact, k);
            const HVX_Vector  h0 = Q6_Vh_equals_Vhf(Q6_Vhf_equals_Vqf16(Q6_Vqf16_vmpy_VhfVhf(b[0], f)));
            HVX_Vector        h1 = zero;
            if (j + 1 < n_vec) {
                h1 = Q6_Vh_equals_Vhf(Q6_Vhf_equals_Vqf16(Q6_Vqf16_vmpy_VhfVhf(b[1], f)));
            }
            tmp[k] = Q6_Vb_vdeal_Vb(Q6_Vb_vasr_VhVhR_rnd_sat(h1, h0, FA_INT_W8_BITS));
        }

        // words of 4 channels: row i of the transpose is vector i of the tiles
        uint8_t *      dst    = tiles + j * 2 * HMX_INT_WGT_TILE_SIZE;
        const uint32_t n_rows = hex_smin(32, 8 * (n_k - 2 * j));
        hvx_transpose_32x32_w_shuff(dst, 128, tmp, n_rows, 32);
        for (uint32_t i = 0; i < n_rows; i++) {
            sum = Q6_Vw_vrmpyacc_VwVbVb(sum, hvx_vmem(dst + i * 128), ones);
        }
    }

    // takes out the offset of Q (32768 / 256 per weight) and rounds
    bias[0] = Q6_V_vsplat_R(FA_INT_SCALE_WORD(shift));
    bias[1] = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R((1 << shift) >> 1), Q6_Vw_vasl_VwR(sum, HMX_INT_OFFSET_SHIFT));
}

// --- V: 64 channels of a block to two columns of tiles ---

// per 64 channels: value = (h / 32) * step + center, h = a half rounded to 8 bits
struct fa_int_v_range {
    HVX_Vector pow;  // hf, 2^-e: brings the range to [1, 2)
    HVX_Vector fact; // hf, brings it to 127 << FA_INT_W8_BITS
    HVX_Vector mid;  // hf, center
};

FA_INT_INLINE HVX_Vector fa_int_v_bits(HVX_Vector v, const struct fa_int_v_range * r, HVX_Vector mid0, HVX_Vector mid1, const bool center) {
    HVX_Vector y;
    if (center) {
        const HVX_VectorPair w = Q6_Wqf32_vmpy_VhfVhf(v, r->pow);
        y = Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(Q6_Vqf32_vsub_Vqf32Vqf32(Q6_V_hi_W(w), mid1), Q6_Vqf32_vsub_Vqf32Vqf32(Q6_V_lo_W(w), mid0)));
        y = Q6_Vqf16_vmpy_VhfVhf(y, r->fact);
    } else {
        y = Q6_Vqf16_vmpy_Vqf16Vhf(Q6_Vqf16_vmpy_VhfVhf(v, r->pow), r->fact);
    }
    return Q6_Vh_equals_Vhf(Q6_Vhf_equals_Vqf16(y));
}

// sums of h (even, odd channels) and of the bytes (first, second 32 channels)
struct fa_int_v_sums {
    HVX_VectorPair h;
    HVX_Vector     w[2];
};

FA_INT_INLINE struct fa_int_v_sums fa_int_v_tiles(uint8_t * restrict tiles, size_t stride, bool wide, const uint8_t * restrict rows,
                                                  size_t pitch, uint32_t n_keys, const struct fa_int_v_range * r, const bool center) {
    const HVX_Vector zero  = Q6_V_vzero();
    const HVX_Vector bytes = Q6_Vb_vsplat_R(1);
    const HVX_VectorPair m = Q6_Wqf32_vmpy_VhfVhf(r->mid, r->pow);

    HVX_VectorPair sum = Q6_W_vcombine_VV(zero, zero);
    HVX_Vector     w0  = zero;
    HVX_Vector     w1  = zero;
    for (uint32_t k = 0; k < n_keys; k += 4) {
        HVX_Vector h[4];
        #pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            h[i] = fa_int_v_bits(hvx_vmem(rows + (k + i) * pitch), r, Q6_V_lo_W(m), Q6_V_hi_W(m), center);
        }
        if (__builtin_expect(k + 4 > n_keys, 0)) {
            h[1] = k + 1 < n_keys ? h[1] : zero;
            h[2] = k + 2 < n_keys ? h[2] : zero;
            h[3] = zero;
        }
        sum = Q6_Ww_vaddacc_WwVhVh(sum, h[0], h[1]);
        sum = Q6_Ww_vaddacc_WwVhVh(sum, h[2], h[3]);

        const HVX_Vector     b01 = Q6_Vb_vasr_VhVhR_rnd_sat(h[1], h[0], FA_INT_W8_BITS);
        const HVX_Vector     b23 = Q6_Vb_vasr_VhVhR_rnd_sat(h[3], h[2], FA_INT_W8_BITS);
        const HVX_VectorPair t   = Q6_W_vshuff_VVR(b23, b01, -2);
        w0 = Q6_Vw_vrmpyacc_VwVbVb(w0, Q6_V_lo_W(t), bytes);
        w1 = Q6_Vw_vrmpyacc_VwVbVb(w1, Q6_V_hi_W(t), bytes);
        hvx_vmem(tiles + k * 32) = Q6_V_lo_W(t);
        if (wide) {
            hvx_vmem(tiles + stride + k * 32) = Q6_V_hi_W(t);
        }
    }
    return (struct fa_int_v_sums) { sum, { w0, w1 } };
}

// Many heads look at the first key most of the time, and its value is small: it is the center where it is within a
// quarter of the range of the middle. The new range
FA_INT_INLINE HVX_Vector fa_int_v_center_first(struct fa_int_v_range * r, HVX_Vector range, HVX_Vector v0) {
    const HVX_Vector     d    = hvx_vec_abs_f16(hvx_vec_sub_f16_f16(v0, r->mid));
    const HVX_VectorPred near = Q6_Q_vcmp_gt_VuhVuh(range, Q6_Vh_vadd_VhVh(d, Q6_Vh_vsplat_R(2048)));
    r->mid = Q6_V_vmux_QVV(near, v0, r->mid);
    return Q6_V_vmux_QVV(near, hvx_vec_add_f16_f16(d, range), range);
}

// rows: n_keys keys at channel 64 * j, the first of all among them: first. tiles: k tiles of the first column, stride bytes to the second (two columns: wide).
// step, mean: f32. mean carries what is lost to rounding on average.
FA_INT_KERNEL void fa_int_v_convert(uint8_t * restrict tiles, size_t stride, bool wide, HVX_Vector * restrict step,
                                                       HVX_Vector * restrict mean, const uint8_t * restrict rows, size_t pitch,
                                                       uint32_t n_keys, bool first) {
    HVX_Vector lo = hvx_vmem(rows);
    HVX_Vector hi = lo;
    for (uint32_t k = 1; k < n_keys; k++) {
        const HVX_Vector v = hvx_vmem(rows + k * pitch);
        lo = Q6_Vhf_vmin_VhfVhf(lo, v);
        hi = Q6_Vhf_vmax_VhfVhf(hi, v);
    }

    // middle and half of the range; without a center unless one channel's is a quarter of its range off zero
    const HVX_Vector half = Q6_Vh_vsplat_R(0x3800);
    const HVX_Vector one  = Q6_Vh_vsplat_R(0x3C00);
    const HVX_VectorPair l2 = Q6_Wqf32_vmpy_VhfVhf(lo, half);
    const HVX_VectorPair h2 = Q6_Wqf32_vmpy_VhfVhf(hi, half);
    struct fa_int_v_range r;
    r.mid = Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(Q6_Vqf32_vadd_Vqf32Vqf32(Q6_V_hi_W(l2), Q6_V_hi_W(h2)),
                                                 Q6_Vqf32_vadd_Vqf32Vqf32(Q6_V_lo_W(l2), Q6_V_lo_W(h2))));
    HVX_Vector range = Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(Q6_Vqf32_vsub_Vqf32Vqf32(Q6_V_hi_W(h2), Q6_V_hi_W(l2)),
                                                            Q6_Vqf32_vsub_Vqf32Vqf32(Q6_V_lo_W(h2), Q6_V_lo_W(l2))));
    HVX_Vector far = Q6_Vh_vsub_VhVh(Q6_Vh_vadd_VhVh_sat(hvx_vec_abs_f16(r.mid), Q6_Vh_vsplat_R(2048)), range);
    for (uint32_t b = 2; b < 128; b *= 2) {
        far = Q6_Vh_vmax_VhVh(far, Q6_V_vror_VR(far, b));
    }
    const bool center = first || hvx_vec_get_i32(far) > 0;
    if (first) {
        range = fa_int_v_center_first(&r, range, hvx_vmem(rows));
    }
    if (!center) {
        r.mid = Q6_V_vzero();
        range = Q6_Vuh_vmax_VuhVuh(hvx_vec_abs_f16(lo), hvx_vec_abs_f16(hi));
    }
    // half's last bit below mid or range
    range = Q6_Vh_vmax_VhVh(Q6_Vh_vadd_VhVh(range, Q6_Vh_vsplat_R(center)), Q6_Vh_vsplat_R(0x0400));

    // the range is m * 2^e, m in [1, 2)
    const HVX_Vector e = Q6_Vh_vmin_VhVh(Q6_Vuh_vlsr_VuhR(range, 10), Q6_Vh_vsplat_R(29));
    const HVX_Vector m = Q6_Vh_vsub_VhVh(range, Q6_Vh_vasl_VhR(Q6_Vh_vsub_VhVh(e, Q6_Vh_vsplat_R(15)), 10));
    r.pow = Q6_Vh_vasl_VhR(Q6_Vh_vsub_VhVh(Q6_Vh_vsplat_R(30), e), 10);

    const HVX_Vector     top = hvx_vec_splat_f32(127.0f * (1 << FA_INT_W8_BITS));
    const HVX_VectorPair mw  = Q6_Wqf32_vmpy_VhfVhf(m, one);
    r.fact = hvx_vec_f32_to_f16_shuff(hvx_vec_mul_f32_f32(hvx_vec_inverse_f32(Q6_Vsf_equals_Vqf32(Q6_V_lo_W(mw))), top),
                                      hvx_vec_mul_f32_f32(hvx_vec_inverse_f32(Q6_Vsf_equals_Vqf32(Q6_V_hi_W(mw))), top));

    const struct fa_int_v_sums sums = center ? fa_int_v_tiles(tiles, stride, wide, rows, pitch, n_keys, &r, true)
                                             : fa_int_v_tiles(tiles, stride, wide, rows, pitch, n_keys, &r, false);

    // in channel order
    const HVX_VectorPair fw = Q6_Wqf32_vmpy_VhfVhf(r.fact, r.pow); // what a value was multiplied with
    const HVX_VectorPair cw = Q6_Wqf32_vmpy_VhfVhf(r.mid, one);
    const HVX_VectorPair s  = Q6_W_vshuff_VVR(Q6_V_hi_W(sums.h), Q6_V_lo_W(sums.h), -4);
    const HVX_VectorPair f  = Q6_W_vshuff_VVR(Q6_Vsf_equals_Vqf32(Q6_V_hi_W(fw)), Q6_Vsf_equals_Vqf32(Q6_V_lo_W(fw)), -4);
    const HVX_VectorPair c  = Q6_W_vshuff_VVR(Q6_Vsf_equals_Vqf32(Q6_V_hi_W(cw)), Q6_Vsf_equals_Vqf32(Q6_V_lo_W(cw)), -4);
    const HVX_Vector  inv_n = hvx_vec_splat_f32(1.0f / n_keys);
    for (uint32_t i = 0; i < (wide ? 2 : 1); i++) {
        const HVX_Vector unit = hvx_vec_inverse_f32(i ? Q6_V_hi_W(f) : Q6_V_lo_W(f)); // of h
        const HVX_Vector rest = Q6_Vw_vsub_VwVw(i ? Q6_V_hi_W(s) : Q6_V_lo_W(s), Q6_Vw_vasl_VwR(sums.w[i], FA_INT_W8_BITS));
        const HVX_Vector loss = hvx_vec_mul_f32_f32(hvx_vec_mul_f32_f32(Q6_Vsf_equals_Vw(rest), inv_n), unit);
        // output tiles are in units of 256
        step[i] = hvx_vec_mul_f32_f32(unit, hvx_vec_splat_f32(256.0f * (1 << FA_INT_W8_BITS)));
        mean[i] = hvx_vec_add_f32_f32(i ? Q6_V_hi_W(c) : Q6_V_lo_W(c), loss);
    }
}

// --- Q: 8 rows to their part of the activation tiles ---

// rows: n_rows rows of f32 or fp16, zero up to a full vector; what is missing to 8 is a copy of the last. tiles: n_k tiles, at the
// first of the 4 row pairs. norm: of the longest row. buf: 8 * n_k vectors.
// Returns what turns a stored score into f32, but for the step of the key: a splat.
FA_INT_KERNEL HVX_Vector fa_int_q_pack(uint8_t * restrict tiles, const uint8_t * restrict rows, size_t pitch, bool f32,
                                                          uint32_t n_rows, uint32_t n_k, uint32_t shift, float norm,
                                                          struct fa_int_stats st, HVX_Vector * restrict buf, HVX_Vector * restrict tmp) {
    const HVX_Vector zero = Q6_V_vzero();
    const HVX_Vector one  = Q6_Vh_vsplat_R(0x3C00);

    for (uint32_t r = 0; r < FA_INT_GROUP_ROWS; r++) {
        HVX_Vector *    b   = buf + r * n_k;
        const uint8_t * src = rows + MIN(r, n_rows - 1) * pitch;
        HVX_Vector      acc = zero;
        if (f32) {
            for (uint32_t j = 0; j < n_k; j++) {
                const HVX_Vector x = hvx_vec_mul_f32_f32(hvx_vmem(src + j * 128), st.q_scale[j]);
                acc  = Q6_Vqf32_vadd_Vqf32Vqf32(acc, Q6_Vqf32_vmpy_VsfVsf(x, x));
                b[j] = x;
            }
        } else {
            for (uint32_t j = 0; j < n_k; j += 2) {
                const HVX_VectorPair w = Q6_Wqf32_vmpy_VhfVhf(hvx_vmem(src + j * 64), one);
                const HVX_VectorPair s = Q6_W_vshuff_VVR(Q6_Vsf_equals_Vqf32(Q6_V_hi_W(w)), Q6_Vsf_equals_Vqf32(Q6_V_lo_W(w)), -4);
                const HVX_Vector    x0 = hvx_vec_mul_f32_f32(Q6_V_lo_W(s), st.q_scale[j]);
                acc  = Q6_Vqf32_vadd_Vqf32Vqf32(acc, Q6_Vqf32_vmpy_VsfVsf(x0, x0));
                b[j] = x0;
                if (j + 1 < n_k) {
                    const HVX_Vector x1 = hvx_vec_mul_f32_f32(Q6_V_hi_W(s), st.q_scale[j + 1]);
                    acc      = Q6_Vqf32_vadd_Vqf32Vqf32(acc, Q6_Vqf32_vmpy_VsfVsf(x1, x1));
                    b[j + 1] = x1;
                }
            }
        }
        tmp[r] = Q6_Vsf_equals_Vqf32(acc);
    }

    // longest row, in all lanes
    HVX_Vector len = fa_int_reduce_sum_sf_x8(tmp);
    // a row that is not finite does not take the others' digits
    len = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VuwVuw(len, hvx_vec_splat_f32(1e36f)), zero, len);
    len = Q6_Vsf_vmax_VsfVsf(len, Q6_V_vror_VR(len, 4));
    len = Q6_Vsf_vmax_VsfVsf(len, Q6_V_vror_VR(len, 8));
    len = Q6_Vsf_vmax_VsfVsf(len, Q6_V_vror_VR(len, 16));
    len = Q6_Vsf_vmax_VsfVsf(len, hvx_vec_splat_f32(1e-20f));
    const HVX_Vector root = hvx_vec_rsqrt_f32(len);
    // 8 more bits, for rounding
    const HVX_Vector fact = hvx_vec_mul_f32_f32(root, hvx_vec_splat_f32(norm * 256.0f * 0.9999f));

    const HVX_Vector offset = Q6_Vh_vsplat_R(0x8000);
    for (uint32_t p = 0; p < FA_INT_GROUP_ROWS / 2; p++) {
        const HVX_Vector * b0  = buf + 2 * p * n_k;
        const HVX_Vector * b1  = b0 + n_k;
        uint8_t *          dst = tiles + p * 128;
        for (uint32_t j = 0; j < n_k; j++) {
            const HVX_Vector y0 = Q6_Vw_equals_Vsf(hvx_vec_mul_f32_f32(b0[j], fact));
            const HVX_Vector y1 = Q6_Vw_equals_Vsf(hvx_vec_mul_f32_f32(b1[j], fact));
            const HVX_Vector y  = Q6_Vh_vasr_VwVwR_rnd_sat(y1, y0, 8);
            hvx_vmem(dst + j * HMX_INT_ACT_TILE_SIZE) = Q6_V_vxor_VV(y, offset);
        }
    }

    // 256 (two planes) * 2^shift / (fact / 256)
    return hvx_vec_mul_f32_f32(hvx_vec_inverse_f32(fact), hvx_vec_splat_f32(65536.0f * (1 << shift)));
}

// What centering takes from the scores of 8 rows. buf as fa_int_q_pack leaves it; tmp: 8 vectors. f32: lane i (and i + 8 ...)
FA_INT_KERNEL HVX_Vector fa_int_q_dots(const HVX_Vector * restrict buf, uint32_t n_k, struct fa_int_stats st, HVX_Vector * restrict tmp) {
    for (uint32_t r = 0; r < FA_INT_GROUP_ROWS; r++, buf += n_k) {
        HVX_Vector acc = Q6_V_vzero();
        for (uint32_t j = 0; j < n_k; j += 2) {
            const HVX_VectorPair mu = Q6_W_vshuff_VVR(st.mu[j + 1], st.mu[j], -4); // channel order
            acc = Q6_Vqf32_vadd_Vqf32Vqf32(acc, Q6_Vqf32_vmpy_VsfVsf(buf[j], Q6_V_lo_W(mu)));
            if (j + 1 < n_k) {
                acc = Q6_Vqf32_vadd_Vqf32Vqf32(acc, Q6_Vqf32_vmpy_VsfVsf(buf[j + 1], Q6_V_hi_W(mu)));
            }
        }
        tmp[r] = Q6_Vsf_equals_Vqf32(acc);
    }
    return fa_int_reduce_sum_sf_x8(tmp);
}

// --- softmax of 8 rows ---

struct fa_int_scores {
    uint8_t *          a;          // S in, P out: [column tile][row pair]
    uint8_t *          b;          // room for half of the scaled scores
    uint32_t           n_cols;     // column tiles
    uint32_t           n_keys;
    uint32_t           n_pairs;
    const HVX_Vector * k_scale;    // f32, per column tile
    HVX_Vector         q_scale;    // splat
    const uint8_t *    mask[FA_INT_GROUP_ROWS];  // fp16, 64 * ceil(n_keys / 64)
    HVX_Vector         slope[FA_INT_GROUP_ROWS / 2]; // halves of a pair: slope * FA_INT_SCORE_UNIT
    float              softcap;
    HVX_Vector *       tmp;        // FA_INT_TMP_VECS vectors
};

struct fa_int_softcap {
    struct fa_int_tanh_coef tanh;
    HVX_Vector              one; // halves
    HVX_Vector              cap; // f32
};

// Scores of a row pair in one column tile: f32 to fixed point
FA_INT_INLINE HVX_Vector_x2 fa_int_score_pair(HVX_Vector s, HVX_Vector scale, HVX_Vector mask, HVX_Vector slope,
                                              const struct fa_int_softcap * cap, const bool has_mask, const bool has_slope,
                                              const bool has_softcap) {
    const HVX_VectorPair w = Q6_Wqf32_vmpy_VhfVhf(Q6_Vhf_equals_Vh(s), scale);
    HVX_Vector x0 = Q6_V_lo_W(w);
    HVX_Vector x1 = Q6_V_hi_W(w);
    if (has_softcap) {
        x0 = Q6_Vw_equals_Vsf(Q6_Vsf_equals_Vqf32(x0));
        x1 = Q6_Vw_equals_Vsf(Q6_Vsf_equals_Vqf32(x1));
        const HVX_VectorPair t = Q6_Ww_vmpy_VhVh(fa_int_tanh(Q6_Vh_vsat_VwVw(x1, x0), &cap->tanh), cap->one);
        x0 = Q6_Vqf32_vmpy_VsfVsf(Q6_Vsf_equals_Vw(Q6_V_lo_W(t)), cap->cap);
        x1 = Q6_Vqf32_vmpy_VsfVsf(Q6_Vsf_equals_Vw(Q6_V_hi_W(t)), cap->cap);
    }
    if (has_mask) {
        if (has_slope) {
            // times a small slope -inf must still be below the floor
            slope = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VuhVuh(mask, Q6_Vh_vsplat_R(0xFBFF)), Q6_Vh_vsplat_R(0x7BFF), slope);
        }
        const HVX_VectorPair m = Q6_Wqf32_vmpy_VhfVhf(mask, slope);
        x0 = Q6_Vqf32_vadd_Vqf32Vqf32(x0, Q6_V_lo_W(m));
        x1 = Q6_Vqf32_vadd_Vqf32Vqf32(x1, Q6_V_hi_W(m));
    }
    return (HVX_Vector_x2) { { Q6_Vw_equals_Vsf(Q6_Vsf_equals_Vqf32(x0)), Q6_Vw_equals_Vsf(Q6_Vsf_equals_Vqf32(x1)) } };
}

// Scores of a row pair, in place and to b. Their maxima.
FA_INT_INLINE HVX_Vector_x2 fa_int_score_row_pair(const struct fa_int_scores * sc, uint32_t p, const HVX_Vector * restrict scale,
                                                  const struct fa_int_softcap * cap, HVX_Vector floor, HVX_VectorPred q_tail,
                                                  const bool has_mask, const bool has_slope, const bool has_softcap) {
    const HVX_Vector none  = Q6_V_vsplat_R(FA_INT_SCORE_NONE);
    const HVX_Vector slope = sc->slope[p];
    const uint8_t *  mask0 = sc->mask[2 * p];
    const uint8_t *  mask1 = sc->mask[2 * p + 1];
    uint8_t *        a     = sc->a + p * 128;
    uint8_t *        b     = sc->b + p * 128;
    HVX_Vector       m0    = floor;
    HVX_Vector       m1    = floor;

    // the last one or two column tiles apart: one may be missing or partly filled
    const uint32_t n_cols = sc->n_cols;
    const uint32_t n_pair = (n_cols - 1) / 2 * 2;
    for (uint32_t c = 0; c < n_pair; c += 2, a += 4096, b += 4096) {
        HVX_Vector k0 = floor, k1 = floor;
        if (has_mask) {
            const HVX_VectorPair k = Q6_W_vshuff_VVR(hvx_vmem(mask1 + c * 64), hvx_vmem(mask0 + c * 64), -2);
            k0 = Q6_V_lo_W(k);
            k1 = Q6_V_hi_W(k);
        }
        const HVX_Vector_x2 x = fa_int_score_pair(hvx_vmem(a), scale[c], k0, slope, cap, has_mask, has_slope, has_softcap);
        const HVX_Vector_x2 y = fa_int_score_pair(hvx_vmem(a + 2048), scale[c + 1], k1, slope, cap, has_mask, has_slope, has_softcap);
        hvx_vmem(a)        = x.v[0];
        hvx_vmem(b)        = x.v[1];
        hvx_vmem(a + 2048) = y.v[0];
        hvx_vmem(b + 2048) = y.v[1];
        m0 = Q6_Vw_vmax_VwVw(Q6_Vw_vmax_VwVw(m0, x.v[0]), y.v[0]);
        m1 = Q6_Vw_vmax_VwVw(Q6_Vw_vmax_VwVw(m1, x.v[1]), y.v[1]);
    }
    HVX_Vector k[2] = { floor, floor };
    if (has_mask) {
        const HVX_VectorPair w = Q6_W_vshuff_VVR(hvx_vmem(mask1 + n_pair * 64), hvx_vmem(mask0 + n_pair * 64), -2);
        k[0] = Q6_V_lo_W(w);
        k[1] = Q6_V_hi_W(w);
    }
    for (uint32_t i = 0; n_pair + i < n_cols; i++, a += 2048, b += 2048) {
        HVX_Vector_x2 x = fa_int_score_pair(hvx_vmem(a), scale[n_pair + i], i ? k[1] : k[0], slope, cap, has_mask, has_slope, has_softcap);
        if (n_pair + i + 1 == n_cols) {
            x.v[0] = Q6_V_vmux_QVV(q_tail, x.v[0], none);
            x.v[1] = Q6_V_vmux_QVV(q_tail, x.v[1], none);
        }
        hvx_vmem(a) = x.v[0];
        hvx_vmem(b) = x.v[1];
        m0 = Q6_Vw_vmax_VwVw(m0, x.v[0]);
        m1 = Q6_Vw_vmax_VwVw(m1, x.v[1]);
    }
    return (HVX_Vector_x2) { { m0, m1 } };
}

FA_INT_INLINE HVX_Vector fa_int_p(const uint8_t * a, const uint8_t * b, HVX_Vector m0, HVX_Vector m1, struct fa_int_exp2_coef coef) {
    return fa_int_exp2(Q6_Vuh_vsat_VuwVuw(Q6_Vw_vsub_VwVw(m1, hvx_vmem(b)), Q6_Vw_vsub_VwVw(m0, hvx_vmem(a))), coef);
}

// maximum and sum of P of row i: lane i (and i + 8 ...)
FA_INT_INLINE void fa_int_softmax_impl(const struct fa_int_scores * sc, HVX_Vector * restrict max, HVX_Vector * restrict sum,
                                       const bool has_mask, const bool has_slope, const bool has_softcap) {
    const uint32_t   n_cols = sc->n_cols;
    const HVX_Vector zero   = Q6_V_vzero();
    HVX_Vector *     scale  = sc->tmp;                          // [column tile] halves, twice
    HVX_Vector *     rows   = sc->tmp + FA_INT_MAX_BC / 32;     // [8]

    // v73 takes -inf of a mask for -65536: no score may outweigh that
    const HVX_Vector most = Q6_Vh_vsplat_R(0x70E2); // 10000
    for (uint32_t c = 0; c < n_cols; c++) {
        const HVX_Vector q = Q6_Vqf32_vmpy_VsfVsf(sc->k_scale[c], sc->q_scale);
        scale[c] = Q6_Vuh_vmin_VuhVuh(Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(q, q)), most);
    }

    const HVX_Vector     floor  = Q6_V_vsplat_R(FA_INT_SCORE_FLOOR);
    const HVX_VectorPred q_tail = Q6_Q_vsetq2_R(4 * (sc->n_keys - 32 * (n_cols - 1)));

    struct fa_int_softcap cap;
    if (has_softcap) {
        cap.tanh = fa_int_tanh_init();
        cap.one  = Q6_Vh_vsplat_R(1);
        cap.cap  = hvx_vec_splat_f32(sc->softcap * FA_INT_SCORE_UNIT / 32768.0f);
    }
    for (uint32_t p = 0; p < FA_INT_GROUP_ROWS / 2; p++) {
        HVX_Vector_x2 m = { { floor, floor } };
        if (p < sc->n_pairs) {
            m = fa_int_score_row_pair(sc, p, scale, &cap, floor, q_tail, has_mask, has_slope, has_softcap);
        }
        rows[2 * p + 0] = m.v[0];
        rows[2 * p + 1] = m.v[1];
    }
    const HVX_Vector vmax = fa_int_reduce_max_w_x8(rows);
    *max = vmax;

    const struct fa_int_exp2_coef coef = fa_int_exp2_init();
    for (uint32_t p = 0; p < FA_INT_GROUP_ROWS / 2; p++) {
        HVX_VectorPair acc = Q6_W_vcombine_VV(zero, zero);
        if (p < sc->n_pairs) {
            uint8_t *        a  = sc->a + p * 128;
            uint8_t *        b  = sc->b + p * 128;
            const HVX_Vector m0 = fa_int_lane(vmax, 2 * p);
            const HVX_Vector m1 = fa_int_lane(vmax, 2 * p + 1);
            uint32_t         c  = 0;
            for (; c + 3 < n_cols; c += 4, a += 4 * 2048, b += 4 * 2048) {
                const HVX_Vector p0 = fa_int_p(a, b, m0, m1, coef);
                const HVX_Vector p1 = fa_int_p(a + 2048, b + 2048, m0, m1, coef);
                const HVX_Vector p2 = fa_int_p(a + 4096, b + 4096, m0, m1, coef);
                const HVX_Vector p3 = fa_int_p(a + 6144, b + 6144, m0, m1, coef);
                hvx_vmem(a)        = p0;
                hvx_vmem(a + 2048) = p1;
                hvx_vmem(a + 4096) = p2;
                hvx_vmem(a + 6144) = p3;
                acc = Q6_Ww_vaddacc_WwVuhVuh(acc, p0, p1);
                acc = Q6_Ww_vaddacc_WwVuhVuh(acc, p2, p3);
            }
            for (; c < n_cols; c++, a += 2048, b += 2048) {
                const HVX_Vector p0 = fa_int_p(a, b, m0, m1, coef);
                hvx_vmem(a) = p0;
                acc = Q6_Ww_vaddacc_WwVuhVuh(acc, p0, zero);
            }
        }
        rows[2 * p + 0] = Q6_V_lo_W(acc);
        rows[2 * p + 1] = Q6_V_hi_W(acc);
    }
    *sum = fa_int_reduce_sum_w_x8(rows);
}

FA_INT_KERNEL void fa_int_softmax(const struct fa_int_scores * sc, HVX_Vector * max, HVX_Vector * sum) {
    fa_int_softmax_impl(sc, max, sum, false, false, false);
}

FA_INT_KERNEL void fa_int_softmax_mask(const struct fa_int_scores * sc, HVX_Vector * max, HVX_Vector * sum) {
    fa_int_softmax_impl(sc, max, sum, true, false, false);
}

FA_INT_KERNEL void fa_int_softmax_alibi(const struct fa_int_scores * sc, HVX_Vector * max, HVX_Vector * sum) {
    fa_int_softmax_impl(sc, max, sum, true, true, false);
}

FA_INT_KERNEL void fa_int_softmax_softcap(const struct fa_int_scores * sc, HVX_Vector * max, HVX_Vector * sum) {
    fa_int_softmax_impl(sc, max, sum, false, false, true);
}

FA_INT_KERNEL void fa_int_softmax_mask_softcap(const struct fa_int_scores * sc, HVX_Vector * max, HVX_Vector * sum) {
    fa_int_softmax_impl(sc, max, sum, true, true, true);
}

// 2^(x / 4096), x <= 0 in lanes of words
static inline HVX_Vector fa_int_exp2_f32(HVX_Vector x) {
    const HVX_Vector ln2 = hvx_vec_splat_f32(0.693147181f / FA_INT_OCTAVE);
    return hvx_vec_exp_f32(hvx_vec_mul_f32_f32(Q6_Vsf_equals_Vw(x), ln2));
}

// --- outputs of 8 rows ---

enum fa_int_out {
    FA_INT_OUT_FIRST,  // o  = a * step * fa + mean * fm
    FA_INT_OUT_ADD,    // o += ...
    FA_INT_OUT_SCALE,  // o  = o * fo + ...
};

// tiles: low and high half of the output tiles, at the first row pair. o: first row. fo, fa, fm: row i in lane i
FA_INT_INLINE void fa_int_out_impl(const uint8_t * restrict tiles, uint8_t * restrict o, size_t o_pitch, uint32_t n_cols, uint32_t n_pairs,
                                   const HVX_Vector * restrict step, const HVX_Vector * restrict mean,
                                   HVX_Vector fo, HVX_Vector fa, HVX_Vector fm, const enum fa_int_out how) {
    const HVX_Vector zero = Q6_V_vzero();
    for (uint32_t p = 0; p < n_pairs; p++) {
        const HVX_Vector fo0 = fa_int_lane(fo, 2 * p), fo1 = fa_int_lane(fo, 2 * p + 1);
        const HVX_Vector fm0 = fa_int_lane(fm, 2 * p), fm1 = fa_int_lane(fm, 2 * p + 1);
        const HVX_Vector fa0 = Q6_Vqf32_vadd_VsfVsf(fa_int_lane(fa, 2 * p), zero);
        const HVX_Vector fa1 = Q6_Vqf32_vadd_VsfVsf(fa_int_lane(fa, 2 * p + 1), zero);
        const uint8_t * src = tiles + p * 128;
        HVX_Vector *    o0  = (HVX_Vector *) (o + 2 * p * o_pitch);
        HVX_Vector *    o1  = (HVX_Vector *) (o + (2 * p + 1) * o_pitch);
        for (uint32_t c = 0; c < n_cols; c++, src += 4096) {
            const HVX_Vector lo = hvx_vmem(src);
            const HVX_Vector hi = Q6_Vh_vasr_VhR(hvx_vmem(src + 2048), 1);
            const HVX_Vector a0 = Q6_Vsf_equals_Vw(Q6_Vh_vshuffe_VhVh(hi, lo));
            const HVX_Vector a1 = Q6_Vsf_equals_Vw(Q6_Vh_vshuffo_VhVh(hi, lo));
            HVX_Vector       x0 = Q6_Vqf32_vmpy_Vqf32Vqf32(Q6_Vqf32_vmpy_VsfVsf(a0, step[c]), fa0);
            HVX_Vector       x1 = Q6_Vqf32_vmpy_Vqf32Vqf32(Q6_Vqf32_vmpy_VsfVsf(a1, step[c]), fa1);
            x0 = Q6_Vqf32_vadd_Vqf32Vqf32(x0, Q6_Vqf32_vmpy_VsfVsf(mean[c], fm0));
            x1 = Q6_Vqf32_vadd_Vqf32Vqf32(x1, Q6_Vqf32_vmpy_VsfVsf(mean[c], fm1));
            if (how == FA_INT_OUT_ADD) {
                x0 = Q6_Vqf32_vadd_Vqf32Vsf(x0, o0[c]);
                x1 = Q6_Vqf32_vadd_Vqf32Vsf(x1, o1[c]);
            } else if (how == FA_INT_OUT_SCALE) {
                x0 = Q6_Vqf32_vadd_Vqf32Vqf32(x0, Q6_Vqf32_vmpy_VsfVsf(o0[c], fo0));
                x1 = Q6_Vqf32_vadd_Vqf32Vqf32(x1, Q6_Vqf32_vmpy_VsfVsf(o1[c], fo1));
            }
            o0[c] = Q6_Vsf_equals_Vqf32(x0);
            o1[c] = Q6_Vsf_equals_Vqf32(x1);
        }
    }
}

FA_INT_KERNEL void fa_int_out_first(const uint8_t * tiles, uint8_t * o, size_t o_pitch, uint32_t n_cols, uint32_t n_pairs,
                                                       const HVX_Vector * step, const HVX_Vector * mean, HVX_Vector fa, HVX_Vector fm) {
    fa_int_out_impl(tiles, o, o_pitch, n_cols, n_pairs, step, mean, fa, fa, fm, FA_INT_OUT_FIRST);
}

FA_INT_KERNEL void fa_int_out_add(const uint8_t * tiles, uint8_t * o, size_t o_pitch, uint32_t n_cols, uint32_t n_pairs,
                                                     const HVX_Vector * step, const HVX_Vector * mean, HVX_Vector fa, HVX_Vector fm) {
    fa_int_out_impl(tiles, o, o_pitch, n_cols, n_pairs, step, mean, fa, fa, fm, FA_INT_OUT_ADD);
}

FA_INT_KERNEL void fa_int_out_scale(const uint8_t * tiles, uint8_t * o, size_t o_pitch, uint32_t n_cols, uint32_t n_pairs,
                                                       const HVX_Vector * step, const HVX_Vector * mean,
                                                       HVX_Vector fo, HVX_Vector fa, HVX_Vector fm) {
    fa_int_out_impl(tiles, o, o_pitch, n_cols, n_pairs, step, mean, fo, fa, fm, FA_INT_OUT_SCALE);
}

// Rows without any key. Not memset: it isn't made for VTCM.
FA_INT_KERNEL __attribute__((no_builtin("memset"))) void fa_int_out_zero(uint8_t * o, uint32_t n_cols) {
    for (uint32_t c = 0; c < n_cols; c++) {
        hvx_vmem(o + c * 128) = Q6_V_vzero();
    }
}

// --- what a mask leaves to do ---

struct fa_int_mask_scan {
    HVX_Vector some; // halves: bit i is set if a key of the i-th 64 counts
    HVX_Vector any;  // bits of all values
};

FA_INT_KERNEL void fa_int_mask_start(struct fa_int_mask_scan * s) {
    s->some = Q6_V_vzero();
    s->any  = Q6_V_vzero();
}

FA_INT_KERNEL void fa_int_mask_scan(struct fa_int_mask_scan * s, const uint8_t * rows, size_t pitch, uint32_t n_rows, uint32_t n_keys) {
    const HVX_Vector     inf   = Q6_Vh_vsplat_R(0xFC00);
    const uint32_t       n_vec = hmx_ceil_div(n_keys, 64);
    const HVX_VectorPred tail  = Q6_Q_vsetq2_R(2 * (n_keys - 64 * (n_vec - 1)));
    HVX_Vector           some  = s->some;
    HVX_Vector           any   = s->any;
    for (uint32_t c = 0; c < n_vec; c++) {
        HVX_Vector top  = inf;
        HVX_Vector bits = Q6_V_vzero();
        for (uint32_t r = 0; r < n_rows; r++) {
            const HVX_Vector v = hvx_vmem(rows + r * pitch + c * 128);
            top  = Q6_Vhf_vmax_VhfVhf(top, v);
            bits = Q6_V_vor_VV(bits, v);
        }
        if (c + 1 == n_vec) {
            top  = Q6_V_vmux_QVV(tail, top, inf);
            bits = Q6_V_vand_QV(tail, bits);
        }
        some = Q6_V_vor_VV(some, Q6_V_vand_QV(Q6_Q_vcmp_gt_VhfVhf(top, inf), Q6_Vh_vsplat_R(1 << c)));
        any  = Q6_V_vor_VV(any, bits);
    }
    s->some = some;
    s->any  = any;
}

// or of all halves
static inline uint32_t fa_int_or_halves(HVX_Vector v) {
    for (uint32_t i = 2; i < 128; i *= 2) {
        v = Q6_V_vor_VV(v, Q6_V_vror_VR(v, i));
    }
    return hvx_vec_get_i32(v) & 0xFFFF;
}

// FA_INT_FLAG
FA_INT_KERNEL uint32_t fa_int_mask_flag(const struct fa_int_mask_scan * s) {
    const uint32_t some = fa_int_or_halves(s->some);
    if (some == 0) {
        return FA_INT_FLAG(FA_INT_MASK_EMPTY, 0);
    }
    const uint32_t set = fa_int_or_halves(s->any) & 0x7FFF; // some value isn't zero
    // the last of the last 64 keys that count
    uint64_t bits[16] __attribute__((aligned(VLEN)));
    hvx_vmem(bits) = s->some;
    const uint32_t c    = 31 - __builtin_clz(some);
    const uint64_t bit  = 0x0001000100010001ULL << c;
    uint32_t       four = 15;
    while (!(bits[four] & bit)) {
        four--;
    }
    const uint32_t key = c * 64 + four * 4 + (63 - __builtin_clzll(bits[four] & bit)) / 16;
    return FA_INT_FLAG(set ? FA_INT_MASK_MIXED : FA_INT_MASK_NONE, key + 1);
}

// --- Q8_0 to fp16 in place ---

// row: n_blocks blocks of 34 bytes at its beginning, room for 32 * n_blocks halves, rounded up to 64
static inline void fa_int_dequant_q8_0(uint8_t * row, uint32_t n_blocks) {
    const HVX_VectorPred q32 = Q6_Q_vsetq_R(32);
    const HVX_VectorPred q64 = Q6_Q_vsetq_R(64);
    // from the end: what is written is behind what is still to be read
    for (int32_t i = (n_blocks - 1) & ~1; i >= 0; i -= 2) {
        const HVX_Vector v = hvx_vmemu(row + 34 * i);
        const HVX_Vector d = Q6_V_vmux_QVV(q64, hvx_vec_repl_f16(v), hvx_vec_repl_f16(Q6_V_vror_VR(v, 34)));
        const HVX_Vector b = Q6_V_vmux_QVV(q32, Q6_V_vror_VR(v, 2), Q6_V_vror_VR(v, 4));
        const HVX_Vector h = Q6_Vhf_equals_Vh(Q6_V_lo_W(Q6_Wh_vunpack_Vb(b)));
        HVX_Vector       x = Q6_Vhf_equals_Vqf16(Q6_Vqf16_vmpy_VhfVhf(h, d));
        if (i + 1 == (int32_t) n_blocks) {
            x = Q6_V_vand_QV(q64, x);
        }
        hvx_vmem(row + 64 * i) = x;
    }
}

// --- HMX ---

// S: one row tile x n_cols column tiles. a: n_k activation tiles, w: n_k weight tiles per column tile, bias: 256 bytes each
static inline void fa_int_hmx_qk(uint8_t * out, const uint8_t * a, const uint8_t * w, const uint8_t * bias, uint32_t n_cols, uint32_t n_k) {
    const uint32_t range = n_k * HMX_INT_ACT_TILE_SIZE - 1;
    for (uint32_t c = 0; c < n_cols; c++) {
        asm volatile(HMX_SET_BIAS("%0") :: "r"((unsigned int) (uintptr_t) bias));
        asm volatile(HMX_INT_LOAD_MPY_DEEP("%1", "%2", "%0") :: "r"(range), "r"(a), "r"(w));
        asm volatile(HMX_INT_STORE_AFTER("%0", "%1") :: "r"(out), "r"(0) : "memory");
        out  += HMX_INT_OUT_TILE_SIZE;
        w    += n_k * HMX_INT_WGT_TILE_SIZE;
        bias += HMX_INT_BIAS_SIZE;
    }
}

// O: one row tile x n_cols column tiles, low and high half. a: P, n_k tiles. bias: low, high. The order of the two stores
// alternates, so each needs one bias load only.
static inline void fa_int_hmx_pv(uint8_t * out, const uint8_t * a, const uint8_t * w, size_t w_stride, const uint8_t * bias,
                                 uint32_t n_cols, uint32_t n_k) {
    const uint32_t range = n_k * HMX_INT_ACT_TILE_SIZE - 1;
    const uint8_t * const bias_hi = bias + HMX_INT_BIAS_SIZE;

    asm volatile(HMX_SET_BIAS("%0") :: "r"((unsigned int) (uintptr_t) bias));
    for (uint32_t c = 0; c < n_cols; c += 2) {
        asm volatile(HMX_INT_LOAD_MPY_DEEP("%1", "%2", "%0") :: "r"(range), "r"(a), "r"(w));
        asm volatile(HMX_INT_STORE_RETAIN("%0", "%1") :: "r"(out), "r"(0) : "memory");
        asm volatile(HMX_SET_BIAS("%0") :: "r"((unsigned int) (uintptr_t) bias_hi));
        asm volatile(HMX_INT_STORE_AFTER("%0", "%1") :: "r"(out + HMX_INT_OUT_TILE_SIZE), "r"(0) : "memory");
        if (c + 1 < n_cols) {
            asm volatile(HMX_INT_LOAD_MPY_DEEP("%1", "%2", "%0") :: "r"(range), "r"(a), "r"(w + w_stride));
            asm volatile(HMX_INT_STORE_RETAIN("%0", "%1") :: "r"(out + 3 * HMX_INT_OUT_TILE_SIZE), "r"(0) : "memory");
            asm volatile(HMX_SET_BIAS("%0") :: "r"((unsigned int) (uintptr_t) bias));
            asm volatile(HMX_INT_STORE_AFTER("%0", "%1") :: "r"(out + 2 * HMX_INT_OUT_TILE_SIZE), "r"(0) : "memory");
        }
        out += 4 * HMX_INT_OUT_TILE_SIZE;
        w   += 2 * w_stride;
    }
}

// bias blocks of fa_int_hmx_pv: bits 0..15 and bits 15..30 of the sum
static inline void fa_int_hmx_pv_bias(HVX_Vector * bias) {
    bias[0] = Q6_V_vsplat_R(FA_INT_SCALE_WORD(0));
    bias[1] = Q6_V_vzero();
    bias[2] = Q6_V_vsplat_R(FA_INT_SCALE_WORD(15));
    bias[3] = Q6_V_vzero();
}

#endif /* HMX_INT_FA_KERNELS_H */
