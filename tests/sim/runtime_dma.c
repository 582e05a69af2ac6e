// Small DMA kernels: some right, some with a planted fault.
#include "runtime_dsp.h"

#define VTCM(j, type, at) ((volatile type *) ((j)->vtcm + (at)))

typedef uint32_t vector __attribute__((vector_size(128)));

// Words as the hardware has them; `next` is a pointer on both sides.
struct desc {
    void *   next;
    uint32_t w[7];  // words 1 to 7
} __attribute__((aligned(64)));

static uint32_t low(const void * p) {
    return (uint32_t) (uintptr_t) p;
}

static struct desc * linear(const void * src, void * dst, uint32_t size) {
    struct desc * d = memalign(64, sizeof(*d));
    memset(d, 0, sizeof(*d));
    d->w[0] = size | 3u << 28;
    d->w[1] = low(src);
    d->w[2] = low(dst);
    return d;
}

static bool done(const struct desc * d) {
    return *(const volatile uint32_t *) d->w >> 31;
}

static void finish(struct desc * d) {
    while (!done(d)) {
        sim_dmpoll();
    }
    free(d);
}

// A descriptor given word by word by the test; a: type, rows, row bytes, strides (src | dst << 16).
static void dma_2d(struct job * j) {
    struct desc *  d    = linear(j->ddr, j->vtcm, 0);
    const uint32_t type = j->a[0], rows = j->a[1], bytes = j->a[2];
    const uint32_t src_stride = j->a[3] & 0xffff, dst_stride = j->a[3] >> 16;
    memset(j->vtcm, 0xee, 4096);
    d->w[0] |= 1u << 24;
    d->w[3] = type;
    if (type == 0) {
        d->w[4] = bytes | rows << 16;
        d->w[5] = src_stride | dst_stride << 16;
    } else {
        d->w[0] |= dst_stride;
        d->w[4] = bytes | rows << 24;
        d->w[5] = rows >> 8 | src_stride << 8;
    }
    sim_dmstart(d);
    finish(d);
    for (int i = 0; i < 4; i++) {  // the first bytes of four destination rows
        memcpy(&j->r[i], j->vtcm + (size_t) i * dst_stride, 8);
    }
}

static void dma_linear(struct job * j) {
    struct desc * d = linear(j->ddr + 8, j->vtcm + 3, 5);
    memset(j->vtcm, 0xee, 16);
    sim_dmlink(NULL, d);
    j->r[2] = done(d);
    finish(d);
    memcpy(j->r, j->vtcm, 16);
}

// 10 bits 39:32 in word 4: the source is the extended mapping whose address the test has.
static void dma_extended(struct job * j) {
    const uint64_t src = (uint64_t) j->a[1] << 32 | j->a[0];
    struct desc *  d   = linear((const void *) (uintptr_t) src, j->vtcm, 0);
    d->w[0] |= 1u << 24;
    d->w[3] = 10 | (uint32_t) (src >> 32) << 8;
    d->w[4] = 8 | 1u << 24;
    sim_dmlink(NULL, d);
    finish(d);
    memcpy(j->r, j->vtcm, 8);
}

// The SDK's struct, whose addresses are pointers.
static void dma_sdk(struct job * j) {
    struct {
        void *   next;
        uint32_t word1;
        void *   src, *dst;
        uint32_t type, roi, strides, offsets;
    } * d = memalign(64, sizeof(*d));
    memset(d, 0, sizeof(*d));
    d->word1   = 1u << 24;
    d->src     = j->ddr;
    d->dst     = j->vtcm;
    d->roi     = 4 | 2u << 16;
    d->strides = 256 | 8u << 16;
    sim_dmlink(NULL, d);
    while (!(*(volatile uint32_t *) &d->word1 >> 31)) {
        sim_dmpoll();
    }
    memcpy(j->r, j->vtcm, 16);
    free(d);
}

// Three linked descriptors; polls until the last is done, and how many are done after each poll.
static void dma_chain(struct job * j) {
    struct desc * d[3];
    for (int i = 0; i < 3; i++) {
        d[i] = linear(j->ddr + i, j->vtcm + i, 1);
        sim_dmlink(i ? d[i - 1] : NULL, d[i]);
    }
    for (int n = 0; n < 4; n++) {
        j->r[n] = (uint64_t) (done(d[0]) + done(d[1]) + done(d[2]));
        sim_dmpoll();
    }
    for (int i = 0; i < 3; i++) {
        finish(d[i]);
    }
}

