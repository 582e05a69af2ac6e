#pragma clang diagnostic ignored "-Wunused-function"

#include <HAP_farf.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dma-queue.h"
#include "hex-fastdiv.h"
#include "hex-profile.h"
#include "hmx-queue.h"
#include "htp-vtcm.h"
#include "hvx-flash-attn.h"
#include "hvx-utils.h"
#include "work-queue.h"

#define GGML_COMMON_DECL_C
#include "ggml-common.h"
#include "htp-ctx.h"
#include "htp-ops.h"
#include "htp-tensor.h"

#include "flash-attn-int-ops.h"
#include "hmx-int-fa-kernels.h"

// Workers and the HMX thread walk the same sequence of units and wait for each other by counters only: one dispatch and one HMX job.
//
// chunk   queries of one KV head, as many as fit (KV heads inner)
// block   keys that some row tile of the chunk needs
// unit    row tile x block: QK (HMX), softmax (HVX), PV (HMX), output (HVX). It has a slot until its output is done.
//
// While the HMX multiplies block i, workers convert K and V of block i + 1 (tasks by a shared counter). Rows are bound to workers: groups
// of 8 rows of a tile, round robin. The HMX takes what is ready, PV first. Whoever waits does its pending output when that is ready.

struct fa_int_block {
    uint32_t ib3, qc, head;    // sequence, q chunk, KV head
    uint32_t q_start;
    uint32_t n_rows;           // of the chunk
    uint32_t n_tiles;
    uint32_t i;                // block of keys
    uint32_t n_keys;

    uint32_t stage;            // staging buffers

    uint32_t index;            // number of blocks, chunks, units, groups of Q rows before this one
    uint32_t chunk;
    uint32_t unit;
    uint32_t unit_before;      // unit of the block before
    uint32_t n_units;
    uint32_t q_groups;         // up to the end of this chunk
    bool     first;            // of its chunk
    bool     valid;
};

struct fa_int_job {
    struct htp_ops_context *  octx;
    const struct htp_tensor * q;
    const struct htp_tensor * k;
    const struct htp_tensor * v;
    const struct htp_tensor * mask;
    const struct htp_tensor * sinks;
    const struct htp_tensor * dst;

    struct fa_int_shape       shape;
    struct fa_int_vtcm_layout L;
    uint8_t *                 vtcm;

    uint32_t n_threads;
    uint32_t n_blocks;
    uint32_t n_row_tiles;
    uint32_t n_slots;
    uint32_t n_stage;
    uint32_t Br, Bc;
    uint32_t n_k, n_v;            // tiles of channels
    uint32_t n_vec_k, n_vec_v;
    uint32_t shift;
    float    q_norm;
    float    q_scale;
    float    softcap;
    bool     q_f32, dst_f32;
    bool     k_q8, v_q8;
    bool     center;
    bool     mask_heads;
    struct fastdiv_values div_G;
    struct fastdiv_values div_broadcast_k3, div_broadcast_v3, div_mask2, div_mask3;
    uint32_t qc_first, qc_last;   // q chunks of this device
    uint32_t n_qc;

    const float * slopes;         // per head, NULL without ALiBi
    // what the masks leave to do, per row tile: [sequence][KV head if their masks differ][q chunk][row tile]. NULL: flag, all blocks
    uint16_t *    flags;          // [..][block] FA_INT_FLAG
    uint16_t *    range;          // [..][2] first and last block that is not empty
    uint16_t      flag;

    bool          centered[2];    // of the chunk's K

    // progress, each counts up
    atomic_uint   scanned;        // workers
    atomic_uint   landed[HTP_MAX_NTHREADS]; // blocks whose part of K and V is in VTCM
    atomic_uint   next_task[2];
    atomic_uint   done_tasks[2];
    atomic_uint   converted;      // blocks
    atomic_uint   stats;          // chunks
    atomic_uint   packed;         // groups of Q rows
    atomic_uint   qk;             // units
    atomic_uint   pv;
    atomic_uint   soft[8];        // per slot: groups
    atomic_uint   out[8];
};

static inline uint32_t fa_int_get(atomic_uint * a) {
    return atomic_load_explicit(a, memory_order_acquire);
}

static inline void fa_int_count(atomic_uint * a) {
    atomic_fetch_add_explicit(a, 1, memory_order_release);
}

// ============================================================================
// Sequence
// ============================================================================

static inline size_t fa_int_tile_index(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    const uint32_t im3   = fastmodulo(b->ib3, job->mask->ne[3], &job->div_mask3);
    const uint32_t plane = job->mask_heads ? im3 * job->shape.n_kv_heads + b->head : im3;
    return ((size_t) plane * job->n_qc + b->qc) * job->n_row_tiles + tile;
}

static inline uint32_t fa_int_flag(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    return job->flags ? job->flags[fa_int_tile_index(job, b, tile) * job->n_blocks + b->i] : job->flag;
}

static inline bool fa_int_needed(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    return FA_INT_FLAG_MASK(fa_int_flag(job, b, tile)) != FA_INT_MASK_EMPTY;
}

static inline bool fa_int_masked(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    return FA_INT_FLAG_MASK(fa_int_flag(job, b, tile)) == FA_INT_MASK_MIXED;
}

// Keys of a unit: up to the last one that some row sees
static inline uint32_t fa_int_unit_keys(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    return hex_smin(b->n_keys, FA_INT_FLAG_KEYS(fa_int_flag(job, b, tile)));
}

static inline bool fa_int_is_first(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    return b->i == (job->flags ? job->range[2 * fa_int_tile_index(job, b, tile)] : 0);
}

static inline bool fa_int_is_last(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile) {
    return b->i == (job->flags ? job->range[2 * fa_int_tile_index(job, b, tile) + 1] : job->n_blocks - 1);
}

static inline uint32_t fa_int_tile_rows(const struct fa_int_block * b, uint32_t tile) {
    return hex_smin(FA_INT_TILE_ROWS, b->n_rows - tile * FA_INT_TILE_ROWS);
}

static inline uint32_t fa_int_tile_groups(const struct fa_int_block * b, uint32_t tile) {
    return (fa_int_tile_rows(b, tile) + FA_INT_GROUP_ROWS - 1) / FA_INT_GROUP_ROWS;
}

static void fa_int_enter_chunk(const struct fa_int_job * job, struct fa_int_block * b) {
    b->q_start   = b->qc * job->Br;
    b->n_rows    = hex_smin(job->Br, job->q->ne[1] - b->q_start) * job->shape.G;
    b->n_tiles   = (b->n_rows + FA_INT_TILE_ROWS - 1) / FA_INT_TILE_ROWS;
    b->q_groups += (b->n_rows + FA_INT_GROUP_ROWS - 1) / FA_INT_GROUP_ROWS;
    b->first     = true;
}

