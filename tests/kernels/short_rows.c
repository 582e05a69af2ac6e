// Short-row copies without a phone: the header's kernels, plan and worker against plain loops, with a DMA engine that
// moves data only when somebody polls.
//
//     short_rows table|gather|cpy|concat|plan SEED ROUNDS
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "short-rows.h"
#include "dma-queue.c"
#include "short-rows.c"

// -- what the headers need --------------------------------------------------------------------------

__thread struct sim_thread sim_self;
uint8_t *                  sim_vtcm_base;
uint32_t                   sim_vtcm_size, sim_checks = ~0u, sim_modes;

static int failed;
#define FAIL(...) (failed++ < 10 ? (printf(__VA_ARGS__), printf("\n")) : 0)

void sim_fault(enum sim_fault kind, const void * addr, size_t size, const void * pc) {
    (void) pc;
    FAIL("fault %d at %p, %zu bytes", kind, addr, size);
}

static uint64_t state;
static uint32_t rnd(uint32_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) ((state >> 33) % n);
}

// -- DMA: descriptors wait in a list until a poll -------------------------------------------------------

struct range { uint64_t from, to; };
static struct range readable[2], writable;  // of DDR
static dma_descriptor_2d * waiting[64];
static int      n_waiting;
static uint64_t dma_rows, dma_bytes, dma_count;

static void move(dma_descriptor_2d * d) {
    uint64_t src = d->src, dst = d->dst;
    uint32_t bytes, rows = 1, ss = 0, ds = 0;
    if (d->desc_size == 0) {
        bytes = ((dma_descriptor_1d *) d)->size;
        dst   = ((dma_descriptor_1d *) d)->dst;
        src   = ((dma_descriptor_1d *) d)->src;
    } else {
        bytes = d->row_size;
        ss    = d->src_stride;
        ds    = d->dst_stride;
#if __HVX_ARCH__ < 75
        rows  = d->nrows;
#else
        rows  = d->nrows_lo | d->nrows_hi << 8;
#endif
    }
    const uint64_t v0 = (uintptr_t) sim_vtcm_base, v1 = v0 + sim_vtcm_size;
    for (uint32_t r = 0; r < rows; r++, src += ss, dst += ds) {
        const bool from_vtcm = src >= v0 && src + bytes <= v1;
        const bool to_vtcm   = dst >= v0 && dst + bytes <= v1;
        if (from_vtcm == to_vtcm) {
            FAIL("DMA %llx -> %llx, %u bytes: one side must be VTCM", (long long) src, (long long) dst, bytes);
            continue;
        }
        bool ok = to_vtcm ? false : dst >= writable.from && dst + bytes <= writable.to;
        for (int i = 0; to_vtcm && i < 2; i++) {
            ok |= src >= readable[i].from && src + bytes <= readable[i].to;
        }
        if (!ok) {
            FAIL("DMA %llx -> %llx, %u bytes: outside of the tensors", (long long) src, (long long) dst, bytes);
            continue;
        }
        memcpy((void *) (uintptr_t) dst, (void *) (uintptr_t) src, bytes);
    }
    dma_count++;
    dma_rows  += rows;
    dma_bytes += (uint64_t) rows * bytes;
    d->done = 1;
}
void sim_dmlink(void * tail, void * desc) {
    (void) tail;
    waiting[n_waiting++] = desc;
}
void sim_dmstart(void * desc) { sim_dmlink(0, desc); }
uint32_t sim_dmpoll(void) {
    if (!n_waiting) {
        printf("poll without a descriptor\n");
        exit(1);
    }
    dma_descriptor_2d * d = waiting[0];
    memmove(waiting, waiting + 1, sizeof(waiting[0]) * --n_waiting);
    move(d);
    return 0;
}
uint32_t sim_dmwait(void) { return 0; }
uint64_t sim_cycles(void) { return 0; }

bool work_queue_run_async(work_queue_t q, work_queue_func_t func, void * data, unsigned int n) {
    (void) q;
    for (unsigned int i = 0; i < n; i++) {
        func(n, i, data);
    }
    return true;
}

// -- memory -----------------------------------------------------------------------------------------------

#define DDR_SIZE (64u << 20)
static uint8_t * ddr;

