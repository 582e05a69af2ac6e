// Laws of the matrix unit that need many numbers. A law returns how often it did not hold.
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <time.h>

#include "hmx.h"

static uint64_t state = 88172645463325252u;

static uint32_t rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 24);
}

void law_seed(uint64_t seed) { state = seed * 0x9E3779B97F4A7C15u + 88172645463325252u; }

static double uniform(void) { return (rnd() + 0.5) / 4294967296.0; }

static double normal(void) { return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()); }

static uint16_t half_of(double v) {
    return (uint16_t) (hmx_fp_convert(hmx_xfp_from(v), 0x3C00, (struct hmx_fcvt) { 0 }) >> 4);
}

static void fill(uint32_t at, uint32_t size) {
    uint8_t * p = sim_vtcm_base + at;
    for (uint32_t i = 0; i < size; i++) {
        p[i] = (uint8_t) rnd();
    }
}

// halves: 0 any bits, 1 numbers of N(0, sigma)
static void fill_half(uint32_t at, uint32_t n, double sigma, int subnormal) {
    uint16_t * p = (uint16_t *) (sim_vtcm_base + at);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = half_of(sigma * normal());
        if (subnormal && rnd() % 8 == 0) {
            p[i] = rnd() & 0x83FF;
        }
    }
}

static uint32_t addr(uint32_t off) { return (uint32_t) (uintptr_t) (sim_vtcm_base + off); }

enum { ACT = 0, WGT = 1 << 18, OUT = 1 << 19 };

// Two runs of n pairs with different switches leave the same accumulators, counters and set.
static int differ(const struct hmx_switches * x, const struct hmx_switches * y, uint32_t aop,
                  uint32_t art, uint32_t wop, uint32_t wrt, int n) {
    static struct hmx   first;
    static uint64_t     tiles[2];
    struct hmx *        h = hmx_self();
    for (int run = 0; run < 2; run++) {
        hmx_sw = run ? *y : *x;
        memset(h, 0, sizeof *h);
        hmx_clear_fp(h, 0);
        hmx_clear_fp(h, 1);
        memset(&sim_self, 0, sizeof sim_self);
        for (int i = 0; i < n; i++) {
            sim_hmx_load(aop, addr(ACT), art, wop, addr(WGT), wrt);
            if (i == 0) {
                sim_hmx_op(0, 0x14, 0, 0);
                sim_hmx_op(0, 0x15, 0, 0);
            }
        }
        tiles[run] = sim_self.n[SIM_hmx_tiles_i] + sim_self.n[SIM_hmx_tiles_f];
        if (run == 0) {
            memcpy(&first, h, sizeof first);
        }
    }
    return tiles[0] != tiles[1] || tiles[0] == 0 || memcmp(&first, h, sizeof first) != 0;
}

// Every fast path against the plain loop. portable: without machine-specific code.
int law_fast_int(int rounds, int portable) {
    static const uint32_t A[] = { 0xE0, 0xE1, 0xEC, 0xED };
    static const uint32_t W[] = { 0xE0, 0xE8, 0xE1, 0xEE, 0xF1, 0xD1, 0x46, 0x43 };
    const struct hmx_switches plain = { .plain = true }, fast = { .portable = portable };
    int                       bad   = 0;
    for (int i = 0; i < rounds; i++) {
        fill(ACT, 8 * 2048);
        fill(WGT, 8 * 2048);
        for (int a = 0; a < 4; a++) {
            for (int w = 0; w < 8; w++) {
                const uint32_t n = a < 2 ? 1 + rnd() % 8 : 1, rt = 2048 * n - 1;
                bad += differ(&plain, &fast, A[a], rt, W[w], rt, 2);
            }
        }
    }
    return bad;
}

