#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#pragma clang diagnostic ignored "-Wunused-function"

#include <HAP_farf.h>

#include <stdatomic.h>
#include <string.h>

#include "dma-queue.h"
#include "hmx-queue.h"
#include "hvx-utils.h"

#define GGML_COMMON_DECL_C
#include "ggml-common.h"
#include "htp-ctx.h"
#include "htp-ops.h"
#include "htp-tensor.h"
#include "htp-vtcm.h"
#include "matmul-int-ops.h"
#include "hmx-int-mm-kernels.h"

// Integer HMX matmul: one work queue run and one HMX job for the whole op.
//
// All threads and the HMX job walk the same steps (see matmul-int-ops.h). In a step a thread packs its share of the
// activations, then converts its column tiles and reduces what comes back, whatever can be done first. HMX starts when
// all activations are packed. There is no other barrier.
//
// Waits end: HMX waits for the oldest column tile that isn't converted or for the oldest stage buffer that isn't reduced.
// Their owner is in its loop, where it does either as soon as it can: reducing needs nothing else, and the slot to convert
// to is free because HMX is done with all older column tiles. With fewer threads the same loop owns more of them.

typedef void (*hmx_int_convert_func)(uint8_t * restrict dst, const uint8_t * restrict src, uint32_t n_tiles, uint32_t tile_stride,
                                     const struct hmx_int_group * g);

struct hmx_int_counter {
    atomic_uint n;
} __attribute__((aligned(HEX_L2_LINE_SIZE)));

// one weight matrix of the op; its column tiles are numbered after those of the weights before
struct hmx_int_weight {
    dma_addr_t weight;
    size_t     column_stride;  // bytes from column tile to column tile
    size_t     nb2;
    size_t     nb3;
    dma_addr_t dst;
    size_t     dst_nb1;
    size_t     dst_nb2;
    size_t     dst_nb3;
    uint32_t   n_cols;
    uint32_t   col_tile0;
    uint32_t   col_tile1;
};

struct hmx_int_mm {
    struct htp_context *                      ctx;
    const struct htp_mm_int_kernel_params *   kparams;
    hmx_int_convert_func                      convert;

    // Tensors
    struct hmx_int_weight                     weights[HTP_OP_MAX_OUTPUTS];
    uint32_t                                  n_weights;
    uint32_t                                  n_col_tiles;
    uint32_t                                  n_k_tiles;
    const struct htp_tensor *                 act;
    const struct htp_tensor *                 src2;        // added to the product, or NULL
    size_t                                    src2_nb1;
    size_t                                    src2_nb2;
    size_t                                    src2_nb3;

    // Phases: batches or experts, each with its own weights and tokens
    uint32_t                                  n_phases;
    uint32_t                                  ne12;
    bool                                      flat;        // all batches are one phase
    uint32_t                                  row_start;
    uint32_t                                  row_end;
    const uint32_t *                          row_counts;  // tokens of the experts, or NULL
    const struct mmid_row_mapping *           rows;
    uint32_t                                  rows_stride;
    bool                                      direct;      // output rows are written by HVX, not DMA

    // VTCM
    struct htp_mm_int_vtcm_layout             layout;
    uint32_t                                  n_groups;
    uint8_t *                                 vtcm_act;
    uint8_t *                                 vtcm_wgt;
    uint8_t *                                 vtcm_raw;
    uint8_t *                                 vtcm_stage;
    uint8_t *                                 vtcm_out;
    uint8_t *                                 vtcm_tables;
    uint8_t *                                 vtcm_scales;

    // Progress, counted from the start of the op
    struct hmx_int_counter                    packed;                            // threads that packed a step
    struct hmx_int_counter                    ready[HTP_MAX_NTHREADS];           // column tiles converted by a thread
    struct hmx_int_counter                    multiplied;                        // column tiles HMX is done with
    struct hmx_int_counter                    steps;                             // steps HMX is done with
    struct hmx_int_counter                    staged;                            // stage buffers filled
    struct hmx_int_counter                    reduced[HTP_MM_INT_STAGE_MAX];     // 1 + the last block reduced from a buffer

    // Token exponents and means of odd and even steps: a slow thread may still reduce one when another packs the next
    uint8_t                                   exps[2][HTP_MM_INT_M_CHUNK_LIMIT];
    int32_t                                   means[2][HTP_MM_INT_M_CHUNK_LIMIT / 2];
    uint8_t                                   e_min[2][HTP_MAX_NTHREADS];
    uint8_t                                   e_max[2][HTP_MAX_NTHREADS];
};

// --- Steps ---

struct hmx_int_step {
    uint32_t                        idx;
    uint32_t                        phase;
    uint32_t                        row_end;    // of the phase
    uint32_t                        row;        // first token
    uint32_t                        n_rows;
    uint32_t                        tile;       // first k-tile
    uint32_t                        n_tiles;
    uint32_t                        group0;     // groups along k before it

    // of the phase
    dma_addr_t                      act;
    size_t                          weight_i2;
    size_t                          weight_i3;
    size_t                          dst_i2;
    size_t                          dst_i3;
    const struct mmid_row_mapping * rows;
};

