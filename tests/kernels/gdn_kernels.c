// Runs one head through the chunked gated delta net kernels and compares with float64.
//   gdn_kernels CASE  ->  "nmse of outputs, nmse of the state, worst snapshot, counters"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hvx-gdn-chunked.h"

__thread struct sim_thread sim_self __attribute__((tls_model("initial-exec")));
struct sim_device sim_device;
uint8_t * sim_vtcm_base;
uint32_t sim_vtcm_size, sim_checks, sim_modes;
void sim_fault(enum sim_fault kind, const void * addr, size_t size, const void * pc) { (void) kind; (void) addr; (void) size; (void) pc; }
void sim_vld(const void * p) { if ((uintptr_t) p & 127) { printf("misaligned load\n"); exit(1); } }
void sim_vst(const void * p) { if ((uintptr_t) p & 127) { printf("misaligned store\n"); exit(1); } }

struct head {
    int D, T, K;
    bool kda;
    float *q, *k, *v, *g, *b, *s;  // rows of D, s[j][i]
};

static uint64_t rng = 88172645463325252ull;
static double uni(double lo, double hi) {
    rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
    return lo + (hi - lo) * (double) (rng >> 11) / 9007199254740992.0;
}
static double gauss(void) {
    return sqrt(-2 * log(uni(1e-12, 1))) * cos(6.283185307179586 * uni(0, 1));
}

static void * alloc(size_t n) {
    void * p = aligned_alloc(128, (n + 127) / 128 * 128);
    memset(p, 0xff, (n + 127) / 128 * 128);  // NaN patterns
    return p;
}

static void reference(const struct head * h, double * o, double * snap) {
    const int D = h->D;
    double * S = malloc(sizeof(double) * D * D);
    double * d = malloc(sizeof(double) * D);
    for (int i = 0; i < D * D; i++) S[i] = h->s[i];
    for (int t = 0; t < h->T; t++) {
        const float * q = h->q + t * D, * k = h->k + t * D, * v = h->v + t * D;
        for (int j = 0; j < D; j++) {
            double sum = 0;
            for (int i = 0; i < D; i++) {
                S[j * D + i] *= exp((double) (h->kda ? h->g[t * D + i] : h->g[t]));
                sum += S[j * D + i] * k[i];
            }
            d[j] = (v[j] - sum) * h->b[t];
        }
        for (int j = 0; j < D; j++) {
            double sum = 0;
            for (int i = 0; i < D; i++) {
                S[j * D + i] += k[i] * d[j];
                sum += S[j * D + i] * q[i];
            }
            o[t * D + j] = sum / sqrt((double) D);
        }
        const int slot = h->T - 1 - t;
        if (slot < h->K) memcpy(snap + (size_t) slot * D * D, S, sizeof(double) * D * D);
    }
    free(S); free(d);
}

// rows of D floats into rows of pad
static void rows_in(void * to, const float * from, int n, int D, int pad) {
    for (int t = 0; t < n; t++) memcpy((float *) to + t * pad, from + t * D, D * sizeof(float));
}

static unsigned long long ops(void);
static unsigned long long step_ops[9];
#define STEP(i, call) do { const unsigned long long was = ops(); call; step_ops[i] += ops() - was; } while (0)