// To the first block from b->i on that some row tile needs
static void fa_int_find_block(const struct fa_int_job * job, struct fa_int_block * b) {
    for (;;) {
        for (; b->i < job->n_blocks; b->i++) {
            b->n_units = 0;
            b->n_keys  = 0;
            for (uint32_t t = 0; t < b->n_tiles; t++) {
                if (fa_int_needed(job, b, t)) {
                    b->n_units++;
                    b->n_keys = hex_smax(b->n_keys, FA_INT_FLAG_KEYS(fa_int_flag(job, b, t)));
                }
            }
            if (b->n_units) {
                // cells behind the last key that a row sees, as of a cache not full yet, have no say in scales and means
                b->n_keys = hex_smin(b->n_keys, hex_smin(job->Bc, job->shape.n_kv - b->i * job->Bc));
                return;
            }
        }
        b->i = 0;
        if (++b->head == job->shape.n_kv_heads) {
            b->head = 0;
            if (++b->qc == job->qc_last) {
                b->qc = job->qc_first;
                if (++b->ib3 == job->q->ne[3]) {
                    b->valid = false;
                    return;
                }
            }
        }
        b->chunk++;
        fa_int_enter_chunk(job, b);
    }
}

static void fa_int_first_block(const struct fa_int_job * job, struct fa_int_block * b) {
    memset(b, 0, sizeof(*b));
    b->qc    = job->qc_first;
    b->valid = true;
    fa_int_enter_chunk(job, b);
    fa_int_find_block(job, b);
}

static void fa_int_next_block(const struct fa_int_job * job, struct fa_int_block * b) {
    b->index++;
    b->stage = b->stage + 1 == job->n_stage ? 0 : b->stage + 1;
    b->unit_before = b->unit;
    b->unit += b->n_units;
    b->first = false;
    b->i++;
    fa_int_find_block(job, b);
}

// ============================================================================
// HMX thread
// ============================================================================

// A unit: a row tile of a block
struct fa_int_unit {
    struct fa_int_block b;
    uint32_t            tile;
    uint32_t            unit;
};

// From u->tile on. u->b.valid says whether there is one.
static void fa_int_find_unit(const struct fa_int_job * job, struct fa_int_unit * u) {
    while (u->b.valid) {
        for (; u->tile < u->b.n_tiles; u->tile++) {
            if (fa_int_needed(job, &u->b, u->tile)) {
                return;
            }
        }
        u->tile = 0;
        fa_int_next_block(job, &u->b);
    }
}

static void fa_int_first_unit(const struct fa_int_job * job, struct fa_int_unit * u) {
    u->tile = 0;
    u->unit = 0;
    fa_int_first_block(job, &u->b);
    fa_int_find_unit(job, u);
}

static void fa_int_next_unit(const struct fa_int_job * job, struct fa_int_unit * u) {
    u->tile++;
    u->unit++;
    fa_int_find_unit(job, u);
}

static void fa_int_hmx_worker(void * data) {
    struct fa_int_job *               job = (struct fa_int_job *) data;
    const struct fa_int_vtcm_layout * L   = &job->L;

    while (fa_int_get(&job->scanned) < job->n_threads) {
        hex_pause();
    }

    struct fa_int_unit qk;
    struct fa_int_unit pv;
    fa_int_first_unit(job, &qk);
    pv = qk;

    const uint8_t * q_tiles = job->vtcm + L->off_q;
    uint8_t *       slots   = job->vtcm + L->off_slots;
    uint32_t        n_soft[8] = { 0 }; // groups per slot that softmax and output will have done
    uint32_t        n_out[8]  = { 0 };
    uint32_t        qk_slot = 0;
    uint32_t        pv_slot = 0;

    asm volatile(HMX_INT_CLRACC());

    while (pv.b.valid) {
        if (pv.unit < qk.unit && fa_int_get(&job->soft[pv_slot]) == n_soft[pv_slot]) {
            const uint32_t n_k  = (fa_int_unit_keys(job, &pv.b, pv.tile) + 31) / 32;
            uint8_t *      slot = slots + pv_slot * L->slot_bytes;
            fa_int_hmx_pv(slot + L->off_slot_b, slot, job->vtcm + L->off_v_tiles[pv.b.index % 2], (job->Bc / 32) * HMX_INT_WGT_TILE_SIZE,
                          job->vtcm + L->off_consts, job->n_v, n_k);
            fa_int_count(&job->pv);
            fa_int_next_unit(job, &pv);
            pv_slot = pv_slot + 1 == job->n_slots ? 0 : pv_slot + 1;
        } else if (qk.b.valid && fa_int_get(&job->out[qk_slot]) == n_out[qk_slot] && fa_int_get(&job->converted) > qk.b.index &&
                   fa_int_get(&job->packed) >= qk.b.q_groups) {
            fa_int_hmx_qk(slots + qk_slot * L->slot_bytes, q_tiles + qk.tile * L->q_tile_bytes, job->vtcm + L->off_k_tiles[qk.b.index % 2],
                          job->vtcm + L->off_k_bias[qk.b.index % 2], (fa_int_unit_keys(job, &qk.b, qk.tile) + 31) / 32, job->n_k);
            const uint32_t n_groups = fa_int_tile_groups(&qk.b, qk.tile);
            n_soft[qk_slot] += n_groups;
            n_out[qk_slot]  += n_groups;
            fa_int_count(&job->qk);
            fa_int_next_unit(job, &qk);
            qk_slot = qk_slot + 1 == job->n_slots ? 0 : qk_slot + 1;
        } else {
            hex_pause();
        }
    }
}

// ============================================================================
// Workers
// ============================================================================

// A unit whose output is still to be done
struct fa_int_pending {
    struct fa_int_block b;
    uint32_t            tile, unit, slot;
    uint32_t            groups; // bits, 0: none
};

struct fa_int_worker {
    struct fa_int_job *       job;
    struct htp_thread_trace * tr;
    dma_queue *               dma;
    uint32_t                  i, n;
    uint8_t *                 area;

    uint32_t pushed;            // DMA
    uint32_t popped;
    uint32_t kv_ticket[2];      // what was pushed when: per staging buffer
    uint32_t out_ticket;
    uint32_t out_ticket_before; // of the chunks before
    uint32_t out_chunk;

    struct fa_int_block load;   // next to be loaded

    struct fa_int_unit mask;    // next mask to be loaded
    uint32_t           mask_group;
    uint32_t           mask_pushed;
    uint32_t           mask_used;
    uint32_t           mask_ticket[FA_INT_MASK_BUFS];

    struct fa_int_pending pending;
};

static inline bool fa_int_owner(const struct fa_int_worker * w, uint32_t tile, uint32_t group) {
    const uint32_t g = tile * FA_INT_GROUPS + group;
    return g - fastdiv(g, &w->job->octx->n_threads_div) * w->n == w->i;
}

// --- DMA ---

static void fa_int_dma_pop(struct fa_int_worker * w) {
    dma_queue_pop(w->dma);
    w->popped++;
}

static void fa_int_dma_push(struct fa_int_worker * w, dma_data d, size_t dst_stride, size_t src_stride, size_t bytes, uint32_t n) {
    while (!dma_queue_push(w->dma, d, dst_stride, src_stride, bytes, n)) {
        fa_int_dma_pop(w);
    }
    w->pushed++;
}

