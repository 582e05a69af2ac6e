#ifndef HTP_MATMUL_INT_OPS_H
#define HTP_MATMUL_INT_OPS_H

#include <stdint.h>
#include <stddef.h>
#include "matmul-ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Integer HMX (HTP_MM_KERNEL_HMX_INT) ---
//
// A step is up to m_chunk tokens x k_chunk k-tiles x all column tiles. The step's activations stay in VTCM, every weight
// is converted once per step. A column tile belongs to one thread, which converts it to one of its n_wgt slots and later
// reduces what HMX made of it. HMX takes the column tiles in order and passes blocks of m_block row tiles through a ring
// of n_stage buffers.

#define HTP_MM_INT_M_CHUNK_MAX     512   // tokens per step when K doesn't fit at once
#define HTP_MM_INT_M_CHUNK_LIMIT   1024  // tokens per step at all
#define HTP_MM_INT_M_BLOCK         4     // row tiles in a stage buffer
#define HTP_MM_INT_GROUP_TILES     20    // k-tiles that share the scales of w8
#define HTP_MM_INT_GROUP_TILES_FEW 8     // with few tokens, where HMX is not the bottleneck
#define HTP_MM_INT_GROUP_TILES_MAX 28    // 16-bit results of HMX hold up to 32
#define HTP_MM_INT_GROUPS_MAX      32    // 32-bit sums of groups hold up to 32
#define HTP_MM_INT_STAGE_MAX       8
#define HTP_MM_INT_WGT_MAX         2
#define HTP_MM_INT_TOKEN_SCALES    111   // vectors, one for each exponent

// Seen as struct htp_mm_kernel_params by what is common to all kernels: those fields have the same names and places.
struct htp_mm_int_kernel_params {
    int32_t  kernel_type;       // HTP_MM_KERNEL_HMX_INT
    int32_t  k_chunk;           // k-tiles per step
    int32_t  m_chunk;           // tokens per step
    int32_t  n_chunk;           // 0
    int32_t  n_threads;
    int32_t  n_act_threads;     // n_threads
    int32_t  n_hmx;             // 1
    int32_t  group;             // k-tiles per group
    int32_t  tile_size;         // weight tile in DDR
    int32_t  aligned_tile_size; // weight tile in VTCM
    int32_t  m_block;           // row tiles per stage buffer
    int32_t  vtcm_size;
    int32_t  n_stage;           // stage buffers, a power of two
    int32_t  n_wgt;             // weight slots per thread, a power of two
    int32_t  reserved[3];
    int32_t  n_weights;         // fused weights, 0 = not fused

    struct fastdiv_values div_ne12_ne1;
    struct fastdiv_values div_ne1;
    struct fastdiv_values div_r2;
    struct fastdiv_values div_r3;
    struct fastdiv_values div_ne12;
};

#if defined(__cplusplus)
#define HTP_MM_INT_ASSERT(cond, msg) static_assert(cond, msg)
#else
#define HTP_MM_INT_ASSERT(cond, msg) _Static_assert(cond, msg)
#endif

