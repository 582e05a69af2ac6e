// What the matrix unit needs from the rest of the runtime, for tests.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "hmx.h"

__thread struct sim_thread sim_self;
SIM_API struct sim_device sim_device = { .name = "test", .arch = 73, .threads = 1, .hmx = true, .hmx_fp16 = true };
SIM_API uint8_t * sim_vtcm_base;
SIM_API uint32_t  sim_vtcm_size;
SIM_API uint32_t  sim_checks;
SIM_API uint32_t  sim_modes;

int test_locked = 1;
int test_faults[SIM_N_FAULTS];

bool sim_hmx_locked(void) { return test_locked; }

void sim_fault(enum sim_fault kind, const void * addr, size_t size, const void * pc) {
    (void) addr, (void) size;
    test_faults[kind] += pc ? 1 : 1000;  // a fault names its place
}

// VTCM below 4 GiB. Its end is the end of the mapping.
uint32_t test_vtcm(uint32_t size) {
    for (uintptr_t at = 0x30000000; at < 0xE0000000; at += 0x1000000) {
        void * p = mmap((void *) at, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == (void *) at) {
            sim_vtcm_base = p;
            sim_vtcm_size = size;
            return (uint32_t) at;
        }
    }
    return 0;
}

void test_device(int arch, int hmx, int fp16) {
    sim_device.arch     = arch;
    sim_device.hmx      = hmx;
    sim_device.hmx_fp16 = fp16;
}

void test_checks(uint32_t checks, uint32_t modes) {
    sim_checks = checks;
    sim_modes  = modes;
}

// The runtime's dma_order check; here only how many bytes were told to it.
uint64_t test_touched[2];
void sim_touch_read(const void * p, size_t size, const void * pc) { (void) p, (void) pc, test_touched[0] += size; }
void sim_touch_write(const void * p, size_t size, const void * pc) { (void) p, (void) pc, test_touched[1] += size; }

// A unit after power-on.
void test_reset(void) {
    struct hmx * h = hmx_self();
    memset(h, 0, sizeof *h);
    hmx_clear_fp(h, 0);
    hmx_clear_fp(h, 1);
    memset(test_faults, 0, sizeof test_faults);
    memset(&sim_self, 0, sizeof sim_self);
}

void test_mode(int xfp, int policy, int plain, int portable) {
    hmx_sw = (struct hmx_switches) { xfp, (enum hmx_policy) policy, plain, portable };
    test_reset();
}

uint64_t test_count(int i) { return sim_self.n[i]; }
int      test_fault_count(int i) { return test_faults[i]; }
int      test_int_set(void) { return hmx_self()->iset; }
int      test_fp_set(void) { return hmx_self()->fset; }
int64_t  test_int(int set, int row, int col) { return hmx_int_value(hmx_self(), set, row, col); }

void test_set_int(int set, int row, int col, int32_t hi, int32_t lo) {
    hmx_self()->hi[set][row][col] = (uint32_t) hi;
    hmx_self()->lo[set][row][col] = (uint32_t) lo;
}

double test_fp(int set, int row, int col) {
    const struct hmx * h = hmx_self();
    return hmx_sw.xfp ? hmx_xfp_to(h->fp.x[set][row][col]) : h->fp.d[set][row][col];
}

void test_set_fp(int set, int row, int col, double v) {
    struct hmx * h = hmx_self();
    if (hmx_sw.xfp) {
        h->fp.x[set][row][col] = hmx_xfp_from(v);
    } else {
        h->fp.d[set][row][col] = v;
    }
}

int test_policy(void) { return (int) hmx_sw.policy; }
int test_xfp(void) { return hmx_sw.xfp; }
