#include "mm_common.h"

// The whole chain on one column tile: pack, convert, multiply, group scales, reduce.
enum { MAXT = 96, MAXG = 16, ROWS = 128 };

static uint8_t  q[MAXT][32][32];
static uint16_t d[MAXT][32];
static float    x[ROWS][MAXT * 32];
static int8_t   w8[MAXT][32][32];
static int      a16[ROWS][MAXT * 32];

enum kind { NORMAL, POSITIVE, OUTLIER, ADVERSARIAL, HETERO, KINDS };

struct result { double nmse; };

static double run(int n_rows, int n, int group, enum kind kind, bool with_acc) {
    const int ng = (n + group - 1) / group, nrt = (n_rows + 31) / 32;
    uint8_t * raw   = vtcm;
    uint8_t * wgt   = vtcm + 0x20000;
    uint8_t * bias  = vtcm + 0x40000;
    HVX_Vector * unit = (HVX_Vector *) (vtcm + 0x42000);
    HVX_Vector * r    = (HVX_Vector *) (vtcm + 0x43000);
    HVX_Vector * sc   = (HVX_Vector *) (vtcm + 0x44000);
    uint8_t * stage = vtcm + 0x60000;                       // ng * nrt * 2048
    uint8_t * out   = vtcm + 0x100000;
    uint8_t * xin   = vtcm + 0x140000;                      // two rows
    uint8_t * act   = vtcm + 0x180000;
    HVX_Vector * lost = (HVX_Vector *) (vtcm + 0x45000);
    static uint8_t exps[ROWS];
    static int32_t means[ROWS / 2];

    for (int t = 0; t < n; t++) {
        for (int c = 0; c < 32; c++) {
            double w[32], m = 0;
            for (int k = 0; k < 32; k++) {
                w[k] = normal() * (kind == HETERO ? pow(2, (t % 7) - c % 5) : 1);
                if (fabs(w[k]) > fabs(m)) m = w[k];
            }
            if (kind == ADVERSARIAL) m = c & 1 ? 1 : -1;
            d[t][c] = to_hf(m / -8);
            const double dd = m / -8;
            for (int k = 0; k < 32; k++) {
                int v = (int) floor(w[k] / dd + 8.5);
                if (kind == ADVERSARIAL) v = (c & 2) ? 0 : (k * 7 + t + c) % 3 ? 15 : 0;
                q[t][k][c] = (uint8_t) (v < 0 ? 0 : v > 15 ? 15 : v);
            }
        }
    }
    for (int i = 0; i < n_rows; i++) {
        for (int k = 0; k < n * 32; k++) {
            double v = normal();
            if (kind == POSITIVE) v = uni();
            if (kind == OUTLIER) v *= rnd() % 300 == 0 ? 100 : 1;
            if (kind == ADVERSARIAL) v = (q[k / 32][k % 32][i % 32] < 8) == (i & 1) ? 1 : -1;
            if (kind == HETERO) v *= pow(2, (k / 32) % 9 - 4) * pow(10, i % 7 - 3);
            x[i][k] = (float) v;
        }
    }
    memset(act, 0x77, (size_t) nrt * n * 2048);
    for (int i = 0; i < n_rows; i += 2) {
        memcpy(xin, x[i], (size_t) n * 128);
        memcpy(xin + 0x8000, x[i + 1 < n_rows ? i + 1 : i], (size_t) n * 128);
        hmx_int_pack_pair(act + (i / 32) * n * 2048 + (i % 32) / 2 * 128, exps + i, means + i / 2, xin, xin + 0x8000, n, group, 1.0f / (32 * n));
    }
    for (int g = 0; g < ng; g++) {
        const int nt = n - g * group < group ? n - g * group : group;
        memset(raw, 0, 640 * nt);
        for (int t = 0; t < nt; t++) {
            for (int p = 0; p < 16; p++)
                for (int c = 0; c < 32; c++)
                    raw[t * 640 + p * 32 + c] = (uint8_t) (q[g * group + t][2 * p][c] | q[g * group + t][2 * p + 1][c] << 4);
            memcpy(raw + t * 640 + 512, d[g * group + t], 64);
        }
        hmx_int_convert_q4_0(wgt + g * group * 1024, raw, nt, 640, &(struct hmx_int_group) { (HVX_Vector *) (bias + g * 256), unit + g, lost + g });
    }
    for (int t = 0; t < n; t++)
        for (int k = 0; k < 32; k++)
            for (int c = 0; c < 32; c++) w8[t][k][c] = (int8_t) wgt[t * 1024 + (k / 4) * 128 + 4 * c + k % 4];
    for (int i = 0; i < n_rows; i++)
        for (int k = 0; k < n * 32; k++)
            a16[i][k] = *(uint16_t *) (act + (i / 32) * n * 2048 + (k / 32) * 2048 + ((i % 32) / 2 * 64 + 2 * (k % 32) + (i & 1)) * 2) - 32768;

    memset(stage, 0x33, (size_t) ng * nrt * 2048);
    hmx_int_multiply(stage, nrt * 2048, act, n * 2048, wgt, bias, nrt, n, group);

    int peak = 0;
    for (int i = 0; i < n_rows; i++) {
        for (int c = 0; c < 32; c++) {
            for (int g = 0; g < ng; g++) {
                int64_t lo = 0, hi = 0, v = 0, s = 0;
                for (int k = g * group * 32; k < (g + 1) * group * 32 && k < n * 32; k++) {
                    const int w = w8[k / 32][k % 32][c], u = a16[i][k] + 32768;
                    lo += (u & 255) * w;
                    hi += (u >> 8) * w;
                    v += (int64_t) a16[i][k] * w;
                    s += w;
                }
                const int64_t A    = hi + (lo >> 8) - 128 * s;
                const int64_t want = (A + 8) >> 4;
                const int     got  = ((int16_t *) (stage + g * nrt * 2048 + (i / 32) * 2048))[(i % 32) / 2 * 64 + 2 * c + (i & 1)];
                CHECK(A == (v >> 8), "offset not cancelled: %lld %lld", (long long) A, (long long) (v >> 8));
                CHECK(got == want, "stage row %d col %d group %d: %d for %lld", i, c, g, got, (long long) want);
                peak = abs(got) > peak ? abs(got) : peak;
            }
        }
    }

    HVX_Vector column, skew;
    hmx_int_group_scales(&column, &skew, r, unit, lost, ng);
    int lo = 255, hi = 0;
    for (int i = 0; i < n_rows; i++) {
        lo = exps[i] < lo ? exps[i] : lo;
        hi = exps[i] > hi ? exps[i] : hi;
    }
    hmx_int_token_scales(sc, &column, lo, hi);
    struct hmx_int_reduce_args a = { stage, nrt * 2048, ng, r, &skew, sc, exps, means, lo, NULL, 0, out };
    float * y = (float *) out;
    for (int i = 0; i < n_rows * 32; i++) y[i] = with_acc ? (float) (i % 7) : NAN;
    if (with_acc) a.acc = out, a.acc_stride = 128;
    count_start();
    hmx_int_reduce(&a, (n_rows + 1) / 2);
    if (n_rows == 128 && kind == NORMAL && n == 80) {
        char s[64];
        sprintf(s, "reduce per 64, %d groups%s", ng, with_acc ? ", acc" : "");
        count_print(s, (n_rows + 1) / 2);
    }

    double e2 = 0, s2 = 0;
    for (int i = 0; i < n_rows; i++) {
        double er = 0, sr = 0;
        for (int c = 0; c < 32; c++) {
            double ref = 0;
            for (int k = 0; k < n * 32; k++) ref += (double) x[i][k] * (q[k / 32][k % 32][c] - 8) * from_hf(d[k / 32][c]);
            const double got = y[i * 32 + c] - (with_acc ? (i * 32 + c) % 7 : 0);
            er += (got - ref) * (got - ref);
            sr += ref * ref;
        }
        if (kind == HETERO) er /= sr, sr = 1;  // tokens of very different size
        e2 += er;
        s2 += sr;
    }
    printf("rows %3d tiles %2d group %2d kind %d acc %d: NMSE %.3e, peak %d\n", n_rows, n, group, kind, with_acc, e2 / s2, peak);
    static const double limits[KINDS] = { [NORMAL] = 8e-5, [POSITIVE] = 3.5e-5, [OUTLIER] = 8e-5, [ADVERSARIAL] = 3e-6, [HETERO] = 1e-3 };
    CHECK(e2 / s2 < limits[kind], "NMSE %g of kind %d", e2 / s2, kind);
    CHECK(peak < 32768, "peak");
    return e2 / s2;
}

int main(void) {
    vtcm = (uint8_t *) (uintptr_t) test_vtcm(4 << 20);
    static const int shapes[][3] = { { 128, 80, 20 }, { 128, 80, 40 }, { 128, 80, 16 }, { 1, 1, 20 }, { 5, 3, 20 }, { 33, 28, 28 }, { 31, 29, 28 }, { 64, 96, 20 }, { 97, 41, 20 } };
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (shapes[i][2] > 32) continue;
            run(shapes[i][0], shapes[i][1], shapes[i][2], kind, false);
        }
        run(shapes[i][0], shapes[i][1], shapes[i][2] > 32 ? 32 : shapes[i][2], NORMAL, true);
    }
    printf("%s\n", bad ? "FAILED" : "OK");
    return bad != 0;
}
