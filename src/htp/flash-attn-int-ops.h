#ifndef HTP_FLASH_ATTN_INT_OPS_H
#define HTP_FLASH_ATTN_INT_OPS_H

// Attention on the integer HMX: shapes, VTCM layout and tiling, shared by host and DSP.

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flash-attn-ops.h"
#include "hex-common.h"
#include "htp-vtcm.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rows are (query, head) pairs of one KV head, the head fastest: row = query * G + head.
#define FA_INT_TILE_ROWS   32    // rows of an HMX tile
#define FA_INT_GROUP_ROWS  8     // rows that one worker takes at a time
#define FA_INT_GROUPS      4
#define FA_INT_MAX_BC      1024  // keys of a block: 32 activation tiles, as many as one packet may multiply
#define FA_INT_MAX_TILES   128   // row tiles of a chunk
#define FA_INT_MASK_BUFS   3
#define FA_INT_TMP_VECS    48
#define FA_INT_STATE_VECS  5

// Mask of a row tile in a KV block
enum fa_int_mask {
    FA_INT_MASK_EMPTY = 0,  // all -inf: nothing to do
    FA_INT_MASK_NONE  = 1,  // all zero, or there is no mask
    FA_INT_MASK_MIXED = 2,
};

// With it, how many keys to look at: up to the last one that counts
#define FA_INT_FLAG(mask, n_keys) ((mask) | (n_keys) << 2)
#define FA_INT_FLAG_MASK(flag)    ((flag) & 3)
#define FA_INT_FLAG_KEYS(flag)    ((flag) >> 2)
#define FA_INT_FLAG_ALL_KEYS      FA_INT_MAX_BC

struct fa_int_shape {
    uint32_t DK;
    uint32_t DV;
    uint32_t G;           // query heads per KV head
    uint32_t n_q;
    uint32_t n_kv;
    uint32_t n_kv_heads;
    uint32_t n_threads;
    uint32_t q_elem;      // bytes
    bool     v_is_k;      // V rows are the beginning of K rows
};

// S = sum of q16 * w8 / 256, stored as 16 bits of S >> shift. Q is scaled to |q|_2 <= norm and |w8| <= 128, so by Cauchy-Schwarz
// |S| <= norm * 128 * sqrt(DK) / 256 <= 32700 << shift: the store can't wrap. norm <= 32700: q16 can't either.
static inline uint32_t fa_int_store_shift(uint32_t DK) {
    uint32_t shift = 0;
    while ((16u << (2 * shift)) <= DK) {
        shift++;
    }
    return shift;
}

static inline float fa_int_q_norm(uint32_t DK) {
    const float root = sqrtf((float) DK);
    // rounding moves every component by up to 1/2
    return fminf(2.0f * 32700.0f * (1u << fa_int_store_shift(DK)) / root, 32700.0f) - 0.5f * root;
}

struct fa_int_vtcm_layout {
    size_t off_q;          // [row tile][k tile] packed Q
    size_t off_o;          // [row tile][row] f32 output
    size_t off_state;      // [row tile][group] running maximum and sum, scale of Q, lost scores of odd and even chunks
    size_t off_slots;
    size_t off_k_tiles[2];
    size_t off_v_tiles[2];
    size_t off_k_bias[2];  // [column tile] HMX bias of the scores
    size_t off_k_scale[3]; // [key] f32
    size_t off_v_scale[3]; // [channel] f32 step, [channel] f32 mean
    size_t off_stats[2];
    size_t off_consts;     // HMX bias of the outputs: low and high store
    size_t off_k_stage[2];
    size_t off_v_stage[2];
    size_t off_threads;

    // inside a slot
    size_t off_slot_b;
    size_t off_slot_state;
    // inside the area of a thread
    size_t off_t_rows;
    size_t off_t_tmp;
    size_t off_t_q[2];
    size_t off_t_mask;

    size_t q_tile_bytes;   // per row tile
    size_t o_row_bytes;
    size_t slot_bytes;
    size_t thread_bytes;
    size_t q_pitch;        // rows in the staging buffers
    size_t k_pitch;
    size_t v_pitch;
    size_t mask_pitch;
    size_t mask_bytes;     // per buffer