// A few rows. Strides that a descriptor can't hold would be waited for.
static void fa_int_dma_push_rows(struct fa_int_worker * w, dma_data d, size_t dst_stride, size_t src_stride, size_t bytes, uint32_t n) {
    if (dst_stride <= DMA_MAX_STRIDE_16B && src_stride <= DMA_MAX_STRIDE_16B) {
        fa_int_dma_push(w, d, dst_stride, src_stride, bytes, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        fa_int_dma_push(w, dma_make_data(d.dst + i * dst_stride, d.src + i * src_stride), bytes, bytes, bytes, 1);
    }
}

static inline void fa_int_dma_wait(struct fa_int_worker * w, uint32_t ticket) {
    while ((int32_t) (ticket - w->popped) > 0) {
        fa_int_dma_pop(w);
    }
}

// --- output of a unit ---

// n rows of a chunk from row on
static void fa_int_push_out(struct fa_int_worker * w, const struct fa_int_block * b, const uint8_t * o, uint32_t row, uint32_t n) {
    const struct fa_int_job * job = w->job;
    const struct htp_tensor * dst = job->dst;
    const uint32_t G     = job->shape.G;
    const size_t   bytes = job->shape.DV * (job->dst_f32 ? 4 : 2);
    const size_t   pitch = job->L.o_row_bytes;

    uint32_t q = fastdiv(row, &job->div_G);
    uint32_t h = row - q * G;
    while (n) {
        // heads of a query, or queries of the only head
        const uint32_t   m  = G == 1 ? n : hex_smin(n, G - h);
        const dma_addr_t to = dst->data + (b->head * G + h) * dst->nb[1] + (b->q_start + q) * dst->nb[2] + b->ib3 * dst->nb[3];
        fa_int_dma_push_rows(w, dma_make_data(to, o), G == 1 ? dst->nb[2] : dst->nb[1], pitch, bytes, m);
        o += m * pitch;
        n -= m;
        q++;
        h = 0;
    }
    w->out_ticket = w->pushed;
}

// Finished rows, in place
static void fa_int_rows_to_f16(uint8_t * o, size_t pitch, uint32_t n_v, uint32_t n_rows) {
    for (uint32_t r = 0; r < n_rows; r++, o += pitch) {
        for (uint32_t c = 0; c < n_v; c += 2) {
            const HVX_Vector x0 = hvx_vmem(o + c * 128);
            const HVX_Vector x1 = c + 1 < n_v ? hvx_vmem(o + c * 128 + 128) : Q6_V_vzero();
            hvx_vmem(o + c * 64) = hvx_vec_f32_to_f16(x0, x1);
        }
    }
}

// Values by head of 8 rows: row i in lane i (and i + 8 ...)
static void fa_int_head_values(const struct fa_int_job * job, float * lanes, const float * values, uint32_t head, uint32_t row) {
    const uint32_t G = job->shape.G;
    uint32_t       h = row - fastdiv(row, &job->div_G) * G;
    for (uint32_t i = 0; i < FA_INT_GROUP_ROWS; i++) {
        lanes[i] = lanes[i + 8] = lanes[i + 16] = lanes[i + 24] = values[head * G + h];
        h = h + 1 == G ? 0 : h + 1;
    }
}

// Per group of rows: reference of the running sums, sum, scale of Q
static inline HVX_Vector * fa_int_state(const struct fa_int_job * job, uint32_t tile, uint32_t group) {
    return (HVX_Vector *) (job->vtcm + job->L.off_state) + FA_INT_STATE_VECS * (tile * FA_INT_GROUPS + group);
}

// What centering K takes from the scores of a group's rows; outputs of the chunk before may still be pending
static inline HVX_Vector * fa_int_lost(const struct fa_int_job * job, const struct fa_int_block * b, uint32_t tile, uint32_t group) {
    return fa_int_state(job, tile, group) + 3 + b->chunk % 2;
}

// Apart from the kernel before, which needs all vector registers. sums: of the rows
FA_INT_KERNEL void fa_int_finish_rows(struct fa_int_worker * w, const struct fa_int_block * b, uint8_t * o, uint32_t row, uint32_t n_rows,
                                      const float * sums) {
    const struct fa_int_job * job = w->job;
    for (uint32_t r = 0; r < n_rows; r++) {
        // rows without any key: zeros, not nearly
        if (sums[r] < 1e-30f) {
            fa_int_out_zero(o + r * job->L.o_row_bytes, job->n_v);
        }
    }
    if (!job->dst_f32) {
        fa_int_rows_to_f16(o, job->L.o_row_bytes, job->n_v, n_rows);
    }
    fa_int_push_out(w, b, o, row, n_rows);
}

FA_INT_KERNEL void fa_int_output_group(struct fa_int_worker * w, const struct fa_int_pending * u, uint32_t group, bool last) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;
    const struct fa_int_block *       b   = &u->b;

    const uint32_t row     = u->tile * FA_INT_TILE_ROWS + group * FA_INT_GROUP_ROWS;
    const uint32_t n_rows  = hex_smin(FA_INT_GROUP_ROWS, b->n_rows - row);
    const uint32_t n_pairs = (n_rows + 1) / 2;
    const bool     first   = fa_int_is_first(job, b, u->tile);

    const uint8_t *    slot  = job->vtcm + L->off_slots + u->slot * L->slot_bytes;
    const uint8_t *    tiles = slot + L->off_slot_b + group * (FA_INT_GROUP_ROWS / 2) * 128;
    const HVX_Vector * m_s   = (const HVX_Vector *) (slot + L->off_slot_state) + 2 * group;
    HVX_Vector *       state = fa_int_state(job, u->tile, group);
    const HVX_Vector * step  = (const HVX_Vector *) (job->vtcm + L->off_v_scale[b->index % 3]);
    const HVX_Vector * mean  = step + job->n_v;
    uint8_t *          o     = job->vtcm + L->off_o + row * L->o_row_bytes;

    if (b->chunk != w->out_chunk) {
        w->out_chunk         = b->chunk;
        w->out_ticket_before = w->out_ticket;
    }
    if (first) {
        fa_int_dma_wait(w, w->out_ticket_before); // the rows' last content is on its way out
    }
    float sinks[32] __attribute__((aligned(128)));
    float sums[32]  __attribute__((aligned(128)));
    if (last && job->sinks) {
        fa_int_head_values(job, sinks, (const float *) htp_tensor_data(job->sinks), b->head, row);
    }

    const HVX_Vector zero = Q6_V_vzero();
    const HVX_Vector one  = hvx_vec_splat_f32(1.0f);
    const HVX_Vector m    = m_s[0];
    const HVX_Vector s    = Q6_Vsf_equals_Vw(m_s[1]);
    HVX_Vector       ref  = m;
    HVX_Vector       sum  = s;
    HVX_Vector       fo   = one;
    HVX_Vector       fa   = one;
    HVX_Vector       fm   = s;
    bool             move = false;
    if (!first) {
        ref = state[0];
        sum = state[1];

        HVX_Vector up = Q6_Vw_vsub_VwVw_sat(m, ref);
        up   = Q6_Vw_vmax_VwVw(up, Q6_V_vror_VR(up, 4));
        up   = Q6_Vw_vmax_VwVw(up, Q6_V_vror_VR(up, 8));
        up   = Q6_Vw_vmax_VwVw(up, Q6_V_vror_VR(up, 16));
        move = hvx_vec_get_i32(up) > FA_INT_SCORE_RESCALE;
        if (move) {
            const HVX_Vector old = ref;
            ref = Q6_Vw_vmax_VwVw(ref, m);
            fo  = fa_int_exp2_f32(Q6_Vw_vsub_VwVw_sat(old, ref));
            sum = hvx_vec_mul_f32_f32(sum, fo);
        }
        fa  = fa_int_exp2_f32(Q6_Vw_vsub_VwVw_sat(m, ref));
        fm  = hvx_vec_mul_f32_f32(fa, s);
        sum = hvx_vec_add_f32_f32(sum, fm);
    }

    if (!last) {
        state[0] = ref;
        state[1] = sum;
    } else {
        hvx_vmem(sums) = sum;
        HVX_Vector num = one;
        if (job->sinks) {
            const HVX_Vector unit = hvx_vec_mul_f32_f32(hvx_vmem(sinks), hvx_vec_splat_f32(FA_INT_SCORE_UNIT));
            const HVX_Vector sink = Q6_Vw_equals_Vsf(hvx_vec_sub_f32_f32(unit, *fa_int_lost(job, b, u->tile, group)));
            const HVX_Vector top  = Q6_Vw_vmax_VwVw(ref, sink);
            const HVX_Vector add  = hvx_vec_mul_f32_f32(fa_int_exp2_f32(Q6_Vw_vsub_VwVw_sat(sink, top)), hvx_vec_splat_f32(FA_INT_P_ONE));
            num = fa_int_exp2_f32(Q6_Vw_vsub_VwVw_sat(ref, top));
            sum = hvx_vec_add_f32_f32(hvx_vec_mul_f32_f32(sum, num), add);
        }
        const HVX_VectorPred some = Q6_Q_vcmp_gt_VsfVsf(sum, hvx_vec_splat_f32(1e-30f));
        const HVX_Vector     inv  = hvx_vec_mul_f32_f32(hvx_vec_inverse_f32(Q6_V_vmux_QVV(some, sum, one)), num);
        const HVX_Vector     norm = Q6_V_vmux_QVV(some, inv, zero);
        fo = hvx_vec_mul_f32_f32(fo, norm);
        fa = hvx_vec_mul_f32_f32(fa, norm);
        fm = hvx_vec_mul_f32_f32(fm, norm);
    }

    if (first) {
        fa_int_out_first(tiles, o, L->o_row_bytes, job->n_v, n_pairs, step, mean, fa, fm);
    } else if (last || move) {
        fa_int_out_scale(tiles, o, L->o_row_bytes, job->n_v, n_pairs, step, mean, fo, fa, fm);
    } else {
        fa_int_out_add(tiles, o, L->o_row_bytes, job->n_v, n_pairs, step, mean, fa, fm);
    }
    fa_int_count(&job->out[u->slot]);

    if (last) {
        fa_int_finish_rows(w, b, o, row, n_rows, sums);
    }
}