int law_fast_fp(int rounds, int portable, int policy, int specials) {
    static const uint32_t A[] = { 0xE2, 0xE4 }, W[] = { 0xEF, 0xF4 };
    const struct hmx_switches plain = { .plain = true, .policy = (enum hmx_policy) policy };
    const struct hmx_switches fast  = { .portable = portable, .policy = (enum hmx_policy) policy };
    int                       bad   = 0;
    for (int i = 0; i < rounds; i++) {
        if (specials) {
            fill(ACT, 4 * 2048);
            fill(WGT, 8 * 2048);
        } else {
            fill_half(ACT, 4 * 1024, 1, 1);
            fill_half(WGT, 8 * 1024, 0.05, 1);
        }
        for (int a = 0; a < 2; a++) {
            for (int w = 0; w < 2; w++) {
                const uint32_t n = a == 0 ? 1 + rnd() % 4 : 1;
                bad += differ(&plain, &fast, A[a], 2048 * n - 1, W[w], 2048 * n * (1 + (uint32_t) w) - 1, 2);
            }
        }
    }
    return bad;
}

// The two FP modes on N(0, 1) operands, n tiles deep: results that are not equal. *worst: how many
// last places they differ, of numbers no smaller than 2^-6 of a typical result and the output bias;
// below that terms cancel and the unit's own error shows.
int law_xfp_exact(int n, int rounds, double sigma, uint32_t bias0, int * worst) {
    uint32_t * bias = (uint32_t *) (sim_vtcm_base + OUT + 8192);
    int        bad  = 0;
    const double typical = sigma * sqrt(32.0 * n) * hmx_value((uint16_t) bias0, false);
    const double ob = hmx_value((uint16_t) (bias0 >> 16), false);
    *worst          = 0;
    for (int c = 0; c < 32; c++) {
        bias[c]      = bias0;
        bias[32 + c] = 0;
    }
    for (int i = 0; i < rounds; i++) {
        fill_half(ACT, (uint32_t) n * 1024, 1, 0);
        fill_half(WGT, (uint32_t) n * 1024, sigma, 0);
        for (int xfp = 0; xfp < 2; xfp++) {
            hmx_sw = (struct hmx_switches) { .xfp = xfp };
            memset(hmx_self(), 0, sizeof(struct hmx));
            hmx_clear_fp(hmx_self(), 0);
            sim_hmx_bias(0xFE, addr(OUT + 8192));
            sim_hmx_load(0xE2, addr(ACT), (uint32_t) n * 2048 - 1, 0xEF, addr(WGT), (uint32_t) n * 2048 - 1);
            sim_hmx_op(1, 4, addr(OUT + 2048 * (uint32_t) xfp), 0);
        }
        const uint16_t *x = (uint16_t *) (sim_vtcm_base + OUT), *y = x + 1024;
        for (int j = 0; j < 1024; j++) {
            const double u = hmx_value(x[j], false), v = hmx_value(y[j], false);
            const double size = fmax(fmax(fabs(v), typical / 64), fabs(ob));
            const int    d = (int) ceil(fabs(u - v) / ldexp(1, ilogb(size) - 10));
            bad += u != v;
            *worst = d > *worst ? d : *worst;
        }
    }
    return bad;
}