static bool hmx_int_phase(const struct hmx_int_mm * mm, struct hmx_int_step * st) {
    const uint32_t i = st->phase;

    st->act       = mm->act->data;
    st->weight_i2 = 0;
    st->weight_i3 = 0;
    st->dst_i2    = 0;
    st->dst_i3    = 0;
    st->rows      = NULL;
    st->row       = mm->row_start;
    st->row_end   = mm->row_end;
    st->tile      = 0;
    st->group0    = 0;

    if (mm->row_counts) {
        st->row       = 0;
        st->row_end   = mm->row_counts[i];
        st->rows      = mm->rows + (size_t) i * mm->rows_stride;
        st->weight_i2 = i;
    } else if (!mm->flat) {
        const uint32_t i3 = fastdiv(i, &mm->kparams->div_ne12);
        const uint32_t i2 = i - i3 * mm->ne12;

        st->act      += i2 * mm->act->nb[2] + i3 * mm->act->nb[3];
        st->weight_i2 = fastdiv(i2, &mm->kparams->div_r2);
        st->weight_i3 = fastdiv(i3, &mm->kparams->div_r3);
        st->dst_i2    = i2;
        st->dst_i3    = i3;
    }
    return st->row < st->row_end;
}

static void hmx_int_step_sizes(const struct hmx_int_mm * mm, struct hmx_int_step * st) {
    st->n_rows  = MIN(st->row_end - st->row, (uint32_t) mm->kparams->m_chunk);
    st->n_tiles = MIN(mm->n_k_tiles - st->tile, (uint32_t) mm->kparams->k_chunk);
}

static bool hmx_int_first_phase(const struct hmx_int_mm * mm, struct hmx_int_step * st) {
    while (st->phase < mm->n_phases) {
        if (hmx_int_phase(mm, st)) {
            hmx_int_step_sizes(mm, st);
            return true;
        }
        st->phase++;
    }
    return false;
}

static bool hmx_int_step_first(const struct hmx_int_mm * mm, struct hmx_int_step * st) {
    st->idx   = 0;
    st->phase = 0;
    return hmx_int_first_phase(mm, st);
}

static bool hmx_int_step_next(const struct hmx_int_mm * mm, struct hmx_int_step * st) {
    st->idx++;
    st->tile += st->n_tiles;
    st->group0 += mm->n_groups;
    if (st->tile == mm->n_k_tiles) {
        st->tile   = 0;
        st->group0 = 0;
        st->row += st->n_rows;
        if (st->row == st->row_end) {
            st->phase++;
            return hmx_int_first_phase(mm, st);
        }
    }
    hmx_int_step_sizes(mm, st);
    return true;
}

static inline uint32_t hmx_int_n_blocks(const struct hmx_int_mm * mm, const struct hmx_int_step * st) {
    const uint32_t block_rows = mm->kparams->m_block * 32;
    uint32_t       n          = 0;
    for (uint32_t r = 0; r < st->n_rows; r += block_rows) {
        n++;
    }
    return n;
}

// --- Waiting ---

static inline bool hmx_int_reached(const struct hmx_int_counter * c, uint32_t n) {
    return (int32_t) (atomic_load_explicit(&c->n, memory_order_acquire) - n) >= 0;
}

static inline void hmx_int_wait(const struct hmx_int_counter * c, uint32_t n) {
    while (!hmx_int_reached(c, n)) {
        hex_pause();
    }
}

static inline void hmx_int_publish(struct hmx_int_counter * c, uint32_t n) {
    atomic_store_explicit(&c->n, n, memory_order_release);
}

// --- Column tiles ---

// Column tile i of a thread in a step is i * n_threads + thread
static inline uint8_t * hmx_int_wgt_slot(const struct hmx_int_mm * mm, uint32_t thread, uint32_t i) {
    const uint32_t n = mm->kparams->n_wgt;
    return mm->vtcm_wgt + (thread * n + (i & (n - 1))) * mm->layout.wgt_bytes;
}

static inline uint8_t * hmx_int_table_set(const struct hmx_int_mm * mm, uint32_t thread, uint32_t i) {
    const uint32_t n = 2 * mm->kparams->n_wgt;
    return mm->vtcm_tables + (thread * n + (i & (n - 1))) * mm->layout.table_bytes;
}

struct hmx_int_tables {
    HVX_Vector * bias;      // two for each group; first, for HMX
    HVX_Vector * scales;    // one for each group
    HVX_Vector * residual;  // one for each group
    HVX_Vector * column;
    HVX_Vector * skew;
};

static inline struct hmx_int_tables hmx_int_tables_at(const struct hmx_int_mm * mm, uint32_t thread, uint32_t i) {
    HVX_Vector * v = (HVX_Vector *) hmx_int_table_set(mm, thread, i);
    return (struct hmx_int_tables) { v, v + 2 * mm->n_groups, v + 3 * mm->n_groups, v + 4 * mm->n_groups, v + 4 * mm->n_groups + 1 };
}

static inline uint8_t * hmx_int_stage_buffer(const struct hmx_int_mm * mm, uint32_t block) {
    return mm->vtcm_stage + (block & (mm->kparams->n_stage - 1)) * mm->layout.stage_bytes;
}