static void run(const struct head * h, float * o, float * snap) {
    const bool kda = h->kda;
    struct htp_gdn_chunked_layout L;
    htp_gdn_chunked_layout_build(&L, h->D, kda);
    uint8_t * vtcm = alloc(L.bytes_per_thread);
    uint8_t * ddr  = alloc(HTP_GDN_CHUNKED_DDR_BYTES);
    const int D = h->D, pad = L.s_pad;
#define AT(f) ((HVX_Vector *) (vtcm + L.off_##f))
    struct gdnc_work wk = {
        .state = AT(state), .planes = AT(planes), .prod = AT(prod), .d = AT(d), .decayed = AT(decayed), .d_planes = AT(d_planes),
        .leaves = AT(leaves), .keys = AT(keys), .gates = AT(gates), .row_inv = AT(row_inv), .row_off = AT(row_off), .amax = AT(col), .amax_other = AT(col) + 4,
        .state_inv = AT(col) + 8, .d_inv = AT(col) + 12, .keep = AT(col) + 16, .tmp = AT(tmp),
    }, * w = &wk;
    wk.kq   = (uint64_t *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_KQ_BYTES);
    wk.ku   = (uint64_t *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_KU_BYTES);
    wk.ku_off = (int32_t *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_KUO_BYTES);
    wk.gram = (float *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_GRAM_BYTES);
    wk.gate = (float *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_GATE_BYTES);
    wk.beta = (float *) vtcm_seq_alloc(&ddr, HTP_GDN_CHUNKED_BETA_BYTES);
    if (D != pad) {
        memset(AT(in_state), 0, pad * pad * 4);
        memset(AT(q[0]), 0, L.off_out - L.off_q[0]);
    }
    const struct gdnc_kernels * kern = gdnc_kernels(pad, kda);
    const float scale = 1.0f / sqrtf((float) D);
    rows_in(AT(in_state), h->s, D, D, pad);
    STEP(0, kern->load_state(w, AT(in_state)));
    for (int t0 = 0; t0 < h->T; t0 += GDNC_SIZE) {
        const int n = h->T - t0 < GDNC_SIZE ? h->T - t0 : GDNC_SIZE, left = h->T - t0;
        rows_in(AT(q[0]), h->q + t0 * D, n, D, pad);
        rows_in(AT(k[0]), h->k + t0 * D, n, D, pad);
        rows_in(AT(v[0]), h->v + t0 * D, n, D, pad);
        if (kda) rows_in(AT(g[0]), h->g + t0 * D, n, D, pad); else memcpy(AT(g[0]), h->g + t0, n * 4);
        memcpy(AT(beta[0]), h->b + t0, n * 4);
        const HVX_Vector * q = AT(q[0]), * k = AT(k[0]);
        STEP(1, kern->quant(w, q, k, AT(g[0]), AT(beta[0]), scale, n));
        STEP(2, kern->products(w, n));
        STEP(3, kern->gram(w, q, k, scale, n));
        STEP(4, kern->solve(w, AT(out), AT(v[0]), n));
        for (int t = 0; t < n; t++) memcpy(o + (t0 + t) * D, (float *) AT(out) + t * pad, D * 4);
        const int m0 = left < h->K ? 1 : left - h->K + 1;
        for (int m = m0 < n ? m0 : n; m <= n; m++) {
            HVX_Vector * dst = m == n ? w->state : w->planes;
            STEP(5, kern->prepare_update(w, k, m));
            STEP(6, kern->update(w, dst, m == n ? w->amax : w->amax_other, m));
            if (left - m < h->K) {
                STEP(7, kern->store_state(w, AT(out_state), dst));
                for (int j = 0; j < D; j++)
                    memcpy(snap + ((size_t) (left - m) * D + j) * D, (float *) AT(out_state) + j * pad, D * 4);
            }
        }
    }
}

static unsigned long long ops(void) {
    return sim_self.n[SIM_hvx_alu] + sim_self.n[SIM_hvx_mpy] + sim_self.n[SIM_hvx_perm] + sim_self.n[SIM_hvx_fp];
}

static double nmse(const float * a, const double * b, size_t n) {
    double e = 0, r = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) return INFINITY;
        e += (a[i] - b[i]) * (a[i] - b[i]);
        r += b[i] * b[i];
    }
    return r > 0 ? e / r : e;
}
static void l2(float * x, int D) {
    double s = 0;
    for (int i = 0; i < D; i++) s += x[i] * x[i];
    for (int i = 0; i < D; i++) x[i] /= (float) sqrt(s + 1e-12);
}

