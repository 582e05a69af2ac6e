#include "mm_common.h"

// Packing of two tokens: exponent bound, exact rounding, layout.
enum { MAXT = 96 };
enum kind { NORMAL, POSITIVE, OUTLIER, ZERO, TINY, HUGE_, ONE_GROUP, SAME, KINDS };

static void make(float * x, int k, enum kind kind) {
    for (int i = 0; i < k; i++) {
        double v = normal();
        if (kind == POSITIVE) v = uni();
        if (kind == OUTLIER) v *= rnd() % 100 == 0 ? 1000 : 1;
        if (kind == ZERO) v = 0;
        if (kind == TINY) v *= 1e-30;
        if (kind == HUGE_) v *= 1e15;
        if (kind == ONE_GROUP) v *= i < 32 ? 50 : 1e-3;
        if (kind == SAME) v = rnd() & 1 ? 1 : -1;
        x[i] = (float) v;
    }
}

static void run(int n, int group, enum kind k0, enum kind k1) {
    float *  x[2] = { (float *) vtcm, (float *) (vtcm + 65536) };
    uint8_t  exps[2];
    int32_t  means;
    uint16_t * tile = (uint16_t *) (vtcm + 262144);
    const int pair = rnd() % 16;
    make(x[0], n * 32, k0);
    make(x[1], n * 32, k1);
    memset(tile, 0x55, (size_t) n * 2048);
    count_start();
    hmx_int_pack_pair((uint8_t *) tile + pair * 128, exps, &means, (uint8_t *) x[0], (uint8_t *) x[1], n, group, 1.0f / (32 * n));
    if (n == 80 && k0 == NORMAL && k1 == NORMAL) count_print("pack per 32 activations", 2 * n);

    for (int t = 0; t < 2; t++) {
        const int    p = 79 - exps[t];
        double       worst = 0;
        for (int g = 0; g < n; g += group) {
            double real = 0, q = 0;
            for (int k = g * 32; k < (g + group < n ? g + group : n) * 32; k++) {
                const int got = tile[(k / 32) * 1024 + pair * 64 + 2 * (k % 32) + t] - 32768;
                const double want = ldexp(x[t][k], p);
                CHECK(fabs(got - want) <= 0.51, "pack n %d k %d: %d for %.3f (p %d kind %d)", n, k, got, want, p, t ? k1 : k0);
                real += (double) x[t][k] * x[t][k];
                q += (double) got * got;
            }
            worst = fmax(worst, real);
            CHECK(sqrt(q) <= 32768 * 0.995, "norm %g of group %d too large", sqrt(q), g);
        }
        const double norm = ldexp(sqrt(worst), p);
        // no more than one bit is lost
        const double loss = 1.02;
        CHECK(norm == 0 || p == 60 || norm * loss >= 16384, "norm %g wastes bits, kind %d n %d", norm, t ? k1 : k0, n);
        CHECK(p <= 60 && p >= -50, "p %d", p);
    }
    for (int k = 0; k < n * 32; k++) {  // nothing else written
        for (int r = 0; r < 16; r++) {
            if (r != pair) {
                CHECK(tile[(k / 32) * 1024 + r * 64 + 2 * (k % 32)] == 0x5555, "row %d written", r);
            }
        }
    }
}

int main(void) {
    vtcm = (uint8_t *) (uintptr_t) test_vtcm(1 << 20);
    for (int a = 0; a < KINDS; a++) {
        for (int b = 0; b < KINDS; b++) {
            for (int n = 1; n <= MAXT; n += n < 6 ? 1 : 15) run(n, 20, a, b);
        }
    }
    run(80, 20, NORMAL, NORMAL);
    // what isn't a number stays in its own token
    float *  x0 = (float *) vtcm, * x1 = (float *) (vtcm + 65536);
    uint8_t  exps[2];
    int32_t  means;
    uint16_t * tile = (uint16_t *) (vtcm + 262144);
    for (int i = 0; i < 4; i++) {
        make(x0, 640, NORMAL);
        make(x1, 640, NORMAL);
        x0[123] = i == 0 ? NAN : i == 1 ? INFINITY : i == 2 ? -INFINITY : 3e38f;
        hmx_int_pack_pair((uint8_t *) tile, exps, &means, (uint8_t *) x0, (uint8_t *) x1, 20, 20, 1.0f / 640);
        CHECK(exps[0] == HMX_INT_EXP_MAX, "exponent %d of a token with %g", exps[0], x0[123]);
        for (int k = 0; k < 640; k++) {
            const double want = ldexp(x1[k], 79 - exps[1]);
            CHECK(fabs(tile[(k / 32) * 1024 + 2 * (k % 32) + 1] - 32768 - want) <= 0.51, "neighbour of a NaN");
        }
    }
    printf("%s\n", bad ? "FAILED" : "OK");
    return bad != 0;
}
