#ifndef HVX_GDN_CHUNKED_H
#define HVX_GDN_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>

#include "hvx-base.h"
#include "hvx-exp.h"
#include "gdn-chunked-ops.h"

// The gated delta rule for n <= 16 tokens at once. Per head, with S[i][j] the state before them
// (i: key channel, j: value channel), a_t = exp(g_t) and E(t,s) = a_(s+1) ... a_t:
//
//   d_t = beta_t (v_t - E(t,-1) S^T k_t - sum_(s<t) E(t,s) (k_t.k_s) d_s)
//   o_t = scale  (      E(t,-1) S^T q_t + sum_(s<=t) E(t,s) (q_t.k_s) d_s)
//   S  <- E(n-1,-1) S + sum_s E(n-1,s) k_s d_s^T
//
// E is a running product of gates: nothing is ever divided, and no prefix sum loses its low digits.
// With a gate per channel (KDA), E goes to the keys: k_t and q_t are decayed from the start of the
// chunk, k_s to t for the dot products and to the end of the chunk for the update.
//
// The three products with S do most of the work. In qf32 each multiply-add is two instructions for
// 32 lanes, one a packet, besides a splat per scalar. So their operands become 23-bit fixed point,
// x = 256 hi + lo, and a pair of factors takes two instructions for 32 lanes, two a packet, with the
// scalars straight from registers: vdmpy adds hi hi', vrmpy adds top lo' + lo top', top being the
// upper 8 bits of hi. Scales are powers of two: one per token for q and k, one per value channel
// for S and d. What gets lost is about 2^-22 of the largest number of a row or column. The state
// itself stays in f32.
//
// Layout: S is kept transposed in blocks of 32 value channels, [jv][i] vectors. A pair is two
// factors that share a word: channels i and i + 32 for S, tokens s and s + 1 for the update.

#define GDNC_SIZE      HTP_GDN_CHUNKED_SIZE

// with constants for nv (head size / 32), kda ...
#define GDNC_INLINE    static inline __attribute__((always_inline))

#define GDNC_ABS_MASK  0x7fffffff
#define GDNC_EXP_MASK  0x7f800000
#define GDNC_EXP_MIN   (24 << 23)
#define GDNC_EXP_MAX   (252 << 23)

// Fixed point: 22 bits and a sign. Bits below hi, bits of hi below top.
#define GDNC_BITS      22
#define GDNC_LO_BITS   8
#define GDNC_TOP_BITS  7

// Pairs whose products of hi are added in 32 bits, 2 * 4 * 2^28 (which saturates), before they are added scaled.
#define GDNC_GROUP       4
#define GDNC_GROUP_BITS  5

// What sums are counted in, as powers of two: sums of lo, all sums.
#define GDNC_LO_UNIT   (GDNC_LO_BITS + GDNC_TOP_BITS)
#define GDNC_UNIT      (2 * GDNC_LO_BITS + GDNC_GROUP_BITS)

// acc + a * b; acc in qf32
static inline HVX_Vector gdnc_mac(HVX_Vector acc, HVX_Vector a, HVX_Vector b) {
    return Q6_Vqf32_vadd_Vqf32Vqf32(acc, Q6_Vqf32_vmpy_VsfVsf(a, b));
}

// Pairs of key channels
GDNC_INLINE uint32_t gdnc_n_pairs(const uint32_t nv) {
    return (nv + 1) / 2 * 32;
}

// The larger magnitude, as bits. mask: all but the sign.
static inline HVX_Vector gdnc_abs_max(HVX_Vector amax, HVX_Vector v, HVX_Vector mask) {
    return Q6_Vw_vmax_VwVw(amax, Q6_V_vand_VV(v, mask));
}

// dst[c] = the words c of src[0..31]; strides in vectors
static inline void gdnc_transpose_32x32(HVX_Vector * dst, uint32_t dst_stride, const HVX_Vector * src, uint32_t src_stride,
                                        HVX_Vector * restrict tmp) {
    for (uint32_t g = 0; g < 32; g += 8) {
        const HVX_Vector * s = src + g * src_stride;

        HVX_VectorPair a0 = Q6_W_vshuff_VVR(s[1 * src_stride], s[0 * src_stride], -4);
        HVX_VectorPair a1 = Q6_W_vshuff_VVR(s[3 * src_stride], s[2 * src_stride], -4);
        HVX_VectorPair a2 = Q6_W_vshuff_VVR(s[5 * src_stride], s[4 * src_stride], -4);
        HVX_VectorPair a3 = Q6_W_vshuff_VVR(s[7 * src_stride], s[6 * src_stride], -4);

        HVX_VectorPair b0 = Q6_W_vshuff_VVR(Q6_V_lo_W(a1), Q6_V_lo_W(a0), -8);
        HVX_VectorPair b1 = Q6_W_vshuff_VVR(Q6_V_hi_W(a1), Q6_V_hi_W(a0), -8);
        HVX_VectorPair b2 = Q6_W_vshuff_VVR(Q6_V_lo_W(a3), Q6_V_lo_W(a2), -8);
        HVX_VectorPair b3 = Q6_W_vshuff_VVR(Q6_V_hi_W(a3), Q6_V_hi_W(a2), -8);

        HVX_VectorPair c0 = Q6_W_vshuff_VVR(Q6_V_lo_W(b2), Q6_V_lo_W(b0), -16);
        HVX_VectorPair c1 = Q6_W_vshuff_VVR(Q6_V_hi_W(b2), Q6_V_hi_W(b0), -16);
        HVX_VectorPair c2 = Q6_W_vshuff_VVR(Q6_V_lo_W(b3), Q6_V_lo_W(b1), -16);
        HVX_VectorPair c3 = Q6_W_vshuff_VVR(Q6_V_hi_W(b3), Q6_V_hi_W(b1), -16);

        tmp[g + 0] = Q6_V_lo_W(c0); tmp[g + 1] = Q6_V_hi_W(c0);
        tmp[g + 2] = Q6_V_lo_W(c1); tmp[g + 3] = Q6_V_hi_W(c1);
        tmp[g + 4] = Q6_V_lo_W(c2); tmp[g + 5] = Q6_V_hi_W(c2);
        tmp[g + 6] = Q6_V_lo_W(c3); tmp[g + 7] = Q6_V_hi_W(c3);
    }

    for (uint32_t c = 0; c < 8; ++c) {
        HVX_VectorPair d0 = Q6_W_vshuff_VVR(tmp[c + 8],  tmp[c],      -32);
        HVX_VectorPair d1 = Q6_W_vshuff_VVR(tmp[c + 24], tmp[c + 16], -32);

        HVX_VectorPair e0 = Q6_W_vshuff_VVR(Q6_V_lo_W(d1), Q6_V_lo_W(d0), -64);
        HVX_VectorPair e1 = Q6_W_vshuff_VVR(Q6_V_hi_W(d1), Q6_V_hi_W(d0), -64);

        HVX_Vector * d = dst + 4 * c * dst_stride;
        d[0 * dst_stride] = Q6_V_lo_W(e0);
        d[1 * dst_stride] = Q6_V_hi_W(e0);
        d[2 * dst_stride] = Q6_V_lo_W(e1);
        d[3 * dst_stride] = Q6_V_hi_W(e1);
    }
}