static inline struct hmx_int_counter * hmx_int_stage_reduced(struct hmx_int_mm * mm, uint32_t block) {
    return &mm->reduced[block & (mm->kparams->n_stage - 1)];
}

// --- HMX job ---

static void hmx_int_job(void * data) {
    struct hmx_int_mm *                     mm        = data;
    const struct htp_mm_int_kernel_params * kparams   = mm->kparams;
    const uint32_t                          n_threads = kparams->n_threads;
    const uint32_t                          m_block   = kparams->m_block;
    const uint32_t                          n_stage   = kparams->n_stage;

    uint32_t ready[HTP_MAX_NTHREADS] = { 0 };
    uint32_t block      = 0;
    uint32_t multiplied = 0;

    struct hmx_int_step st;
    for (bool more = hmx_int_step_first(mm, &st); more; more = hmx_int_step_next(mm, &st)) {
        const uint32_t n_row_tiles = hmx_ceil_div(st.n_rows, 32);
        const uint32_t act_stride  = st.n_tiles * HMX_INT_ACT_TILE_SIZE;

        hmx_int_wait(&mm->packed, (st.idx + 1) * n_threads);

        uint32_t thread = 0;
        uint32_t i      = 0;
        for (uint32_t ct = 0; ct < mm->n_col_tiles; ct++) {
            const uint8_t * wgt   = hmx_int_wgt_slot(mm, thread, i);
            const uint8_t * table = hmx_int_table_set(mm, thread, i);

            hmx_int_wait(&mm->ready[thread], ++ready[thread]);

            for (uint32_t r = 0; r < n_row_tiles; r += m_block) {
                if (block >= n_stage) {
                    hmx_int_wait(hmx_int_stage_reduced(mm, block), block - n_stage + 1);
                }
                hmx_int_multiply(hmx_int_stage_buffer(mm, block), m_block * HMX_INT_OUT_TILE_SIZE,
                                 mm->vtcm_act + r * act_stride, act_stride, wgt, table,
                                 MIN(n_row_tiles - r, m_block), st.n_tiles, kparams->group);
                hmx_int_publish(&mm->staged, ++block);
            }
            hmx_int_publish(&mm->multiplied, ++multiplied);

            if (++thread == n_threads) {
                thread = 0;
                i++;
            }
        }
        hmx_int_publish(&mm->steps, st.idx + 1);
    }
}

// --- Threads ---

// DMA is a FIFO with several users here: a transfer is waited for by its number
struct hmx_int_dma {
    dma_queue * q;
    uint32_t    pushed;
    uint32_t    popped;
};

static inline uint32_t hmx_int_dma_push(struct hmx_int_dma * d, dma_data data, size_t dst_stride, size_t src_stride,
                                        size_t row_size, size_t n_rows) {
    dma_queue_push(d->q, data, dst_stride, src_stride, row_size, n_rows);
    return ++d->pushed;
}

static inline void hmx_int_dma_wait(struct hmx_int_dma * d, uint32_t n) {
    while ((int32_t) (n - d->popped) > 0) {
        dma_queue_pop(d->q);
        d->popped++;
    }
}

struct hmx_int_thread {
    struct hmx_int_mm *       mm;
    struct htp_thread_trace * tr;
    uint32_t                  ith;
    uint32_t                  n_own;      // column tiles of this thread in a step
    struct hmx_int_dma        dma;

    // raw weights: the next group to fetch, by column tile and group, and the transfers of both buffers
    uint32_t                  raw_i;
    uint32_t                  raw_group;
    uint32_t                  raw_buf;    // to convert next
    uint32_t                  raw_dma[2];

    uint32_t                  out_buf;    // to fill next
    uint32_t                  out_dma[2];
    bool                      acc_pushed; // its addends are on the way

    uint32_t                  e_min;      // of the step, once it is known
    uint32_t                  e_max;
    HVX_Vector *              scales;     // token scales of the column tile that is reduced
};

static inline const struct hmx_int_weight * hmx_int_weight_of(const struct hmx_int_mm * mm, uint32_t ct) {
    const struct hmx_int_weight * w = mm->weights;
    while (ct >= w->col_tile1) {
        w++;
    }
    return w;
}

static inline size_t hmx_int_act_offset(const struct hmx_int_mm * mm, const struct hmx_int_step * st, uint32_t row) {
    if (st->rows) {
        const struct mmid_row_mapping * m = &st->rows[row];
        return fastmodulo(m->i1, mm->act->ne[1], &mm->kparams->div_ne1) * mm->act->nb[1] + m->i2 * mm->act->nb[2];
    }
    return row * mm->act->nb[1];
}

static void hmx_int_push_act_pair(struct hmx_int_thread * th, const struct hmx_int_step * st, uint8_t * dst, uint32_t pair) {
    const struct hmx_int_mm * mm    = th->mm;
    const size_t              bytes = st->n_tiles * 32 * sizeof(float);

    for (uint32_t t = 0; t < 2; t++) {
        const uint32_t   row = MIN(2 * pair + t, st->n_rows - 1);  // an odd last token twice
        const dma_addr_t src = st->act + hmx_int_act_offset(mm, st, st->row + row) + st->tile * 32 * sizeof(float);
        hmx_int_dma_push(&th->dma, dma_make_data(dst + t * bytes, src), bytes, bytes, bytes, 1);
    }
}

