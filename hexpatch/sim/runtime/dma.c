// User DMA: one engine per hardware thread, which here is one per DSP thread. Words of a descriptor
// are those of the hardware, except that `next` is 8 bytes on this 64-bit side.
//
//   word 1  [23:0] length (linear) or destination stride (types 9, 10); [25:24] 0 linear, 1 2D;
//           26, 27 compressed; 28, 29 bypass; 30 order; 31 done
//   word 2, 3  source, destination       word 4  [7:0] type
//   type 0    word 5 [15:0] row bytes, [31:16] rows; word 6 [15:0] source, [31:16] destination
//             stride, 0 = 65536; word 7 offsets
//   type 9    word 5 [23:0] row bytes, [31:24] rows low; word 6 [7:0] rows high, [31:8] source
//             stride; strides 0 = 2^24; word 7 [23:0] offset. v75 and later.
//   type 10   the same, word 4 [15:8] and [23:16] bits 39:32 of source and destination. v81.
//
// Immediate mode moves data in dmstart/dmlink. Lazy mode queues descriptors and runs one per poll of
// the thread that queued them; a thread with nothing queued runs the next one of another thread,
// because upstream may wait on a different thread than the one that pushed.
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define DONE (1u << 31)

enum { IDLE = 0, RUN = 1, ERROR = 2 };

struct transfer {
    uint64_t src, dst;
    uint32_t bytes, rows, src_stride, dst_stride;
};

struct sim_dma_pending {
    struct sim_dma_pending * next;
    struct sim_ctx *         engine;
    uint8_t *                desc;
    struct transfer          t;
    bool                     ok;
};

static uint32_t word(const uint8_t * desc, int i) {
    uint32_t w;
    memcpy(&w, desc + sizeof(void *) + 4 * (size_t) (i - 1), 4);
    return w;
}

static uint8_t * next_of(const uint8_t * desc) {
    uint8_t * next;
    memcpy(&next, desc, sizeof(next));
    return next;
}

// The SDK's own structs (hexagon_udma_descriptor_type*_t) hold pointers: 8 bytes each here, after a
// hole that is 0, where other code has the source, which never is.
static bool sdk_layout(const uint8_t * desc) {
    return word(desc, 2) == 0;
}

