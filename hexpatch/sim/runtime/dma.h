// Between the DMA engine and its descriptors.
#ifndef DMA_H
#define DMA_H

#include "sim.h"

struct transfer {
    uint64_t src, dst;
    uint32_t bytes, rows, src_stride, dst_stride;
};

// False: refused.
bool sim_dma_decode(const uint8_t * desc, struct transfer * t);
// False: an address is not mapped; it is in bad.
bool sim_dma_move(struct sim_session * s, const struct transfer * t, const void ** bad);

#endif
