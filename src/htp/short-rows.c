#include "short-rows.h"

#include <string.h>

#include "hex-common.h"
#include "hex-profile.h"
#include "htp-tensor.h"
#include "hvx-base.h"
#include "work-queue.h"

#define SHORT_ROWS_MIN_ROWS          64          // per plane: fewer are done earlier row by row
#define SHORT_ROWS_MAX_STRIDE        256         // bytes that are fetched in the time of a row, with a margin
#define SHORT_ROWS_MAX_STRIDE_SINGLE 32          // the same of single elements
#define SHORT_ROWS_CHUNK_SIZE        (16 * 1024) // bytes of a span or of dst
#define SHORT_ROWS_MIN_CHUNKS        32          // per thread: neither DMA nor gathers scale well with threads

// Next rows to fetch
struct short_rows_cursor {
    uint32_t row;
    uint32_t i1;
    uint32_t i2;
    uint32_t i3;
};

// As many rows of a plane as fit into a chunk
static inline uint32_t short_rows_fetch(const struct htp_short_rows * sr, dma_queue * q, struct short_rows_cursor * c,
                                        uint32_t row_end, uint8_t * span) {
    const uint32_t nrows = MIN(MIN(row_end - c->row, sr->ne[1] - c->i1), sr->nrows_per_chunk);

    for (uint32_t s = 0; s < sr->nsrc; s++) {
        const struct htp_short_rows_src *  src = &sr->src[s];
        const struct hvx_short_rows_part * p   = &sr->geo.part[s];

        const dma_addr_t addr     = src->data + c->i1 * src->nb[1] + c->i2 * src->nb[2] + c->i3 * src->nb[3];
        const uint32_t   col_size = (nrows - 1) * src->nb[1] + sr->elem_size;
        if (src->cols) {
            dma_queue_push(q, dma_make_data(span + p->offset, addr), p->col_stride, src->nb[0], col_size, src->ne);
        } else {
            const uint32_t size = col_size + (src->ne - 1) * src->nb[0];
            dma_queue_push(q, dma_make_data(span + p->offset, addr), size, size, size, 1);
        }
    }

    c->row += nrows;
    c->i1  += nrows;
    if (c->i1 == sr->ne[1]) {
        c->i1 = 0;
        if (++c->i2 == sr->ne[2]) {
            c->i2 = 0;
            c->i3++;
        }
    }
    return nrows;
}

#define DEFINE_SHORT_ROWS_THREAD(T)                                                                           \
static void short_rows_thread_##T(unsigned int nth, unsigned int ith, void * data) {                          \
    const struct htp_short_rows * sr   = (const struct htp_short_rows *) data;                                \
    struct htp_ops_context *      octx = sr->octx;                                                            \
                                                                                                              \
    const uint32_t ir0 = sr->row_start + sr->nrows_per_thread * ith;                                          \
    const uint32_t ir1 = MIN(ir0 + sr->nrows_per_thread, sr->row_start + sr->nrows);                          \
    if (ir0 >= ir1) {                                                                                         \
        return;                                                                                               \
    }                                                                                                         \
                                                                                                              \
    dma_queue *               q  = octx->ctx->dma[ith];                                                       \
    struct htp_thread_trace * tr = &octx->ctx->trace[ith];                                                    \
                                                                                                              \
    const uint32_t   span_size = sr->geo.span_size;                                                           \
    const uint32_t   dst_size  = sr->nrows_per_chunk * sr->row_size;                                          \
    const dma_addr_t dst_data  = octx->dst->data;                                                             \
                                                                                                              \
    uint8_t *    src_spad = octx->src0_spad.data + ith * octx->src0_spad.size_per_thread;                     \
    uint8_t *    dst_spad = octx->dst_spad.data  + ith * octx->dst_spad.size_per_thread;                      \
    HVX_Vector * table    = (HVX_Vector *) (src_spad + 2 * span_size);                                        \
                                                                                                              \
    const uint32_t plane = fastdiv(ir0, &sr->div_ne1);                                                        \
    const uint32_t i3    = fastdiv(plane, &sr->div_ne2);                                                      \
                                                                                                              \
    struct short_rows_cursor c = { ir0, ir0 - plane * sr->ne[1], plane - i3 * sr->ne[2], i3 };                \
                                                                                                              \
    uint32_t nrows[2] = { 0, 0 };                                                                             \
    for (uint32_t i = 0; i < 2 && c.row < ir1; i++) {                                                         \
        /* Dummy dst writeback to establish queue ordering */                                                 \
        dma_queue_push(q, dma_make_data(dst_data, dst_spad + i * dst_size), dst_size, dst_size, dst_size, 0); \
        nrows[i] = short_rows_fetch(sr, q, &c, ir1, src_spad + i * span_size);                                \
    }                                                                                                         \
                                                                                                              \
    hvx_short_rows_table_##T(table, &sr->geo);                                                                \
                                                                                                              \
    for (uint32_t ir = ir0, i = 0; ir < ir1; i ^= 1) {                                                        \
        uint8_t * span = src_spad + i * span_size;                                                            \
        uint8_t * dst  = dst_spad + i * dst_size;                                                             \
                                                                                                              \
        dma_queue_pop(q);     /* dst of the chunk before last */                                              \
        dma_queue_pop(q);     /* src0 */                                                                      \
        if (sr->nsrc > 1) {                                                                                   \
            dma_queue_pop(q); /* src1 */                                                                      \
        }                                                                                                     \
                                                                                                              \
        const uint32_t size = nrows[i] * sr->row_size;                                                        \
                                                                                                              \
        htp_trace_event_start(tr, HTP_TRACE_EVT_HVX_COMP, (uint16_t) ir);                                     \
        hvx_short_rows_gather_##T(dst, span, table, &sr->geo, (size + VLEN - 1) / VLEN);                      \
        hvx_gather_sync(dst);                                                                                 \
        htp_trace_event_stop(tr, HTP_TRACE_EVT_HVX_COMP, (uint16_t) ir);                                      \
                                                                                                              \
        dma_queue_push(q, dma_make_data(dst_data + ir * sr->row_size, dst), size, size, size, 1);             \
                                                                                                              \
        ir += nrows[i];                                                                                       \
        if (c.row < ir1) {                                                                                    \
            nrows[i] = short_rows_fetch(sr, q, &c, ir1, span);                                                \
        }                                                                                                     \
    }                                                                                                         \
                                                                                                              \
    dma_queue_flush(q);                                                                                       \
}

