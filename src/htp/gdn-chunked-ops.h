#ifndef HTP_GDN_CHUNKED_OPS_H
#define HTP_GDN_CHUNKED_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "htp-vtcm.h"

// Gated delta net in f32 on HVX, HTP_GDN_CHUNKED_SIZE tokens at a time (see hvx-gdn-chunked.h).

#define HTP_GDN_CHUNKED_SIZE 16

// Scalars are read from cacheable DDR, not from VTCM. Of one thread, for head size 128:
#define HTP_GDN_CHUNKED_KQ_BYTES    (2 * HTP_GDN_CHUNKED_SIZE * 64 * 8)
#define HTP_GDN_CHUNKED_KU_BYTES    (HTP_GDN_CHUNKED_SIZE / 2 * 128 * 8)
#define HTP_GDN_CHUNKED_KUO_BYTES   (128 * 4)
#define HTP_GDN_CHUNKED_GRAM_BYTES  (HTP_GDN_CHUNKED_SIZE * 128)
#define HTP_GDN_CHUNKED_GATE_BYTES  (128 * 4)
#define HTP_GDN_CHUNKED_BETA_BYTES  128
#define HTP_GDN_CHUNKED_DDR_BYTES   (HTP_GDN_CHUNKED_KQ_BYTES + HTP_GDN_CHUNKED_KU_BYTES + HTP_GDN_CHUNKED_KUO_BYTES + \
                                     HTP_GDN_CHUNKED_GRAM_BYTES + HTP_GDN_CHUNKED_GATE_BYTES + HTP_GDN_CHUNKED_BETA_BYTES)

// VTCM of one thread.
struct htp_gdn_chunked_layout {
    size_t off_in_state;   // as in DDR, rows padded
    size_t off_out_state;
    size_t off_state;
    size_t off_planes;     // the state in fixed point; between chunks: the state of a snapshot
    size_t off_q[2];
    size_t off_k[2];
    size_t off_v[2];
    size_t off_g[2];
    size_t off_beta[2];
    size_t off_out;
    size_t off_prod;
    size_t off_d;
    size_t off_decayed;
    size_t off_d_planes;
    size_t off_leaves;
    size_t off_keys;       // KDA only: q and k under their gates
    size_t off_gates;      // KDA only: exp(g)
    size_t off_row_inv;
    size_t off_row_off;
    size_t off_col;
    size_t off_tmp;

    uint32_t s_pad;        // head size in the layout: 32, 64 or 128
    size_t   bytes_per_thread;
};

static inline void htp_gdn_chunked_layout_build(struct htp_gdn_chunked_layout * L, uint32_t S_v, bool kda) {
    memset(L, 0, sizeof(*L));

    const size_t s_pad    = S_v <= 32 ? 32 : S_v <= 64 ? 64 : 128;
    const size_t n_vec    = s_pad / 32;
    const size_t n_pairs  = s_pad < 64 ? 32 : s_pad / 2;
    const size_t state_sz = s_pad * s_pad * sizeof(float);
    const size_t rows_sz  = HTP_GDN_CHUNKED_SIZE * s_pad * sizeof(float);

    size_t off = 0;
    VTCM_LAYOUT_ALLOC(off, off_in_state,  state_sz);
    VTCM_LAYOUT_ALLOC(off, off_out_state, state_sz);
    VTCM_LAYOUT_ALLOC(off, off_state,     state_sz);
    VTCM_LAYOUT_ALLOC(off, off_planes,    n_vec * n_pairs * 2 * 128);
    for (int i = 0; i < 2; ++i) {
        VTCM_LAYOUT_ALLOC(off, off_q[i],    rows_sz);
        VTCM_LAYOUT_ALLOC(off, off_k[i],    rows_sz);
        VTCM_LAYOUT_ALLOC(off, off_v[i],    rows_sz);
        VTCM_LAYOUT_ALLOC(off, off_g[i],    kda ? rows_sz : 128);
        VTCM_LAYOUT_ALLOC(off, off_beta[i], 128);
    }
    VTCM_LAYOUT_ALLOC(off, off_out,       rows_sz);
    VTCM_LAYOUT_ALLOC(off, off_prod,      2 * rows_sz);
    VTCM_LAYOUT_ALLOC(off, off_d,         rows_sz);
    VTCM_LAYOUT_ALLOC(off, off_decayed,   rows_sz);
    VTCM_LAYOUT_ALLOC(off, off_d_planes,  n_vec * HTP_GDN_CHUNKED_SIZE * 128);
    VTCM_LAYOUT_ALLOC(off, off_leaves,    HTP_GDN_CHUNKED_SIZE * HTP_GDN_CHUNKED_SIZE * 128);
    VTCM_LAYOUT_ALLOC_OPTIONAL(off, off_keys,  2 * rows_sz, kda);
    VTCM_LAYOUT_ALLOC_OPTIONAL(off, off_gates, rows_sz, kda);
    VTCM_LAYOUT_ALLOC(off, off_row_inv,   2 * HTP_GDN_CHUNKED_SIZE * 128);
    VTCM_LAYOUT_ALLOC(off, off_row_off,   2 * HTP_GDN_CHUNKED_SIZE * 128);
    VTCM_LAYOUT_ALLOC(off, off_col,       5 * 4 * 128);
    VTCM_LAYOUT_ALLOC(off, off_tmp,       32 * 128);

    L->s_pad            = (uint32_t) s_pad;
    L->bytes_per_thread = off;
}

struct htp_ops_context;
struct htp_gdn_kernel_params;

int gated_delta_net_f32_hvx_chunked(struct htp_ops_context * octx, const struct htp_gdn_kernel_params * kparams,
                                    uint32_t row_start, uint32_t nrows);

#endif // HTP_GDN_CHUNKED_OPS_H
