// User DMA: one engine per hardware thread, which here is one per DSP thread.
//
// Immediate mode moves data in dmstart/dmlink. Lazy mode queues descriptors and runs one per poll of
// the thread that queued them; a thread with nothing queued runs the next one of another thread,
// because upstream may wait on a different thread than the one that pushed.
#include "dma.h"

#include <stdlib.h>
#include <string.h>

#define DONE (1u << 31)

enum { IDLE = 0, RUN = 1, ERROR = 2 };

struct sim_dma_pending {
    struct sim_dma_pending * next;
    struct sim_ctx *         engine;
    uint8_t *                desc;
    struct transfer          t;
    bool                     ok;
    const void *             pc;  // who queued it
};

static uint8_t * next_of(const uint8_t * desc) {
    uint8_t * next;
    memcpy(&next, desc, sizeof(next));
    return next;
}

// Run one descriptor. A refused one is marked done as well, or the kernel would wait for ever.
static void execute(struct sim_session * s, uint8_t * desc, const void * pc) {
    struct transfer t;
    const void *    bad = desc;
    if (sim_dma_decode(desc, &t) && sim_dma_move(s, &t, &bad)) {
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

static bool near(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
    const uint64_t room = SIM_GRANULE;
    return a < b + b_size + room && b < a + a_size + room;
}

// Take the marks of one away; others may share its granules.
static void unmark(struct sim_session * s, const struct sim_dma_pending * gone) {
    const struct transfer * g = &gone->t;
    const uint64_t g_src = (uint64_t) g->rows * g->src_stride + g->bytes;
    const uint64_t g_dst = (uint64_t) g->rows * g->dst_stride + g->bytes;
    mark(gone, false);
    for (const struct sim_dma_pending * p = s->pending; p; p = p->next) {
        const struct transfer * t = &p->t;
        if (near(g->src, g_src, t->src, (uint64_t) t->rows * t->src_stride + t->bytes) ||
            near(g->dst, g_dst, t->dst, (uint64_t) t->rows * t->dst_stride + t->bytes)) {
            mark(p, true);
        }
    }
}

static struct sim_dma_pending * find(struct sim_session * s, const uint8_t * desc) {
    struct sim_dma_pending * p = s->pending;
    while (p && p->desc != desc) {
        p = p->next;
    }
    return p;
}

static void enqueue(struct sim_session * s, struct sim_ctx * engine, uint8_t * desc, const void * pc) {
    for (; desc && !((uintptr_t) desc & 7) && !find(s, desc); desc = next_of(desc)) {
        struct sim_dma_pending * p = calloc(1, sizeof(*p));
        if (!p) {
            abort();
        }
        p->engine = engine;
        p->desc   = desc;
        p->pc     = pc;
        p->ok     = sim_dma_decode(desc, &p->t);
        struct sim_dma_pending ** end = &s->pending;
        while (*end) {
            end = &(*end)->next;
        }
        *end = p;
        mark(p, true);
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
    unmark(s, p);
    execute(s, p->desc, pc);
    bool more = false;
    for (const struct sim_dma_pending * q = s->pending; q; q = q->next) {
        more |= q->engine == p->engine;
    }
    if (!more) {
        enqueue(s, p->engine, next_of(p->desc), p->pc);  // linked by hand meanwhile
    }
    free(p);
    return true;
}

void sim_dma_finish(struct sim_session * s) {
    pthread_mutex_lock(&s->dma_lock);
    for (const struct sim_dma_pending * p = s->pending; p; p = p->next) {
        sim_fault_in(s->op, SIM_FAULT_dma_left, (const void *) (uintptr_t) p->t.dst, p->t.bytes, p->pc);
    }
    while (s->pending) {
        s->pending->engine->dma.paused = false;
        run_one(s, s->pending->engine, s->pending->pc);
    }
    pthread_mutex_unlock(&s->dma_lock);
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

// 16-byte alignment can't be asked for: with pointers of 8 bytes upstream's descriptors are 40 apart.
static void start(struct sim_ctx * me, struct sim_ctx * engine, uint8_t * desc, const void * pc) {
    if ((uintptr_t) desc & 7) {
        sim_fault(SIM_FAULT_dma_bad, desc, 0, pc);
        return;
    }
    if (lazy(me)) {
        enqueue(me->session, engine, desc, pc);
        return;
    }
    for (int n = 0; desc && n < 1 << 20; n++) {
        execute(me->session, desc, pc);
        desc = next_of(desc);
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
