#ifndef HTP_SHORT_ROWS_H
#define HTP_SHORT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "dma-queue.h"
#include "hex-fastdiv.h"
#include "htp-ctx.h"
#include "htp-ops.h"
#include "hvx-short-rows.h"

// Copies of many rows shorter than a vector to a contiguous dst: a branch of CPY and CONCAT.
//
// A DMA of short rows costs per row (some 30 ns on v73), whatever its length. Here a thread fetches the whole span of
// its source rows, gaps included, lines the rows up in VTCM and writes them back as one span.
// With wide gaps the bytes cost more than the rows, and a dst with gaps can't be written as a span: such copies are
// left to the caller.

// Where the elements of a row come from
struct htp_short_rows_src {
    dma_addr_t data;
    uint32_t   ne;                   // elements per row
    uint32_t   nb[HTP_OP_MAX_DIMS];
    bool       cols;                 // elements of a row are farther apart than rows: fetched column by column
};

struct htp_short_rows {
    struct htp_ops_context *  octx;
    struct hvx_short_rows     geo;
    struct htp_short_rows_src src[2];
    uint32_t                  nsrc;
    uint32_t                  ne[HTP_OP_MAX_DIMS]; // elements, rows, planes
    uint32_t                  elem_size;
    uint32_t                  row_size;            // in dst

    uint32_t                  row_start;
    uint32_t                  nrows;
    uint32_t                  nrows_per_thread;
    uint32_t                  nrows_per_chunk;
    uint32_t                  n_threads;

    struct fastdiv_values     div_ne1;
    struct fastdiv_values     div_ne2;
};

// src0 to a contiguous dst of any shape, or src0 and src1 side by side (dim 0).
// Return false if the copy is not one of short rows, or is done faster row by row.
bool htp_short_rows_plan_cpy   (struct htp_short_rows * sr, struct htp_ops_context * octx, uint32_t elem_size);
bool htp_short_rows_plan_concat(struct htp_short_rows * sr, struct htp_ops_context * octx, uint32_t elem_size);

void htp_short_rows_run(struct htp_short_rows * sr);

#endif // HTP_SHORT_ROWS_H
