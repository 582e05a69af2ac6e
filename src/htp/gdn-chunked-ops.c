#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dma-queue.h"
#include "hex-profile.h"
#include "htp-ctx.h"
#include "htp-tensor.h"
#include "htp-vtcm.h"
#include "hvx-gdn-chunked.h"
#include "gated-delta-net-ops.h"
#include "gdn-chunked-ops.h"

struct gdnc_context {
    struct htp_ops_context *             octx;
    const struct htp_gdn_kernel_params * kparams;
    struct htp_gdn_chunked_layout        layout;
    uint32_t                             row_start;
    uint32_t                             nrows;
};

// One thread's view of the op.
struct gdnc_thread {
    const struct gdnc_context * gctx;
    dma_queue *                 dma;
    uint8_t *                   vtcm;
    struct gdnc_work            work;
    uint32_t                    n_out;  // pushed and not yet popped
};

// A chunk of a head.
struct gdnc_step {
    uint32_t row;
    uint32_t t0;
    uint32_t n;
    uint32_t buf;
};

#define GDNC_VTCM(th, field) ((HVX_Vector *) ((th)->vtcm + (th)->gctx->layout.off_##field))

static void gdnc_init_thread(struct gdnc_thread * th, const struct gdnc_context * gctx, uint32_t ith) {
    struct htp_context * ctx = gctx->octx->ctx;
    struct gdnc_work *   w   = &th->work;

    th->gctx  = gctx;
    th->dma   = ctx->dma[ith];
    th->vtcm  = ctx->vtcm_base + gctx->layout.bytes_per_thread * ith;
    th->n_out = 0;

    w->state      = GDNC_VTCM(th, state);
    w->planes     = GDNC_VTCM(th, planes);
    w->prod       = GDNC_VTCM(th, prod);
    w->d          = GDNC_VTCM(th, d);
    w->decayed    = GDNC_VTCM(th, decayed);
    w->d_planes   = GDNC_VTCM(th, d_planes);
    w->leaves     = GDNC_VTCM(th, leaves);
    w->keys       = GDNC_VTCM(th, keys);
    w->gates      = GDNC_VTCM(th, gates);
    w->row_inv    = GDNC_VTCM(th, row_inv);
    w->row_off    = GDNC_VTCM(th, row_off);
    w->amax       = GDNC_VTCM(th, col);
    w->amax_other = w->amax + 4;
    w->state_inv  = w->amax + 8;
    w->d_inv      = w->amax + 12;
    w->keep       = w->amax + 16;
    w->tmp        = GDNC_VTCM(th, tmp);

    uint8_t * ddr = (uint8_t *) ctx->ddr_spad_base + HTP_GDN_CHUNKED_DDR_BYTES * ith;
    w->kq   = (uint64_t *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_KQ_BYTES);
    w->ku   = (uint64_t *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_KU_BYTES);
    w->ku_off = (int32_t *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_KUO_BYTES);
    w->gram = (float *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_GRAM_BYTES);
    w->gate = (float *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_GATE_BYTES);
    w->beta = (float *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_BETA_BYTES);

    // DMA leaves the padding of rows alone
    if (gctx->kparams->S_v != gctx->layout.s_pad) {
        const HVX_Vector zero = Q6_V_vzero();
        HVX_Vector *     v    = GDNC_VTCM(th, in_state);
        for (uint32_t i = 0; i < gctx->layout.s_pad * gctx->layout.s_pad / 32; ++i) {
            v[i] = zero;
        }
        v = GDNC_VTCM(th, q[0]);
        for (uint32_t i = 0; i < (gctx->layout.off_out - gctx->layout.off_q[0]) / 128; ++i) {
            v[i] = zero;
        }
    }
}

static inline dma_addr_t gdnc_addr(const struct htp_tensor * t, uint32_t i1, uint32_t i2, uint32_t i3) {
    return t->data + (dma_addr_t) i3 * t->nb[3] + (dma_addr_t) i2 * t->nb[2] + (dma_addr_t) i1 * t->nb[1];
}