// pairs ith, ith + n_threads, ... of the step's tokens; the slots for weights are free and hold four pairs
static void hmx_int_pack(struct hmx_int_thread * th, const struct hmx_int_step * st) {
    struct hmx_int_mm * mm        = th->mm;
    const uint32_t      n_threads = mm->kparams->n_threads;
    const uint32_t      n_pairs   = (st->n_rows + 1) / 2;
    const uint32_t      parity    = st->idx & 1;
    const size_t        bytes     = st->n_tiles * 32 * sizeof(float);
    const float         inv       = 1.0f / (st->n_tiles * 32);
    uint8_t *           scratch   = hmx_int_wgt_slot(mm, th->ith, 0);

    uint32_t dma[4];
    uint32_t push = th->ith;
    for (uint32_t b = 0; b < 4 && push < n_pairs; b++, push += n_threads) {
        hmx_int_push_act_pair(th, st, scratch + b * 2 * bytes, push);
        dma[b] = th->dma.pushed;
    }

    uint8_t  e_min = HMX_INT_EXP_MAX;
    uint8_t  e_max = HMX_INT_EXP_MIN;
    uint32_t b     = 0;
    for (uint32_t p = th->ith; p < n_pairs; p += n_threads, b = (b + 1) & 3) {
        uint8_t * x    = scratch + b * 2 * bytes;
        uint8_t * exps = &mm->exps[parity][2 * p];
        uint8_t * dst  = mm->vtcm_act + (p / 16) * st->n_tiles * HMX_INT_ACT_TILE_SIZE + (p % 16) * VLEN;

        hmx_int_dma_wait(&th->dma, dma[b]);

        htp_trace_event_start(th->tr, HTP_TRACE_EVT_HVX_A_PREP, (uint16_t) p);
        hmx_int_pack_pair(dst, exps, &mm->means[parity][p], x, x + bytes, st->n_tiles, mm->kparams->group, inv);
        htp_trace_event_stop(th->tr, HTP_TRACE_EVT_HVX_A_PREP, (uint16_t) p);

        e_min = MIN(e_min, MIN(exps[0], exps[1]));
        e_max = MAX(e_max, MAX(exps[0], exps[1]));

        if (push < n_pairs) {
            hmx_int_push_act_pair(th, st, x, push);
            dma[b] = th->dma.pushed;
            push += n_threads;
        }
    }
    mm->e_min[parity][th->ith] = e_min;
    mm->e_max[parity][th->ith] = e_max;
}

// of all threads, once they have packed
static __attribute__((noinline)) void hmx_int_exp_range(struct hmx_int_thread * th, const struct hmx_int_step * st) {
    const struct hmx_int_mm * mm     = th->mm;
    const uint32_t            parity = st->idx & 1;

    th->e_min = HMX_INT_EXP_MAX;
    th->e_max = HMX_INT_EXP_MIN;
    for (int32_t t = 0; t < mm->kparams->n_threads; t++) {
        th->e_min = MIN(th->e_min, mm->e_min[parity][t]);
        th->e_max = MAX(th->e_max, mm->e_max[parity][t]);
    }
}

static inline uint32_t hmx_int_group_tiles(const struct hmx_int_mm * mm, const struct hmx_int_step * st, uint32_t g) {
    const uint32_t group = mm->kparams->group;
    return MIN(st->n_tiles - g * group, group);
}

static inline uint32_t hmx_int_step_groups(const struct hmx_int_mm * mm, const struct hmx_int_step * st) {
    uint32_t n = mm->n_groups;
    while ((n - 1) * mm->kparams->group >= st->n_tiles) {
        n--;  // the last step of K can be shorter
    }
    return n;
}

// fetch the next group of raw weights, if there is one
static void hmx_int_push_raw(struct hmx_int_thread * th, const struct hmx_int_step * st, uint32_t n_groups, uint32_t buf) {
    const struct hmx_int_mm *               mm      = th->mm;
    const struct htp_mm_int_kernel_params * kparams = mm->kparams;
    if (th->raw_i == th->n_own) {
        return;
    }

    const uint32_t                ct  = th->raw_i * kparams->n_threads + th->ith;
    const struct hmx_int_weight * w   = hmx_int_weight_of(mm, ct);
    const dma_addr_t              src = w->weight + st->weight_i2 * w->nb2 + st->weight_i3 * w->nb3 +
                                        (ct - w->col_tile0) * w->column_stride +
                                        (size_t) (st->tile + th->raw_group * kparams->group) * kparams->tile_size;
    uint8_t * dst = mm->vtcm_raw + (th->ith * 2 + buf) * mm->layout.raw_bytes;

    th->raw_dma[buf] = hmx_int_dma_push(&th->dma, dma_make_data(dst, src), kparams->aligned_tile_size, kparams->tile_size,
                                        kparams->tile_size, hmx_int_group_tiles(mm, st, th->raw_group));
    if (++th->raw_group == n_groups) {
        th->raw_group = 0;
        th->raw_i++;
    }
}

