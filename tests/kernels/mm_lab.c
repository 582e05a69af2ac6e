// The integer matmul as an op: matmul-int-ops.c with real threads, on queues and a DMA that are stand-ins. The DMA moves
// a block when it is waited for and not before. Beside it upstream's HVX route, to compare errors with.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "dma-queue.h"
#include "hmx-queue.h"
#include "work-queue.h"

bool     lab_dma_push(dma_queue * q, dma_data data, size_t dst_stride, size_t src_stride, size_t row_size, size_t n_rows);
dma_data lab_dma_pop(dma_queue * q);
bool     lab_hmx_push(hmx_queue_t q, struct hmx_queue_desc d);
void     lab_hmx_pop(hmx_queue_t q);
bool     lab_work_run(work_queue_t q, work_queue_func_t func, void * data, unsigned int n);
#define dma_queue_push lab_dma_push
#define dma_queue_pop  lab_dma_pop
#define hmx_queue_push lab_hmx_push
#define hmx_queue_pop  lab_hmx_pop
#define work_queue_run lab_work_run

// of upstream's ops only the kernels are wanted: what is static and not used is not compiled
struct htp_ops_context;
static int op_matmul(struct htp_ops_context * octx);
static int op_matmul_id(struct htp_ops_context * octx);
static int op_matmul_nx(struct htp_ops_context * octx);
static int op_matmul_id_nx(struct htp_ops_context * octx);

#include "matmul-int-ops.c"
#include "matmul-ops.c"

#define API __attribute__((visibility("default")))

uint32_t test_vtcm(uint32_t size);

void     sim_pause(void) { sched_yield(); }
uint64_t sim_cycles(void) { return 0; }

API uint8_t * lab_vtcm(uint32_t size) { return (uint8_t *) (uintptr_t) test_vtcm(size); }

// memory with 32-bit addresses
API uint8_t * lab_ddr(uint32_t size) {
    for (uintptr_t at = 0x40000000; at + size < 0xF0000000; at += 0x1000000) {
        void * p = mmap((void *) at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == (void *) at) {
            return p;
        }
    }
    return NULL;
}

static uint64_t        total[SIM_N_COUNTERS];
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_counts(void) {
    pthread_mutex_lock(&total_lock);
    for (int i = 0; i < SIM_N_COUNTERS; i++) {
        total[i] += sim_self.n[i];
    }
    pthread_mutex_unlock(&total_lock);
}

API void lab_counts(uint64_t * n) { memcpy(n, total, sizeof(total)); }

// --- Stand-ins ---

struct transfer {
    dma_data data;
    size_t   dst_stride, src_stride, row_size, n_rows;
};

static struct fifo {
    struct transfer t[256];
    uint32_t        push, pop;
} fifos[HTP_MAX_NTHREADS];

static int refused;  // transfers that the hardware could not do

bool lab_dma_push(dma_queue * q, dma_data data, size_t dst_stride, size_t src_stride, size_t row_size, size_t n_rows) {
    struct fifo * f = (struct fifo *) q;
    if (f->push - f->pop >= 255 || (n_rows > 1 && (dst_stride > 0xFFFF || src_stride > 0xFFFF)) || row_size > 0xFFFF) {
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        return false;
    }
    f->t[f->push++ % 256] = (struct transfer) { data, dst_stride, src_stride, row_size, n_rows };
    return true;
}

dma_data lab_dma_pop(dma_queue * q) {
    struct fifo * f = (struct fifo *) q;
    if (f->push == f->pop) {
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        return (dma_data) { 0 };
    }
    const struct transfer * t = &f->t[f->pop++ % 256];
    for (size_t r = 0; r < t->n_rows; r++) {
        memcpy((uint8_t *) (uintptr_t) t->data.dst + r * t->dst_stride, (uint8_t *) (uintptr_t) t->data.src + r * t->src_stride, t->row_size);
    }
    return t->data;
}

static struct hmx_queue_desc hmx_job;
static pthread_t             hmx_thread;

static void * hmx_main(void * arg) {
    (void) arg;
    hmx_job.func(hmx_job.data);
    add_counts();
    return NULL;
}

bool lab_hmx_push(hmx_queue_t q, struct hmx_queue_desc d) {
    (void) q;
    hmx_job = d;
    return pthread_create(&hmx_thread, NULL, hmx_main, NULL) == 0;
}

void lab_hmx_pop(hmx_queue_t q) {
    (void) q;
    pthread_join(hmx_thread, NULL);
}

struct work {
    work_queue_func_t func;
    void *            data;
    unsigned int      n, i;
};

static void * work_main(void * arg) {
    struct work * w = arg;
    w->func(w->n, w->i, w->data);
    add_counts();
    return NULL;
}