static void gdnc_push_inputs(struct gdnc_thread * th, const struct gdnc_step * step) {
    const struct gdnc_context *          gctx = th->gctx;
    const struct htp_gdn_kernel_params * kp   = gctx->kparams;

    const struct htp_tensor * q     = gctx->octx->src[0];
    const struct htp_tensor * k     = gctx->octx->src[1];
    const struct htp_tensor * v     = gctx->octx->src[2];
    const struct htp_tensor * g     = gctx->octx->src[3];
    const struct htp_tensor * beta  = gctx->octx->src[4];
    const struct htp_tensor * state = gctx->octx->src[5];

    const uint32_t iv1 = fastmodulo(step->row, kp->H, &kp->div_H);
    const uint32_t iv3 = fastdiv(step->row, &kp->div_H);
    const uint32_t iq1 = fastmodulo(iv1, q->ne[1], &kp->div_q1);
    const uint32_t ik1 = fastmodulo(iv1, k->ne[1], &kp->div_k1);
    const uint32_t iq3 = fastdiv(iv3, &kp->div_rq3);
    const uint32_t ik3 = fastdiv(iv3, &kp->div_rk3);

    const uint32_t row = kp->S_v * sizeof(float);
    const uint32_t pad = gctx->layout.s_pad * sizeof(float);
    const uint32_t b   = step->buf;

    if (step->t0 == 0) {
        const dma_addr_t src = state->data + ((dma_addr_t) iv3 * kp->state_seq_stride + iv1 * kp->S_v * kp->S_v) * sizeof(float);
        dma_queue_push(th->dma, dma_make_data(GDNC_VTCM(th, in_state), src), pad, row, row, kp->S_v);
    }
    dma_queue_push(th->dma, dma_make_data(GDNC_VTCM(th, k[b]), gdnc_addr(k, ik1, step->t0, ik3)), pad, k->nb[2], row, step->n);
    dma_queue_push(th->dma, dma_make_data(GDNC_VTCM(th, q[b]), gdnc_addr(q, iq1, step->t0, iq3)), pad, q->nb[2], row, step->n);
    dma_queue_push(th->dma, dma_make_data(GDNC_VTCM(th, v[b]), gdnc_addr(v, iv1, step->t0, iv3)), pad, v->nb[2], row, step->n);
    dma_queue_push(th->dma, dma_make_data(GDNC_VTCM(th, g[b]), gdnc_addr(g, iv1, step->t0, iv3)),
                   kp->kda ? pad : sizeof(float), g->nb[2], kp->kda ? row : sizeof(float), step->n);
    dma_queue_push(th->dma, dma_make_data(GDNC_VTCM(th, beta[b]), gdnc_addr(beta, iv1, step->t0, iv3)),
                   sizeof(float), beta->nb[2], sizeof(float), step->n);
}

static void gdnc_pop_inputs(struct gdnc_thread * th, const struct gdnc_step * step) {
    for (uint32_t i = 0; i < (step->t0 == 0 ? 6 : 5); ++i) {
        dma_queue_pop(th->dma);
    }
}

static void gdnc_push_out(struct gdnc_thread * th, const struct gdnc_step * step) {
    const struct htp_gdn_kernel_params * kp  = th->gctx->kparams;
    const struct htp_tensor *            dst = th->gctx->octx->dst;

    const uint32_t iv1 = fastmodulo(step->row, kp->H, &kp->div_H);
    const uint32_t iv3 = fastdiv(step->row, &kp->div_H);
    const uint32_t row = kp->S_v * sizeof(float);

    const dma_addr_t to = dst->data + (((dma_addr_t) iv3 * kp->n_tokens + step->t0) * kp->H + iv1) * row;
    dma_queue_push(th->dma, dma_make_data(to, GDNC_VTCM(th, out)), kp->H * row, th->gctx->layout.s_pad * sizeof(float), row, step->n);
    th->n_out++;
}

static void gdnc_push_state(struct gdnc_thread * th, const struct gdnc_step * step, uint32_t slot) {
    const struct htp_gdn_kernel_params * kp    = th->gctx->kparams;
    const struct htp_tensor *            dst   = th->gctx->octx->dst;
    const struct htp_tensor *            cache = th->gctx->octx->dsts[1];

    const uint32_t   row  = kp->S_v * sizeof(float);
    const dma_addr_t base = cache ? cache->data : dst->data + (dma_addr_t) row * kp->total_rows * kp->n_tokens;
    const dma_addr_t to   = base + (dma_addr_t) slot * kp->state_size_per_snap * sizeof(float) + (dma_addr_t) step->row * kp->S_v * row;

    dma_queue_push(th->dma, dma_make_data(to, GDNC_VTCM(th, out_state)), row, th->gctx->layout.s_pad * sizeof(float), row, kp->S_v);
    th->n_out++;
}

static void gdnc_pop_out(struct gdnc_thread * th) {
    for (; th->n_out > 0; --th->n_out) {
        dma_queue_pop(th->dma);
    }
}

// The step after, false at the end of the thread's rows.
static bool gdnc_next_step(const struct gdnc_context * gctx, struct gdnc_step * step, uint32_t nth) {
    step->t0 += step->n;
    if (step->t0 == gctx->kparams->n_tokens) {
        step->t0   = 0;
        step->row += nth;
    }
    step->n    = hex_smin(HTP_GDN_CHUNKED_SIZE, gctx->kparams->n_tokens - step->t0);
    step->buf ^= 1;
    return step->row < gctx->row_start + gctx->nrows;
}