#ifdef TOKEN_ROUTE
static void run_token(const struct head * h, float * o, float * snap);
#endif

// What the kernels rely on. Prints what does not hold.
static int laws(void) {
    int bad = 0;
    union { HVX_Vector v; int32_t w[32]; int16_t h[64]; uint8_t b[128]; float f[32]; } x0, x1, hi, by, u;
    for (int n = 0; n < 2000; n++) {
        for (int i = 0; i < 32; i++) {
            const int m = 1 << GDNC_BITS;
            x0.w[i] = (int) uni(-m, m); x1.w[i] = (int) uni(-m, m);
            if (n == 0) { x0.w[i] = m - 1 - i; x1.w[i] = 1 - m + i; }
        }
        const HVX_VectorPair v = gdnc_split(x0.v, x1.v, false), s = gdnc_split(x0.v, x1.v, true);
        hi.v = Q6_V_lo_W(v); by.v = Q6_V_hi_W(v); u.v = Q6_V_hi_W(s);
        for (int i = 0; i < 64; i++) {
            const int x = i & 1 ? x1.w[i / 2] : x0.w[i / 2], lo = (int8_t) by.b[2 * i], top = (int8_t) by.b[2 * i + 1];
            const int err = hi.h[i] - (top << GDNC_TOP_BITS);
            if ((hi.h[i] << GDNC_LO_BITS) + lo != x) bad |= 1;
            if (abs(err) > 64 && !(top == 127 && err <= 128)) bad |= 2;
            if ((int8_t) u.b[2 * i] != top || (int8_t) u.b[2 * i + 1] != lo) bad |= 4;
        }
    }
    // scales: the largest number ends up in [2^21, 2^22), for every exponent that has a scale
    for (int e = 24; e <= 252; e++) {
        for (int i = 0; i < 32; i++) x0.w[i] = (e << 23) | (i * 0x3fff7);
        const HVX_Vector ex = gdnc_exponent(x0.v);
        u.v = gdnc_fixed(x0.v, gdnc_scale(ex));
        by.v = hvx_vec_mul_f32_f32(gdnc_scale(ex), gdnc_scale_inv(ex));
        for (int i = 0; i < 32; i++) {
            if (u.w[i] < (1 << (GDNC_BITS - 1)) - 1 || u.w[i] > 1 << GDNC_BITS) bad |= 8;
            if (fabsf(by.f[i] - 1) > 1e-6f) bad |= 16;
        }
    }
    // transpose, with strides
    HVX_Vector * a = alloc(128 * 128), * b = alloc(128 * 128), * tmp = alloc(32 * 128);
    for (int i = 0; i < 4096; i++) ((int32_t *) a)[i / 32 * 64 + i % 32] = i;
    gdnc_transpose_32x32(b, 3, a, 2, tmp);
    for (int i = 0; i < 1024; i++) if (((int32_t *) b)[(i % 32) * 96 + i / 32] != i / 32 * 32 + i % 32) bad |= 32;
    // a tree of folds puts the sum of pair s into lanes 2 s and 2 s + 1
    HVX_Vector leaf[16];
    for (int s = 0; s < 16; s++) {
        for (int i = 0; i < 32; i++) { x0.f[i] = s + 1; x1.f[i] = -(s + 1) * 0.5f; }
        leaf[s] = gdnc_fold(Q6_Vqf32_vadd_VsfVsf(x0.v, Q6_V_vzero()), Q6_Vqf32_vadd_VsfVsf(x1.v, Q6_V_vzero()), 4);
    }
    u.v = Q6_Vsf_equals_Vqf32(gdnc_fold(gdnc_fold(gdnc_fold4(leaf), gdnc_fold4(leaf + 4), 32),
                                        gdnc_fold(gdnc_fold4(leaf + 8), gdnc_fold4(leaf + 12), 32), 64));
    for (int s = 0; s < 16; s++)
        if (fabsf(u.f[2 * s] - 32 * (s + 1)) > 1e-3f || fabsf(u.f[2 * s + 1] + 16 * (s + 1)) > 1e-3f) bad |= 64;
    printf("%s %d\n", bad ? "broken" : "hold", bad);
    return bad != 0;
}