static void hmx_int_convert(struct hmx_int_thread * th, const struct hmx_int_step * st, uint32_t i, uint32_t n_groups) {
    struct hmx_int_mm *                     mm      = th->mm;
    const struct htp_mm_int_kernel_params * kparams = mm->kparams;
    const uint16_t                          info    = (uint16_t) (i * kparams->n_threads + th->ith);

    uint8_t *               wgt = hmx_int_wgt_slot(mm, th->ith, i);
    const struct hmx_int_tables t = hmx_int_tables_at(mm, th->ith, i);

    for (uint32_t g = 0; g < n_groups; g++) {
        const uint8_t * raw = mm->vtcm_raw + (th->ith * 2 + th->raw_buf) * mm->layout.raw_bytes;
        hmx_int_dma_wait(&th->dma, th->raw_dma[th->raw_buf]);

        htp_trace_event_start(th->tr, HTP_TRACE_EVT_HVX_W_DEQUANT, info);
        mm->convert(wgt + g * kparams->group * HMX_INT_WGT_TILE_SIZE, raw, hmx_int_group_tiles(mm, st, g),
                    kparams->aligned_tile_size, &(struct hmx_int_group) { t.bias + 2 * g, t.scales + g, t.residual + g, (st->group0 + g) & 1 });
        htp_trace_event_stop(th->tr, HTP_TRACE_EVT_HVX_W_DEQUANT, info);

        hmx_int_push_raw(th, st, n_groups, th->raw_buf);
        th->raw_buf ^= 1;
    }
    hmx_int_group_scales(t.column, t.skew, t.scales, t.scales, t.residual, n_groups);
}

// A block of output: m_block row tiles of a column tile
struct hmx_int_block {
    uint32_t   row;          // in the step
    uint32_t   n_rows;
    uint32_t   n_bytes;      // of a row
    dma_addr_t dst;          // its first row
    size_t     dst_stride;
    dma_addr_t acc;          // what is added
    size_t     acc_stride;   // 0: one row for all
    bool       has_acc;
    bool       acc_is_dst;

    const struct hmx_int_weight * w;
    uint32_t                      col;
};

static struct hmx_int_block hmx_int_block_at(const struct hmx_int_mm * mm, const struct hmx_int_step * st, uint32_t ct, uint32_t r) {
    const struct hmx_int_weight * w    = hmx_int_weight_of(mm, ct);
    const uint32_t                row  = r * mm->kparams->m_block * 32;
    const uint32_t                col  = (ct - w->col_tile0) * 32;
    const size_t                  irow = st->row + row;

    struct hmx_int_block b = {
        .row        = row,
        .n_rows     = MIN(st->n_rows - row, (uint32_t) mm->kparams->m_block * 32),
        .n_bytes    = MIN(w->n_cols - col, 32) * sizeof(float),
        .dst        = w->dst + st->dst_i2 * w->dst_nb2 + st->dst_i3 * w->dst_nb3 + irow * w->dst_nb1 + col * sizeof(float),
        .dst_stride = w->dst_nb1,
        .has_acc    = st->tile > 0 || mm->src2,
        .acc_is_dst = st->tile > 0,
        .w          = w,
        .col        = col,
    };
    if (b.acc_is_dst) {
        b.acc        = b.dst;
        b.acc_stride = b.dst_stride;
    } else if (mm->src2) {
        b.acc        = mm->src2->data + st->dst_i2 * mm->src2_nb2 + st->dst_i3 * mm->src2_nb3 + irow * mm->src2_nb1 + col * sizeof(float);
        b.acc_stride = mm->src2_nb1;
    }
    return b;
}

static inline uint8_t * hmx_int_out_buffer(const struct hmx_int_thread * th) {
    return th->mm->vtcm_out + (th->ith * 2 + th->out_buf) * th->mm->layout.out_bytes;
}

// one row that is added to all, behind the token scales
static inline uint8_t * hmx_int_acc_row(const struct hmx_int_thread * th) {
    return (uint8_t *) &th->scales[HTP_MM_INT_TOKEN_SCALES];
}

// start to fetch what is added to the next block
static __attribute__((noinline)) void hmx_int_push_acc(struct hmx_int_thread * th, const struct hmx_int_step * st, uint32_t ct, uint32_t r) {
    const struct hmx_int_block b = hmx_int_block_at(th->mm, st, ct, r);

    hmx_int_dma_wait(&th->dma, th->out_dma[th->out_buf]);
    th->out_dma[th->out_buf] = b.acc_stride
        ? hmx_int_dma_push(&th->dma, dma_make_data(hmx_int_out_buffer(th), b.acc), VLEN, b.acc_stride, b.n_bytes, b.n_rows)
        : hmx_int_dma_push(&th->dma, dma_make_data(hmx_int_acc_row(th), b.acc), VLEN, VLEN, b.n_bytes, 1);
    th->acc_pushed = true;
}

// rows that DMA can't address: scattered ones, or strides beyond 16 bits before v75
static uint8_t * hmx_int_direct_row(const struct hmx_int_step * st, const struct hmx_int_block * b, uint32_t i) {
    if (st->rows) {
        const struct mmid_row_mapping * m = &st->rows[st->row + b->row + i];
        return (uint8_t *) (uintptr_t) (b->w->dst + m->i1 * b->w->dst_nb1 + m->i2 * b->w->dst_nb2 + b->col * sizeof(float));
    }
    return (uint8_t *) (uintptr_t) (b->dst + i * b->dst_stride);
}

