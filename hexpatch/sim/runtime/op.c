// Op boundaries: whose counts and faults they are, what must be true at the end of an op.
#include "sim.h"

#include <string.h>

// A thread may use this much of our native stack when it asked for so much: frames of this machine
// keep vectors that Hexagon keeps in registers, and both are counted from the painted high-water
// mark.
static size_t allowed(size_t asked) {
    return 2 * asked + 16384;
}

// The HMX queue as its pushes and pops tell: only the order of jobs and signals.
SIM_API void sim_hmx_push(bool job) {
    struct sim_session * s = sim_me()->session;
    if (s) {
        s->hmx_fifo[s->hmx_in++ % SIM_HMX_FIFO] = job ? __builtin_return_address(0) : NULL;
        if (s->hmx_in - s->hmx_out > SIM_HMX_FIFO) {
            s->hmx_out++;
        }
    }
}

SIM_API void sim_hmx_pop(void) {
    struct sim_session * s = sim_me()->session;
    if (s && s->hmx_out != s->hmx_in) {
        s->hmx_out++;
    }
}

static void check_hmx(struct sim_session * s) {
    for (unsigned i = s->hmx_out; i != s->hmx_in; i++) {
        const void * pc = s->hmx_fifo[i % SIM_HMX_FIFO];
        if (pc) {
            sim_fault_in(s->op, SIM_FAULT_hmx_left, NULL, 0, pc);
        }
    }
    s->hmx_out = s->hmx_in;
}

static void check_stack(struct sim_ctx * c, void * arg) {
    struct sim_session * s = arg;
    sim_stack_scan(c);
    if (c->stack_asked && !c->stack_told && c->stack_used > allowed(c->stack_asked)) {
        c->stack_told = true;
        sim_fault_in(s->op, SIM_FAULT_stack, (void *) (c->stack_top - c->stack_used), c->stack_used,
                     (const void *) c->entry);
    }
}

// NaN as fp16, fp32 and fp64, and -1 or a large number in integers. Nothing of upstream's lives in
// VTCM across ops since v0.5: queues and descriptors are in the heap, scratchpads are per op. (Old
// trees kept quantized activations there, HTP_OPFLAGS_SKIP_QUANTIZE: no poison for those.)
static void poison(struct sim_session * s) {
    uint32_t * p = (uint32_t *) (void *) s->vtcm;
    for (size_t i = 0; i < sim_device.vtcm / 4; i++) {
        p[i] = 0x7fff7fff;
    }
}

SIM_API void sim_op_begin(const char * function, void * octx) {
    struct sim_session * s = sim_me()->session;
    (void) octx;
    if (!s || s->op_depth++) {
        return;
    }
    if (sim_modes & SIM_MODE_poison) {
        poison(s);
    }
    sim_session_counts(s, s->op_base);
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        s->fault_base[i] = __atomic_load_n(&s->n_faults[i], __ATOMIC_RELAXED);
    }
    sim_self.op = s->op = sim_intern(function);
}

SIM_API void sim_op_end(int status) {
    struct sim_session * s = sim_me()->session;
    if (!s || !s->op_depth || --s->op_depth) {
        return;
    }
    check_hmx(s);
    if (sim_checked(SIM_FAULT_stack)) {
        sim_each_thread(s, check_stack, s);
    }
    sim_dma_finish(s);
    uint64_t n[SIM_N_COUNTERS], faults[SIM_N_FAULTS];
    sim_session_counts(s, n);
    for (int i = 0; i < SIM_N_COUNTERS; i++) {
        n[i] -= s->op_base[i];
    }
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        faults[i] = __atomic_load_n(&s->n_faults[i], __ATOMIC_RELAXED) - s->fault_base[i];
    }
    sim_report_op(s->op, status, n, faults);
    s->op       = NULL;
    sim_self.op = "";
}
