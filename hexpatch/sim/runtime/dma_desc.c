// DMA descriptors: what they say and what they do. The words are those of the hardware, except that
// `next` is 8 bytes on this 64-bit side.
//
//   word 1  [23:0] length (linear) or destination stride (types 9, 10); [25:24] 0 linear, 1 2D;
//           26, 27 compressed; 28, 29 bypass; 30 order; 31 done
//   word 2, 3  source, destination       word 4  [7:0] type
//   type 0    word 5 [15:0] row bytes, [31:16] rows; word 6 [15:0] source, [31:16] destination
//             stride, 0 = 65536; word 7 offsets
//   type 9    word 5 [23:0] row bytes, [31:24] rows low; word 6 [7:0] rows high, [31:8] source
//             stride; strides 0 = 2^24; word 7 [23:0] offset. v75 and later.
//   type 10   the same, word 4 [15:8] and [23:16] bits 39:32 of source and destination. v81.
#include "dma.h"

#include <string.h>

static uint32_t word(const uint8_t * desc, int i) {
    uint32_t w;
    memcpy(&w, desc + sizeof(void *) + 4 * (size_t) (i - 1), 4);
    return w;
}

// The SDK's own structs (hexagon_udma_descriptor_type*_t) hold pointers: 8 bytes each here, after a
// hole that is 0, where other code has the low half of the source. That is 0 in one case: 40 bits
// (type 10, 2D) that are a multiple of 4 GiB.
static bool sdk_layout(const uint8_t * desc) {
    const bool wide = sim_device.arch >= 81 && (word(desc, 1) >> 24 & 3) == 1 && (word(desc, 4) & 0xff) == 10;
    return word(desc, 2) == 0 && !wide;
}

bool sim_dma_decode(const uint8_t * desc, struct transfer * t) {
    const uint32_t common = word(desc, 1);
    const bool     sdk    = sdk_layout(desc);
    const int      shift  = sdk ? 3 : 0;  // hole, and two halves more
    t->src = word(desc, sdk ? 3 : 2);
    t->dst = word(desc, sdk ? 5 : 3);
    if (common >> 26 & 3) {
        return false;  // compressed
    }
    if ((common >> 24 & 3) == 0) {
        *t = (struct transfer) { t->src, t->dst, common & 0xffffff, 1, 0, 0 };
        return true;
    }
    if ((common >> 24 & 3) != 1) {
        return false;
    }
    const uint32_t w4 = word(desc, 4 + shift), w5 = word(desc, 5 + shift);
    const uint32_t w6 = word(desc, 6 + shift), w7 = word(desc, 7 + shift);
    const uint32_t type = w4 & 0xff;
    if (type == 0) {
        t->bytes      = w5 & 0xffff;
        t->rows       = w5 >> 16;
        t->src_stride = w6 & 0xffff ? w6 & 0xffff : 65536;
        t->dst_stride = w6 >> 16 ? w6 >> 16 : 65536;
        return w7 == 0;
    }
    if ((type == 9 && sim_device.arch >= 75) || (type == 10 && sim_device.arch >= 81)) {
        t->bytes      = w5 & 0xffffff;
        t->rows       = w5 >> 24 | (w6 & 0xff) << 8;
        t->src_stride = w6 >> 8 ? w6 >> 8 : 1u << 24;
        t->dst_stride = common & 0xffffff ? common & 0xffffff : 1u << 24;
        if (type == 10) {
            t->src |= (uint64_t) (w4 >> 8 & 0xff) << 32;
            t->dst |= (uint64_t) (w4 >> 16 & 0xff) << 32;
        }
        return (w7 & 0xffffff) == 0;
    }
    return false;
}

// Where a row really is: a DSP address may name the library's own data, which may lie above 4 GiB
// here. NULL: nothing is mapped there.
static uint8_t * row_at(struct sim_session * s, uint64_t at, uint32_t bytes) {
    if (at >> 32) {
        uint8_t * p = NULL;
        if (s) {
            pthread_mutex_lock(&s->lock);
            for (int i = 0; i < SIM_MAX_MAPS && !p; i++) {
                const struct sim_map * m = &s->maps[i];
                if (m->refs && m->extended && at >= m->base && at - m->base + bytes <= m->size) {
                    p = (uint8_t *) (uintptr_t) at;
                }
            }
            pthread_mutex_unlock(&s->lock);
        }
        return p;
    }
    bool mapped = true;
    for (uint64_t g = at / SIM_GRANULE; g <= (at + bytes - 1) / SIM_GRANULE && mapped; g++) {
        mapped = g < (1ull << 32) / SIM_GRANULE && (sim_shadow[g] & MEM_KIND);
    }
    if (mapped) {
        return (uint8_t *) (uintptr_t) at;
    }
    if (s && s->lib_hi) {
        const uint64_t in_lib = (s->lib_lo & ~0xffffffffull) | at;
        for (int i = 0; i < 2; i++) {
            const uint64_t p = in_lib + ((uint64_t) i << 32);
            if (p >= s->lib_lo && p + bytes <= s->lib_hi) {
                return (uint8_t *) (uintptr_t) p;
            }
        }
    }
    return NULL;
}

bool sim_dma_move(struct sim_session * s, const struct transfer * t, const void ** bad) {
    for (uint32_t r = 0; r < t->rows && t->bytes; r++) {
        const uint64_t from = t->src + (uint64_t) r * t->src_stride;
        const uint64_t to   = t->dst + (uint64_t) r * t->dst_stride;
        uint8_t *      src  = row_at(s, from, t->bytes);
        uint8_t *      dst  = row_at(s, to, t->bytes);
        if (!src || !dst) {
            *bad = (const void *) (uintptr_t) (src ? to : from);
            return false;
        }
        memmove(dst, src, t->bytes);
    }
    return true;
}