static __attribute__((noinline)) void hmx_int_direct_load(const struct hmx_int_step * st, const struct hmx_int_block * b, uint8_t * out) {
    float tmp[32] __attribute__((aligned(VLEN)));

    for (uint32_t i = 0; i < b->n_rows; i++) {
        const uint8_t * src = b->acc_is_dst ? hmx_int_direct_row(st, b, i) : (const uint8_t *) (uintptr_t) (b->acc + i * b->acc_stride);
        if (b->n_bytes == VLEN) {
            hvx_vmem(out + i * VLEN) = hvx_vmemu(src);
        } else {
            memcpy(tmp, src, b->n_bytes);  // not a byte behind the tensor
            hvx_vmem(out + i * VLEN) = hvx_vmem(tmp);
        }
    }
}

static __attribute__((noinline)) void hmx_int_direct_store(const struct hmx_int_step * st, const struct hmx_int_block * b, const uint8_t * out) {
    for (uint32_t i = 0; i < b->n_rows; i++) {
        hvx_vec_store_u(hmx_int_direct_row(st, b, i), b->n_bytes, hvx_vmem(out + i * VLEN));
    }
}

static __attribute__((noinline)) void hmx_int_reduce_block(struct hmx_int_thread * th, const struct hmx_int_step * st, uint32_t i, uint32_t r, uint32_t n_groups,
                                 const uint8_t * stage) {
    const struct hmx_int_mm *  mm     = th->mm;
    const uint32_t             ct     = i * mm->kparams->n_threads + th->ith;
    const struct hmx_int_block b      = hmx_int_block_at(mm, st, ct, r);
    uint8_t *                  out    = hmx_int_out_buffer(th);
    const struct hmx_int_tables t     = hmx_int_tables_at(mm, th->ith, i);

    hmx_int_dma_wait(&th->dma, th->out_dma[th->out_buf]);

    htp_trace_event_start(th->tr, HTP_TRACE_EVT_HVX_O_PROC, (uint16_t) ct);
    if (r == 0) {
        hmx_int_token_scales(th->scales, t.column, th->e_min, th->e_max);
    }
    if (mm->direct && b.has_acc) {
        hmx_int_direct_load(st, &b, out);
    }

    const bool                       one_row = !mm->direct && b.acc_stride == 0;
    const struct hmx_int_reduce_args args = {
        .stage        = stage,
        .stage_stride = mm->kparams->m_block * HMX_INT_OUT_TILE_SIZE,
        .n_groups     = n_groups,
        .r            = t.scales,
        .skew         = t.skew,
        .scales       = th->scales,
        .exps         = mm->exps[st->idx & 1] + b.row,
        .means        = mm->means[st->idx & 1] + b.row / 2,
        .e_min        = th->e_min,
        .acc          = !b.has_acc ? NULL : one_row ? hmx_int_acc_row(th) : out,
        .acc_stride   = one_row ? 0 : VLEN,
        .out          = out,
    };
    hmx_int_reduce(&args, (b.n_rows + 1) / 2);

    if (mm->direct) {
        hmx_int_direct_store(st, &b, out);
    }
    htp_trace_event_stop(th->tr, HTP_TRACE_EVT_HVX_O_PROC, (uint16_t) ct);

    if (!mm->direct) {
        th->out_dma[th->out_buf] = hmx_int_dma_push(&th->dma, dma_make_data(b.dst, out), b.dst_stride, VLEN, b.n_bytes, b.n_rows);
        th->out_buf ^= 1;
    }
    th->acc_pushed = false;
}