static void fa_int_output(struct fa_int_worker * w) {
    struct fa_int_pending * u    = &w->pending;
    const bool              last = fa_int_is_last(w->job, &u->b, u->tile);

    htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_O_PROC, (uint16_t) u->unit);
    for (uint32_t g = 0; g < FA_INT_GROUPS; g++) {
        if (u->groups >> g & 1) {
            fa_int_output_group(w, u, g, last);
        }
    }
    htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_O_PROC, (uint16_t) u->unit);
    u->groups = 0;
}

// --- waiting ---

static inline void fa_int_idle(struct fa_int_worker * w) {
    if (w->pending.groups && fa_int_get(&w->job->pv) > w->pending.unit) {
        fa_int_output(w);
    } else {
        hex_pause();
    }
}

static inline void fa_int_wait_for(struct fa_int_worker * w, atomic_uint * a, uint32_t n) {
    while (fa_int_get(a) < n) {
        fa_int_idle(w);
    }
}

static inline void fa_int_flush(struct fa_int_worker * w) {
    while (w->pending.groups) {
        fa_int_idle(w);
    }
}

// --- K and V ---

static inline uint32_t fa_int_part(const struct fa_int_worker * w, uint32_t n_keys, uint32_t * start) {
    const uint32_t part = fastdiv(n_keys + w->n - 1, &w->job->octx->n_threads_div);
    *start = hex_smin(w->i * part, n_keys);
    return hex_smin(part, n_keys - *start);
}

// This worker's keys of the next block
static void fa_int_push_kv(struct fa_int_worker * w) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;
    struct fa_int_block *             b   = &w->load;
    const struct htp_tensor *         k   = job->k;
    const struct htp_tensor *         v   = job->v;

    uint32_t       start;
    const uint32_t n   = fa_int_part(w, b->n_keys, &start);
    const uint32_t key = b->i * job->Bc + start;
    const uint32_t s   = b->stage;
    if (n) {
        const dma_addr_t ks = k->data + key * k->nb[1] + b->head * k->nb[2] + fastdiv(b->ib3, &job->div_broadcast_k3) * k->nb[3];
        fa_int_dma_push(w, dma_make_data(job->vtcm + L->off_k_stage[s] + start * L->k_pitch, ks), L->k_pitch, k->nb[1],
                        htp_tensor_get_row_size(k->type, job->shape.DK), n);
        if (!job->shape.v_is_k) {
            const dma_addr_t vs = v->data + key * v->nb[1] + b->head * v->nb[2] + fastdiv(b->ib3, &job->div_broadcast_v3) * v->nb[3];
            fa_int_dma_push(w, dma_make_data(job->vtcm + L->off_v_stage[s] + start * L->v_pitch, vs), L->v_pitch, v->nb[1],
                            htp_tensor_get_row_size(v->type, job->shape.DV), n);
        }
    }
    w->kv_ticket[s] = w->pushed;
    fa_int_next_block(job, b);
}

// Load what there is a free staging buffer for
static inline void fa_int_push_kv_ahead(struct fa_int_worker * w) {
    if (w->load.valid && fa_int_get(&w->job->converted) + w->job->n_stage > w->load.index) {
        fa_int_push_kv(w);
    }
}

// This worker's keys of a block have arrived
static void fa_int_land_kv(struct fa_int_worker * w, const struct fa_int_block * b) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;
    const uint32_t                    s   = b->stage;

    while (w->load.valid && w->load.index <= b->index) {
        fa_int_wait_for(w, &job->converted, w->load.index < job->n_stage ? 0 : w->load.index + 1 - job->n_stage);
        fa_int_push_kv(w);
    }
    fa_int_dma_wait(w, w->kv_ticket[s]);

    uint32_t       start;
    const uint32_t n = fa_int_part(w, b->n_keys, &start);
    if (job->k_q8) {
        for (uint32_t r = start; r < start + n; r++) {
            fa_int_dequant_q8_0(job->vtcm + L->off_k_stage[s] + r * L->k_pitch, job->shape.DK / 32);
        }
    }
    if (job->v_q8 && !job->shape.v_is_k) {
        for (uint32_t r = start; r < start + n; r++) {
            fa_int_dequant_q8_0(job->vtcm + L->off_v_stage[s] + r * L->v_pitch, job->shape.DV / 32);
        }
    }
    if (w->i == 0) {
        // nobody looks at them before all have landed
        atomic_store_explicit(&job->next_task[b->index % 2], 0, memory_order_relaxed);
        atomic_store_explicit(&job->done_tasks[b->index % 2], 0, memory_order_relaxed);
    }
    fa_int_count(&job->landed[w->i]);
}