// -- fixed point ------------------------------------------------------------------------------

// The exponent bits of the largest number, within what has a scale.
static inline HVX_Vector gdnc_exponent(HVX_Vector amax) {
    HVX_Vector e = Q6_V_vand_VV(amax, Q6_V_vsplat_R(GDNC_EXP_MASK));
    e = Q6_Vw_vmax_VwVw(e, Q6_V_vsplat_R(GDNC_EXP_MIN));
    return Q6_Vw_vmin_VwVw(e, Q6_V_vsplat_R(GDNC_EXP_MAX));
}

// 2^n that takes the largest number to [2^21, 2^22), and its inverse
static inline HVX_Vector gdnc_scale(HVX_Vector e) {
    return Q6_Vw_vsub_VwVw(Q6_V_vsplat_R((int32_t) ((253u + GDNC_BITS) << 23)), e);
}

static inline HVX_Vector gdnc_scale_inv(HVX_Vector e) {
    return Q6_Vw_vsub_VwVw(e, Q6_V_vsplat_R((GDNC_BITS - 1) << 23));
}

static inline HVX_Vector gdnc_fixed(HVX_Vector v, HVX_Vector scale) {
    return Q6_Vw_equals_Vsf(hvx_vec_mul_f32_f32(v, scale));
}

// HVX stores to DDR leave nothing in the L1 that scalar loads go through.
static inline void gdnc_fetch(const void * p, uint32_t size) {
    for (uint32_t i = 0; i < size; i += 64) {
        Q6_dcfetch_A((void *) ((uintptr_t) p + i));
    }
}

// Two vectors of factors: hi halves side by side in each word, and lo and top bytes, lo first for vectors,
// top first for scalars: vrmpy multiplies a byte of one with a byte of the other.
GDNC_INLINE HVX_VectorPair gdnc_split(HVX_Vector v0, HVX_Vector v1, const bool scalars) {
    const HVX_Vector hi  = Q6_Vh_vasr_VwVwR_rnd_sat(v1, v0, GDNC_LO_BITS);
    const HVX_Vector lo  = Q6_Vh_vshuffe_VhVh(v1, v0);
    const HVX_Vector top = Q6_Vb_vasr_VhVhR_rnd_sat(hi, hi, GDNC_TOP_BITS);
    return Q6_W_vcombine_VV(scalars ? Q6_Vb_vshuffe_VbVb(lo, top) : Q6_Vb_vshuffe_VbVb(top, lo), hi);
}

// vrmpy takes unsigned bytes from the vector: 128 is added here and taken away with the sum of the scalar's bytes
static inline void gdnc_store_planes(HVX_Vector * dst, HVX_VectorPair p, HVX_Vector v128) {
    dst[0] = Q6_V_lo_W(p);
    dst[1] = Q6_V_vxor_VV(Q6_V_hi_W(p), v128);
}

// What scalar loads read: a word of hi, a word of bytes, in turn.
static inline void gdnc_store_scalars(HVX_Vector * dst, HVX_VectorPair p) {
    p = Q6_W_vshuff_VVR(Q6_V_hi_W(p), Q6_V_lo_W(p), -4);
    dst[0] = Q6_V_lo_W(p);
    dst[1] = Q6_V_hi_W(p);
}

// Exponents of the largest numbers of two rows, in all lanes.
GDNC_INLINE void gdnc_row_exponents(HVX_Vector * ea, HVX_Vector * eb, const HVX_Vector * a, const HVX_Vector * b,
                                      const uint32_t nv) {
    const HVX_Vector mask = Q6_V_vsplat_R(GDNC_ABS_MASK);

    HVX_Vector ma = Q6_V_vand_VV(a[0], mask);
    HVX_Vector mb = Q6_V_vand_VV(b[0], mask);
    for (uint32_t v = 1; v < nv; ++v) {
        ma = gdnc_abs_max(ma, a[v], mask);
        mb = gdnc_abs_max(mb, b[v], mask);
    }

    // exponents are in the upper halves: both rows fit one vector
    HVX_Vector m = Q6_Vh_vshuffo_VhVh(mb, ma);
    for (uint32_t w = 4; w < 128; w <<= 1) {
        m = Q6_Vh_vmax_VhVh(m, Q6_V_vror_VR(m, w));
    }
    *ea = gdnc_exponent(Q6_Vw_vasl_VwR(m, 16));
    *eb = gdnc_exponent(m);
}

