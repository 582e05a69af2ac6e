// Small kernels: some right, some with a planted fault. test_runtime*.py and test_checks.py call
// them by name.
#include "runtime_dsp.h"

#define VTCM(j, type, at) ((volatile type *) ((j)->vtcm + (at)))

typedef uint32_t vector __attribute__((vector_size(128)));
typedef uint32_t vector_u __attribute__((vector_size(128), aligned(4)));

// -- memory -----------------------------------------------------------------------------------------

static void nothing(struct job * j) {
    j->r[0] = 42;
}

// Where everything is: VTCM, mapped buffer, heap, stack.
static void places(struct job * j) {
    void * heap = malloc(100);
    j->r[0] = (uintptr_t) j->vtcm;
    j->r[1] = (uintptr_t) j->ddr;
    j->r[2] = (uintptr_t) heap;
    j->r[3] = (uintptr_t) &heap;
    free(heap);
}

static void vector_vtcm(struct job * j) {
    *VTCM(j, vector, 256) = *VTCM(j, vector, 128);
}

static void vector_unaligned(struct job * j) {
    *(volatile vector_u *) (j->ddr + 4) = *(volatile vector_u *) (j->ddr + 260);
}

static void scalar_vtcm(struct job * j) {
    *VTCM(j, uint32_t, 64) = *VTCM(j, uint32_t, 4) + 1;
}

static void copy_to_vtcm(struct job * j) {
    memcpy(j->vtcm + j->a[0], j->ddr, 80);
}

static void ddr_bytes(struct job * j) {
    volatile uint32_t * w = (volatile uint32_t *) j->ddr;
    for (int i = 0; i < 10; i++) {
        w[i] = w[i + 10];
    }
    *(volatile vector *) (j->ddr + 1024) = *(volatile vector *) (j->ddr + 2048);
}

static void aligned_vector(struct job * j) {
    sim_vld(j->vtcm + 128);
    sim_vst(j->vtcm + 256);
}

static void misaligned_vector(struct job * j) {
    sim_vld(j->vtcm + 130);
}

static void in_buffer(struct job * j) {
    j->r[0] = j->ddr[65535];
}

static void behind_buffer(struct job * j) {
    j->r[0] = *(volatile uint8_t *) (j->ddr + 65536);
}

static void null_pointer_near(struct job * j) {
    j->r[0] = *(volatile uint8_t *) (uintptr_t) (0xffe00000u + j->a[0]);
}

static void heap_overrun(struct job * j) {
    volatile uint8_t * p = malloc(256);
    p[255] = 1;
    p[256 + j->a[0]] = 1;
    free((void *) p);
}

static void heap_freed(struct job * j) {
    volatile uint8_t * p = malloc(256);
    free((void *) p);
    j->r[0] = p[0];
}

static void library_data(struct job * j) {
    static uint32_t table[64];
    volatile uint32_t * t = table;
    t[j->a[0] & 63] = 7;
    j->r[0] = t[j->a[0] & 63];
}

static void touch_vtcm_end(struct job * j) {
    unsigned size;
    HAP_compute_res_query_VTCM(0, &size, NULL, NULL, NULL);
    sim_vld(j->vtcm + size - 128);
    j->r[0] = *VTCM(j, uint32_t, 0);
    j->r[1] = *VTCM(j, uint32_t, size - 4);
}

static __attribute__((noinline)) uint64_t deep(volatile uint8_t * up, int n) {
    volatile uint8_t frame[4096];
    frame[0] = (uint8_t) (n + (up ? *up : 0));
    return n ? deep(frame, n - 1) + frame[0] : frame[0];
}

static void stack_use(struct job * j) {
    j->r[0] = deep(NULL, (int) j->a[0]);
}

static void crash(struct job * j) {
    *(volatile int *) (uintptr_t) (16 + j->a[0]) = 1;
}

// -- threads, matrix unit -----------------------------------------------------------------------------

struct ball {
    uint32_t turn;
    uint32_t n;
};

static void pong(void * arg) {
    struct ball * b = arg;
    for (uint32_t i = 0; i < 100; i++) {
        while (__atomic_load_n(&b->turn, __ATOMIC_ACQUIRE) != 2 * i + 1) {
            qurt_futex_wait(&b->turn, (int) (2 * i));
        }
        b->n++;
        __atomic_store_n(&b->turn, 2 * i + 2, __ATOMIC_RELEASE);
        qurt_futex_wake(&b->turn, 1);
    }
    qurt_thread_exit(77);
}