    size_t total_bytes;
};

static inline void fa_int_vtcm_layout_build(struct fa_int_vtcm_layout * L, const struct fa_int_shape * s, uint32_t Bc,
                                            uint32_t n_row_tiles, uint32_t n_slots, uint32_t n_stage) {
    const size_t nk     = hmx_ceil_div(s->DK, 32);
    const size_t nv     = hmx_ceil_div(s->DV, 32);
    const size_t n_vec  = hmx_ceil_div(s->DK, 64);
    const size_t n_cols = Bc / 32;

    L->q_tile_bytes = nk * 2048;
    L->o_row_bytes  = nv * 128;
    L->q_pitch      = hex_align_up(s->DK * s->q_elem, 128);
    L->k_pitch      = hex_align_up(s->DK * 2, 128);
    L->v_pitch      = s->v_is_k ? L->k_pitch : hex_align_up(s->DV * 2, 128);
    L->mask_pitch   = hex_align_up(Bc * 2, 128);
    L->mask_bytes   = FA_INT_GROUP_ROWS * L->mask_pitch;

    // S and then P in a, half of the scaled scores and then the output tiles in b
    L->off_slot_b     = n_cols * 2048;
    L->off_slot_state = L->off_slot_b + hex_smax(n_cols * 2048, nv * 4096);
    L->slot_bytes     = L->off_slot_state + hex_align_up(FA_INT_GROUPS * 2 * 128, 2048);

    size_t t = 0;
    L->off_t_rows   = t; t += 32 * n_vec * 128;
    L->off_t_tmp    = t; t += FA_INT_TMP_VECS * 128;
    L->off_t_q[0]   = t; t += FA_INT_GROUP_ROWS * L->q_pitch;
    L->off_t_q[1]   = t; t += FA_INT_GROUP_ROWS * L->q_pitch;
    L->off_t_mask   = t; t += FA_INT_MASK_BUFS * L->mask_bytes;
    L->thread_bytes = t;

    size_t off = 0;
    VTCM_LAYOUT_ALLOC(off, off_q, n_row_tiles * L->q_tile_bytes);
    VTCM_LAYOUT_ALLOC(off, off_slots, n_slots * L->slot_bytes);
    for (uint32_t i = 0; i < 2; i++) {
        VTCM_LAYOUT_ALLOC(off, off_k_tiles[i], n_cols * nk * 1024);
        VTCM_LAYOUT_ALLOC(off, off_v_tiles[i], n_cols * nv * 1024);
    }
    VTCM_LAYOUT_ALLOC(off, off_consts, 512);
    for (uint32_t i = 0; i < 2; i++) {
        VTCM_LAYOUT_ALLOC(off, off_k_bias[i], n_cols * 256);
    }
    for (uint32_t i = 0; i < 3; i++) {
        VTCM_LAYOUT_ALLOC(off, off_k_scale[i], n_cols * 128);
        VTCM_LAYOUT_ALLOC(off, off_v_scale[i], 2 * nv * 128);
    }
    for (uint32_t i = 0; i < 2; i++) {
        VTCM_LAYOUT_ALLOC(off, off_stats[i], 5 * n_vec * 128);
    }
    VTCM_LAYOUT_ALLOC(off, off_o, n_row_tiles * FA_INT_TILE_ROWS * L->o_row_bytes);
    VTCM_LAYOUT_ALLOC(off, off_state, n_row_tiles * FA_INT_GROUPS * FA_INT_STATE_VECS * 128);
    for (uint32_t i = 0; i < 2; i++) {
        const bool own = i < n_stage;
        if (own) {
            VTCM_LAYOUT_ALLOC(off, off_k_stage[i], Bc * L->k_pitch);
        } else {
            L->off_k_stage[i] = L->off_k_stage[0];
        }
        if (s->v_is_k) {
            L->off_v_stage[i] = L->off_k_stage[i];
        } else if (own) {
            VTCM_LAYOUT_ALLOC(off, off_v_stage[i], Bc * L->v_pitch);
        } else {
            L->off_v_stage[i] = L->off_v_stage[0];
        }
    }
    VTCM_LAYOUT_ALLOC(off, off_threads, s->n_threads * L->thread_bytes);

    L->total_bytes = off;
}