DEFINE_SHORT_ROWS_THREAD(w)
DEFINE_SHORT_ROWS_THREAD(h)

void htp_short_rows_run(struct htp_short_rows * sr) {
    work_queue_func_t func = sr->elem_size == 4 ? short_rows_thread_w : short_rows_thread_h;
    work_queue_run(sr->octx->ctx->work_queue, func, sr, sr->n_threads);
}

static void short_rows_init(struct htp_short_rows * sr, struct htp_ops_context * octx, uint32_t elem_size, uint32_t nsrc) {
    memset(sr, 0, sizeof(*sr));
    sr->octx      = octx;
    sr->elem_size = elem_size;
    sr->nsrc      = nsrc;
    for (uint32_t s = 0; s < nsrc; s++) {
        sr->src[s].data = octx->src[s]->data;
        sr->src[s].ne   = octx->src[s]->ne[0];
        memcpy(sr->src[s].nb, octx->src[s]->nb, sizeof(sr->src[s].nb));
    }
}

// Join dimensions from d up where the strides of all sources allow it.
static void short_rows_join_dims(struct htp_short_rows * sr, uint32_t d) {
    for (uint32_t i = d + 1; i < HTP_OP_MAX_DIMS; i++) {
        if (sr->ne[i] == 1) {
            continue;
        }
        bool join = sr->ne[d] != 1;
        for (uint32_t s = 0; s < sr->nsrc; s++) {
            join = join && sr->src[s].nb[i] == sr->ne[d] * sr->src[s].nb[d];
        }
        if (join) {
            sr->ne[d] *= sr->ne[i];
        } else {
            d += (sr->ne[d] != 1);
            sr->ne[d] = sr->ne[i];
            for (uint32_t s = 0; s < sr->nsrc; s++) {
                sr->src[s].nb[d] = sr->src[s].nb[i];
            }
        }
    }
    while (++d < HTP_OP_MAX_DIMS) {
        sr->ne[d] = 1;
    }
}

