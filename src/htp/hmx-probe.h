#ifndef HMX_PROBE_H
#define HMX_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hex-utils.h"
#include "hmx-queue.h"
#include "hmx-utils.h"
#include "htp-ctx.h"

// Whether the HMX has FP16 multipliers is a chip option, not an arch level: without them every .hf
// multiply leaves the accumulator at zero. So multiply a tile of ones by a tile of ones and look.

#define HMX_PROBE_ONE    0x3c00 // 1.0 in fp16
#define HMX_PROBE_SUM    0x5000 // 32.0: the dot product of 32 ones
#define HMX_PROBE_UNSET  0x5555

#define HMX_PROBE_OFF_ONES    0
#define HMX_PROBE_OFF_SCALES  HMX_FP16_TILE_SIZE
#define HMX_PROBE_OFF_OUT     (2 * HMX_FP16_TILE_SIZE)
#define HMX_PROBE_BYTES       (3 * HMX_FP16_TILE_SIZE)

struct hmx_probe_job {
    hmx_queue_t     queue;
    const uint8_t * vtcm;
    bool            locked;
};

static void hmx_probe_worker(void * data) {
    struct hmx_probe_job * job = (struct hmx_probe_job *) data;

    job->locked = job->queue->hmx_locked;
    if (!job->locked) {
        return;
    }

    const uint8_t * ones   = job->vtcm + HMX_PROBE_OFF_ONES;
    const uint8_t * scales = job->vtcm + HMX_PROBE_OFF_SCALES;
    const uint8_t * out    = job->vtcm + HMX_PROBE_OFF_OUT;

    asm volatile(HMX_SET_BIAS("%0") :: "r"((unsigned int) scales));
    asm volatile(HMX_CLRACC_F16());
    asm volatile(HMX_LOAD_MPY_F16("%1", "%1", "%0") : : "r"(HMX_FP16_TILE_SIZE - 1), "r"(ones));
    asm volatile(HMX_STORE_AFTER_F16("%0", "%1") : : "r"(out), "r"(0) : "memory");
}

// Tiles are prepared and read in DDR and moved by DMA, so no HVX context is needed here.
// ddr and vtcm: HMX_PROBE_BYTES each, 128-byte aligned. False: the HMX can't be locked at all.
static inline bool hmx_probe_run(hmx_queue_t hmx_q, dma_queue_t dma_q, uint8_t * ddr, uint8_t * vtcm, bool * fp16) {
    uint16_t * ones   = (uint16_t *) (ddr + HMX_PROBE_OFF_ONES);
    uint32_t * scales = (uint32_t *) (ddr + HMX_PROBE_OFF_SCALES);
    uint16_t * out    = (uint16_t *) (ddr + HMX_PROBE_OFF_OUT);

    memset(scales, 0, HMX_FP16_TILE_SIZE);
    for (uint32_t i = 0; i < HMX_FP16_TILE_N_ELMS; i++) {
        ones[i] = HMX_PROBE_ONE;
        out[i]  = HMX_PROBE_UNSET;
    }
    for (uint32_t c = 0; c < HMX_FP16_TILE_N_COLS; c++) {
        scales[c] = HMX_PROBE_ONE; // scale 1.0, no bias
    }

    hex_l2flush(ddr, HMX_PROBE_BYTES);
    dma_sync_read(dma_q, vtcm, (dma_addr_t) (uintptr_t) ddr, HMX_PROBE_BYTES);

    struct hmx_probe_job job = { hmx_q, vtcm, false };
    if (!hmx_queue_push(hmx_q, hmx_queue_make_desc(hmx_probe_worker, &job))) {
        return false;
    }
    hmx_queue_pop(hmx_q);
    if (!job.locked) {
        return false;
    }

    dma_sync_write(dma_q, (dma_addr_t) (uintptr_t) out, vtcm + HMX_PROBE_OFF_OUT, HMX_FP16_TILE_SIZE);
    hex_l2flush(out, HMX_FP16_TILE_SIZE);

    *fp16 = true;
    for (uint32_t i = 0; i < HMX_FP16_TILE_N_ELMS; i++) {
        *fp16 = *fp16 && out[i] == HMX_PROBE_SUM;
    }
    return true;
}

#endif /* HMX_PROBE_H */