static void fa_int_stats_task(struct fa_int_worker * w, const struct fa_int_block * b) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;
    const uint32_t                    c   = b->chunk % 2;
    const uint32_t                    n   = hex_smin(64, b->n_keys);

    htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_FA_K_PREP, (uint16_t) b->index);
    job->centered[c] = fa_int_k_stats(fa_int_stats_at(job->vtcm + L->off_stats[c], job->n_vec_k),
                                      job->vtcm + L->off_k_stage[b->stage], MAX(b->n_keys / 64, 1) * L->k_pitch, n,
                                      job->shape.DK, job->center, job->q_scale, (HVX_Vector *) (w->area + L->off_t_tmp));
    htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_FA_K_PREP, (uint16_t) b->index);
    fa_int_count(&job->stats);
}

static void fa_int_k_task(struct fa_int_worker * w, const struct fa_int_block * b, uint32_t col) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;

    fa_int_wait_for(w, &job->stats, b->chunk + 1);
    fa_int_wait_for(w, &job->qk, b->unit_before); // who had the tiles before
    htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_FA_K_PREP, (uint16_t) (b->i * job->Bc + col * 32));
    fa_int_k_convert(job->vtcm + L->off_k_tiles[b->index % 2] + col * job->n_k * HMX_INT_WGT_TILE_SIZE,
                     (HVX_Vector *) (job->vtcm + L->off_k_bias[b->index % 2] + col * HMX_INT_BIAS_SIZE),
                     (HVX_Vector *) (job->vtcm + L->off_k_scale[b->index % 3]) + col,
                     job->vtcm + L->off_k_stage[b->stage] + col * 32 * L->k_pitch, L->k_pitch,
                     hex_smin(32, b->n_keys - col * 32), job->n_vec_k, job->n_k, job->shift,
                     fa_int_stats_at(job->vtcm + L->off_stats[b->chunk % 2], job->n_vec_k), job->centered[b->chunk % 2],
                     (HVX_Vector *) (w->area + L->off_t_rows), (HVX_Vector *) (w->area + L->off_t_tmp));
    htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_FA_K_PREP, (uint16_t) (b->i * job->Bc + col * 32));
}

static void fa_int_v_task(struct fa_int_worker * w, const struct fa_int_block * b, uint32_t vec) {
    struct fa_int_job *               job    = w->job;
    const struct fa_int_vtcm_layout * L      = &job->L;
    const uint32_t                    stride = (job->Bc / 32) * HMX_INT_WGT_TILE_SIZE;
    HVX_Vector *                      step   = (HVX_Vector *) (job->vtcm + L->off_v_scale[b->index % 3]) + 2 * vec;

    fa_int_wait_for(w, &job->pv, b->unit_before);
    htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_FA_V_PREP, (uint16_t) (b->i * job->Bc + vec));
    fa_int_v_convert(job->vtcm + L->off_v_tiles[b->index % 2] + 2 * vec * stride, stride, 2 * vec + 1 < job->n_v, step, step + job->n_v,
                     job->vtcm + L->off_v_stage[b->stage] + vec * 128, L->v_pitch, b->n_keys, b->i == 0);
    htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_FA_V_PREP, (uint16_t) (b->i * job->Bc + vec));
}

static void fa_int_convert(struct fa_int_worker * w, const struct fa_int_block * b) {
    struct fa_int_job * job = w->job;

    fa_int_land_kv(w, b);
    for (uint32_t i = 0; i < w->n; i++) {
        fa_int_wait_for(w, &job->landed[i], b->index + 1);
    }

    const uint32_t p       = b->index % 2;
    const uint32_t n_cols  = (b->n_keys + 31) / 32;
    const uint32_t n_stats = b->first ? 1 : 0;
    const uint32_t n_tasks = n_stats + n_cols + job->n_vec_v;
    uint32_t       t;
    while ((t = atomic_fetch_add(&job->next_task[p], 1)) < n_tasks) {
        if (t < n_stats) {
            fa_int_stats_task(w, b);
        } else if (t < n_stats + n_cols) {
            fa_int_k_task(w, b, t - n_stats);
        } else {
            fa_int_v_task(w, b, t - n_stats - n_cols);
        }
        if (atomic_fetch_add(&job->done_tasks[p], 1) + 1 == n_tasks) {
            fa_int_count(&job->converted);
        }
    }
}

// --- Q ---

// To the next group of rows of this worker
static bool fa_int_next_group(const struct fa_int_worker * w, const struct fa_int_block * b, uint32_t * tile, uint32_t * group) {
    for (; *tile < b->n_tiles; (*tile)++, *group = 0) {
        for (const uint32_t n = fa_int_tile_groups(b, *tile); *group < n; (*group)++) {
            if (fa_int_owner(w, *tile, *group)) {
                return true;
            }
        }
    }
    return false;
}

static uint32_t fa_int_push_q(struct fa_int_worker * w, const struct fa_int_block * b, uint32_t tile, uint32_t group, uint32_t buf) {
    const struct fa_int_job * job   = w->job;
    const struct htp_tensor * q     = job->q;
    const uint32_t            G     = job->shape.G;
    const size_t              pitch = job->L.q_pitch;
    const uint32_t            row   = tile * FA_INT_TILE_ROWS + group * FA_INT_GROUP_ROWS;

    uint8_t * dst = w->area + job->L.off_t_q[buf];
    uint32_t  n   = hex_smin(FA_INT_GROUP_ROWS, b->n_rows - row);
    uint32_t  iq  = fastdiv(row, &job->div_G);
    uint32_t  h   = row - iq * G;
    while (n) {
        const uint32_t   m    = G == 1 ? n : hex_smin(n, G - h);
        const dma_addr_t from = q->data + (b->q_start + iq) * q->nb[1] + (b->head * G + h) * q->nb[2] + b->ib3 * q->nb[3];
        fa_int_dma_push_rows(w, dma_make_data(dst, from), pitch, G == 1 ? q->nb[1] : q->nb[2], job->shape.DK * job->shape.q_elem, m);
        dst += m * pitch;
        n   -= m;
        iq++;
        h = 0;
    }
    return w->pushed;
}

// b: first block of the chunk
static void fa_int_pack_q(struct fa_int_worker * w, const struct fa_int_block * b) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;

    const uint32_t            c    = b->chunk % 2;
    const struct fa_int_stats st   = fa_int_stats_at(job->vtcm + L->off_stats[c], job->n_vec_k);
    HVX_Vector *              rows = (HVX_Vector *) (w->area + L->off_t_rows);
    HVX_Vector *              tmp  = (HVX_Vector *) (w->area + L->off_t_tmp);

    uint32_t tile  = 0;
    uint32_t group = 0;
    uint32_t buf   = 0;
    bool     more  = fa_int_next_group(w, b, &tile, &group);
    uint32_t ticket[2];
    if (more) {
        ticket[0] = fa_int_push_q(w, b, tile, group, 0);
    }
    fa_int_wait_for(w, &job->stats, b->chunk + 1);
    fa_int_wait_for(w, &job->qk, b->unit);
    while (more) {
        const uint32_t t = tile;
        const uint32_t g = group++;
        more = fa_int_next_group(w, b, &tile, &group);
        if (more) {
            ticket[!buf] = fa_int_push_q(w, b, tile, group, !buf);
        }
        fa_int_dma_wait(w, ticket[buf]);

        const uint32_t row = t * FA_INT_TILE_ROWS + g * FA_INT_GROUP_ROWS;
        htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_FA_Q_PREP, (uint16_t) row);
        fa_int_state(job, t, g)[2] =
            fa_int_q_pack(job->vtcm + L->off_q + t * L->q_tile_bytes + g * (FA_INT_GROUP_ROWS / 2) * 128, w->area + L->off_t_q[buf], L->q_pitch,
                          job->q_f32, hex_smin(FA_INT_GROUP_ROWS, b->n_rows - row), job->n_k, job->shift, job->q_norm, st, rows, tmp);
        if (job->sinks) {
            *fa_int_lost(job, b, t, g) = fa_int_q_dots(rows, job->centered[c] ? job->n_k : 0, st, tmp);
        }
        htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_FA_Q_PREP, (uint16_t) row);
        fa_int_count(&job->packed);
        buf = !buf;
    }
}

