#ifndef HVX_SHORT_ROWS_H
#define HVX_SHORT_ROWS_H

#include <stdint.h>

#include "hex-common.h"
#include "hvx-base.h"
#include "hvx-types.h"

// Rows shorter than a vector, lined up in VTCM by gathers with full 128-byte stores.
//
// A row consists of one or two parts. In the span that a thread has fetched, element i of row r of a part is at
//   offset + r * row_stride + i * col_stride
// Rows meet vector boundaries again after lcm(row, vector), so a table with the offsets of that many vectors
// is enough: from one period to the next every offset of a part grows by the same step.

#define HVX_SHORT_ROWS_MAX_SPAN (32 * 1024) // offsets of halfword gathers stay positive

struct hvx_short_rows_part {
    uint32_t ne;
    uint32_t offset;
    uint32_t row_stride;
    uint32_t col_stride;
};

struct hvx_short_rows {
    struct hvx_short_rows_part part[2]; // part[1].ne == 0: one part
    uint32_t span_size;
    uint32_t ne;          // elements per row
    uint32_t vec_rows;    // elements per vector = vec_rows * ne + vec_cols
    uint32_t vec_cols;
    uint32_t period_vecs; // period: period_vecs vectors = period_rows rows
    uint32_t period_rows;
};

static inline void hvx_short_rows_init(struct hvx_short_rows * sr, uint32_t ne, uint32_t elem_size) {
    const uint32_t nlanes = VLEN / elem_size;
    const uint32_t gcd    = hex_gcd_u32(ne, nlanes);

    sr->ne          = ne;
    sr->vec_rows    = nlanes / ne;
    sr->vec_cols    = nlanes - sr->vec_rows * ne;
    sr->period_vecs = ne / gcd;
    sr->period_rows = nlanes / gcd;
}

// hvx_short_rows_table_*():  period_vecs vectors of offsets to table.
// hvx_short_rows_gather_*(): nvecs vectors to dst. Async: hvx_gather_sync() before use.
// The last vector may read past the last row of the span, but not past span_size.
#define DEFINE_HVX_SHORT_ROWS(T, INT_TYPE, NLANES, vec_splat, vec_add, vec_sub, vec_mul, vec_cmp_gt, vec_gather)        \
static inline void hvx_short_rows_table_##T(HVX_Vector * restrict table, const struct hvx_short_rows * sr) {            \
    const struct hvx_short_rows_part * p0 = &sr->part[0];                                                               \
    const struct hvx_short_rows_part * p1 = &sr->part[1];                                                               \
                                                                                                                        \
    INT_TYPE lane_row[NLANES] __attribute__((aligned(VLEN)));                                                           \
    INT_TYPE lane_col[NLANES] __attribute__((aligned(VLEN)));                                                           \
    for (uint32_t k = 0, r = 0, c = 0; k < NLANES; k++) {                                                               \
        lane_row[k] = r;                                                                                                \
        lane_col[k] = c;                                                                                                \
        if (++c == sr->ne) {                                                                                            \
            c = 0;                                                                                                      \
            r++;                                                                                                        \
        }                                                                                                               \
    }                                                                                                                   \
                                                                                                                        \
    HVX_Vector row = *(const HVX_Vector *) lane_row;                                                                    \
    HVX_Vector col = *(const HVX_Vector *) lane_col;                                                                    \
                                                                                                                        \
    const HVX_Vector ne       = vec_splat(sr->ne);                                                                      \
    const HVX_Vector last_col = vec_splat(sr->ne - 1);                                                                  \
    const HVX_Vector last0    = vec_splat(p0->ne - 1);                                                                  \
    const HVX_Vector ne0      = vec_splat(p0->ne);                                                                      \
    const HVX_Vector offset0  = vec_splat(p0->offset);                                                                  \
    const HVX_Vector offset1  = vec_splat(p1->offset);                                                                  \
    const HVX_Vector row_st0  = vec_splat(p0->row_stride);                                                              \
    const HVX_Vector row_st1  = vec_splat(p1->row_stride);                                                              \
    const HVX_Vector col_st0  = vec_splat(p0->col_stride);                                                              \
    const HVX_Vector col_st1  = vec_splat(p1->col_stride);                                                              \
    const HVX_Vector vec_rows = vec_splat(sr->vec_rows);                                                                \
    const HVX_Vector vec_cols = vec_splat(sr->vec_cols);                                                                \
    const HVX_Vector one      = vec_splat(1);                                                                           \
                                                                                                                        \
    for (uint32_t v = 0; v < sr->period_vecs; v++) {                                                                    \
        const HVX_VectorPred is_p1 = vec_cmp_gt(col, last0);                                                            \
        HVX_Vector off0 = vec_add(offset0, vec_add(vec_mul(row, row_st0), vec_mul(col, col_st0)));                      \
        HVX_Vector off1 = vec_add(offset1, vec_add(vec_mul(row, row_st1), vec_mul(vec_sub(col, ne0), col_st1)));        \
        table[v] = Q6_V_vmux_QVV(is_p1, off1, off0);                                                                    \
                                                                                                                        \
        row = vec_add(row, vec_rows);                                                                                   \
        col = vec_add(col, vec_cols);                                                                                   \
        const HVX_VectorPred wrap = vec_cmp_gt(col, last_col);                                                          \
        row = Q6_V_vmux_QVV(wrap, vec_add(row, one), row);                                                              \
        col = Q6_V_vmux_QVV(wrap, vec_sub(col, ne), col);                                                               \
    }                                                                                                                   \
}                                                                                                                       \
                                                                                                                        \