// Estimates in cycles, from counted HVX operations (one a cycle and thread) and DMA bytes. They only compare.
#define FA_INT_COST_K_CONV    11.8f   // key, 64 channels
#define FA_INT_COST_V_CONV    8.1f
#define FA_INT_COST_SCORE     14.2f   // row, 32 keys
#define FA_INT_COST_OUT       9.0f    // row, 32 channels, block
#define FA_INT_COST_GROUP     250.0f  // 8 rows, block
#define FA_INT_COST_UNIT      600.0f  // row tile, block: handing over
#define FA_INT_COST_BLOCK     2000.0f // all threads meet
#define FA_INT_COST_OP        10000.0f
#define FA_INT_COST_HVX       14.6f   // row, key; and per channel of K and V, in steps of 64
#define FA_INT_COST_HVX_CH    0.103f
#define FA_INT_DMA_PER_CYCLE  18.0f

struct fa_int_tiling {
    uint32_t Br;
    uint32_t Bc;
    uint32_t n_row_tiles;
    uint32_t n_slots;
    uint32_t n_stage;
    size_t   vtcm_size;
    float    cost;
};

static inline float fa_int_kv_bytes(const struct fa_int_shape * s, size_t n_keys) {
    return (float) n_keys * 2 * (s->v_is_k ? s->DK : s->DK + s->DV);
}

static inline float fa_int_cost(const struct fa_int_shape * s, uint32_t Br, uint32_t Bc) {
    const size_t n_rows   = (size_t) s->n_q * s->G;
    const float  n_heads  = (float) s->n_kv_heads;
    const float  n_chunks = (float) hmx_ceil_div(s->n_q, Br);
    const float  n_blocks = (float) hmx_ceil_div(s->n_kv, Bc);
    const float  n_groups = (float) hmx_ceil_div(n_rows, FA_INT_GROUP_ROWS);
    const float  n_tiles  = (float) hmx_ceil_div(n_rows, FA_INT_TILE_ROWS);
    const float  n_cols   = (float) hmx_ceil_div(s->n_kv, 32);
    const float  conv     = FA_INT_COST_K_CONV * hmx_ceil_div(s->DK, 64) + FA_INT_COST_V_CONV * hmx_ceil_div(s->DV, 64);

    const float ops   = n_chunks * n_cols * 32 * conv + n_rows * (n_cols * FA_INT_COST_SCORE + n_blocks * FA_INT_COST_OUT * hmx_ceil_div(s->DV, 32)) +
                        n_blocks * (n_groups * FA_INT_COST_GROUP + n_tiles * FA_INT_COST_UNIT);
    const float bytes = n_chunks * fa_int_kv_bytes(s, s->n_kv) + (float) s->n_q * s->n_kv * 2;
    const float run   = n_heads * (fmaxf(ops / s->n_threads, bytes / FA_INT_DMA_PER_CYCLE) + n_chunks * n_blocks * FA_INT_COST_BLOCK);
    // the first block has nothing to hide behind
    const size_t first = hex_smin(Bc, s->n_kv);
    return run + fa_int_kv_bytes(s, first) / FA_INT_DMA_PER_CYCLE + first * conv / s->n_threads + FA_INT_COST_OP;
}

// The HVX kernel reads K and V for every query, at once for up to 8 heads if it is the only one
static inline float fa_int_cost_hvx(const struct fa_int_shape * s) {
    const float n_rows = (float) s->n_q * s->G;
    const float n_read = s->n_q == 1 ? (float) hmx_ceil_div(s->G, FA_HVX_G_MAX) : n_rows;
    const float ops    = n_rows * s->n_kv * (FA_INT_COST_HVX + FA_INT_COST_HVX_CH * (hex_align_up(s->DK, 64) + hex_align_up(s->DV, 64)));
    const float bytes  = n_read * s->n_kv * 2 * (s->DK + s->DV);
    return s->n_kv_heads * fmaxf(ops / s->n_threads, bytes / FA_INT_DMA_PER_CYCLE);
}