static void memory(void) {
    sim_vtcm_size = 4u << 20;
    sim_vtcm_base = mmap((void *) 0x40000000, sim_vtcm_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ddr           = mmap((void *) 0x50000000, DDR_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (sim_vtcm_base == MAP_FAILED || ddr == MAP_FAILED) {
        printf("no low memory\n");
        exit(1);
    }
    for (uint32_t i = 0; i < DDR_SIZE; i += 2) {
        const uint16_t x = (uint16_t) (i / 2 * 40503u + (i >> 16));
        memcpy(ddr + i, &x, 2);
    }
    memset(sim_vtcm_base, 0xee, sim_vtcm_size);
}

// -- the offset tables ------------------------------------------------------------------------------------

static void geometry(struct hvx_short_rows * g, uint32_t es, uint32_t * nrows) {
    memset(g, 0, sizeof(*g));
    const uint32_t lanes = 128 / es;
    const uint32_t n0 = 1 + rnd(lanes - 1), n1 = rnd(2) ? rnd(lanes - n0) : 0;
    hvx_short_rows_init(g, n0 + n1, es);
    const uint32_t period = g->period_rows;
    g->part[0].ne = n0;
    g->part[1].ne = n1;
    const uint32_t most = HVX_SHORT_ROWS_MAX_SPAN / 2;
    *nrows = period * (1 + rnd(3));
    for (int p = 0; p < 2; p++) {
        struct hvx_short_rows_part * q = &g->part[p];
        if (!q->ne) {
            continue;
        }
        q->offset = g->span_size;
        if (rnd(2) && q->ne * *nrows * es <= most) {  // columns
            q->row_stride = es;
            q->col_stride = hex_round_up(*nrows * es, 128);
            if (q->ne * q->col_stride > most) {
                q->col_stride = *nrows * es;
            }
            g->span_size += q->ne * q->col_stride;
        } else {
            q->col_stride = es;
            q->row_stride = q->ne * es;
            if (q->row_stride * *nrows > most) {
                *nrows = period;
            }
            const uint32_t room = most / *nrows - q->row_stride;
            q->row_stride += rnd(room / es + 1) * es;
            g->span_size += q->row_stride * *nrows;
        }
    }
}
static uint32_t want_offset(const struct hvx_short_rows * g, uint32_t e) {
    const uint32_t r = e / g->ne, c = e % g->ne;
    const int p = c >= g->part[0].ne;
    return g->part[p].offset + r * g->part[p].row_stride + (p ? c - g->part[0].ne : c) * g->part[p].col_stride;
}
static void table(void) {
    for (uint32_t es = 2; es <= 4; es += 2) {
        struct hvx_short_rows g;
        uint32_t nrows;
        geometry(&g, es, &nrows);
        const uint32_t lanes = 128 / es;
        HVX_Vector * t = (HVX_Vector *) sim_vtcm_base;
        memset(t, 0xcc, 65 * 128);
        if (es == 4) { hvx_short_rows_table_w(t, &g); } else { hvx_short_rows_table_h(t, &g); }
        if (g.period_vecs * lanes != g.period_rows * g.ne || g.period_vecs > g.ne || g.period_rows > lanes) {
            FAIL("period of %u: %u vectors, %u rows", g.ne, g.period_vecs, g.period_rows);
        }
        for (uint32_t e = 0; e < g.period_vecs * lanes; e++) {
            const uint32_t got = es == 4 ? ((uint32_t *) t)[e] : ((uint16_t *) t)[e];
            if (got != want_offset(&g, e)) {
                FAIL("table: es %u ne %u+%u element %u: %u, not %u", es, g.part[0].ne, g.part[1].ne, e, got, want_offset(&g, e));
                break;
            }
        }
        if (*(uint8_t *) &t[g.period_vecs] != 0xcc) {
            FAIL("table: more than %u vectors written", g.period_vecs);
        }
    }
}
static void gather(void) {
    for (uint32_t es = 2; es <= 4; es += 2) {
        struct hvx_short_rows g;
        uint32_t nrows;
        geometry(&g, es, &nrows);
        HVX_Vector * t = (HVX_Vector *) sim_vtcm_base;
        uint8_t * span = sim_vtcm_base + 65536, * dst = span + 65536 * 2;
        if (g.span_size > HVX_SHORT_ROWS_MAX_SPAN) {
            FAIL("bad test: span of %u", g.span_size);
            return;
        }
        memcpy(span, ddr + 2 * rnd(1 << 20), g.span_size);
        memset(dst, 0xcc, 65536 * 2);
        const uint32_t n = 1 + rnd(nrows), bytes = n * g.ne * es, nvecs = (bytes + 127) / 128;
        if (es == 4) {
            hvx_short_rows_table_w(t, &g);
            hvx_short_rows_gather_w(dst, span, t, &g, nvecs);
        } else {
            hvx_short_rows_table_h(t, &g);
            hvx_short_rows_gather_h(dst, span, t, &g, nvecs);
        }
        for (uint32_t e = 0; e < n * g.ne; e++) {
            if (memcmp(dst + e * es, span + want_offset(&g, e), es)) {
                FAIL("gather: es %u ne %u+%u rows %u: element %u", es, g.part[0].ne, g.part[1].ne, n, e);
                break;
            }
        }
        if (dst[nvecs * 128] != 0xcc) {
            FAIL("gather: more than %u vectors written", nvecs);
        }
    }
}

// -- plan and worker ------------------------------------------------------------------------------------

static struct htp_context     ctx;
static struct htp_ops_context octx;
static struct htp_tensor      src[2], dst;

static void device(uint32_t threads) {
    static uint8_t * queues[HTP_MAX_NTHREADS];
    memset(&octx, 0, sizeof(octx));
    ctx.n_threads     = threads;
    ctx.n_threads_div = init_fastdiv_values(threads);
    ctx.vtcm_base     = sim_vtcm_base;
    ctx.vtcm_size     = sim_vtcm_size;
    ctx.mdev.count    = 1;
    for (uint32_t i = 0; i < HTP_MAX_NTHREADS; i++) {
        if (!queues[i]) {
            queues[i] = mmap((void *) (uintptr_t) (0x60000000 + i * 0x100000), 0x100000, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            ctx.dma[i] = dma_queue_init(queues[i], 256, &ctx.trace[i]);
        }
    }
    octx.ctx           = &ctx;
    octx.n_threads     = threads;
    octx.n_threads_div = ctx.n_threads_div;
    octx.src[0]        = &src[0];
    octx.src[1]        = &src[1];
    octx.dst           = &dst;
}
static uint32_t span_of(const struct htp_tensor * t, uint32_t es) {
    uint32_t n = es;
    for (int i = 0; i < 4; i++) {
        n += (t->ne[i] - 1) * t->nb[i];
    }
    return n;
}
static void contiguous(struct htp_tensor * t, uint32_t es) {
    t->nb[0] = es;
    for (int i = 1; i < 4; i++) {
        t->nb[i] = t->nb[i - 1] * t->ne[i - 1];
    }
}
static const uint8_t * at(const struct htp_tensor * t, const uint32_t * i) {
    return (uint8_t *) (uintptr_t) t->data + i[0] * t->nb[0] + i[1] * t->nb[1] + i[2] * t->nb[2] + i[3] * t->nb[3];
}
static char * text(const struct htp_tensor * t) {
    static char buf[4][200];
    static int k;
    char * b = buf[k++ & 3];
    sprintf(b, "[%u,%u,%u,%u] nb [%u,%u,%u,%u] at ..%02x", t->ne[0], t->ne[1], t->ne[2], t->ne[3], t->nb[0], t->nb[1], t->nb[2],
            t->nb[3], (unsigned) t->data & 127);
    return b;
}
// A place for a tensor, aligned to its elements only; a quarter of them to a line.
static void put(struct htp_tensor * t, uint32_t base, uint32_t es) {
    t->data = (uintptr_t) ddr + base + (rnd(4) ? rnd(64) * es : 0);
    t->size = span_of(t, es);
}

static uint64_t planned, refused;

// Run on all devices, compare with the flat reference.
static void run(bool concat, uint32_t es, uint8_t * want, uint32_t bytes) {
    memset((void *) (uintptr_t) (dst.data - 512), 0x5a, bytes + 1024);
    const uint32_t n_dev = 1 + (rnd(3) == 0) * rnd(3);
    ctx.mdev.count     = n_dev;
    ctx.mdev.count_div = init_fastdiv_values(n_dev);
    writable    = (struct range) { dst.data, dst.data + bytes };
    readable[0] = (struct range) { src[0].data, src[0].data + span_of(&src[0], es) };
    readable[1] = concat ? (struct range) { src[1].data, src[1].data + span_of(&src[1], es) } : readable[0];

    uint64_t last = 0;
    for (uint32_t d = 0; d < n_dev; d++) {
        struct htp_short_rows sr;
        ctx.mdev.idx = d;
        memset(sim_vtcm_base, 0xee, sim_vtcm_size / 8);
        memset(&sr, 0xa5, sizeof(sr));
        const bool taken = concat ? htp_short_rows_plan_concat(&sr, &octx, es) : htp_short_rows_plan_cpy(&sr, &octx, es);
        if (!taken) {
            refused++;
            return;
        }
        if (octx.src0_spad.size + octx.dst_spad.size > ctx.vtcm_size || sr.n_threads > octx.n_threads ||
            ((uintptr_t) octx.dst_spad.data | octx.dst_spad.size_per_thread | octx.src0_spad.size_per_thread) & 127) {
            FAIL("VTCM layout");
        }
        // no line of dst may be written by two devices
        if (sr.nrows) {
            const uint64_t from = dst.data + (uint64_t) sr.row_start * sr.row_size, to = from + (uint64_t) sr.nrows * sr.row_size;
            if (last && from / 128 < last) {
                FAIL("devices share a line: row %u of %u bytes", sr.row_start, sr.row_size);
            }
            last = (to + 127) / 128;
        }
        htp_short_rows_run(&sr);
        for (uint32_t i = 0; i < octx.n_threads; i++) {
            if (!dma_queue_empty(ctx.dma[i]) || n_waiting) {
                FAIL("DMA left");
            }
        }
    }
    planned++;
    const uint8_t * got = (uint8_t *) (uintptr_t) dst.data;
    uint32_t first = 0;
    while (first < bytes && got[first] == want[first]) {
        first++;
    }
    if (first < bytes) {
        FAIL("%s es %u threads %u devices %u: %s + %s -> %s: byte %u of %u", concat ? "concat" : "cpy", es, octx.n_threads, n_dev,
             text(&src[0]), text(&src[1]), text(&dst), first, bytes);
    }
    for (int i = 0; i < 512; i++) {
        if (got[-1 - i] != 0x5a || got[bytes + i] != 0x5a) {
            FAIL("written outside dst");
            break;
        }
    }
}

#define MOST (4u << 20)
static uint8_t want[MOST];

// A view of a random allocation, permuted.
static void view(struct htp_tensor * t, uint32_t es, uint32_t n0, uint32_t n1, uint32_t n2, uint32_t n3) {
    const uint32_t ne[4] = { n0, n1, n2, n3 };
    uint32_t order[4] = { 0, 1, 2, 3 };
    for (int i = rnd(3) ? 0 : 3; i > 0; i--) {  // which dimension lies innermost, next, ...
        const uint32_t j = rnd(i + 1), x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
    uint32_t nb = es;
    for (int i = 0; i < 4; i++) {
        t->ne[order[i]] = ne[order[i]];
        t->nb[order[i]] = nb;
        nb *= ne[order[i]];
        nb += (rnd(2) ? rnd(9) : 0) * es;  // a gap behind it
    }
}
static void cpy(void) {
    const uint32_t es = rnd(2) ? 4 : 2, lanes = 128 / es;
    device(1 + rnd(HTP_MAX_NTHREADS));
    const uint32_t n0 = rnd(8) ? 1 + rnd(lanes) : 1 + rnd(3000);
    const uint32_t n1 = rnd(4) ? 64 + rnd(rnd(4) ? 500 : 9000) : 1 + rnd(100), n2 = 1 + (rnd(3) == 0) * rnd(4), n3 = 1 + (rnd(4) == 0) * rnd(3);
    if (n0 * n1 * n2 * n3 * es > MOST) {
        return;
    }
    view(&src[0], es, n0, n1, n2, n3);
    put(&src[0], 4096, es);
    dst.ne[0] = n0, dst.ne[1] = n1, dst.ne[2] = n2, dst.ne[3] = n3;
    if (rnd(2)) {
        dst.ne[0] = n0 * n1, dst.ne[1] = n2, dst.ne[2] = n3, dst.ne[3] = 1;
    }
    contiguous(&dst, es);
    put(&dst, 40u << 20, es);
    if (span_of(&src[0], es) > (32u << 20)) {
        return;
    }
    uint32_t i[4], n = 0;
    for (i[3] = 0; i[3] < n3; i[3]++)
        for (i[2] = 0; i[2] < n2; i[2]++)
            for (i[1] = 0; i[1] < n1; i[1]++)
                for (i[0] = 0; i[0] < n0; i[0]++, n += es)
                    memcpy(want + n, at(&src[0], i), es);
    run(false, es, want, n);
}
static void concat(void) {
    const uint32_t es = rnd(2) ? 4 : 2, lanes = 128 / es;
    device(1 + rnd(HTP_MAX_NTHREADS));
    const uint32_t a = 1 + rnd(rnd(2) ? 5 : lanes - 1), b = 1 + rnd(lanes - a + 1), n1 = 64 + rnd(rnd(4) ? 500 : 9000);
    const uint32_t n2 = 1 + (rnd(3) == 0) * rnd(4), n3 = 1 + (rnd(4) == 0) * rnd(3);
    if ((a + b) * n1 * n2 * n3 * es > MOST) {
        return;
    }
    view(&src[0], es, a, n1, n2, n3);
    view(&src[1], es, b, n1, n2, n3);
    put(&src[0], 4096, es);
    put(&src[1], 20u << 20, es);
    dst.ne[0] = a + b, dst.ne[1] = n1, dst.ne[2] = n2, dst.ne[3] = n3;
    contiguous(&dst, es);
    put(&dst, 40u << 20, es);
    if (span_of(&src[0], es) > (15u << 20) || span_of(&src[1], es) > (15u << 20)) {
        return;
    }
    uint32_t i[4], n = 0;
    for (i[3] = 0; i[3] < n3; i[3]++)
        for (i[2] = 0; i[2] < n2; i[2]++)
            for (i[1] = 0; i[1] < n1; i[1]++) {
                for (i[0] = 0; i[0] < a; i[0]++, n += es) memcpy(want + n, at(&src[0], i), es);
                for (i[0] = 0; i[0] < b; i[0]++, n += es) memcpy(want + n, at(&src[1], i), es);
            }
    run(true, es, want, n);
}

// -- what the plan takes and what it leaves ---------------------------------------------------------------

static void tensor(struct htp_tensor * t, uint32_t base, uint32_t n0, uint32_t n1, uint32_t n2, uint32_t b0, uint32_t b1, uint32_t b2) {
    *t = (struct htp_tensor) { .data = (uintptr_t) ddr + base, .ne = { n0, n1, n2, 1 }, .nb = { b0, b1, b2, b2 * n2 } };
}
static void say(const char * name, bool concat, uint32_t es) {
    struct htp_short_rows sr;
    const bool taken = concat ? htp_short_rows_plan_concat(&sr, &octx, es) : htp_short_rows_plan_cpy(&sr, &octx, es);
    printf("%s: ", name);
    if (!taken) {
        printf("left\n");
        return;
    }
    writable    = (struct range) { dst.data, dst.data + span_of(&dst, es) };
    readable[0] = readable[1] = (struct range) { (uintptr_t) ddr, (uintptr_t) ddr + DDR_SIZE };
    dma_count = dma_rows = dma_bytes = 0;
    memset(sim_self.n, 0, sizeof(sim_self.n));
    htp_short_rows_run(&sr);
    printf("rows %ux%u of %u, period %u vectors, chunk %u, threads %u, dma %llu rows %llu bytes %llu, gathers %llu\n", sr.ne[1],
           sr.ne[2] * sr.ne[3], sr.ne[0], sr.geo.period_vecs, sr.nrows_per_chunk, sr.n_threads, (long long) dma_count,
           (long long) dma_rows, (long long) dma_bytes, (long long) sim_self.n[SIM_hvx_gather]);
}
static void plan(void) {
    const uint32_t D = 40u << 20;
    device(4);
    tensor(&src[0], 4, 3, 8192, 1, 4, 16, 16 * 8192);
    tensor(&dst, D, 3 * 8192, 1, 1, 4, 4 * 3 * 8192, 4 * 3 * 8192);
    say("cpy conv state", false, 4);
    tensor(&src[0], 4, 3, 8192, 2, 4, 16, 16 * 8192);
    tensor(&dst, D, 3 * 8192, 2, 1, 4, 4 * 3 * 8192, 4 * 3 * 8192 * 2);
    say("cpy two sequences", false, 4);
    tensor(&src[0], 0, 3, 8192, 1, 4, 12, 12 * 8192);
    say("cpy contiguous", false, 4);
    tensor(&src[0], 0, 3, 8192, 1, 4, 256, 256 * 8192);
    tensor(&dst, D, 3, 8192, 1, 4, 12, 12 * 8192);
    say("cpy stride 256", false, 4);
    tensor(&src[0], 0, 3, 8192, 1, 4, 260, 260 * 8192);
    say("cpy stride 260", false, 4);
    tensor(&src[0], 0, 3, 63, 1, 4, 16, 16 * 63);
    tensor(&dst, D, 3, 63, 1, 4, 12, 12 * 63);
    say("cpy 63 rows", false, 4);
    tensor(&src[0], 0, 3, 64, 1, 4, 16, 16 * 64);
    tensor(&dst, D, 3, 64, 1, 4, 12, 12 * 64);
    say("cpy 64 rows", false, 4);
    tensor(&src[0], 0, 32, 8192, 1, 4, 132, 132 * 8192);
    tensor(&dst, D, 32, 8192, 1, 4, 128, 128 * 8192);
    say("cpy rows of a vector", false, 4);
    tensor(&src[0], 0, 3, 8192, 1, 4, 12, 12 * 8192);
    tensor(&dst, D, 3, 8192, 1, 4, 16, 16 * 8192);
    say("cpy strided dst", false, 4);
    tensor(&src[0], 0, 4, 8192, 1, 32768, 4, 32768 * 4);
    tensor(&dst, D, 4, 8192, 1, 4, 16, 16 * 8192);
    say("cpy columns", false, 4);
    tensor(&src[0], 0, 8192, 4, 1, 16, 4, 16 * 8192);
    tensor(&dst, D, 8192, 4, 1, 4, 32768, 32768 * 4);
    say("cpy transposed", false, 4);
    tensor(&src[0], 4, 1, 8192, 2, 4, 16, 16 * 8192 + 64);
    tensor(&dst, D, 8192, 2, 1, 4, 32768, 32768 * 2);
    say("cpy one column", false, 4);
    tensor(&src[0], 4, 1, 8192, 1, 4, 36, 36 * 8192);
    tensor(&dst, D, 8192, 1, 1, 4, 32768, 32768);
    say("cpy one column far apart", false, 4);
    for (uint32_t n = 1; n <= 29; n += 14) {
        tensor(&src[0], 0, 3, 8192, 1, 4, 12, 12 * 8192);
        tensor(&src[1], 8u << 20, n, 8192, 1, 32768, 4, 32768 * n);
        tensor(&dst, D, 3 + n, 8192, 1, 4, 4 * (3 + n), 4 * (3 + n) * 8192);
        char name[40];
        sprintf(name, "concat 3 + %u columns", n);
        say(name, true, 4);
    }
    tensor(&src[0], 0, 3, 8192, 1, 2, 6, 6 * 8192);
    tensor(&src[1], 8u << 20, 1, 8192, 1, 2, 2, 2 * 8192);
    tensor(&dst, D, 4, 8192, 1, 2, 8, 8 * 8192);
    say("concat f16 3 + 1", true, 2);
    tensor(&src[0], 0, 3, 20000, 1, 4, 12, 12 * 20000);
    tensor(&src[1], 8u << 20, 5, 20000, 1, 80000, 4, 80000 * 5);
    tensor(&dst, D, 8, 20000, 1, 4, 32, 32 * 20000);
    say("concat columns beyond 64 KB", true, 4);
    tensor(&src[0], 0, 63, 8192, 1, 8192 * 12, 12, 63 * 8192 * 12);
    tensor(&dst, D, 63, 8192, 1, 2, 126, 126 * 8192);
    say("cpy f16 wide columns", false, 2);
    ctx.vtcm_size = 16384;
    tensor(&src[0], 0, 3, 20000, 1, 4, 12, 12 * 20000);
    tensor(&dst, D, 8, 20000, 1, 4, 32, 32 * 20000);
    say("concat without room", true, 4);
}

int main(int argc, char ** argv) {
    const char * what = argc > 3 ? argv[1] : "";
    memory();
    state = strtoull(argc > 2 ? argv[2] : "1", NULL, 10) * 2654435761u + 1;
    const int rounds = argc > 3 ? atoi(argv[3]) : 0;
    for (int i = 0; i < rounds; i++) {
        if (!strcmp(what, "table"))  { table(); }
        if (!strcmp(what, "gather")) { gather(); }
        if (!strcmp(what, "cpy"))    { cpy(); }
        if (!strcmp(what, "concat")) { concat(); }
        if (!strcmp(what, "plan"))   { plan(); }
    }
    if (planned | refused) {
        printf("planned %llu refused %llu\n", (long long) planned, (long long) refused);
    }
    return failed != 0;
}