// Lay out the span, split the rows over devices, threads and chunks: all but the last end at a vector boundary.
static bool short_rows_plan(struct htp_short_rows * sr, uint32_t max_stride) {
    struct htp_ops_context * octx = sr->octx;

    sr->row_size = sr->ne[0] * sr->elem_size;
    if (sr->row_size >= VLEN || sr->ne[1] < SHORT_ROWS_MIN_ROWS) {
        return false;
    }

    uint32_t span_per_row = 0;
    for (uint32_t s = 0; s < sr->nsrc; s++) {
        struct htp_short_rows_src * src = &sr->src[s];
        if (src->nb[1] > max_stride || src->nb[1] < sr->elem_size) {
            return false;
        }
        src->cols     = src->nb[1] < (src->ne - 1) * src->nb[0] + sr->elem_size;
        span_per_row += src->nb[1] * (src->cols ? src->ne : 1);
    }

    hvx_short_rows_init(&sr->geo, sr->ne[0], sr->elem_size);
    const uint32_t period = sr->geo.period_rows;

    const uint32_t rows_per_chunk = SHORT_ROWS_CHUNK_SIZE / MAX(span_per_row, sr->row_size);
    sr->nrows_per_chunk = MIN(MAX(hex_align_down(rows_per_chunk, period), period), hex_round_up(sr->ne[1], period));

    for (uint32_t s = 0; s < sr->nsrc; s++) {
        const struct htp_short_rows_src * src = &sr->src[s];
        struct hvx_short_rows_part *      p   = &sr->geo.part[s];

        const uint32_t size = hex_round_up(sr->nrows_per_chunk * src->nb[1], VLEN);

        p->ne         = src->ne;
        p->offset     = sr->geo.span_size;
        p->row_stride = src->nb[1];
        p->col_stride = src->cols ? size : src->nb[0];

        sr->geo.span_size += src->cols ? size * src->ne : size;
    }
    if (sr->geo.span_size > HVX_SHORT_ROWS_MAX_SPAN) {
        return false;
    }

    const uint32_t total_rows = sr->ne[1] * sr->ne[2] * sr->ne[3];

    sr->row_start = 0;
    sr->nrows     = total_rows;

    if (octx->ctx->mdev.count > 1) {
        const struct htp_tensor_mdev_range range = htp_tensor_mdev_partition(
            total_rows, htp_tensor_mdev_data_aligned(octx->dst) ? period : 0,
            octx->ctx->mdev.idx, octx->ctx->mdev.count, &octx->ctx->mdev.count_div);
        sr->row_start = range.start;
        sr->nrows     = range.count;
    }

    const uint32_t n_chunks = sr->nrows / sr->nrows_per_chunk;
    sr->n_threads        = MAX(MIN(octx->n_threads, n_chunks / SHORT_ROWS_MIN_CHUNKS), 1);
    sr->nrows_per_thread = hex_round_up((sr->nrows + sr->n_threads - 1) / sr->n_threads, period);

    // two chunks of each, and the offset table
    octx->src0_spad.size_per_thread = 2 * sr->geo.span_size + sr->geo.period_vecs * VLEN;
    octx->dst_spad.size_per_thread  = 2 * sr->nrows_per_chunk * sr->row_size;

    octx->src0_spad.size = sr->n_threads * octx->src0_spad.size_per_thread;
    octx->dst_spad.size  = sr->n_threads * octx->dst_spad.size_per_thread;
    if (octx->src0_spad.size + octx->dst_spad.size > octx->ctx->vtcm_size) {
        return false;
    }

    octx->src0_spad.data = octx->ctx->vtcm_base;
    octx->dst_spad.data  = octx->src0_spad.data + octx->src0_spad.size;
    octx->src0_spad.src  = NULL;
    octx->dst_spad.src   = NULL;

    sr->div_ne1 = init_fastdiv_values(sr->ne[1]);
    sr->div_ne2 = init_fastdiv_values(sr->ne[2]);
    return true;
}

bool htp_short_rows_plan_cpy(struct htp_short_rows * sr, struct htp_ops_context * octx, uint32_t elem_size) {
    if (!htp_tensor_is_contiguous(octx->dst, elem_size)) {
        return false;
    }

    short_rows_init(sr, octx, elem_size, 1);
    memcpy(sr->ne, octx->src[0]->ne, sizeof(sr->ne));
    short_rows_join_dims(sr, 0);

    struct htp_short_rows_src * src = &sr->src[0];
    uint32_t max_stride = SHORT_ROWS_MAX_STRIDE;
    if (src->nb[0] > elem_size && sr->ne[0] * elem_size >= VLEN) {
        // elements with gaps: rows of one element, unless other rows lie in the gaps, which would be fetched many times
        if (sr->ne[3] != 1 || (sr->ne[1] != 1 && src->nb[1] < sr->ne[0] * src->nb[0])) {
            return false;
        }
        for (uint32_t i = HTP_OP_MAX_DIMS - 1; i > 0; i--) {
            sr->ne[i]  = sr->ne[i - 1];
            src->nb[i] = src->nb[i - 1];
        }
        sr->ne[0]  = 1;
        src->nb[0] = elem_size;
        max_stride = SHORT_ROWS_MAX_STRIDE_SINGLE;
    }
    src->ne = sr->ne[0];

    return short_rows_plan(sr, max_stride);
}

bool htp_short_rows_plan_concat(struct htp_short_rows * sr, struct htp_ops_context * octx, uint32_t elem_size) {
    if (!htp_tensor_is_contiguous(octx->dst, elem_size)) {
        return false;
    }

    short_rows_init(sr, octx, elem_size, 2);
    memcpy(sr->ne, octx->dst->ne, sizeof(sr->ne));
    short_rows_join_dims(sr, 1);

    return short_rows_plan(sr, SHORT_ROWS_MAX_STRIDE);
}