// --- masks ---

// n queries of a head's mask in a block
static void fa_int_push_mask_rows(struct fa_int_worker * w, uint8_t * dst, const struct fa_int_block * b, uint32_t q, uint32_t head, uint32_t n) {
    const struct fa_int_job * job  = w->job;
    const struct htp_tensor * mask = job->mask;
    const uint32_t            im2  = fastmodulo(head, mask->ne[2], &job->div_mask2);
    const uint32_t            im3  = fastmodulo(b->ib3, mask->ne[3], &job->div_mask3);
    const dma_addr_t          from = mask->data + (b->q_start + q) * mask->nb[1] + im2 * mask->nb[2] + im3 * mask->nb[3] + b->i * job->Bc * 2;
    fa_int_dma_push_rows(w, dma_make_data(dst, from), job->L.mask_pitch, mask->nb[1], b->n_keys * 2, n);
}

// Of a group of rows: one row per query, or per row if heads differ
static void fa_int_push_mask(struct fa_int_worker * w, uint8_t * dst, const struct fa_int_block * b, uint32_t tile, uint32_t group) {
    const struct fa_int_job * job = w->job;
    const uint32_t G   = job->shape.G;
    const uint32_t row = tile * FA_INT_TILE_ROWS + group * FA_INT_GROUP_ROWS;
    const uint32_t n   = hex_smin(FA_INT_GROUP_ROWS, b->n_rows - row);
    uint32_t       q   = fastdiv(row, &job->div_G);
    if (!job->mask_heads) {
        fa_int_push_mask_rows(w, dst, b, q, 0, fastdiv(row + n - 1, &job->div_G) - q + 1);
        return;
    }
    uint32_t h = row - q * G;
    for (uint32_t i = 0; i < n; i++) {
        fa_int_push_mask_rows(w, dst + i * job->L.mask_pitch, b, q, b->head * G + h, 1);
        if (++h == G) {
            h = 0;
            q++;
        }
    }
}

// w->mask to the next unit and group that this worker needs a mask for
static void fa_int_find_mask(struct fa_int_worker * w) {
    const struct fa_int_job * job = w->job;
    while (w->mask.b.valid) {
        if (fa_int_masked(job, &w->mask.b, w->mask.tile)) {
            for (const uint32_t n = fa_int_tile_groups(&w->mask.b, w->mask.tile); w->mask_group < n; w->mask_group++) {
                if (fa_int_owner(w, w->mask.tile, w->mask_group)) {
                    return;
                }
            }
        }
        w->mask_group = 0;
        fa_int_next_unit(job, &w->mask);
    }
}

static void fa_int_push_masks_ahead(struct fa_int_worker * w) {
    while (w->mask.b.valid && w->mask_pushed < w->mask_used + FA_INT_MASK_BUFS) {
        const uint32_t buf = w->mask_pushed % FA_INT_MASK_BUFS;
        fa_int_push_mask(w, w->area + w->job->L.off_t_mask + buf * w->job->L.mask_bytes, &w->mask.b, w->mask.tile, w->mask_group);
        w->mask_ticket[buf] = w->pushed;
        w->mask_pushed++;
        w->mask_group++;
        fa_int_find_mask(w);
    }
}

// --- softmax ---

FA_INT_KERNEL void fa_int_softmax_group(struct fa_int_worker * w, const struct fa_int_block * b, uint32_t tile, uint32_t group, uint32_t slot) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;

    const uint32_t G        = job->shape.G;
    const uint32_t row      = tile * FA_INT_TILE_ROWS + group * FA_INT_GROUP_ROWS;
    const uint32_t n_rows   = hex_smin(FA_INT_GROUP_ROWS, b->n_rows - row);
    const bool     has_mask = fa_int_masked(job, b, tile);
    const uint32_t n_keys   = fa_int_unit_keys(job, b, tile);
    uint8_t *      p        = job->vtcm + L->off_slots + slot * L->slot_bytes;
    const size_t   off      = group * (FA_INT_GROUP_ROWS / 2) * 128;

    struct fa_int_scores s;
    s.a       = p + off;
    s.b       = p + L->off_slot_b + off;
    s.n_cols  = (n_keys + 31) / 32;
    s.n_keys  = n_keys;
    s.n_pairs = (n_rows + 1) / 2;
    s.k_scale = (const HVX_Vector *) (job->vtcm + L->off_k_scale[b->index % 3]);
    s.q_scale = fa_int_state(job, tile, group)[2];
    s.softcap = job->softcap;
    s.tmp     = (HVX_Vector *) (w->area + L->off_t_tmp);

    if (has_mask) {
        const uint32_t  buf = w->mask_used % FA_INT_MASK_BUFS;
        const uint8_t * m   = w->area + L->off_t_mask + buf * L->mask_bytes;
        uint32_t        h   = row - fastdiv(row, &job->div_G) * G;
        __fp16          slope[FA_INT_GROUP_ROWS];
        for (uint32_t i = 0; i < FA_INT_GROUP_ROWS; i++) {
            s.mask[i] = m;
            slope[i]  = (__fp16) ((job->slopes ? job->slopes[b->head * G + h] : 1.0f) * FA_INT_SCORE_UNIT);
            h = h + 1 == G ? 0 : h + 1;
            if (i + 1 < n_rows && (job->mask_heads || h == 0)) {
                m += L->mask_pitch;
            }
        }
        for (uint32_t i = 0; i < FA_INT_GROUP_ROWS / 2; i++) {
            union { __fp16 h[2]; int32_t w; } u = { .h = { slope[2 * i], slope[2 * i + 1] } };
            s.slope[i] = Q6_V_vsplat_R(u.w);
        }
        fa_int_dma_wait(w, w->mask_ticket[buf]);
    }

    HVX_Vector * m_s = (HVX_Vector *) (p + L->off_slot_state) + 2 * group;
    htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_FA_SFM, (uint16_t) row);
    if (has_mask) {
        if (job->softcap != 0.0f) {
            fa_int_softmax_mask_softcap(&s, m_s, m_s + 1);
        } else if (job->slopes) {
            fa_int_softmax_alibi(&s, m_s, m_s + 1);
        } else {
            fa_int_softmax_mask(&s, m_s, m_s + 1);
        }
        w->mask_used++;
    } else if (job->softcap != 0.0f) {
        fa_int_softmax_softcap(&s, m_s, m_s + 1);
    } else {
        fa_int_softmax(&s, m_s, m_s + 1);
    }
    htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_FA_SFM, (uint16_t) row);
}