static void threads(struct job * j) {
    struct ball * b = calloc(1, sizeof(*b));
    qurt_thread_attr_t attr;
    qurt_thread_t id;
    qurt_sysenv_max_hthreads_t hw;
    int status = 0;
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_name(&attr, "pong");
    qurt_thread_attr_set_priority(&attr, 99);
    qurt_thread_attr_set_stack_size(&attr, 16384);
    qurt_thread_create(&id, &attr, pong, b);
    const int priority = qurt_thread_get_priority(id);
    for (uint32_t i = 0; i < 100; i++) {
        __atomic_store_n(&b->turn, 2 * i + 1, __ATOMIC_RELEASE);
        qurt_futex_wake(&b->turn, 1);
        while (__atomic_load_n(&b->turn, __ATOMIC_ACQUIRE) == 2 * i + 1) {
            qurt_futex_wait(&b->turn, (int) (2 * i + 1));
        }
        sim_count_n(hvx_alu, 1);
    }
    qurt_thread_join(id, &status);
    qurt_sysenv_get_max_hw_threads(&hw);
    j->r[0] = b->n;
    j->r[1] = (uint64_t) status;
    j->r[2] = (uint64_t) priority;
    j->r[3] = (uint64_t) hw.max_hthreads << 32 | (uint32_t) qurt_hvx_get_units();
}

static void hmx_power(struct job * j) {
    HAP_power_request_t r;
    memset(&r, 0, sizeof(r));
    r.type         = HAP_power_set_HMX;
    r.hmx.power_up = TRUE;
    j->r[0] = (uint64_t) HAP_power_set(j, &r);
    memset(&r, 0, sizeof(r));
    r.type             = HAP_power_set_HMX_v2;
    r.hmx_v2.set_power = TRUE;
    r.hmx_v2.power_up  = TRUE;
    r.hmx_v2.set_clock = TRUE;
    j->r[1] = (uint64_t) HAP_power_set(j, &r);
}

static void hmx_lock(struct job * j) {
    HAP_power_request_t r;
    memset(&r, 0, sizeof(r));
    r.type = HAP_power_set_HMX;
    HAP_compute_res_hmx_lock(j->rctx);
    HAP_power_set(j, &r);
    j->r[0] = sim_hmx_locked();  // locked, no power
    r.hmx.power_up = TRUE;
    HAP_power_set(j, &r);
    j->r[1] = sim_hmx_locked();
    HAP_compute_res_hmx_unlock(j->rctx);
    j->r[2] = sim_hmx_locked();
}

// Holds the VTCM until another session asks for it, and for a[0] microseconds more.
static void vtcm_hold(struct job * j) {
    for (int i = 0; i < 2000 && !__atomic_load_n(&j->asked, __ATOMIC_RELAXED); i++) {
        qurt_sleep(1000);
    }
    qurt_sleep(j->a[0]);
    HAP_compute_res_release_cached(j->rctx);
    j->r[0] = j->asked;
}

static void hmx_jobs(struct job * j) {
    sim_hmx_push(false);
    for (uint32_t i = 0; i < j->a[0]; i++) {
        sim_hmx_push(true);
    }
    for (uint32_t i = 0; i < j->a[1]; i++) {
        sim_hmx_pop();
    }
}

static void clocks(struct job * j) {
    const uint64_t c = sim_cycles(), t = HAP_perf_get_qtimer_count();
    qurt_sleep(20000);
    j->r[0] = sim_cycles() - c;
    j->r[1] = HAP_perf_qtimer_count_to_us(HAP_perf_get_qtimer_count() - t);
    FARF(ALWAYS, "after %u us", (unsigned) j->r[1]);
    FARF(HIGH, "never");
}

static const struct kernel kernels[] = {
    K(nothing), K(places), K(vector_vtcm), K(vector_unaligned), K(scalar_vtcm), K(copy_to_vtcm), K(ddr_bytes),
    K(aligned_vector), K(misaligned_vector), K(in_buffer), K(behind_buffer), K(null_pointer_near),
    K(heap_overrun), K(heap_freed), K(library_data), K(touch_vtcm_end), K(stack_use), K(crash), K(threads),
    K(hmx_power), K(hmx_lock), K(vtcm_hold), K(hmx_jobs), K(clocks),
    { NULL, NULL },
};

bool run_kernel(struct job * j) {
    const struct kernel * const tables[] = { kernels, dma_kernels };
    for (int t = 0; t < 2; t++) {
        for (const struct kernel * k = tables[t]; k->name; k++) {
            if (!strcmp(k->name, j->name)) {
                k->run(j);
                return true;
            }
        }
    }
    return false;
}