// What sums of lo start with for two rows, from their bytes' sums in words: -128 times the sum and what the
// shifts of the sums cut off on average, in all lanes.
static inline void gdnc_offsets(HVX_Vector * oa, HVX_Vector * ob, HVX_Vector a, HVX_Vector b, int32_t round) {
    HVX_VectorPair p = Q6_W_vshuff_VVR(b, a, -4);
    HVX_Vector     m = Q6_Vw_vadd_VwVw(Q6_V_lo_W(p), Q6_V_hi_W(p));
    for (uint32_t w = 8; w < 128; w <<= 1) {
        m = Q6_Vw_vadd_VwVw(m, Q6_V_vror_VR(m, w));
    }
    m = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(round), Q6_Vw_vasl_VwR(m, 7));
    p = Q6_W_vdeal_VVR(m, m, -4);
    *oa = Q6_V_lo_W(p);
    *ob = Q6_V_hi_W(p);
}

// A row as scalars for products with S, pairs (i, i + 32). Returns the sums of its bytes, spread over the lanes.
GDNC_INLINE HVX_Vector gdnc_store_row(HVX_Vector * kq, const HVX_Vector * fixed, const uint32_t nv) {
    HVX_Vector sum = Q6_V_vzero();
    for (uint32_t v = 0; v < nv; v += 2) {
        const HVX_VectorPair p = gdnc_split(fixed[v], v + 1 < nv ? fixed[v + 1] : Q6_V_vzero(), true);
        gdnc_store_scalars(kq + v, p);
        sum = Q6_Vw_vrmpyacc_VwVbVb(sum, Q6_V_hi_W(p), Q6_Vb_vsplat_R(1));
    }
    return sum;
}

// Two rows to fixed point: kq_* for products with S, ku = pairs (a[i], b[i]) for the update.
// inv_* = 2^GDNC_UNIT / scale: with gdnc_scale_inv of the other factor, what a product is to be multiplied by.
GDNC_INLINE void gdnc_quant_rows(HVX_Vector * kq_a, HVX_Vector * kq_b, HVX_Vector * ku, HVX_Vector * inv_a, HVX_Vector * inv_b,
                                   HVX_Vector * off_a, HVX_Vector * off_b, const HVX_Vector * a, const HVX_Vector * b,
                                   const uint32_t nv) {
    HVX_Vector ea, eb;
    gdnc_row_exponents(&ea, &eb, a, b, nv);

    const HVX_Vector sa  = gdnc_scale(ea);
    const HVX_Vector sb  = gdnc_scale(eb);
    const HVX_Vector exp = Q6_V_vsplat_R((GDNC_UNIT - GDNC_BITS + 1) << 23);
    *inv_a = Q6_Vw_vadd_VwVw(ea, exp);
    *inv_b = Q6_Vw_vadd_VwVw(eb, exp);

    HVX_Vector wa[4];
    HVX_Vector wb[4];
    for (uint32_t v = 0; v < nv; ++v) {
        wa[v] = gdnc_fixed(a[v], sa);
        wb[v] = gdnc_fixed(b[v], sb);
    }
    if (kq_a) {
        const HVX_Vector sum_a = gdnc_store_row(kq_a, wa, nv);
        const HVX_Vector sum_b = gdnc_store_row(kq_b, wb, nv);
        gdnc_offsets(off_a, off_b, sum_a, sum_b, (gdnc_n_pairs(nv) / GDNC_GROUP + 1) << (GDNC_UNIT - GDNC_LO_UNIT - 1));
    }
    if (ku) {
        for (uint32_t v = 0; v < nv; ++v) {
            gdnc_store_scalars(ku + 2 * v, gdnc_split(wa[v], wb[v], true));
        }
    }
}

// sum[r] and lo[r] += np pairs of planes times scalars, np <= GDNC_GROUP
GDNC_INLINE void gdnc_dot(HVX_Vector * sum, HVX_Vector * lo, const HVX_Vector * planes, const uint64_t * scalars,
                          uint32_t row_stride, uint32_t pair_stride, uint32_t np, const uint32_t nr) {
    HVX_Vector hi[8];
    #pragma unroll
    for (uint32_t r = 0; r < nr; ++r) {
        const uint64_t s = scalars[r * row_stride];
        hi[r] = Q6_Vw_vdmpy_VhRh_sat(planes[0], (int32_t) s);
        lo[r] = Q6_Vw_vrmpyacc_VwVubRb(lo[r], planes[1], (int32_t) (s >> 32));
    }
    for (uint32_t p = 1; p < np; ++p) {
        #pragma unroll
        for (uint32_t r = 0; r < nr; ++r) {
            const uint64_t s = scalars[p * pair_stride + r * row_stride];
            hi[r] = Q6_Vw_vdmpyacc_VwVhRh_sat(hi[r], planes[2 * p + 0], (int32_t) s);
            lo[r] = Q6_Vw_vrmpyacc_VwVubRb(lo[r], planes[2 * p + 1], (int32_t) (s >> 32));
        }
    }
    #pragma unroll
    for (uint32_t r = 0; r < nr; ++r) {
        sum[r] = Q6_Vw_vasracc_VwVwR(sum[r], hi[r], GDNC_GROUP_BITS);
    }
}