static void fa_int_softmax_unit(struct fa_int_worker * w, const struct fa_int_block * b, uint32_t tile, uint32_t unit, uint32_t slot) {
    struct fa_int_job * job    = w->job;
    uint32_t            groups = 0;
    for (uint32_t g = 0; g < fa_int_tile_groups(b, tile); g++) {
        if (!fa_int_owner(w, tile, g)) {
            continue;
        }
        fa_int_wait_for(w, &job->qk, unit + 1);
        fa_int_softmax_group(w, b, tile, g, slot);
        fa_int_count(&job->soft[slot]);
        fa_int_push_masks_ahead(w);
        groups |= 1u << g;
    }
    if (groups) {
        // the unit before: the HMX had the time of this softmax for it
        fa_int_flush(w);
        w->pending.b      = *b;
        w->pending.tile   = tile;
        w->pending.unit   = unit;
        w->pending.slot   = slot;
        w->pending.groups = groups;
    }
}

// --- which row tiles need which blocks ---

// Where in the mask of a row tile: up to 8 queries of a head in a block
struct fa_int_piece {
    struct fa_int_block b;
    uint32_t            head, q;
};

// The row tile's queries [q0, q1) of n_heads heads. Returns whether the block is through.
static bool fa_int_next_piece(const struct fa_int_job * job, struct fa_int_piece * p, uint32_t q0, uint32_t q1, uint32_t n_heads) {
    p->q += FA_INT_GROUP_ROWS;
    if (p->q < q1) {
        return false;
    }
    p->q = q0;
    if (++p->head < n_heads) {
        return false;
    }
    p->head = 0;
    p->b.i++;
    p->b.n_keys = hex_smin(job->Bc, job->shape.n_kv - p->b.i * job->Bc);
    return true;
}

FA_INT_KERNEL void fa_int_scan_tile(struct fa_int_worker * w, const struct fa_int_block * b, uint32_t tile) {
    struct fa_int_job *               job = w->job;
    const struct fa_int_vtcm_layout * L   = &job->L;

    const uint32_t row     = tile * FA_INT_TILE_ROWS;
    const uint32_t q0      = fastdiv(row, &job->div_G);
    const uint32_t q1      = fastdiv(row + fa_int_tile_rows(b, tile) - 1, &job->div_G) + 1;
    const uint32_t n_heads = job->mask_heads ? job->shape.G : 1;
    const size_t   index   = fa_int_tile_index(job, b, tile);
    uint16_t *     flags   = job->flags + index * job->n_blocks;
    uint16_t *     range   = job->range + index * 2;

    struct fa_int_piece in = { *b, 0, q0 };
    in.b.i      = 0;
    in.b.n_keys = hex_smin(job->Bc, job->shape.n_kv);
    struct fa_int_piece out = in;

    struct fa_int_mask_scan scan;
    fa_int_mask_start(&scan);
    uint32_t         ticket[FA_INT_MASK_BUFS];
    uint32_t         n_in = 0, n_out = 0;
    uint32_t         first = job->n_blocks, last = 0;
    while (out.b.i < job->n_blocks) {
        while (in.b.i < job->n_blocks && n_in < n_out + FA_INT_MASK_BUFS) {
            const uint32_t buf = n_in++ % FA_INT_MASK_BUFS;
            fa_int_push_mask_rows(w, w->area + L->off_t_mask + buf * L->mask_bytes, &in.b, in.q, b->head * job->shape.G + in.head,
                                  hex_smin(FA_INT_GROUP_ROWS, q1 - in.q));
            ticket[buf] = w->pushed;
            fa_int_next_piece(job, &in, q0, q1, n_heads);
        }
        const uint32_t buf = n_out++ % FA_INT_MASK_BUFS;
        fa_int_dma_wait(w, ticket[buf]);

        fa_int_mask_scan(&scan, w->area + L->off_t_mask + buf * L->mask_bytes, L->mask_pitch, hex_smin(FA_INT_GROUP_ROWS, q1 - out.q),
                         out.b.n_keys);

        const uint32_t i = out.b.i;
        if (fa_int_next_piece(job, &out, q0, q1, n_heads)) {
            flags[i] = fa_int_mask_flag(&scan);
            if (FA_INT_FLAG_MASK(flags[i]) != FA_INT_MASK_EMPTY) {
                first = hex_smin(first, i);
                last  = i;
            }
            fa_int_mask_start(&scan);
        }
    }
    if (first == job->n_blocks) {
        // rows without any key: their zeros come from a block like any other
        first    = 0;
        flags[0] = FA_INT_FLAG(FA_INT_MASK_MIXED, hex_smin(64, job->shape.n_kv));
    }
    range[0] = first;
    range[1] = last;
}

static void fa_int_scan(struct fa_int_worker * w) {
    struct fa_int_job * job     = w->job;
    const uint32_t      n_heads = job->mask_heads ? job->shape.n_kv_heads : 1;
    uint32_t            turn    = 0;

    htp_trace_event_start(w->tr, HTP_TRACE_EVT_HVX_A_PREP, (uint16_t) w->i);
    struct fa_int_block b;
    memset(&b, 0, sizeof(b));
    for (b.ib3 = 0; b.ib3 < job->mask->ne[3]; b.ib3++) {
        for (b.head = 0; b.head < n_heads; b.head++) {
            for (b.qc = job->qc_first; b.qc < job->qc_last; b.qc++) {
                fa_int_enter_chunk(job, &b);
                for (uint32_t t = 0; t < b.n_tiles; t++) {
                    if (turn == w->i) {
                        fa_int_scan_tile(w, &b, t);
                    }
                    turn = turn + 1 == w->n ? 0 : turn + 1;
                }
            }
        }
    }
    htp_trace_event_stop(w->tr, HTP_TRACE_EVT_HVX_A_PREP, (uint16_t) w->i);
}

// --- all of it ---

// DMA fills the rows of the staging buffers up to their last channel; zeros behind it
static void fa_int_clear_tails(struct fa_int_worker * w) {
    const struct fa_int_job *         job   = w->job;
    const struct fa_int_vtcm_layout * L     = &job->L;
    const struct fa_int_shape *       shape = &job->shape;
    const HVX_Vector                  zero  = Q6_V_vzero();

    for (uint32_t s = 0; s < job->n_stage; s++) {
        for (uint32_t r = w->i; r < job->Bc; r += w->n) {
            if (shape->DK % 64) {
                hvx_vmem(job->vtcm + L->off_k_stage[s] + (r + 1) * L->k_pitch - 128) = zero;
            }
            if (shape->DV % 64 && !shape->v_is_k) {
                hvx_vmem(job->vtcm + L->off_v_stage[s] + (r + 1) * L->v_pitch - 128) = zero;
            }
        }
    }
    for (uint32_t r = 0; r < 2 * FA_INT_GROUP_ROWS && shape->DK * shape->q_elem % 128; r++) {
        hvx_vmem(w->area + L->off_t_q[0] + (r + 1) * L->q_pitch - 128) = zero;
    }
}