static bool decode(const uint8_t * desc, struct transfer * t) {
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

static bool move(struct sim_session * s, const struct transfer * t, const void ** bad) {
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

// Run one descriptor. A refused one is marked done as well, or the kernel would wait for ever.
static void execute(struct sim_session * s, uint8_t * desc, const void * pc) {
    struct transfer t;
    const void *    bad = desc;
    if (!((uintptr_t) desc & 7) && decode(desc, &t) && move(s, &t, &bad)) {
        sim_count_n(dma, 1);
        sim_count_n(dma_rows, t.rows);
        sim_count_n(dma_bytes, (uint64_t) t.rows * t.bytes);
    } else {
        sim_fault(SIM_FAULT_dma_bad, bad, 0, pc);
    }
    __atomic_fetch_or((uint32_t *) (void *) (desc + sizeof(void *)), DONE, __ATOMIC_RELEASE);
}

// -- queued descriptors ---------------------------------------------------------------------------

static void mark(const struct sim_dma_pending * p, bool on) {
    const struct transfer * t = &p->t;
    if (!p->ok || !t->bytes || !sim_checked(SIM_FAULT_dma_order)) {
        return;
    }
    for (uint32_t r = 0; r < t->rows; r++) {
        const uint64_t ends[2]  = { t->src + (uint64_t) r * t->src_stride, t->dst + (uint64_t) r * t->dst_stride };
        const uint8_t  flags[2] = { MEM_DMA_SRC, MEM_DMA_DST };
        for (int i = 0; i < 2; i++) {
            for (uint64_t g = ends[i] / SIM_GRANULE; g <= (ends[i] + t->bytes - 1) / SIM_GRANULE; g++) {
                if (g < (1ull << 32) / SIM_GRANULE) {
                    sim_shadow[g] = (uint8_t) (on ? sim_shadow[g] | flags[i] : sim_shadow[g] & ~flags[i]);
                }
            }
        }
    }
}

static void remark(struct sim_session * s) {
    for (const struct sim_dma_pending * p = s->pending; p; p = p->next) {
        mark(p, true);
    }
}

static struct sim_dma_pending * find(struct sim_session * s, const uint8_t * desc) {
    struct sim_dma_pending * p = s->pending;
    while (p && p->desc != desc) {
        p = p->next;
    }
    return p;
}

static void enqueue(struct sim_session * s, struct sim_ctx * engine, uint8_t * desc) {
    for (; desc && !find(s, desc); desc = next_of(desc)) {
        struct sim_dma_pending * p = calloc(1, sizeof(*p));
        if (!p) {
            abort();
        }
        p->engine = engine;
        p->desc   = desc;
        p->ok     = !((uintptr_t) desc & 7) && decode(desc, &p->t);
        struct sim_dma_pending ** end = &s->pending;
        while (*end) {
            end = &(*end)->next;
        }
        *end = p;
        s->dma_queued++;
        mark(p, true);
        if ((uintptr_t) desc & 7) {
            break;
        }
    }
}

// Run the first descriptor queued by engine; by anybody when it has none.
static bool run_one(struct sim_session * s, struct sim_ctx * engine, const void * pc) {
    struct sim_dma_pending ** at = &s->pending;
    while (*at && ((*at)->engine != engine || engine->dma.paused)) {
        at = &(*at)->next;
    }
    if (!*at) {
        at = &s->pending;
    }
    struct sim_dma_pending * p = *at;
    if (!p || p->engine->dma.paused) {
        return false;
    }
    *at = p->next;
    s->dma_queued--;
    mark(p, false);
    remark(s);
    execute(s, p->desc, pc);
    bool more = false;
    for (const struct sim_dma_pending * q = s->pending; q; q = q->next) {
        more |= q->engine == p->engine;
    }
    if (!more) {
        enqueue(s, p->engine, next_of(p->desc));  // linked by hand meanwhile
    }
    free(p);
    return true;
}

int sim_dma_left(struct sim_session * s, bool run) {
    pthread_mutex_lock(&s->dma_lock);
    const int left = s->dma_queued;
    while (run && s->pending) {
        s->pending->engine->dma.paused = false;
        run_one(s, s->pending->engine, (const void *) 1);
    }
    pthread_mutex_unlock(&s->dma_lock);
    return left;
}

// Does an access touch a row of the transfer? A vector load may read lanes it has no use for, before
// or behind its data: it counts only when it lies inside the row, rounded up to vectors.
static bool hits(uint64_t at, uint64_t size, bool store, uint64_t base, uint32_t stride, const struct transfer * t) {
    if (at + size <= base) {
        return false;
    }
    const bool loose = !store && size >= SIM_GRANULE;
    uint64_t   r     = at > base && stride ? (at - base) / stride : 0;
    for (; r < t->rows && base + r * stride < at + size; r++) {
        const uint64_t from = base + r * stride;
        const uint64_t to   = from + t->bytes;
        if (loose ? at >= from && at + size <= ((to + SIM_GRANULE - 1) & ~(uint64_t) (SIM_GRANULE - 1)) : at < to) {
            return true;
        }
    }
    return false;
}

bool sim_dma_conflict(uintptr_t at, size_t size, bool store) {
    struct sim_session * s = sim_me()->session;
    if (!s) {
        return false;
    }
    bool bad = false;
    pthread_mutex_lock(&s->dma_lock);
    for (const struct sim_dma_pending * p = s->pending; p && !bad; p = p->next) {
        const struct transfer * t = &p->t;
        bad = p->ok && (hits(at, size, store, t->dst, t->dst_stride, t) ||
                        (store && hits(at, size, store, t->src, t->src_stride, t)));
    }
    pthread_mutex_unlock(&s->dma_lock);
    return bad;
}

// -- instructions ---------------------------------------------------------------------------------

static bool lazy(const struct sim_ctx * me) {
    return (sim_modes & SIM_MODE_lazy) && me->session;
}

static uint32_t status(struct sim_ctx * me) {
    const struct sim_dma_pending * p = me->session ? me->session->pending : NULL;
    while (p && p->engine != me) {
        p = p->next;
    }
    return p ? ((uint32_t) (uintptr_t) p->desc & ~15u) | RUN : me->dma.error ? ERROR : IDLE;
}

static void start(struct sim_ctx * me, struct sim_ctx * engine, uint8_t * desc, const void * pc) {
    if (lazy(me)) {
        enqueue(me->session, engine, desc);
        return;
    }
    for (int n = 0; desc && n < 1 << 20; n++) {
        execute(me->session, desc, pc);
        desc = (uintptr_t) desc & 7 ? NULL : next_of(desc);
    }
}

SIM_API void sim_dmstart(void * desc) {
    struct sim_ctx * me = sim_me();
    const void *     pc = __builtin_return_address(0);
    if (lazy(me)) {
        pthread_mutex_lock(&me->session->dma_lock);
        if (status(me) == IDLE) {
            start(me, me, desc, pc);
        } else {
            sim_fault(SIM_FAULT_dma_bad, desc, 0, pc);  // dmstart in run state
        }
        pthread_mutex_unlock(&me->session->dma_lock);
    } else {
        start(me, me, desc, pc);
    }
}

// A tail that some engine has not run yet pulls desc into that engine's chain; after one that is
// done, or was never started, desc starts a chain of its own.
SIM_API void sim_dmlink(void * tail, void * desc) {
    struct sim_ctx * me = sim_me();
    const void *     pc = __builtin_return_address(0);
    if (tail) {
        memcpy(tail, &desc, sizeof(desc));
    }
    if (lazy(me)) {
        pthread_mutex_lock(&me->session->dma_lock);
        const struct sim_dma_pending * p = tail ? find(me->session, tail) : NULL;
        start(me, p ? p->engine : me, desc, pc);
        pthread_mutex_unlock(&me->session->dma_lock);
    } else {
        start(me, me, desc, pc);
    }
}

SIM_API uint32_t sim_dmpoll(void) {
    struct sim_ctx * me = sim_me();
    if (!lazy(me)) {
        return IDLE;
    }
    pthread_mutex_lock(&me->session->dma_lock);
    if (run_one(me->session, me, __builtin_return_address(0))) {
        sim_count_n(dma_waits, 1);
    }
    const uint32_t st = status(me);
    pthread_mutex_unlock(&me->session->dma_lock);
    return st;
}

SIM_API uint32_t sim_dmwait(void) {
    struct sim_ctx * me = sim_me();
    if (!lazy(me)) {
        return IDLE;
    }
    pthread_mutex_lock(&me->session->dma_lock);
    while (status(me) & RUN && run_one(me->session, me, __builtin_return_address(0))) {
        sim_count_n(dma_waits, 1);
    }
    const uint32_t st = status(me);
    pthread_mutex_unlock(&me->session->dma_lock);
    return st;
}

SIM_API uint32_t sim_dmpause(void) {
    struct sim_ctx * me = sim_me();
    me->dma.paused = true;
    return status(me);
}

SIM_API void sim_dmresume(void * desc) {
    struct sim_ctx * me = sim_me();
    me->dma.paused = false;
    if (desc && !lazy(me)) {
        start(me, me, desc, __builtin_return_address(0));
    }
}