// Cheapest (Br, Bc) that fits, false: none does
static inline bool fa_int_find_tiling(struct fa_int_tiling * best, const struct fa_int_shape * s, size_t vtcm_budget) {
    const uint32_t br_unit = FA_INT_TILE_ROWS / hex_gcd_u32(s->G, FA_INT_TILE_ROWS); // whole row tiles
    const uint32_t n_slots = 4;

    best->cost = INFINITY;
    for (uint32_t Bc = (uint32_t) hex_smin(hex_align_up(s->n_kv, 64), FA_INT_MAX_BC); Bc >= 64; Bc -= 64) {
        for (uint32_t n_stage = 2; n_stage >= 1; n_stage--) {
            struct fa_int_vtcm_layout none, one, L;
            fa_int_vtcm_layout_build(&none, s, Bc, 0, n_slots, n_stage);
            fa_int_vtcm_layout_build(&one,  s, Bc, 1, n_slots, n_stage);
            if (one.total_bytes > vtcm_budget) {
                continue;
            }

            // chunks of equal size, as few as fit
            const size_t   fit    = (vtcm_budget - none.total_bytes) / (one.total_bytes - none.total_bytes);
            const uint32_t br_max = (uint32_t) (hex_smin(fit, FA_INT_MAX_TILES) * FA_INT_TILE_ROWS / s->G);
            if (br_max == 0) {
                continue;
            }
            const uint32_t n_chunks = (uint32_t) hmx_ceil_div(s->n_q, br_max);
            const uint32_t br_even  = (uint32_t) hmx_ceil_div(s->n_q, n_chunks);
            uint32_t       Br       = (uint32_t) hex_smin(hex_align_up(br_even, br_unit), s->n_q);
            if (Br > br_max) {
                Br = br_max >= br_unit ? (uint32_t) hex_align_down(br_max, br_unit) : br_even;
            }

            const float cost = fa_int_cost(s, Br, Bc) * (n_stage == 2 ? 1.0f : 1.02f);
            if (cost < best->cost) {
                best->Br          = Br;
                best->Bc          = Bc;
                best->n_row_tiles = (uint32_t) hmx_ceil_div((size_t) Br * s->G, FA_INT_TILE_ROWS);
                best->n_slots     = n_slots;
                best->n_stage     = n_stage;
                best->cost        = cost;
                fa_int_vtcm_layout_build(&L, s, Bc, best->n_row_tiles, n_slots, n_stage);
                best->vtcm_size   = L.total_bytes;
            }
        }
    }
    return best->cost < INFINITY;
}

// Kernel parameters if this route is clearly cheaper than HVX; the rest of them doesn't depend on the route
static inline bool fa_int_select(struct htp_fa_kernel_params * kparams, const struct fa_int_shape * s, size_t vtcm_budget) {
    struct fa_int_tiling tiling;
    if (!fa_int_find_tiling(&tiling, s, vtcm_budget) || tiling.cost > 0.7f * fa_int_cost_hvx(s)) {
        return false;
    }

    kparams->kernel_type = HTP_FA_KERNEL_HMX_INT;
    kparams->Br          = tiling.Br;
    kparams->Bc          = tiling.Bc;
    kparams->n_kv_blocks = hmx_ceil_div(s->n_kv, tiling.Bc);
    kparams->n_threads   = s->n_threads;
    kparams->vtcm_size   = tiling.vtcm_size;

    kparams->u.hmx_int.n_row_tiles = tiling.n_row_tiles;
    kparams->u.hmx_int.n_slots     = tiling.n_slots;
    kparams->u.hmx_int.n_stage     = tiling.n_stage;
    kparams->u.hmx_int.store_shift = fa_int_store_shift(s->DK);
    kparams->u.hmx_int.q_norm      = fa_int_q_norm(s->DK);
    kparams->u.hmx_int.v_is_k      = s->v_is_k;
    kparams->u.hmx_int.div_G       = init_fastdiv_values(s->G);
    return true;
}

struct htp_ops_context;
int hmx_int_flash_attn_ext(struct htp_ops_context * octx);

#ifdef __cplusplus
}
#endif

#endif /* HTP_FLASH_ATTN_INT_OPS_H */