// -- the steps of a chunk -----------------------------------------------------------------------

// Pointers of one thread. VTCM, except for the last group.
struct gdnc_work {
    HVX_Vector * state;
    HVX_Vector * planes;
    HVX_Vector * prod;       // [token][k, q][jv]: S^T k and S^T q, to be multiplied by row_inv
    HVX_Vector * d;          // [token][jv]
    HVX_Vector * decayed;    // [token][jv]: d under the gates that follow
    HVX_Vector * d_planes;   // [jv][pair of tokens]
    HVX_Vector * leaves;     // [t][s]
    HVX_Vector * keys;       // [token][k, q][iv]: KDA
    HVX_Vector * gates;      // [token][iv]: KDA
    HVX_Vector * row_inv;    // [token][k, q]
    HVX_Vector * row_off;    // [token][k, q]
    HVX_Vector * amax;       // [jv]
    HVX_Vector * amax_other;
    HVX_Vector * state_inv;
    HVX_Vector * d_inv;
    HVX_Vector * keep;       // [iv]: E(n-1,-1)
    HVX_Vector * tmp;

    uint64_t *   kq;         // [token][k, q][pair of channels]
    uint64_t *   ku;         // [pair of tokens][channel]
    int32_t *    ku_off;     // [channel]
    float *      gram;       // [t][s][k.k, q.k]
    float *      gate;       // [token] exp(g); KDA: [channel] E(n-1,-1)
    float *      beta;       // [token], negated
};

static inline HVX_Vector gdnc_splat(const float * p) {
    return Q6_V_vsplat_R(*(const int32_t *) p);
}

// state[jv][i] from rows j of channels i, and the largest |S| of every column
GDNC_INLINE void gdnc_load_state(const struct gdnc_work * w, const HVX_Vector * rows, const uint32_t nv) {
    const HVX_Vector mask = Q6_V_vsplat_R(GDNC_ABS_MASK);

    for (uint32_t jv = 0; jv < nv; ++jv) {
        HVX_Vector * state = w->state + jv * nv * 32;
        for (uint32_t iv = 0; iv < nv; ++iv) {
            gdnc_transpose_32x32(state + iv * 32, 1, rows + jv * 32 * nv + iv, nv, w->tmp);
        }
        HVX_Vector m = Q6_V_vzero();
        for (uint32_t i = 0; i < nv * 32; ++i) {
            m = gdnc_abs_max(m, state[i], mask);
        }
        w->amax[jv] = m;
    }
}

GDNC_INLINE void gdnc_store_state(const struct gdnc_work * w, HVX_Vector * rows, const HVX_Vector * state, const uint32_t nv) {
    for (uint32_t jv = 0; jv < nv; ++jv) {
        for (uint32_t iv = 0; iv < nv; ++iv) {
            gdnc_transpose_32x32(rows + jv * 32 * nv + iv, nv, state + (jv * nv + iv) * 32, 1, w->tmp);
        }
    }
}

// exp(g) and -beta, one token a lane, to where scalar loads find them
GDNC_INLINE void gdnc_token_scalars(const struct gdnc_work * w, const HVX_Vector * g, const HVX_Vector * beta, const bool kda) {
    if (!kda) {
        *(HVX_Vector *) w->gate = hvx_vec_exp_f32(*g);
    }
    *(HVX_Vector *) w->beta = hvx_vec_neg_f32(*beta);
}

// KDA: exp(g), and keys and queries decayed from the start of the chunk
GDNC_INLINE void gdnc_decay_keys(const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k, const HVX_Vector * g,
                                   uint32_t n, const uint32_t nv) {
    for (uint32_t v = 0; v < nv; ++v) {
        HVX_Vector e = hvx_vec_splat_f32(1.0f);
        for (uint32_t t = 0; t < n; ++t) {
            const HVX_Vector a = hvx_vec_exp_f32(g[t * nv + v]);
            e = hvx_vec_mul_f32_f32(e, a);
            w->gates[t * nv + v]          = a;
            w->keys[(2 * t + 0) * nv + v] = hvx_vec_mul_f32_f32(k[t * nv + v], e);
            w->keys[(2 * t + 1) * nv + v] = hvx_vec_mul_f32_f32(q[t * nv + v], e);
        }
    }
}

// k and q to fixed point. The token after an odd last one is a copy: whatever it gives is not used.
GDNC_INLINE void gdnc_quant_keys(const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k, float scale, uint32_t n,
                                   const uint32_t nv, const bool kda) {
    const uint32_t   row    = gdnc_n_pairs(nv) * 8 / 128;
    const uint32_t   stride = kda ? 2 * nv : nv;
    const HVX_Vector vscale = hvx_vec_splat_f32(scale);

    for (uint32_t t = 0; t < n; t += 2) {
        const uint32_t t1  = t + 1 < n ? t + 1 : t;
        HVX_Vector *   kq  = (HVX_Vector *) w->kq + 2 * t * row;
        HVX_Vector *   inv = w->row_inv + 2 * t;
        HVX_Vector *   off = w->row_off + 2 * t;
        HVX_Vector     q_inv, q1_inv;

        gdnc_quant_rows(kq, kq + 2 * row, kda ? NULL : (HVX_Vector *) w->ku + t * nv, inv, inv + 2, off, off + 2,
                        k + t * stride, k + t1 * stride, nv);
        gdnc_quant_rows(kq + row, kq + 3 * row, NULL, &q_inv, &q1_inv, off + 1, off + 3,
                        q + t * stride, q + t1 * stride, nv);
        inv[1] = hvx_vec_mul_f32_f32(q_inv, vscale);
        inv[3] = hvx_vec_mul_f32_f32(q1_inv, vscale);
    }
}