int main(int argc, char ** argv) {
    if (argc > 1 && !strcmp(argv[1], "laws")) return laws();

    struct head h = { .D = 128, .T = 64, .K = 1 };
    const char * kind = "test";
    int upto = 1 << 30;  // judge outputs of so many tokens
    for (int i = 1; i < argc; i++) {
        char * v = strchr(argv[i], '=');
        *v++ = 0;
        if (!strcmp(argv[i], "D")) h.D = atoi(v);
        if (!strcmp(argv[i], "T")) h.T = atoi(v);
        if (!strcmp(argv[i], "K")) h.K = atoi(v);
        if (!strcmp(argv[i], "kda")) h.kda = atoi(v);
        if (!strcmp(argv[i], "kind")) kind = v;
        if (!strcmp(argv[i], "upto")) upto = atoi(v);
        if (!strcmp(argv[i], "seed")) for (int n = atoi(v); n--;) uni(0, 1);
    }
    const int D = h.D, T = h.T, G = h.kda ? D : 1;
    h.q = malloc(T * D * 4); h.k = malloc(T * D * 4); h.v = malloc(T * D * 4);
    h.g = malloc(T * G * 4); h.b = malloc(T * 4); h.s = malloc(D * D * 4);
    const bool is_test = !strcmp(kind, "test");
    for (int i = 0; i < T * D; i++) {
        h.q[i] = is_test ? uni(-1, 1) : gauss();
        h.k[i] = is_test ? uni(-1, 1) : gauss();
        h.v[i] = is_test ? uni(-0.3, 5) : gauss();
    }
    for (int i = 0; i < T * G; i++) h.g[i] = is_test ? uni(-20, -1e-4) : -exp(gauss() * 2 - 4);
    for (int i = 0; i < T; i++) h.b[i] = is_test ? uni(0, 1) : 1 / (1 + exp(-2 * gauss()));
    for (int i = 0; i < D * D; i++) h.s[i] = is_test ? uni(-1, 1) : 0.1 * gauss();
    if (!strcmp(kind, "outlier")) // channels of very different size
        for (int i = 0; i < D; i++) { const double m = exp(2.5 * gauss()); for (int t = 0; t < T; t++) { h.q[t * D + i] *= m; h.k[t * D + i] *= m; } }
    if (!strcmp(kind, "corr")) // keys that resemble each other
        for (int i = 0; i < D; i++) { const double m = 3 * gauss(); for (int t = 0; t < T; t++) { h.q[t * D + i] += m; h.k[t * D + i] += m; } }
    for (int t = 0; t < T; t++) { l2(h.q + t * D, D); l2(h.k + t * D, D); }
    if (!strcmp(kind, "zerogate")) for (int i = 0; i < T * G; i++) h.g[i] = 0;
    if (!strcmp(kind, "underflow")) for (int i = 0; i < T * G; i++) h.g[i] = i % 3 ? -100 : -1e4;
    if (!strcmp(kind, "mixgate")) for (int i = 0; i < T * G; i++) h.g[i] = uni(0, 1) < 0.2 ? -300 : -1e-3;
    if (!strcmp(kind, "posgate")) for (int i = 0; i < T * G; i++) h.g[i] = uni(-0.1, 0.1);
    if (!strcmp(kind, "hugekey")) for (int t = 0; t < T; t += 5) { for (int i = 0; i < D; i++) h.k[t * D + i] *= 1e6f; h.b[t] = 1e-12f; }
    if (!strcmp(kind, "hugeentry")) for (int t = 0; t < T; t += 3) { h.k[t * D + t % D] = 50; h.b[t] = 1.0f / 2500; }
    if (!strcmp(kind, "hugeall")) { for (int i = 0; i < T * D; i++) { h.v[i] *= 1e15f; } for (int i = 0; i < D * D; i++) h.s[i] *= 1e15f; }
    if (!strcmp(kind, "tinyall")) { for (int i = 0; i < T * D; i++) { h.v[i] *= 1e-15f; } for (int i = 0; i < D * D; i++) h.s[i] *= 1e-15f; }
    if (!strcmp(kind, "tinykeys")) for (int t = 0; t < T; t++) for (int i = 0; i < D; i++) { h.k[t * D + i] *= 1e-12f; }
    if (!strcmp(kind, "denormal")) for (int t = 0; t < T; t += 2) for (int i = 0; i < D; i++) { h.v[t * D + i] = 1e-40f; h.k[t * D + i] = i % 2 ? 1e-41f : 0; }
    if (!strcmp(kind, "flat")) { // products of fixed-point numbers at their largest, all of one sign
        const float c = 0x1.fffffep0f / sqrtf((float) D) * (D == 128 ? sqrtf(2.0f) : 1.0f) / 2;
        for (int i = 0; i < T * D; i++) h.k[i] = h.q[i] = c;
        for (int i = 0; i < D * D; i++) h.s[i] = 0x1.fffffep0f;
    }
    if (!strcmp(kind, "zeros")) { memset(h.k, 0, T * D * 4); memset(h.q, 0, T * D * 2); memset(h.s, 0, D * D * 4); }
    if (!strcmp(kind, "zerostate")) memset(h.s, 0, D * D * 4);
    if (!strcmp(kind, "widev")) for (int j = 0; j < D; j++) { const double m = exp(3 * gauss()); for (int t = 0; t < T; t++) h.v[t * D + j] *= m; }
    if (!strcmp(kind, "nan") || !strcmp(kind, "inf")) h.k[(T / 2) * D + 3] = !strcmp(kind, "nan") ? NAN : INFINITY;

    double * ro = malloc(sizeof(double) * T * D), * rs = malloc(sizeof(double) * h.K * D * D);
    float * o = malloc(T * D * 4), * s = malloc(sizeof(float) * h.K * D * D);
    for (int i = 0; i < T * D; i++) o[i] = NAN;
    for (int i = 0; i < h.K * D * D; i++) { s[i] = 7; rs[i] = 7; }
    reference(&h, ro, rs);
#ifdef TOKEN_ROUTE
    run_token(&h, o, s);
#else
    run(&h, o, s);
#endif
    // per token and per column, the worst
    double wt = 0, wj = 0;
    const int n_out = T < upto ? T : upto;
    for (int t = 0; t < n_out; t++) { const double e = nmse(o + t * D, ro + t * D, D); wt = e > wt ? e : wt; }
    for (int x = 0; x < h.K; x++)
        for (int j = 0; j < D; j++) { const double e = nmse(s + (x * D + j) * D, rs + (x * D + j) * D, D); wj = e > wj ? e : wj; }
    printf("out %.2e state %.2e token %.2e column %.2e", nmse(o, ro, n_out * D), nmse(s, rs, (size_t) h.K * D * D), wt, wj);
#define C(x) (unsigned long long) sim_self.n[SIM_##x]
    printf(" alu %llu mpy %llu perm %llu fp %llu ld %llu st %llu\n", C(hvx_alu), C(hvx_mpy), C(hvx_perm), C(hvx_fp), C(hvx_ld), C(hvx_st));
    if (getenv("STEPS")) {
        static const char * names[] = { "load", "quant", "products", "gram", "solve", "prepare", "update", "store" };
        for (int i = 0; i < 8; i++) printf("%s %llu ", names[i], step_ops[i]);
        printf("\n");
    }
    return 0;
}
