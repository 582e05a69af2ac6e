#include "mm_common.h"

// Every weight type: what a converter makes of its tile against the true weights.
enum { MAXT = 28 };

static double w[MAXT][32][32];  // true weight [tile][k][c]
static double block_max[MAXT][32][2];

struct type {
    const char * name;
    int          stride;
    void (*make)(uint8_t * raw, int n, int kind);
    void (*convert)(uint8_t * restrict, const uint8_t * restrict, uint32_t, uint32_t, const struct hmx_int_group *);
    double       slack;   // rounding error in steps of w8
    double       top;     // |w8| of the largest weight at least
};

static double scale(int kind, int t, int c) {
    double d = (0.2 + uni()) * 0.02;
    if (kind == 1) d = ldexp(1 + rnd() % 1000, -24);
    if (kind == 2) d *= t == c % 3 ? 1 : 1e-3;
    if (kind == 3 && c % 5 == 0) d = 0;
    if (kind == 4) d *= rnd() & 1 ? 1 : -1;
    return from_hf(to_hf(d));
}

static void nibble(uint8_t * raw, int k, int c, int q) {
    uint8_t * b = raw + (k / 2) * 32 + c;
    *b = (uint8_t) (k & 1 ? (*b & 15) | q << 4 : (*b & 0xF0) | q);
}

static void half(uint8_t * at, double v) {
    const uint16_t h = to_hf(v);
    memcpy(at, &h, 2);
}

static void make_q4_0(uint8_t * raw, int n, int kind) {
    for (int t = 0; t < n; t++, raw += 640)
        for (int c = 0; c < 32; c++) {
            const double d = scale(kind, t, c);
            half(raw + 512 + 2 * c, d);
            for (int k = 0; k < 32; k++) {
                const int q = rnd() & 15;
                nibble(raw, k, c, q);
                w[t][k][c] = d * (q - 8);
            }
        }
}