static void gdnc_run(struct gdnc_thread * th, uint32_t nth, uint32_t ith) {
    const struct gdnc_context *          gctx = th->gctx;
    const struct htp_gdn_kernel_params * kp   = gctx->kparams;
    const struct gdnc_kernels *          kern = gdnc_kernels(gctx->layout.s_pad, kp->kda);
    const struct gdnc_work *             w    = &th->work;
    struct htp_thread_trace *            tr   = &gctx->octx->ctx->trace[ith];

    struct gdnc_step step = {
        .row = gctx->row_start + ith,
        .t0  = 0,
        .n   = hex_smin(HTP_GDN_CHUNKED_SIZE, kp->n_tokens),
        .buf = 0,
    };
    gdnc_push_inputs(th, &step);

    for (bool more = true; more;) {
        struct gdnc_step next = step;
        more = gdnc_next_step(gctx, &next, nth);

        const uint32_t n    = step.n;
        const uint32_t left = kp->n_tokens - step.t0;   // the state after m tokens is snapshot left - m
        const uint32_t m0   = hex_smin(n, left < kp->K ? 1 : left - kp->K + 1);
        const uint16_t info = (uint16_t) step.row;

        gdnc_pop_inputs(th, &step);
        if (step.t0 == 0) {
            htp_trace_event_start(tr, HTP_TRACE_EVT_HVX_GDN_STATE, info);
            kern->load_state(w, GDNC_VTCM(th, in_state));
            htp_trace_event_stop(tr, HTP_TRACE_EVT_HVX_GDN_STATE, info);
        }
        // several snapshots take turns with the buffer, and the queue is a FIFO
        if (more && m0 == n) {
            gdnc_push_inputs(th, &next);
        }

        const HVX_Vector * q = GDNC_VTCM(th, q[step.buf]);
        const HVX_Vector * k = GDNC_VTCM(th, k[step.buf]);
        const HVX_Vector * g = GDNC_VTCM(th, g[step.buf]);

        htp_trace_event_start(tr, HTP_TRACE_EVT_HVX_GDN_PREP, info);
        kern->quant(w, q, k, g, GDNC_VTCM(th, beta[step.buf]), kp->scale, n);
        kern->products(w, n);
        htp_trace_event_stop(tr, HTP_TRACE_EVT_HVX_GDN_PREP, info);

        htp_trace_event_start(tr, HTP_TRACE_EVT_HVX_GDN_SOLVE, info);
        kern->gram(w, q, k, kp->scale, n);
        gdnc_pop_out(th);
        kern->solve(w, GDNC_VTCM(th, out), GDNC_VTCM(th, v[step.buf]), n);
        htp_trace_event_stop(tr, HTP_TRACE_EVT_HVX_GDN_SOLVE, info);
        gdnc_push_out(th, &step);

        htp_trace_event_start(tr, HTP_TRACE_EVT_HVX_GDN_STATE, info);
        for (uint32_t m = m0; m <= n; ++m) {
            HVX_Vector * dst = m == n ? w->state : w->planes;
            kern->prepare_update(w, k, m);
            kern->update(w, dst, m == n ? w->amax : w->amax_other, m);

            if (left - m < kp->K) {
                if (m > m0) {
                    gdnc_pop_out(th);
                }
                kern->store_state(w, GDNC_VTCM(th, out_state), dst);
                gdnc_push_state(th, &step, left - m);
            }
        }
        htp_trace_event_stop(tr, HTP_TRACE_EVT_HVX_GDN_STATE, info);

        if (more && m0 < n) {
            gdnc_pop_out(th);
            gdnc_push_inputs(th, &next);
        }
        step = next;
    }
    gdnc_pop_out(th);
}

static void gated_delta_net_f32_chunked_thread(unsigned int nth, unsigned int ith, void * data) {
    const struct gdnc_context * gctx = (const struct gdnc_context *) data;
    if (ith >= gctx->nrows) {
        return;
    }

    struct gdnc_thread th;
    gdnc_init_thread(&th, gctx, ith);

    gdnc_run(&th, nth, ith);
}

int gated_delta_net_f32_hvx_chunked(struct htp_ops_context * octx, const struct htp_gdn_kernel_params * kparams,
                                    uint32_t row_start, uint32_t nrows) {
    struct gdnc_context gctx = {
        .octx      = octx,
        .kparams   = kparams,
        .row_start = row_start,
        .nrows     = nrows,
    };
    htp_gdn_chunked_layout_build(&gctx.layout, kparams->S_v, kparams->kda);

    const uint32_t n_threads = hex_smin(nrows, kparams->n_threads);
    if (kparams->vtcm_size > octx->ctx->vtcm_size) {
        return HTP_STATUS_VTCM_TOO_SMALL;
    }
    assert(HTP_GDN_CHUNKED_DDR_BYTES * n_threads <= octx->ctx->ddr_spad_size);

    work_queue_run(octx->ctx->work_queue, gated_delta_net_f32_chunked_thread, &gctx, n_threads);

    return HTP_STATUS_OK;
}