GDNC_INLINE void gdnc_quant_state(const struct gdnc_work * w, const uint32_t nv) {
    const HVX_Vector v128   = Q6_Vb_vsplat_R(0x80);
    HVX_Vector *     planes = w->planes;

    for (uint32_t jv = 0; jv < nv; ++jv) {
        const HVX_Vector e     = gdnc_exponent(w->amax[jv]);
        const HVX_Vector scale = gdnc_scale(e);
        w->state_inv[jv] = gdnc_scale_inv(e);

        for (uint32_t iv = 0; iv < nv; iv += 2) {
            const HVX_Vector * s = w->state + (jv * nv + iv) * 32;
            for (uint32_t l = 0; l < 32; ++l) {
                const HVX_Vector v0 = gdnc_fixed(s[l], scale);
                const HVX_Vector v1 = iv + 1 < nv ? gdnc_fixed(s[l + 32], scale) : Q6_V_vzero();
                gdnc_store_planes(planes, gdnc_split(v0, v1, false), v128);
                planes += 2;
            }
        }
    }
}

GDNC_INLINE void gdnc_quant(const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k, const HVX_Vector * g,
                              const HVX_Vector * beta, float scale, uint32_t n, const uint32_t nv, const bool kda) {
    gdnc_token_scalars(w, g, beta, kda);
    if (kda) {
        gdnc_decay_keys(w, q, k, g, n, nv);
    }
    gdnc_quant_keys(w, kda ? w->keys + nv : q, kda ? w->keys : k, scale, n, nv, kda);
    gdnc_quant_state(w, nv);
}

// Rows [row, row + nr) of the products with S
GDNC_INLINE void gdnc_products_n(const struct gdnc_work * w, uint32_t row, const uint32_t nr, const uint32_t nv) {
    const uint32_t     np     = gdnc_n_pairs(nv);
    const HVX_Vector * off    = w->row_off + row;
    const HVX_Vector * planes = w->planes;
    const uint64_t *   kq     = w->kq + row * np;
    HVX_Vector *       prod   = w->prod + row * nv;
    const HVX_Vector   zero   = Q6_V_vzero();

    for (uint32_t jv = 0; jv < nv; ++jv) {
        HVX_Vector sum[8];
        HVX_Vector lo[8];
        #pragma unroll
        for (uint32_t r = 0; r < nr; ++r) {
            sum[r] = zero;
            lo[r]  = off[r];
        }
        #pragma nounroll
        for (uint32_t p = 0; p < np; p += GDNC_GROUP) {
            gdnc_dot(sum, lo, planes + (jv * np + p) * 2, kq + p, np, 1, GDNC_GROUP, nr);
        }

        gdnc_fetch(kq + nr * np + jv * 8 * np / nv, 64 * np / nv); // of the next rows

        const HVX_Vector inv = w->state_inv[jv];
        #pragma unroll
        for (uint32_t r = 0; r < nr; ++r) {
            sum[r] = Q6_Vw_vasracc_VwVwR(sum[r], lo[r], GDNC_UNIT - GDNC_LO_UNIT);
            prod[r * nv + jv] = hvx_vec_mul_f32_f32(Q6_Vsf_equals_Vw(sum[r]), inv);
        }
    }
}

// S^T k and S^T q of n tokens
GDNC_INLINE void gdnc_products(const struct gdnc_work * w, uint32_t n, const uint32_t nv) {
    gdnc_fetch(w->kq, 8 * gdnc_n_pairs(nv) * sizeof(uint64_t));

    uint32_t row = 0;
    for (; row + 4 < 2 * n; row += 8) {
        gdnc_products_n(w, row, 8, nv);
    }
    if (row < 2 * n) {
        gdnc_products_n(w, row, 4, nv);
    }
}

// Sums over two vectors at once, blocks of 64 / width lanes left of each. In qf32.
static inline HVX_Vector gdnc_fold(HVX_Vector v0, HVX_Vector v1, int32_t width) {
#if __HVX_ARCH__ < 79
    const HVX_VectorPair p = Q6_W_vshuff_VVR(v1, v0, -width);
    return Q6_Vqf32_vadd_Vqf32Vqf32(Q6_V_lo_W(p), Q6_V_hi_W(p));
#else
    // permutes drop what a qf32 register holds beyond 32 bits
    const HVX_VectorPair p = Q6_W_vshuff_VVR(Q6_Vsf_equals_Vqf32(v1), Q6_Vsf_equals_Vqf32(v0), -width);
    return Q6_Vqf32_vadd_VsfVsf(Q6_V_lo_W(p), Q6_V_hi_W(p));
#endif
}

static inline HVX_Vector gdnc_fold4(const HVX_Vector * v) {
    return gdnc_fold(gdnc_fold(v[0], v[1], 8), gdnc_fold(v[2], v[3], 8), 16);
}

// a.b, spread over the lanes
GDNC_INLINE HVX_Vector gdnc_row_dot(const HVX_Vector * a, const HVX_Vector * b, const uint32_t nv) {
    HVX_Vector acc = Q6_Vqf32_vmpy_VsfVsf(a[0], b[0]);
    for (uint32_t v = 1; v < nv; ++v) {
        acc = gdnc_mac(acc, a[v], b[v]);
    }
    return acc;
}