static void make_iq4_nl(uint8_t * raw, int n, int kind) {
    static const int kv[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
    for (int t = 0; t < n; t++, raw += 640)
        for (int c = 0; c < 32; c++) {
            const double d = scale(kind, t, c);
            half(raw + 512 + 2 * c, d);
            for (int k = 0; k < 32; k++) {
                const int q = rnd() & 15;
                nibble(raw, k, c, q);
                w[t][k][c] = d * kv[q];
            }
        }
}

static void make_mxfp4(uint8_t * raw, int n, int kind) {
    static const int kv[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    for (int t = 0; t < n; t++, raw += 640)
        for (int c = 0; c < 32; c++) {
            const int e = kind == 3 && c % 5 == 0 ? 0 : 110 + rnd() % (kind == 2 ? 20 : 5);
            raw[512 + c] = (uint8_t) e;
            for (int k = 0; k < 32; k++) {
                const int q = rnd() & 15;
                nibble(raw, k, c, q);
                w[t][k][c] = e ? ldexp(kv[q], e - 128) : 0;
            }
        }
}

static void make_q8_0(uint8_t * raw, int n, int kind) {
    for (int t = 0; t < n; t++, raw += 1152)
        for (int c = 0; c < 32; c++) {
            const double d = scale(kind, t, c);
            half(raw + 1024 + 2 * c, d);
            for (int k = 0; k < 32; k++) {
                const int q = (int) (rnd() % 255) - 127;
                raw[(k / 2) * 64 + 2 * c + (k & 1)] = (uint8_t) q;
                w[t][k][c] = d * q;
            }
        }
}

static void make_dm(uint8_t * raw, int n, int kind, int bits, int stride) {
    for (int t = 0; t < n; t++, raw += stride)
        for (int c = 0; c < 32; c++) {
            const double d = scale(kind, t, c);
            const double m = from_hf(to_hf(-d * (1 << bits) * uni()));
            half(raw + 512 + 4 * c, d);
            half(raw + 514 + 4 * c, m);
            for (int k = 0; k < 32; k++) {
                const int q = rnd() & ((1 << bits) - 1);
                nibble(raw, k, c, q & 15);
                if (bits == 5) {
                    const int     cp = k / 2, bit = 2 * (cp / 4) + (k & 1);
                    uint8_t *     at = raw + 640 + (cp % 4) * 32 + c;
                    *at = (uint8_t) ((*at & ~(1 << bit)) | (q >> 4) << bit);
                }
                w[t][k][c] = d * q + m;
            }
        }
}
static void make_q4_1(uint8_t * raw, int n, int kind) { make_dm(raw, n, kind, 4, 640); }
static void make_q5_k(uint8_t * raw, int n, int kind) { make_dm(raw, n, kind, 5, 768); }

static void make_q6_k(uint8_t * raw, int n, int kind) {
    memset(raw, 0, (size_t) n * 896);
    for (int t = 0; t < n; t++, raw += 896)
        for (int c = 0; c < 32; c++) {
            const double d[2] = { scale(kind, t, c), scale(kind, t, c) * (rnd() & 1 ? 1 : -1) };
            half(raw + 768 + 2 * c, d[0]);
            half(raw + 768 + 64 + 2 * c, d[1]);
            for (int k = 0; k < 32; k++) {
                const int q = rnd() & 63, g = k / 4, pos = 4 * c + k % 4;
                raw[(g / 2) * 128 + pos] |= (uint8_t) ((q & 15) << (g & 1) * 4);
                raw[512 + (g / 4) * 128 + pos] |= (uint8_t) ((q >> 4) << (g & 3) * 2);
                w[t][k][c] = d[k / 16] * (q - 32);
            }
        }
}

static const struct type types[] = {
    // one half for the rounding, plus half a step of f: times 8/16, 127/256, 16/32, 32/64
    { "q4_0",   640,  make_q4_0,   hmx_int_convert_q4_0,   0.85, 80 },
    { "iq4_nl", 640,  make_iq4_nl, hmx_int_convert_iq4_nl, 0.85, 60 },
    { "mxfp4",  640,  make_mxfp4,  hmx_int_convert_mxfp4,  1.00, 60 },
    { "q8_0",   1152, make_q8_0,   hmx_int_convert_q8_0,   0.85, 60 },
    { "q4_1",   640,  make_q4_1,   hmx_int_convert_q4_1,   0.95, 60 },
    { "q5_k",   768,  make_q5_k,   hmx_int_convert_q5_k,   0.90, 60 },
    { "q6_k",   896,  make_q6_k,   hmx_int_convert_q6_k,   0.85, 60 },
};

static void run(const struct type * ty, int n, int kind) {
    uint8_t *    raw  = vtcm;
    int8_t *     q    = (int8_t *) vtcm + 65536;
    HVX_Vector * bias = (HVX_Vector *) (vtcm + 131072);
    HVX_Vector * unit = bias + 2;
    HVX_Vector * residual = bias + 3;
    memset(raw, 0xFF, 65536);
    ty->make(raw, n, kind);
    memset(q, 0x55, 32768);
    count_start();
    ty->convert((uint8_t *) q, raw, n, ty->stride, &(struct hmx_int_group) { bias, unit, residual });
    if (kind == 0 && (n == 16 || n == 20)) {
        char s[64];
        sprintf(s, "%s convert per tile, %d", ty->name, n);
        count_print(s, n);
    }
    const int32_t * b = (const int32_t *) bias;
    const float *   u = (const float *) unit;
    double e1 = 0, e2 = 0, e3 = 0, s3 = 0;
    for (int c = 0; c < 32; c++) {
        int64_t sum = 0;
        int     top = 0;
        double  big = 0;
        CHECK(u[c] > 0 && isfinite(u[c]), "%s unit %g", ty->name, u[c]);
        for (int t = 0; t < n; t++)
            for (int k = 0; k < 32; k++) {
                const int    got = q[t * 1024 + (k / 4) * 128 + 4 * c + k % 4];
                const double err = got - w[t][k][c] / u[c];
                CHECK(fabs(err) <= ty->slack, "%s n %d kind %d t %d k %d c %d: %d for %.3f steps", ty->name, n, kind, t, k, c, got, w[t][k][c] / u[c]);
                CHECK(w[t][k][c] != 0 || abs(got) <= (n ? 1 : 0), "%s zero became %d", ty->name, got);
                sum += got;
                top = abs(got) > top ? abs(got) : top;
                big = fmax(big, fabs(w[t][k][c]));
                e1 += err;
                e2 += err * err;
            }
        CHECK(big == 0 || kind == 1 || kind == 3 || top >= ty->top, "%s n %d kind %d c %d uses only %d", ty->name, n, kind, c, top);
        CHECK(b[c] == 0x3000 && b[32 + c] == 8 - 128 * sum, "%s bias %x %d, sum %lld", ty->name, b[c], b[32 + c], (long long) sum);
        // what rounding took from the column, but for that of f and the centre
        const int16_t * lost = (const int16_t *) residual + 2 * c;
        double          real = -sum;
        for (int t = 0; t < n; t++)
            for (int k = 0; k < 32; k++) real += w[t][k][c] / u[c];
        CHECK(lost[0] == lost[1] && fabs(lost[0] / 16.0 - real) <= 3 + 3 * sqrt(n), "%s n %d kind %d c %d: residual %.2f for %.2f", ty->name, n, kind, c, lost[0] / 16.0, real);
        e3 += (lost[0] / 16.0 - real) * (lost[0] / 16.0 - real);
        s3 += real * real;
        CHECK(big > 0 || sum == 0, "%s zero column has sum %lld", ty->name, (long long) sum);
    }
    CHECK(n < 20 || kind || e3 < 0.25 * s3, "%s residual is wrong by %.2f of itself", ty->name, sqrt(e3 / s3));
    if (n == 20) printf("%-7s kind %d: error %.4f steps rms, mean %+.4f, residual %.3f\n", ty->name, kind, sqrt(e2 / (n * 1024)), e1 / (n * 1024), sqrt(e3 / s3));
    for (int i = n * 1024; i < 32768; i++) CHECK(q[i] == 0x55, "%s wrote behind the group", ty->name);
}

int main(int argc, char ** argv) {
    vtcm = (uint8_t *) (uintptr_t) test_vtcm(1 << 20);
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        if (argc > 1 && strcmp(argv[1], types[i].name)) continue;
        for (int kind = 0; kind < 5; kind++)
            for (int n = 1; n <= MAXT; n++) run(&types[i], n, kind);
    }
    printf("%s\n", bad ? "FAILED" : "OK");
    return bad != 0;
}
