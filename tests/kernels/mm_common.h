// What the drivers share: VTCM, random data, checks, counts.
#ifndef MM_COMMON_H
#define MM_COMMON_H
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hmx-int-mm-kernels.h"

uint32_t test_vtcm(uint32_t size);
extern int test_faults[];

static uint8_t * vtcm;
static int       bad;

#define CHECK(ok, ...)                      \
    do {                                    \
        if (!(ok)) {                        \
            if (++bad <= 10) {              \
                printf("FAIL " __VA_ARGS__); \
                printf("\n");               \
            }                               \
        }                                   \
    } while (0)

static uint64_t rng_state = 88172645463325252ull;
static uint32_t rnd(void) {
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t) (rng_state >> 16);
}
static double uni(void) { return rnd() / 4294967296.0; }
static double normal(void) {
    return sqrt(-2 * log(uni() + 1e-12)) * cos(6.283185307179586 * uni());
}
static uint16_t to_hf(double x) {
    _Float16 h = (_Float16) x;
    uint16_t u;
    memcpy(&u, &h, 2);
    return u;
}
static double from_hf(uint16_t u) {
    _Float16 h;
    memcpy(&h, &u, 2);
    return (double) h;
}

static uint64_t counts[SIM_N_COUNTERS];
static void count_start(void) { memcpy(counts, sim_self.n, sizeof counts); }
static uint64_t count_of(int i) { return sim_self.n[i] - counts[i]; }
static uint64_t count_ops(void) {
    return count_of(SIM_hvx_alu) + count_of(SIM_hvx_mpy) + count_of(SIM_hvx_perm) + count_of(SIM_hvx_fp);
}
static void count_print(const char * what, double unit) {
    printf("COUNT %-28s ops %.2f  alu %.2f mpy %.2f perm %.2f fp %.2f ld %.2f st %.2f ldu %.2f\n", what, count_ops() / unit,
           count_of(SIM_hvx_alu) / unit, count_of(SIM_hvx_mpy) / unit, count_of(SIM_hvx_perm) / unit,
           count_of(SIM_hvx_fp) / unit, count_of(SIM_hvx_ld) / unit, count_of(SIM_hvx_st) / unit,
           count_of(SIM_hvx_ldu) / unit);
}
#endif