// gram[t][s] = E(t,s) k_t.k_s and scale E(t,s) q_t.k_s for s <= t. Leaves beyond s = t are not written, they
// only get to lanes that nobody reads.
GDNC_INLINE void gdnc_gram(const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k, float scale, uint32_t n,
                             const uint32_t nv, const bool kda) {
    const HVX_Vector   zero   = Q6_V_vzero();
    const HVX_Vector * gates  = w->gates;
    const float *      gate   = w->gate;
    HVX_Vector *       leaves = w->leaves;
    HVX_Vector *       gram   = (HVX_Vector *) w->gram;

    for (uint32_t s = 0; s < n; ++s) {
        // not a loop: it would become a memcpy, which isn't made for VTCM
        const HVX_Vector * kr    = k + s * nv;
        HVX_Vector         ks[4] = { kr[0], nv > 1 ? kr[1] : zero, nv > 2 ? kr[2] : zero, nv > 2 ? kr[3] : zero };
        leaves[s * GDNC_SIZE + s] = gdnc_fold(zero, gdnc_row_dot(ks, q + s * nv, nv), 4);

        for (uint32_t t = s + 1; t < n; ++t) {
            for (uint32_t v = 0; v < nv && kda; ++v) {
                ks[v] = hvx_vec_mul_f32_f32(ks[v], gates[t * nv + v]);
            }
            leaves[t * GDNC_SIZE + s] = gdnc_fold(gdnc_row_dot(ks, k + t * nv, nv), gdnc_row_dot(ks, q + t * nv, nv), 4);
        }
    }

    // lane pairs: E(t,s) and scale E(t,s)
    HVX_Vector e = Q6_V_lo_W(Q6_W_vshuff_VVR(hvx_vec_splat_f32(scale), hvx_vec_splat_f32(1.0f), -4));

    for (uint32_t t = 0; t < n; ++t) {
        const HVX_Vector * l  = leaves + t * GDNC_SIZE;
        const HVX_Vector   b0 = gdnc_fold4(l);
        const HVX_Vector   b1 = t >=  4 ? gdnc_fold4(l +  4) : zero;
        const HVX_Vector   b2 = t >=  8 ? gdnc_fold4(l +  8) : zero;
        const HVX_Vector   b3 = t >= 12 ? gdnc_fold4(l + 12) : zero;
        const HVX_Vector   c1 = t >=  8 ? gdnc_fold(b2, b3, 32) : zero;
        const HVX_Vector   r  = Q6_Vsf_equals_Vqf32(gdnc_fold(gdnc_fold(b0, b1, 32), c1, 64));

        if (!kda && t > 0) {
            e = Q6_V_vmux_QVV(Q6_Q_vsetq_R(8 * t), hvx_vec_mul_f32_f32(e, gdnc_splat(gate + t)), e);
        }
        gram[t] = hvx_vec_mul_f32_f32(r, e);
    }
}

// d_t and o_t, token by token
GDNC_INLINE void gdnc_solve(const struct gdnc_work * w, HVX_Vector * out, const HVX_Vector * v, uint32_t n, const uint32_t nv,
                              const bool kda) {
    const HVX_Vector * row_inv = w->row_inv;
    const HVX_Vector * prod    = w->prod;
    const float *      gate    = w->gate;
    const float *      nbeta   = w->beta;
    HVX_Vector *       dst     = w->d;
    HVX_Vector         e       = hvx_vec_splat_f32(1.0f);

    for (uint32_t t = 0; t < n; ++t) {
        HVX_Vector k_inv = row_inv[2 * t + 0];
        HVX_Vector q_inv = row_inv[2 * t + 1];
        if (!kda) {
            e     = hvx_vec_mul_f32_f32(e, gdnc_splat(gate + t));
            k_inv = hvx_vec_mul_f32_f32(k_inv, e);
            q_inv = hvx_vec_mul_f32_f32(q_inv, e);
        }

        const HVX_Vector * sk   = prod + 2 * t * nv;
        const HVX_Vector * sq   = sk + nv;
        const float *      gram = w->gram + t * 2 * GDNC_SIZE;

        HVX_Vector d[4];
        HVX_Vector o[4];
        for (uint32_t j = 0; j < nv; ++j) {
            d[j] = Q6_Vqf32_vmpy_VsfVsf(sk[j], k_inv);
            o[j] = Q6_Vqf32_vmpy_VsfVsf(sq[j], q_inv);
        }
        for (uint32_t s = 0; s < t; ++s) {
            const HVX_Vector kk = gdnc_splat(gram + 2 * s + 0);
            const HVX_Vector qk = gdnc_splat(gram + 2 * s + 1);
            for (uint32_t j = 0; j < nv; ++j) {
                const HVX_Vector ds = dst[s * nv + j];
                d[j] = gdnc_mac(d[j], ds, kk);
                o[j] = gdnc_mac(o[j], ds, qk);
            }
        }

        const HVX_Vector qk   = gdnc_splat(gram + 2 * t + 1);
        const HVX_Vector beta = gdnc_splat(nbeta + t);
        for (uint32_t j = 0; j < nv; ++j) {
            const HVX_Vector x  = Q6_Vsf_equals_Vqf32(Q6_Vqf32_vsub_Vqf32Vsf(d[j], v[t * nv + j]));
            const HVX_Vector dt = hvx_vec_mul_f32_f32(x, beta);
            dst[t * nv + j] = dt;
            out[t * nv + j] = Q6_Vsf_equals_Vqf32(gdnc_mac(o[j], dt, qk));
        }
    }
}