static void hmx_int_worker(unsigned int n, unsigned int ith, void * data) {
    struct hmx_int_mm *                     mm      = data;
    const struct htp_mm_int_kernel_params * kparams = mm->kparams;
    const uint32_t                          n_wgt   = kparams->n_wgt;

    struct hmx_int_thread th = {
        .mm     = mm,
        .tr     = &mm->ctx->trace[ith],
        .ith    = ith,
        .dma    = { .q = mm->ctx->dma[ith] },
        .scales = (HVX_Vector *) (mm->vtcm_scales + ith * mm->layout.scale_bytes),
    };
    for (uint32_t ct = ith; ct < mm->n_col_tiles; ct += n) {
        th.n_own++;
    }

    uint32_t ready    = 0;
    uint32_t block0   = 0;  // of the step
    uint32_t columns0 = 0;

    struct hmx_int_step st;
    for (bool more = hmx_int_step_first(mm, &st); more; more = hmx_int_step_next(mm, &st)) {
        const uint32_t n_groups = hmx_int_step_groups(mm, &st);
        const uint32_t n_blocks = hmx_int_n_blocks(mm, &st);

        th.raw_i     = 0;
        th.raw_group = 0;
        th.raw_buf   = 0;
        hmx_int_push_raw(&th, &st, n_groups, 0);
        hmx_int_push_raw(&th, &st, n_groups, 1);

        hmx_int_wait(&mm->steps, st.idx);
        hmx_int_pack(&th, &st);
        atomic_fetch_add_explicit(&mm->packed.n, 1, memory_order_release);

        const bool has_acc = (st.tile > 0 || mm->src2) && !mm->direct;
        uint32_t   conv    = 0;  // column tiles converted
        uint32_t   red     = 0;  // column tiles reduced
        uint32_t   r       = 0;  // blocks reduced of the next
        while (red < th.n_own) {
            const uint32_t block = block0 + (red * n + ith) * n_blocks + r;

            if (red < conv) {
                if (has_acc && !th.acc_pushed) {
                    hmx_int_push_acc(&th, &st, red * n + ith, r);
                }
                if (hmx_int_reached(&mm->staged, block + 1)) {
                    if (red == 0 && r == 0) {
                        hmx_int_exp_range(&th, &st);
                    }
                    hmx_int_reduce_block(&th, &st, red, r, n_groups, hmx_int_stage_buffer(mm, block));
                    hmx_int_publish(hmx_int_stage_reduced(mm, block), block + 1);
                    if (++r == n_blocks) {
                        r = 0;
                        red++;
                    }
                    continue;
                }
            }

            // the slot is free when HMX is done with the column tile before, the tables when that is reduced
            if (conv < th.n_own && conv - red < 2 * n_wgt &&
                (conv < n_wgt || hmx_int_reached(&mm->multiplied, columns0 + (conv - n_wgt) * n + ith + 1))) {
                hmx_int_convert(&th, &st, conv++, n_groups);
                hmx_int_publish(&mm->ready[ith], ++ready);
                continue;
            }
            hex_pause();
        }

        hmx_int_dma_wait(&th.dma, th.dma.pushed);

        block0 += mm->n_col_tiles * n_blocks;
        columns0 += mm->n_col_tiles;
    }
}

// --- Ops ---

static hmx_int_convert_func hmx_int_convert_func_of(uint32_t type) {
    switch (type) {
        case HTP_TYPE_Q4_0:   return hmx_int_convert_q4_0;
        case HTP_TYPE_Q4_1:
        case HTP_TYPE_Q4_K:   return hmx_int_convert_q4_1;
        case HTP_TYPE_Q8_0:   return hmx_int_convert_q8_0;
        case HTP_TYPE_Q5_K:   return hmx_int_convert_q5_k;
        case HTP_TYPE_Q6_K:   return hmx_int_convert_q6_k;
        case HTP_TYPE_IQ4_NL: return hmx_int_convert_iq4_nl;
        case HTP_TYPE_MXFP4:  return hmx_int_convert_mxfp4;
        default:              return NULL;
    }
}

static inline bool hmx_int_rows_in_line(const struct htp_tensor * t) {
    const uint32_t nb2 = t->ne[1] * t->nb[1];
    return (t->ne[2] == 1 || t->nb[2] == nb2) && (t->ne[3] == 1 || t->nb[3] == t->ne[2] * nb2);
}

static inline bool hmx_int_dma_stride(size_t stride) {
#if __HVX_ARCH__ < 75
    return stride <= DMA_MAX_STRIDE_16B;
#else
    return stride <= DMA_MAX_STRIDE_24B;
#endif
}

// leave the tokens of this device
static void hmx_int_split_experts(struct htp_context * ctx, uint32_t * row_counts, struct mmid_row_mapping * rows, uint32_t rows_stride,
                                  uint32_t n_experts, bool can_split) {
    for (uint32_t e = 0; e < n_experts; e++) {
        const bool                         split = can_split && row_counts[e] >= ctx->mdev.count;
        const struct htp_tensor_mdev_range range = htp_tensor_mdev_partition(row_counts[e], split ? 1 : 0, ctx->mdev.idx,
                                                                             ctx->mdev.count, &ctx->mdev.count_div);
        struct mmid_row_mapping * r = rows + (size_t) e * rows_stride;
        memmove(r, r + range.start, range.count * sizeof(*r));
        row_counts[e] = range.count;
    }
}