static inline void hvx_short_rows_gather_##T(uint8_t * restrict dst, const uint8_t * restrict span,                     \
                                             const HVX_Vector * restrict table, const struct hvx_short_rows * sr,       \
                                             uint32_t nvecs) {                                                          \
    const uint32_t mu     = sr->span_size - 1;                                                                          \
    const uint32_t period = sr->period_vecs;                                                                            \
                                                                                                                        \
    const HVX_Vector last0 = vec_splat(sr->part[1].ne ? sr->part[1].offset - 1 : HVX_SHORT_ROWS_MAX_SPAN - 1);          \
    const HVX_Vector step0 = vec_splat(sr->period_rows * sr->part[0].row_stride);                                       \
    const HVX_Vector step1 = vec_splat(sr->period_rows * sr->part[1].row_stride);                                       \
                                                                                                                        \
    for (uint32_t v = 0; v < MIN(period, nvecs); v++) {                                                                 \
        HVX_Vector       off  = table[v];                                                                               \
        const HVX_Vector step = Q6_V_vmux_QVV(vec_cmp_gt(off, last0), step1, step0);                                    \
        uint8_t *        d    = dst + v * VLEN;                                                                         \
        for (uint32_t i = v; i < nvecs; i += period) {                                                                  \
            vec_gather((HVX_Vector *) d, (size_t) span, mu, off);                                                       \
            off = vec_add(off, step);                                                                                   \
            d  += period * VLEN;                                                                                        \
        }                                                                                                               \
    }                                                                                                                   \
}

DEFINE_HVX_SHORT_ROWS(w, int32_t, VLEN_FP32, Q6_V_vsplat_R, Q6_Vw_vadd_VwVw, Q6_Vw_vsub_VwVw, Q6_Vw_vmpyie_VwVuh,
                      Q6_Q_vcmp_gt_VwVw, Q6_vgather_ARMVw)
DEFINE_HVX_SHORT_ROWS(h, int16_t, VLEN_FP16, Q6_Vh_vsplat_R, Q6_Vh_vadd_VhVh, Q6_Vh_vsub_VhVh, Q6_Vh_vmpyi_VhVh,
                      Q6_Q_vcmp_gt_VhVh, Q6_vgather_ARMVh)

#endif // HVX_SHORT_ROWS_H