// Before the update to the state after m tokens: E(m-1,-1), E(m-1,s) d_s in fixed point; KDA: E(m-1,s) k_s instead
GDNC_INLINE void gdnc_prepare_update(const struct gdnc_work * w, const HVX_Vector * k, uint32_t m, const uint32_t nv,
                                       const bool kda) {
    HVX_Vector * factor  = w->leaves; // [token]: what d is multiplied by
    HVX_Vector * decayed = w->decayed;

    if (kda) {
        HVX_Vector * kd = w->leaves + GDNC_SIZE;
        for (uint32_t v = 0; v < nv; ++v) {
            HVX_Vector e = hvx_vec_splat_f32(1.0f);
            for (uint32_t s = m; s-- > 0;) {
                kd[s * nv + v] = hvx_vec_mul_f32_f32(k[s * nv + v], e);
                e = hvx_vec_mul_f32_f32(e, w->gates[s * nv + v]);
            }
            ((HVX_Vector *) w->gate)[v] = e;
        }
        for (uint32_t s = 0; s < m; s += 2) {
            const uint32_t s1 = s + 1 < m ? s + 1 : s;
            gdnc_quant_rows(NULL, NULL, (HVX_Vector *) w->ku + s * nv, factor + s, factor + s1, NULL, NULL,
                            kd + s * nv, kd + s1 * nv, nv);
        }
    } else {
        HVX_Vector e = hvx_vec_splat_f32(1.0f);
        for (uint32_t s = m; s-- > 0;) {
            factor[s] = hvx_vec_mul_f32_f32(e, w->row_inv[2 * s]);
            e = hvx_vec_mul_f32_f32(e, gdnc_splat(w->gate + s));
        }
        *w->keep = e;
    }

    const HVX_Vector mask = Q6_V_vsplat_R(GDNC_ABS_MASK);
    const HVX_Vector v128 = Q6_Vb_vsplat_R(0x80);

    // as gdnc_offsets; two groups
    const HVX_Vector bytes = Q6_V_lo_W(Q6_W_vshuff_VVR(Q6_Vb_vsplat_R(-1), Q6_V_vzero(), -4));
    for (uint32_t v = 0; v < nv; ++v) {
        HVX_Vector s0 = Q6_V_vzero();
        HVX_Vector s1 = Q6_V_vzero();
        for (uint32_t s = 0; s < m; s += 2) {
            const HVX_Vector * ku = (const HVX_Vector *) w->ku + s * nv + 2 * v;
            s0 = Q6_Vw_vrmpyacc_VwVbVb(s0, ku[0], bytes);
            s1 = Q6_Vw_vrmpyacc_VwVbVb(s1, ku[1], bytes);
        }
        const HVX_Vector off = Q6_Vw_vasl_VwR(Q6_V_hi_W(Q6_W_vdeal_VVR(s1, s0, -4)), 7);
        ((HVX_Vector *) w->ku_off)[v] = Q6_Vw_vadd_VwVw(off, Q6_V_vsplat_R(3 << (GDNC_UNIT - GDNC_LO_UNIT - 1)));
    }

    for (uint32_t jv = 0; jv < nv; ++jv) {
        const HVX_Vector * src    = w->d + jv;
        HVX_Vector *       planes = w->d_planes + jv * GDNC_SIZE;
        HVX_Vector         amax   = Q6_V_vzero();
        for (uint32_t s = 0; s < m; ++s) {
            const HVX_Vector d = hvx_vec_mul_f32_f32(src[s * nv], factor[s]);
            decayed[s * nv + jv] = d;
            amax = gdnc_abs_max(amax, d, mask);
        }

        const HVX_Vector e     = gdnc_exponent(amax);
        const HVX_Vector scale = gdnc_scale(e);
        w->d_inv[jv] = gdnc_scale_inv(e);

        for (uint32_t s = 0; s < m; s += 2) {
            const HVX_Vector d0 = gdnc_fixed(decayed[s * nv + jv], scale);
            const HVX_Vector d1 = s + 1 < m ? gdnc_fixed(decayed[(s + 1) * nv + jv], scale) : Q6_V_vzero();
            gdnc_store_planes(planes + s, gdnc_split(d0, d1, false), v128);
        }
    }
}

// dst = the state after m tokens, and its largest numbers
GDNC_INLINE void gdnc_update(const struct gdnc_work * w, HVX_Vector * dst, HVX_Vector * amax, uint32_t m, const uint32_t nv,
                               const bool kda) {
    const HVX_Vector   keep   = *w->keep;
    const HVX_Vector   mask   = Q6_V_vsplat_R(GDNC_ABS_MASK);
    const HVX_Vector   zero   = Q6_V_vzero();
    const HVX_Vector * state  = w->state;
    const HVX_Vector * planes = w->d_planes;
    const HVX_Vector * d_inv  = w->d_inv;
    const uint64_t *   ku     = w->ku;
    const int32_t *    ku_off = w->ku_off;
    const uint32_t     np     = (m + 1) / 2;
    HVX_Vector *       off    = w->tmp;
    const float *      gate   = w->gate;

    for (uint32_t jv = 0; jv < nv; ++jv) {
        amax[jv] = Q6_V_vzero();
    }
    for (uint32_t i = 0; i < 32 * nv; i += 8) {
        for (uint32_t p = 0; p < np; ++p) {
            gdnc_fetch(ku + i + 8 + p * 32 * nv, 64); // of the next channels
        }
        #pragma unroll
        for (uint32_t r = 0; r < 8; ++r) {
            off[r] = Q6_V_vsplat_R(ku_off[i + r]);
        }
        for (uint32_t jv = 0; jv < nv; ++jv) {
            HVX_Vector sum[8];
            HVX_Vector lo[8];
            #pragma unroll
            for (uint32_t r = 0; r < 8; ++r) {
                sum[r] = zero;
                lo[r]  = off[r];
            }
            const HVX_Vector * pl = planes + jv * GDNC_SIZE;
            const uint64_t *   sc = ku + i;
            uint32_t p = np;
            #pragma nounroll
            for (; p >= GDNC_GROUP; p -= GDNC_GROUP) {
                gdnc_dot(sum, lo, pl, sc, 1, 32 * nv, GDNC_GROUP, 8);
                pl += 2 * GDNC_GROUP;
                sc += GDNC_GROUP * 32 * nv;
            }
            if (p > 0) {
                gdnc_dot(sum, lo, pl, sc, 1, 32 * nv, p, 8);
            }

            const HVX_Vector   inv = d_inv[jv];
            const HVX_Vector * src = state + jv * nv * 32 + i;
            HVX_Vector *       out = dst   + jv * nv * 32 + i;
            HVX_Vector         max = amax[jv];

            #pragma unroll
            for (uint32_t r = 0; r < 8; ++r) {
                const HVX_Vector g = kda ? gdnc_splat(gate + i + r) : keep;
                sum[r] = Q6_Vw_vasracc_VwVwR(sum[r], lo[r], GDNC_UNIT - GDNC_LO_UNIT);
                const HVX_Vector u = Q6_Vqf32_vmpy_VsfVsf(Q6_Vsf_equals_Vw(sum[r]), inv);
                out[r] = Q6_Vsf_equals_Vqf32(gdnc_mac(u, src[r], g));
                max    = gdnc_abs_max(max, out[r], mask);
            }
            amax[jv] = max;
        }
    }
}