int htp_mm_int_matmul(struct htp_ops_context * octx, uint32_t * row_counts, struct mmid_row_mapping * rows, uint32_t rows_stride) {
    struct htp_context *                    ctx       = octx->ctx;
    const struct htp_mm_int_kernel_params * kparams   = (const struct htp_mm_int_kernel_params *) octx->kernel_params;
    const uint32_t                          n_weights = kparams->n_weights ? kparams->n_weights : 1;
    const struct htp_tensor *               src0      = octx->src[0];
    const struct htp_tensor *               act       = octx->src[n_weights];

    struct htp_thread_trace * tr = &ctx->trace[0];
    htp_trace_event_start(tr, HTP_TRACE_EVT_INIT, 0);

    struct hmx_int_mm mm;
    memset(&mm, 0, sizeof(mm));
    mm.ctx         = ctx;
    mm.kparams     = kparams;
    mm.convert     = hmx_int_convert_func_of(src0->type);
    mm.act         = act;
    mm.n_k_tiles   = src0->ne[0] / 32;
    mm.n_groups    = htp_mm_int_n_groups(kparams);
    mm.ne12        = act->ne[2];
    mm.row_counts  = row_counts;
    mm.rows        = rows;
    mm.rows_stride = rows_stride;
    mm.direct      = row_counts != NULL;

    bool flat      = src0->ne[2] == 1 && src0->ne[3] == 1 && hmx_int_rows_in_line(act);
    bool can_split = true;
    for (uint32_t p = 0; p < n_weights; p++) {
        const struct htp_tensor * w   = octx->src[p];
        const struct htp_tensor * dst = octx->dsts[p];
        if (!w || !dst) {
            continue;
        }
        struct hmx_int_weight * mw = &mm.weights[mm.n_weights++];
        mw->weight        = w->data;
        mw->column_stride = w->nb[1] * 32;
        mw->nb2           = w->nb[2];
        mw->nb3           = w->nb[3];
        mw->dst           = dst->data;
        mw->dst_nb1       = dst->nb[1];
        mw->dst_nb2       = dst->nb[2];
        mw->dst_nb3       = dst->nb[3];
        mw->n_cols        = dst->ne[0];
        mw->col_tile0     = mm.n_col_tiles;
        mw->col_tile1     = mm.n_col_tiles + hmx_ceil_div(dst->ne[0], 32);
        mm.n_col_tiles    = mw->col_tile1;

        flat      = flat && hmx_int_rows_in_line(dst);
        mm.direct = mm.direct || !hmx_int_dma_stride(dst->nb[1]);
        can_split = can_split && (row_counts ? htp_tensor_mdev_data_aligned(dst) : htp_tensor_can_row_partition(dst, sizeof(float)));
    }

    if (!row_counts && octx->op == HTP_OP_MUL_MAT_ADD) {
        const struct htp_tensor * src2 = octx->src[2];
        const bool one_row = src2->ne[1] == 1 && src2->ne[2] == 1 && src2->ne[3] == 1;
        const bool same    = src2->ne[1] == octx->dst->ne[1] && src2->ne[2] == octx->dst->ne[2] && src2->ne[3] == octx->dst->ne[3];
        flat = flat && (one_row || (same && hmx_int_rows_in_line(src2)));

        // one token of each batch is a run of rows, too
        mm.src2     = src2;
        mm.src2_nb1 = one_row || (src2->ne[1] == 1 && !flat) ? 0 : src2->nb[1];
        mm.src2_nb2 = src2->ne[2] == 1 ? 0 : src2->nb[2];
        mm.src2_nb3 = src2->ne[3] == 1 ? 0 : src2->nb[3];
        mm.direct = mm.direct || !hmx_int_dma_stride(mm.src2_nb1);
    }

    mm.flat     = flat;
    mm.n_phases = row_counts ? src0->ne[2] : flat ? 1 : act->ne[2] * act->ne[3];
    mm.row_end  = flat ? act->ne[1] * act->ne[2] * act->ne[3] : act->ne[1];
    if (ctx->mdev.count > 1) {
        if (row_counts) {
            hmx_int_split_experts(ctx, row_counts, rows, rows_stride, src0->ne[2], can_split);
        } else {
            const struct htp_tensor_mdev_range range = htp_tensor_mdev_partition(mm.row_end, can_split ? 1 : 0, ctx->mdev.idx,
                                                                                 ctx->mdev.count, &ctx->mdev.count_div);
            mm.row_start = range.start;
            mm.row_end   = range.start + range.count;
        }
    }

    htp_mm_int_vtcm_layout_build(&mm.layout, kparams);
    mm.vtcm_act    = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_act);
    mm.vtcm_wgt    = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_wgt);
    mm.vtcm_raw    = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_raw);
    mm.vtcm_stage  = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_stage);
    mm.vtcm_out    = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_out);
    mm.vtcm_tables = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_tables);
    mm.vtcm_scales = VTCM_LAYOUT_PTR(uint8_t, ctx->vtcm_base, mm.layout.off_scales);

    FARF(HIGH, "hmx-int-mm: n_weights %u phases %u rows %u..%u k-tiles %u col-tiles %u m_chunk %d k_chunk %d group %d vtcm %zu/%zu",
         mm.n_weights, mm.n_phases, mm.row_start, mm.row_end, mm.n_k_tiles, mm.n_col_tiles, kparams->m_chunk, kparams->k_chunk,
         kparams->group, mm.layout.total_bytes, ctx->vtcm_size);

    if (!mm.convert || mm.layout.total_bytes > ctx->vtcm_size) {
        htp_trace_event_stop(tr, HTP_TRACE_EVT_INIT, 0);
        return mm.convert ? HTP_STATUS_VTCM_TOO_SMALL : HTP_STATUS_NO_SUPPORT;
    }
    htp_trace_event_stop(tr, HTP_TRACE_EVT_INIT, 0);

    struct hmx_int_step st;
    if (!hmx_int_step_first(&mm, &st)) {
        return HTP_STATUS_OK;
    }

    hmx_queue_push(ctx->hmx_queue, hmx_queue_make_desc(hmx_int_job, &mm));
    work_queue_run(ctx->work_queue, hmx_int_worker, &mm, kparams->n_threads);
    hmx_queue_pop(ctx->hmx_queue);

    return HTP_STATUS_OK;
}