#define HTP_MM_INT_SAME_FIELD(field)                                                                                      \
    HTP_MM_INT_ASSERT(offsetof(struct htp_mm_int_kernel_params, field) == offsetof(struct htp_mm_kernel_params, field),   \
                      "htp_mm_int_kernel_params and htp_mm_kernel_params differ in " #field)

HTP_MM_INT_ASSERT(sizeof(struct htp_mm_int_kernel_params) <= 128, "htp_mm_int_kernel_params is too large for kernel_params blob");
HTP_MM_INT_SAME_FIELD(kernel_type);
HTP_MM_INT_SAME_FIELD(m_chunk);
HTP_MM_INT_SAME_FIELD(n_chunk);
HTP_MM_INT_SAME_FIELD(n_threads);
HTP_MM_INT_SAME_FIELD(n_act_threads);
HTP_MM_INT_SAME_FIELD(n_hmx);
HTP_MM_INT_SAME_FIELD(vtcm_size);
HTP_MM_INT_SAME_FIELD(n_weights);
HTP_MM_INT_SAME_FIELD(div_ne12_ne1);
HTP_MM_INT_SAME_FIELD(div_ne1);
HTP_MM_INT_SAME_FIELD(div_r2);
HTP_MM_INT_SAME_FIELD(div_r3);
HTP_MM_INT_SAME_FIELD(div_ne12);

// types that can be had from htp_mm_get_weight_tile_size(): all that are quantized
static inline bool htp_mm_int_has_type(int weight_type) {
    return htp_mm_get_weight_tile_size(weight_type) != 0;
}

struct htp_ops_context;

// row_counts, rows: tokens of the experts for MUL_MAT_ID (rows_stride apart), else NULL. Both may be changed.
int htp_mm_int_matmul(struct htp_ops_context * octx, uint32_t * row_counts, struct mmid_row_mapping * rows, uint32_t rows_stride);

struct htp_mm_int_vtcm_layout {
    // Byte offsets from vtcm_base
    size_t off_act;
    size_t off_wgt;
    size_t off_raw;
    size_t off_stage;
    size_t off_out;
    size_t off_tables;
    size_t off_scales;

    // Sizes of one piece
    size_t wgt_bytes;    // slot of one thread; also scratch for raw activations
    size_t raw_bytes;    // one of two buffers of one thread
    size_t stage_bytes;  // one buffer
    size_t out_bytes;    // one of two buffers of one thread
    size_t table_bytes;  // one of 2 * n_wgt sets of one thread: see struct hmx_int_tables
    size_t scale_bytes;  // token scales of one thread

    size_t total_bytes;
};

static inline uint32_t htp_mm_int_n_groups(const struct htp_mm_int_kernel_params * kparams) {
    return (uint32_t) hmx_ceil_div(kparams->k_chunk, kparams->group);
}

static inline void htp_mm_int_vtcm_layout_build(struct htp_mm_int_vtcm_layout * L, const struct htp_mm_int_kernel_params * kparams) {
    const size_t n_threads   = kparams->n_threads;
    const size_t k_chunk     = kparams->k_chunk;
    const size_t n_row_tiles = hmx_ceil_div(kparams->m_chunk, 32);
    const size_t n_groups    = htp_mm_int_n_groups(kparams);

    L->wgt_bytes   = k_chunk * 1024;
    L->raw_bytes   = (size_t) kparams->group * kparams->aligned_tile_size;
    L->stage_bytes = n_groups * kparams->m_block * 2048;
    L->out_bytes   = (size_t) kparams->m_block * 32 * 128;
    L->table_bytes = n_groups * (256 + 2 * 128) + 2 * 128;
    L->scale_bytes = (HTP_MM_INT_TOKEN_SCALES + 1) * 128;

    // The weight operand of HMX is given the range of the activations, twice its size: weights must not come last
    size_t off = 0;
    VTCM_LAYOUT_ALLOC(off, off_act,    n_row_tiles * k_chunk * 2048);
    VTCM_LAYOUT_ALLOC(off, off_wgt,    n_threads * kparams->n_wgt * L->wgt_bytes);
    off = hex_align_up(off, 2048);
    VTCM_LAYOUT_ALLOC(off, off_stage,  kparams->n_stage * L->stage_bytes);
    VTCM_LAYOUT_ALLOC(off, off_out,    n_threads * 2 * L->out_bytes);
    VTCM_LAYOUT_ALLOC(off, off_tables, n_threads * 2 * kparams->n_wgt * L->table_bytes);
    VTCM_LAYOUT_ALLOC(off, off_scales, n_threads * L->scale_bytes);
    VTCM_LAYOUT_ALLOC(off, off_raw,    n_threads * 2 * L->raw_bytes);

    L->total_bytes = off;
}

static inline bool htp_mm_int_try_k_chunk(struct htp_mm_int_kernel_params * kparams, uint32_t k_chunk, size_t vtcm_budget) {
    const uint32_t few    = kparams->m_chunk <= 32 * HTP_MM_INT_M_BLOCK;
    const uint32_t target = few ? HTP_MM_INT_GROUP_TILES_FEW : HTP_MM_INT_GROUP_TILES;

    uint32_t n_groups = (uint32_t) hmx_ceil_div(k_chunk, target);
    n_groups = n_groups < HTP_MM_INT_GROUPS_MAX ? n_groups : HTP_MM_INT_GROUPS_MAX;

    kparams->k_chunk = k_chunk;
    kparams->group   = (int32_t) hmx_ceil_div(k_chunk, n_groups);
    if (kparams->group > HTP_MM_INT_GROUP_TILES_MAX) {
        return false;
    }

    struct htp_mm_int_vtcm_layout L;
    kparams->n_wgt   = 1;
    kparams->n_stage = 2;
    htp_mm_int_vtcm_layout_build(&L, kparams);
    if (L.total_bytes > vtcm_budget) {
        return false;
    }

    kparams->vtcm_size = (int32_t) L.total_bytes;

    // what is left: stage buffers decouple HMX from the threads, a second slot lets them convert ahead
    for (int i = 0; i < 3; i++) {
        struct htp_mm_int_kernel_params more = *kparams;
        if (i == 1) {
            more.n_wgt = HTP_MM_INT_WGT_MAX;
        } else {
            more.n_stage *= 2;
        }
        htp_mm_int_vtcm_layout_build(&L, &more);
        if (L.total_bytes <= vtcm_budget) {
            *kparams           = more;
            kparams->vtcm_size = (int32_t) L.total_bytes;
        }
    }
    return true;
}

// Fills in the sizes of steps and VTCM. m: tokens, n_k_tiles: K / 32. Fewest passes over the weights, then fewest steps.
static inline bool htp_mm_int_solve(struct htp_mm_int_kernel_params * kparams, uint32_t m, uint32_t n_k_tiles, size_t vtcm_budget) {
    for (uint32_t m_max = HTP_MM_INT_M_CHUNK_LIMIT; m_max >= 32; m_max /= 2) {
        const uint32_t n_m_chunks = (uint32_t) hmx_ceil_div(m, m_max);
        const uint32_t k_min      = m_max > HTP_MM_INT_M_CHUNK_MAX ? n_k_tiles : MIN(n_k_tiles, HTP_MM_INT_GROUP_TILES);

        kparams->m_chunk = (int32_t) hex_align_up(hmx_ceil_div(m, n_m_chunks), 32);
        kparams->m_block = MIN(kparams->m_chunk / 32, HTP_MM_INT_M_BLOCK);

        for (uint32_t n_k_chunks = 1; n_k_chunks <= n_k_tiles; n_k_chunks++) {
            const uint32_t k_chunk = (uint32_t) hmx_ceil_div(n_k_tiles, n_k_chunks);
            if (k_chunk < k_min) {
                break;
            }
            if (htp_mm_int_try_k_chunk(kparams, k_chunk, vtcm_budget)) {
                return true;
            }
        }
    }
    return false;
}

#ifdef __cplusplus
}
#endif

#endif // HTP_MATMUL_INT_OPS_H