static void dma_wait(struct job * j) {
    struct desc * a = linear(j->ddr, j->vtcm, 4);
    struct desc * b = linear(j->ddr + 4, j->vtcm + 4, 4);
    a->next = b;
    sim_dmstart(a);
    j->r[0] = sim_dmwait() & 3;
    j->r[1] = done(a) && done(b);
    free(a);
    free(b);
}

static void dma_type(struct job * j) {
    struct desc * d = linear(j->ddr, j->vtcm, 0);
    d->w[0] |= 1u << 24;
    d->w[3] = j->a[0];
    d->w[4] = 8 | 1u << 24;
    sim_dmlink(NULL, d);
    finish(d);
}

static void dma_unmapped(struct job * j) {
    struct desc * d = linear(j->ddr + 65536 - j->a[0], j->vtcm, 64);
    sim_dmlink(NULL, d);
    finish(d);
}

static void dma_odd_descriptor(struct job * j) {
    struct desc * d = linear(j->ddr, j->vtcm, 64);
    memmove((uint8_t *) d + 4, d, 28);
    sim_dmlink(NULL, (uint8_t *) d + 4);
    free(d);
}

static void dma_waited(struct job * j) {
    struct desc * d = linear(j->ddr, j->vtcm, 256);
    sim_dmlink(NULL, d);
    finish(d);
    *VTCM(j, vector, 512) = *VTCM(j, vector, 0);
}

static void dma_not_waited(struct job * j) {
    struct desc * d = linear(j->ddr, j->vtcm, 256);
    sim_dmlink(NULL, d);
    *VTCM(j, vector, 512) = *VTCM(j, vector, 0);
    finish(d);
}

// The source of a transfer that is on its way: reading it is fine, writing is not.
static void dma_source(struct job * j) {
    struct desc * d = linear(j->vtcm, j->ddr, 256);
    sim_dmlink(NULL, d);
    *VTCM(j, vector, 512) = *VTCM(j, vector, 0);
    if (j->a[0]) {
        *VTCM(j, vector, 128) = *VTCM(j, vector, 512);
    }
    finish(d);
}

// A vector whose tail reaches into the next row that is still being read: its lanes are unused.
static void dma_tail(struct job * j) {
    struct desc * d = linear(j->ddr, j->vtcm + 192, 128);
    sim_dmlink(NULL, d);
    *VTCM(j, vector, 512) = *VTCM(j, vector, 128);
    finish(d);
}

static void dma_left(struct job * j) {
    struct desc * d = linear(j->ddr, j->vtcm, 256);
    sim_dmlink(NULL, d);
}

struct helper {
    struct desc * d;
    uint32_t      polled;
};

static void wait_elsewhere(void * arg) {
    struct helper * h = arg;
    while (!done(h->d)) {
        sim_dmpoll();
    }
    h->polled = 1;
}

// Another thread waits for what this one pushed.
static void dma_other_thread(struct job * j) {
    struct helper * h = calloc(1, sizeof(*h));
    qurt_thread_attr_t attr;
    qurt_thread_t id;
    int status;
    h->d = linear(j->ddr, j->vtcm, 8);
    sim_dmlink(NULL, h->d);
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_stack_size(&attr, 16384);
    qurt_thread_create(&id, &attr, wait_elsewhere, h);
    qurt_thread_join(id, &status);
    j->r[0] = h->polled;
    memcpy(&j->r[1], j->vtcm, 8);
}

const struct kernel dma_kernels[] = {
    K(dma_2d),
    K(dma_linear),
    K(dma_extended),
    K(dma_sdk),
    K(dma_chain),
    K(dma_wait),
    K(dma_type),
    K(dma_unmapped),
    K(dma_odd_descriptor),
    K(dma_waited),
    K(dma_not_waited),
    K(dma_source),
    K(dma_tail),
    K(dma_left),
    K(dma_other_thread),
    { NULL, NULL },
};