// The usual converts against the plain ones: accumulators and bias words of `kind` (0 integer, 1 FP).
// bits: how large the accumulators are.
int law_fast_convert(int kind, int rounds, int portable, int bits) {
    static const uint8_t INT_OPS[][2] = {
        { 1, 0x0B }, { 1, 0x0A }, { 1, 0x0F }, { 0, 0x04 }, { 0, 0x06 }, { 0, 0x0E }, { 0, 0x0F }, { 0, 0x02 },
    };
    const uint32_t table = OUT + 65536;
    static struct hmx before;
    struct hmx * h   = hmx_self();
    int          bad = 0;
    for (int i = 0; i < rounds; i++) {
        memset(h, 0, sizeof *h);
        h->iset = h->fset = (int) (rnd() & 1);
        for (int j = 0; j < 2 * HMX_ROWS * HMX_COLS; j++) {
            const int32_t v = (int32_t) rnd() >> (32 - bits + (int) (rnd() % (unsigned) bits));
            h->lo[j >> 11][j >> 5 & 63][j & 31] = kind ? 0 : (uint32_t) v;
            h->hi[j >> 11][j >> 5 & 63][j & 31] = kind ? 0 : (uint32_t) ((int32_t) rnd() >> (34 - bits));
        }
        for (int j = 0; kind && j < 2 * 32 * HMX_COLS; j++) {
            h->fp.d[j >> 10][j >> 5 & 31][j & 31] = ldexp(normal(), (int) (rnd() % (unsigned) (2 * bits)) - bits);
        }
        uint32_t * bias = (uint32_t *) (sim_vtcm_base + table);
        for (int c = 0; c < 32; c++) {
            const uint32_t scale = half_of(normal());
            bias[c]      = kind ? scale | (uint32_t) (rnd() % 2 ? half_of(normal()) : 0) << 16 : rnd() & ~0x68000u;
            bias[32 + c] = kind ? 0 : (uint32_t) ((int32_t) rnd() >> (32 - bits));
            if (kind && rnd() % 4 == 0) {  // a denormal result
                bias[c] = 0x0400 + rnd() % 0x1000;
            } else if (kind && rnd() % 2) {  // near cancellation
                h->fp.d[h->fset][rnd() % 32][c] = -1 + ldexp(normal(), -(int) (rnd() % 30));
                bias[c] = scale | scale << 16;
            }
        }
        before = *h;
        uint8_t first[2048];
        for (int k = 0; k < (kind ? 1 : 8); k++) {
            for (int run = 0; run < 2; run++) {
                hmx_sw = (struct hmx_switches) { .plain = !run, .portable = portable };
                *h     = before;
                memset(sim_vtcm_base + OUT, 0xA5, 2048);
                sim_hmx_bias(0xFE, addr(table));
                sim_hmx_op(kind ? 1 : INT_OPS[k][0], kind ? 4 : INT_OPS[k][1], addr(OUT), 0);
                if (run == 0) {
                    memcpy(first, sim_vtcm_base + OUT, 2048);
                }
            }
            bad += memcmp(first, sim_vtcm_base + OUT, 2048) != 0;
        }
    }
    return bad;
}

// The anticipation is the number of spare sign bits of the halved sum or one less (-1: of all bits).
int law_lza(int rounds, int * less) {
    int bad = 0;
    *less   = 0;
    for (int i = 0; i < rounds; i++) {
        int32_t a = (int32_t) rnd() >> (2 + rnd() % 28), b = (int32_t) rnd() >> (2 + rnd() % 28);
        if (rnd() % 4 == 0) {
            b = -a + (int32_t) (rnd() % 64) - 32;
        }
        const int32_t u    = (a + b) >> 1;
        const int     real = __builtin_clz((uint32_t) (u < 0 ? ~u : u) << 1 | 1) - 2;
        const int     n    = a + b == -1 ? hmx_xfp_lza(a, b) - 1 : hmx_xfp_lza(a, b);
        bad += n != real && n != real - 1;
        *less += n == real - 1;
    }
    return bad;
}

// Nanoseconds a tile, n tiles deep.
double law_time(int fp, uint32_t wop, int n, int rounds, int portable) {
    hmx_sw = (struct hmx_switches) { .portable = portable };
    if (fp) {
        fill_half(ACT, (uint32_t) n * 1024, 1, 0);
        fill_half(WGT, (uint32_t) n * 1024, 1, 0);
    } else {
        fill(ACT, (uint32_t) n * 2048);
        fill(WGT, (uint32_t) n * 2048);
    }
    struct timespec t0, t1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
    for (int i = 0; i < rounds; i++) {
        sim_hmx_load(fp ? 0xE2 : 0xE0, addr(ACT), (uint32_t) n * 2048 - 1, wop, addr(WGT), (uint32_t) n * 2048 - 1);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
    return ((double) (t1.tv_sec - t0.tv_sec) * 1e9 + (double) (t1.tv_nsec - t0.tv_nsec)) / rounds / n;
}

// Nanoseconds of a convert and store.
double law_time_store(uint32_t w, uint32_t op6, int rounds) {
    hmx_sw = (struct hmx_switches) { 0 };
    memset(hmx_self(), 0, sizeof(struct hmx));
    for (int c = 0; c < 32; c++) {
        hmx_self()->bias[0][c] = 0x3C00;
    }
    struct timespec t0, t1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
    for (int i = 0; i < rounds; i++) {
        sim_hmx_op(w, op6, addr(OUT), 0);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
    return ((double) (t1.tv_sec - t0.tv_sec) * 1e9 + (double) (t1.tv_nsec - t0.tv_nsec)) / rounds;
}