bool lab_work_run(work_queue_t q, work_queue_func_t func, void * data, unsigned int n) {
    (void) q;
    pthread_t   threads[HTP_MAX_NTHREADS];
    struct work work[HTP_MAX_NTHREADS];
    for (unsigned int i = 0; i < n; i++) {
        work[i] = (struct work) { func, data, n, i };
        pthread_create(&threads[i], NULL, work_main, &work[i]);
    }
    for (unsigned int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    return true;
}

// --- The op ---

static struct htp_tensor matrix(uint32_t type, const void * data, uint32_t ne0, uint32_t ne1, uint32_t nb0, uint32_t nb1) {
    return (struct htp_tensor) {
        .data = (uintptr_t) data, .size = nb1 * ne1, .type = type, .ne = { ne0, ne1, 1, 1 }, .nb = { nb0, nb1, nb1 * ne1, nb1 * ne1 },
    };
}

// m tokens x n columns over k: y = x * w (+ add: one row for all, or one each). w: tiles as the host keeps them.
// what: sizes that were chosen, k_chunk, m_chunk, group, n_wgt, n_stage. Returns 0, -1: not taken, -2: DMA that can't be, or the op's status.
API int lab_matmul(uint32_t type, uint32_t k, uint32_t m, uint32_t n, const uint8_t * w, const float * x, uint32_t x_stride, const float * add,
                   uint32_t add_rows, float * y, uint32_t y_stride, uint32_t n_threads, uint8_t * vtcm, uint32_t vtcm_size, int32_t * what) {
    struct htp_mm_int_kernel_params kp = {
        .kernel_type       = HTP_MM_KERNEL_HMX_INT,
        .n_hmx             = 1,
        .n_threads         = (int32_t) n_threads,
        .n_act_threads     = (int32_t) n_threads,
        .tile_size         = (int32_t) htp_mm_get_weight_tile_size((int) type),
        .aligned_tile_size = (int32_t) htp_mm_get_weight_aligned_tile_size((int) type),
    };
    if (!htp_mm_int_has_type((int) type) || !htp_mm_int_solve(&kp, m, k / 32, vtcm_size)) {
        return -1;
    }
    memcpy(what, (int32_t[]) { kp.k_chunk, kp.m_chunk, kp.group, kp.n_wgt, kp.n_stage }, 5 * sizeof(int32_t));

    struct htp_tensor src0 = matrix(type, w, k, (n + 31) / 32 * 32, 1, k / 32 * (uint32_t) kp.tile_size / 32);
    struct htp_tensor src1 = matrix(HTP_TYPE_F32, x, k, m, 4, x_stride);
    struct htp_tensor src2 = matrix(HTP_TYPE_F32, add, n, add_rows, 4, n * 4);
    struct htp_tensor dst  = matrix(HTP_TYPE_F32, y, n, m, 4, y_stride);

    static struct htp_context ctx;
    memset(&ctx, 0, sizeof(ctx));
    memset(fifos, 0, sizeof(fifos));
    refused        = 0;
    ctx.n_threads  = n_threads;
    ctx.vtcm_base  = vtcm;
    ctx.vtcm_size  = vtcm_size;
    ctx.mdev.count = 1;
    for (uint32_t i = 0; i < n_threads; i++) {
        ctx.dma[i] = (dma_queue_t) &fifos[i];
    }

    struct htp_ops_context octx = { .ctx = &ctx, .op = add ? HTP_OP_MUL_MAT_ADD : HTP_OP_MUL_MAT, .n_threads = n_threads };
    memcpy(octx.kernel_params, &kp, sizeof(kp));
    octx.src[0] = &src0;
    octx.src[1] = &src1;
    octx.src[2] = add ? &src2 : NULL;
    octx.dst    = &dst;

    const int status = htp_mm_int_matmul(&octx, NULL, NULL, 0);
    for (uint32_t i = 0; i < n_threads; i++) {
        refused += fifos[i].push != fifos[i].pop;
    }
    return refused ? -2 : status == HTP_STATUS_OK ? 0 : status;
}

// --- Upstream's HVX route, token by token ---

typedef void (*dot_func)(const uint32_t, float * restrict, const void * restrict, const void * restrict, uint32_t, const float * restrict);

static dot_func dot_of(uint32_t type) {
    switch (type) {
        case HTP_TYPE_Q4_0:   return tiled_vec_dot_q4_0_32x1;
        case HTP_TYPE_Q4_1:
        case HTP_TYPE_Q4_K:   return tiled_vec_dot_q4_1_32x1;
        case HTP_TYPE_Q8_0:   return tiled_vec_dot_q8_0_32x1;
        case HTP_TYPE_Q5_K:   return tiled_vec_dot_q5_k_32x1;
        case HTP_TYPE_Q6_K:   return tiled_vec_dot_q6_k_32x1;
        case HTP_TYPE_IQ4_NL: return tiled_vec_dot_iq4nl_32x1;
        default:              return tiled_vec_dot_mxfp4_32x1;
    }
}

// room: for one token, and one column tile. k is a multiple of 128.
API void lab_hvx(uint32_t type, uint32_t k, uint32_t m, uint32_t n, const uint8_t * w, float * x, float * y, uint8_t * room) {
    const uint32_t size    = htp_mm_get_weight_tile_size((int) type);
    const uint32_t aligned = htp_mm_get_weight_aligned_tile_size((int) type);
    uint8_t *      token   = room + k / 32 * aligned;
    for (uint32_t ct = 0; ct < n / 32; ct++) {
        for (uint32_t t = 0; t < k / 32; t++) {
            memcpy(room + t * aligned, w + (ct * (k / 32) + t) * size, size);
        }
        for (uint32_t i = 0; i < m; i++) {
            if (htp_mm_weight_has_offset((int) type)) {
                quantize_row_f32_q8_1_tiled(x + i * k, token, k);
            } else {
                quantize_row_f32_q8_0_tiled(x + i * k, token, k);
            }
            dot_of(type)(k, y + i * n + ct * 32, room, token, 32, NULL);
        }
    }
}