static void fa_int_worker_func(unsigned int n, unsigned int i, void * data) {
    struct fa_int_job * job = (struct fa_int_job *) data;

    struct fa_int_worker w;
    memset(&w, 0, sizeof(w));
    w.job  = job;
    w.tr   = &job->octx->ctx->trace[i];
    w.dma  = job->octx->ctx->dma[i];
    w.i    = i;
    w.n    = n;
    w.area = job->vtcm + job->L.off_threads + i * job->L.thread_bytes;

    if (i == 0) {
        fa_int_hmx_pv_bias((HVX_Vector *) (job->vtcm + job->L.off_consts));
    }
    fa_int_clear_tails(&w);
    if (job->flags) {
        fa_int_scan(&w);
    }
    fa_int_count(&job->scanned);
    fa_int_wait_for(&w, &job->scanned, n);

    fa_int_first_block(job, &w.load);
    fa_int_first_unit(job, &w.mask);
    fa_int_find_mask(&w);

    struct fa_int_block cur = w.load;
    struct fa_int_block next;
    uint32_t            slot = 0;

    for (uint32_t s = 0; s < job->n_stage; s++) {
        fa_int_push_kv_ahead(&w);
    }
    fa_int_convert(&w, &cur);
    fa_int_pack_q(&w, &cur);
    fa_int_push_masks_ahead(&w);

    for (; cur.valid; cur = next) {
        // its scales of V are about to be overwritten
        if (w.pending.groups && w.pending.b.index + 1 < cur.index) {
            fa_int_flush(&w);
        }
        next = cur;
        fa_int_next_block(job, &next);
        fa_int_push_kv_ahead(&w);
        if (next.valid) {
            fa_int_convert(&w, &next);
        }

        uint32_t unit = cur.unit;
        for (uint32_t t = 0; t < cur.n_tiles; t++) {
            if (!fa_int_needed(job, &cur, t)) {
                continue;
            }
            fa_int_push_kv_ahead(&w);
            fa_int_softmax_unit(&w, &cur, t, unit, slot);
            slot = slot + 1 == job->n_slots ? 0 : slot + 1;
            unit++;
        }
        fa_int_push_kv_ahead(&w);

        if (next.valid && next.first) {
            fa_int_pack_q(&w, &next);
        }
    }
    fa_int_flush(&w);
    fa_int_dma_wait(&w, w.pushed);
}

int hmx_int_flash_attn_ext(struct htp_ops_context * octx) {
    const struct htp_fa_kernel_params * kparams = (const struct htp_fa_kernel_params *) octx->kernel_params;
    struct htp_context *                ctx     = octx->ctx;

    struct fa_int_job job;
    memset(&job, 0, sizeof(job));
    job.octx  = octx;
    job.q     = octx->src[0];
    job.k     = octx->src[1];
    job.v     = octx->src[2];
    job.mask  = octx->src[3];
    job.sinks = octx->src[4];
    job.dst   = octx->dst;

    job.n_threads   = kparams->n_threads;
    job.Br          = kparams->Br;
    job.Bc          = kparams->Bc;
    job.n_blocks    = kparams->n_kv_blocks;
    job.n_row_tiles = kparams->u.hmx_int.n_row_tiles;
    job.n_slots     = kparams->u.hmx_int.n_slots;
    job.n_stage     = kparams->u.hmx_int.n_stage;
    job.shift       = kparams->u.hmx_int.store_shift;
    job.q_norm      = kparams->u.hmx_int.q_norm;
    job.mask_heads  = kparams->u.hmx_int.mask_heads;
    job.div_G       = kparams->u.hmx_int.div_G;
    job.softcap     = kparams->logit_softcap;
    job.q_scale     = kparams->scale * (job.softcap != 0.0f ? FA_INT_TANH_UNIT : FA_INT_SCORE_UNIT);
    job.center      = job.softcap == 0.0f;
    job.q_f32       = kparams->is_q_fp32;
    job.dst_f32     = kparams->is_dst_fp32;
    job.k_q8        = job.k->type == HTP_TYPE_Q8_0;
    job.v_q8        = job.v->type == HTP_TYPE_Q8_0;
    job.div_broadcast_k3 = kparams->broadcast_rk3;
    job.div_broadcast_v3 = kparams->broadcast_rv3;
    job.div_mask2        = kparams->src3_div2;
    job.div_mask3        = kparams->src3_div3;

    struct fa_int_shape * shape = &job.shape;
    shape->DK         = job.k->ne[0];
    shape->DV         = job.v->ne[0];
    shape->G          = kparams->G;
    shape->n_q        = job.q->ne[1];
    shape->n_kv       = job.k->ne[1];
    shape->n_kv_heads = job.k->ne[2];
    shape->n_threads  = job.n_threads;
    shape->q_elem     = job.q_f32 ? 4 : 2;
    shape->v_is_k     = kparams->u.hmx_int.v_is_k;

    job.n_k     = hmx_ceil_div(shape->DK, 32);
    job.n_v     = hmx_ceil_div(shape->DV, 32);
    job.n_vec_k = hmx_ceil_div(shape->DK, 64);
    job.n_vec_v = hmx_ceil_div(shape->DV, 64);

    fa_int_vtcm_layout_build(&job.L, shape, job.Bc, job.n_row_tiles, job.n_slots, job.n_stage);
    if (job.L.total_bytes > ctx->vtcm_size) {
        return HTP_STATUS_VTCM_TOO_SMALL;
    }
    job.vtcm = ctx->vtcm_base;

    // Multi-device: split q chunks across devices
    job.n_qc     = hmx_ceil_div(shape->n_q, job.Br);
    job.qc_first = 0;
    job.qc_last  = job.n_qc;
    if (ctx->mdev.count > 1) {
        const bool can_split = htp_tensor_mdev_data_aligned(job.dst) && ((job.dst->nb[2] & (HTP_TENSOR_MDEV_LINE_SIZE - 1)) == 0);
        const struct htp_tensor_mdev_range range =
            htp_tensor_mdev_partition(job.n_qc, can_split ? 1 : 0, ctx->mdev.idx, ctx->mdev.count, &ctx->mdev.count_div);
        job.qc_first = range.start;
        job.qc_last  = range.start + range.count;
    }
    if (job.qc_first >= job.qc_last) {
        return HTP_STATUS_OK;
    }

    // tables in DDR: slopes by head, then what the mask leaves to do if there is room for it
    uint8_t * spad = (uint8_t *) ctx->ddr_spad_base;
    size_t    room = ctx->ddr_spad_size;
    if (kparams->max_bias > 0.0f) {
        const size_t bytes = hex_align_up(job.q->ne[2] * sizeof(float), 128);
        if (bytes > room) {
            return HTP_STATUS_NO_SUPPORT;
        }
        float * slopes = (float *) spad;
        for (uint32_t h = 0; h < job.q->ne[2]; h++) {
            slopes[h] = alibi_slope(h, kparams->n_head_log2, kparams->m0, kparams->m1);
        }
        job.slopes = slopes;
        spad += bytes;
        room -= bytes;
    }
    job.flag = FA_INT_FLAG(job.mask ? FA_INT_MASK_MIXED : FA_INT_MASK_NONE, FA_INT_FLAG_ALL_KEYS);
    if (job.mask) {
        const size_t n_tiles = (size_t) job.mask->ne[3] * (job.mask_heads ? shape->n_kv_heads : 1) * job.n_qc * job.n_row_tiles;
        if (n_tiles * (2 + job.n_blocks) * sizeof(uint16_t) <= room) {
            job.range = (uint16_t *) spad;
            job.flags = job.range + n_tiles * 2;
        }
    }

    hmx_queue_push(ctx->hmx_queue, hmx_queue_make_desc(fa_int_hmx_worker, &job));
    work_queue_run(ctx->work_queue, fa_int_worker_func, &job, job.n_threads);
    hmx_queue_pop(ctx->hmx_queue);

    return HTP_STATUS_OK;
}