// The steps in order, for a head size and a kind of gate. Not inlined, so that none costs another its registers.
struct gdnc_kernels {
    void (*load_state)    (const struct gdnc_work * w, const HVX_Vector * rows);
    void (*quant)         (const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k, const HVX_Vector * g,
                           const HVX_Vector * beta, float scale, uint32_t n);
    void (*products)      (const struct gdnc_work * w, uint32_t n);
    void (*gram)          (const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k, float scale, uint32_t n);
    void (*solve)         (const struct gdnc_work * w, HVX_Vector * out, const HVX_Vector * v, uint32_t n);
    void (*prepare_update)(const struct gdnc_work * w, const HVX_Vector * k, uint32_t m);
    void (*update)        (const struct gdnc_work * w, HVX_Vector * dst, HVX_Vector * amax, uint32_t m);
    void (*store_state)   (const struct gdnc_work * w, HVX_Vector * rows, const HVX_Vector * state);
};

#define GDNC_KERNELS(nv)                                                                                                   \
    static void gdnc_load_state_##nv(const struct gdnc_work * w, const HVX_Vector * rows) {                                \
        gdnc_load_state(w, rows, nv);                                                                                      \
    }                                                                                                                      \
    static void gdnc_products_##nv(const struct gdnc_work * w, uint32_t n) {                                               \
        gdnc_products(w, n, nv);                                                                                           \
    }                                                                                                                      \
    static void gdnc_store_state_##nv(const struct gdnc_work * w, HVX_Vector * rows, const HVX_Vector * state) {           \
        gdnc_store_state(w, rows, state, nv);                                                                              \
    }                                                                                                                      \
    GDNC_KERNELS_GATE(nv, 0)                                                                                               \
    GDNC_KERNELS_GATE(nv, 1)

#define GDNC_KERNELS_GATE(nv, kda)                                                                                         \
    static void gdnc_quant_##nv##_##kda(const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k,            \
                                        const HVX_Vector * g, const HVX_Vector * beta, float scale, uint32_t n) {          \
        gdnc_quant(w, q, k, g, beta, scale, n, nv, kda);                                                                   \
    }                                                                                                                      \
    static void gdnc_gram_##nv##_##kda(const struct gdnc_work * w, const HVX_Vector * q, const HVX_Vector * k,             \
                                       float scale, uint32_t n) {                                                          \
        gdnc_gram(w, q, k, scale, n, nv, kda);                                                                             \
    }                                                                                                                      \
    static void gdnc_solve_##nv##_##kda(const struct gdnc_work * w, HVX_Vector * out, const HVX_Vector * v, uint32_t n) {  \
        gdnc_solve(w, out, v, n, nv, kda);                                                                                 \
    }                                                                                                                      \
    static void gdnc_prepare_update_##nv##_##kda(const struct gdnc_work * w, const HVX_Vector * k, uint32_t m) {           \
        gdnc_prepare_update(w, k, m, nv, kda);                                                                             \
    }                                                                                                                      \
    static void gdnc_update_##nv##_##kda(const struct gdnc_work * w, HVX_Vector * dst, HVX_Vector * amax, uint32_t m) {    \
        gdnc_update(w, dst, amax, m, nv, kda);                                                                             \
    }                                                                                                                      \
    static const struct gdnc_kernels gdnc_kernels_##nv##_##kda = {                                                         \
        gdnc_load_state_##nv, gdnc_quant_##nv##_##kda, gdnc_products_##nv, gdnc_gram_##nv##_##kda, gdnc_solve_##nv##_##kda, \
        gdnc_prepare_update_##nv##_##kda, gdnc_update_##nv##_##kda, gdnc_store_state_##nv                                  \
    };

GDNC_KERNELS(1)
GDNC_KERNELS(2)
GDNC_KERNELS(4)

static inline const struct gdnc_kernels * gdnc_kernels(uint32_t s_pad, bool kda) {
    switch (s_pad) {
        case 32: return kda ? &gdnc_kernels_1_1 : &gdnc_kernels_1_0;
        case 64: return kda ? &gdnc_kernels_2_1 : &gdnc_kernels_2_0;
    }
    return kda ? &gdnc_kernels_4_1 : &gdnc_kernels_4_0;
}

#endif // HVX_GDN_CHUNKED_H
