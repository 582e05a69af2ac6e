#include "mm_common.h"

// Q4_0 tile: 512 bytes of nibbles, 32 fp16 scales; 640 bytes apart in VTCM
#define STRIDE 640
enum { MAXT = 32 };

struct group {
    int      n;
    uint8_t  q[MAXT][32][32];   // [tile][k][c], 0..15
    uint16_t d[MAXT][32];
};

static void put(const struct group * g, uint8_t * raw) {
    memset(raw, 0xEE, (size_t) g->n * STRIDE);
    for (int t = 0; t < g->n; t++) {
        for (int p = 0; p < 16; p++) {
            for (int c = 0; c < 32; c++) {
                raw[t * STRIDE + p * 32 + c] = (uint8_t) (g->q[t][2 * p][c] | g->q[t][2 * p + 1][c] << 4);
            }
        }
        memcpy(raw + t * STRIDE + 512, g->d[t], 64);
    }
}

enum kind { NORMAL, UNIFORM, SUBNORMAL, ONE_LARGE, ZERO_COLS, EDGES, KINDS };

static void make(struct group * g, int n, enum kind kind) {
    g->n = n;
    for (int t = 0; t < n; t++) {
        for (int c = 0; c < 32; c++) {
            double d = (0.5 + uni()) * (rnd() & 1 ? -1 : 1) * 0.01;
            if (kind == SUBNORMAL) d = ldexp((rnd() % 1023) * (rnd() & 1 ? -1.0 : 1.0), -24);
            if (kind == ONE_LARGE) d *= (t == c % n) ? 1 : 1e-3;
            if (kind == ZERO_COLS && (c & 3) == 0) d = 0;
            g->d[t][c] = to_hf(d);
            for (int k = 0; k < 32; k++) {
                int q = kind == NORMAL ? (int) floor(normal() * 3.5 + 8.5) : (int) (rnd() & 15);
                if (kind == EDGES) q = rnd() & 1 ? 0 : 15;
                g->q[t][k][c] = (uint8_t) (q < 0 ? 0 : q > 15 ? 15 : q);
            }
        }
    }
}

static int w8_of(int n, int d_neg, int f, int odd) {
    const int nn = d_neg ? 15 - n : n;
    const int a  = -(8 - d_neg) * f - odd;
    const int w  = (int) floor((nn * f + a + 8) / 16.0);
    return w > 127 ? 127 : w < -128 ? -128 : w;
}

static double dmax_of(const struct group * g, int c) {
    double m = ldexp(1, -24);
    for (int t = 0; t < g->n; t++) m = fmax(m, fabs(from_hf(g->d[t][c])));
    return m;
}

static double run(int n, enum kind kind) {
    static struct group g;
    make(&g, n, kind);
    uint8_t *    raw  = vtcm;
    int8_t *     w    = (int8_t *) vtcm + 65536;
    HVX_Vector * bias = (HVX_Vector *) (vtcm + 131072);
    HVX_Vector * unit = bias + 2;
    HVX_Vector * residual = bias + 3;
    put(&g, raw);
    count_start();
    hmx_int_convert_q4_0((uint8_t *) w, raw, n, STRIDE, &(struct hmx_int_group) { bias, unit, residual });
    if (kind == NORMAL && n == 20) count_print("q4_0 convert per tile (20)", n);

    const int32_t * b = (const int32_t *) bias;
    const float *   u = (const float *) unit;
    double          e2 = 0, s2 = 0, e1 = 0;
    for (int c = 0; c < 32; c++) {
        const double m    = dmax_of(&g, c);
        const double step = m * 16 / 255;
        int64_t      sum  = 0;
        CHECK(fabs(u[c] / step - 1) < 1e-4, "unit c %d: %g for %g", c, u[c], step);
        for (int t = 0; t < n; t++) {
            const double d  = from_hf(g.d[t][c]);
            const double fr = fabs(d) / m * 255;
            const int    f0 = (int) floor(fr + 0.5);
            for (int k = 0; k < 32; k++) {
                const int got = w[t * 1024 + (k / 4) * 128 + 4 * c + k % 4];
                const int odd = k >> 2 & 1 ? 1 : 0;  // which vector of a pair; see below
                (void) odd;
                int ok = 0;
                for (int o = 0; o < 2; o++) {
                    ok |= got == w8_of(g.q[t][k][c], g.d[t][c] >> 15, f0, o);
                    if (fabs(fr - floor(fr) - 0.5) < 0.13) {  // 255 / max has 11 bits
                        ok |= got == w8_of(g.q[t][k][c], g.d[t][c] >> 15, (int) floor(fr), o);
                        ok |= got == w8_of(g.q[t][k][c], g.d[t][c] >> 15, (int) floor(fr) + 1, o);
                    }
                }
                CHECK(ok, "w8 n %d kind %d t %d k %d c %d: %d, q %d d %g f %g", n, kind, t, k, c, got, g.q[t][k][c], d, fr);
                const double w_true = (g.q[t][k][c] - 8) * d;
                CHECK(fabs(got * step - w_true) <= step * 0.85, "w8 off by %g steps", (got * step - w_true) / step);
                e2 += (got * step - w_true) * (got * step - w_true) / (step * step);
                e1 += (got * step - w_true) / step;
                s2 += 1;
                sum += got;
            }
        }
        CHECK((uint32_t) b[c] == 0x3000, "scale word %x", b[c]);
        CHECK(b[32 + c] == 8 - 128 * sum, "bias c %d: %d for sum %lld", c, b[32 + c], (long long) sum);
        if (m <= ldexp(1, -24)) CHECK(sum == 0, "zero column %d has sum %lld", c, (long long) sum);
    }
    printf("n %2d kind %d: error %.4f steps rms, mean %+.5f\n", n, kind, sqrt(e2 / s2), e1 / s2);
    return e1 / s2;
}

int main(void) {
    vtcm = (uint8_t *) (uintptr_t) test_vtcm(1 << 20);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int n = 1; n <= 28; n += n < 4 ? 1 : 8) run(n, kind);
    }
    run(20, NORMAL);
    double mean = 0;
    for (int i = 0; i < 20; i++) mean += run(20, NORMAL);
    CHECK(fabs(mean / 20) < 0.004, "mean error %g steps", mean / 20);
    printf("%s\n", bad ? "FAILED" : "OK");
    return bad != 0;
}
