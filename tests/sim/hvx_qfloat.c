// The fast forms against the plain rules, bit for bit; prints what differs and how often one
// operation and a conversion differ from IEEE.
#include <hexagon_types.h>
#include <stdio.h>
#include <stdlib.h>

#include "hvx_qfloat_spec.h"

__thread struct sim_thread sim_self;

static uint64_t state = 88172645463325252ull;
static uint32_t rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 16);
}

// Exponents close together, or anything; significands with long runs of zeros or ones, or anything.
static uint32_t exponent_near;
static uint32_t pick(int sbits, int ebits, int ieee) {
    uint32_t s = rnd(), e = rnd();
    switch (rnd() & 7) {
    case 0: s = (rnd() & 1 ? -1u : 0) << (rnd() & 31); break;
    case 1: s = (rnd() & 1 ? -1u : 0) + (rnd() & 3) - 1; break;
    case 2: s = (uint32_t) ((int32_t) s >> (rnd() & 31)); break;
    case 3: s = 1u << (rnd() & 31); break;
    default: break;
    }
    switch (rnd() & 7) {
    case 0: break;
    case 1: e = rnd() & 1 ? 0 : -1u; break;
    case 2: e = rnd() & 1 ? 1 : -2u; break;
    default: e = exponent_near + (rnd() & (rnd() & 1 ? 3 : 31)) - 2; break;
    }
    s &= (1u << sbits) - 1;
    e &= (1u << ebits) - 1;
    if (!ieee) return s << ebits | e;
    const int fbits = sbits - 1;  // sign, exponent, fraction
    return (s >> fbits) << (fbits + ebits) | e << fbits | (s & ((1u << fbits) - 1));
}
static uint32_t pick_qf32(void) { return pick(24, 8, 0); }
static uint32_t pick_sf(void) { return pick(24, 8, 1); }
static uint32_t pick_qf16(void) { return pick(11, 5, 0); }
static uint32_t pick_hf(void) { return pick(11, 5, 1); }

typedef union {
    HVX_Vector v;
    uint32_t   w[32];
    uint16_t   h[64];
} vec;

static long wrong;
static void differ(const char * name, uint32_t a, uint32_t b, uint32_t got, uint32_t want) {
    if (wrong++ < 20) printf("%s %08x %08x: %08x, by the rules %08x\n", name, a, b, got, want);
}

#define WORDS(name, pa, pb, rule)                                                              \
    static void test_##name(long lanes) {                                                      \
        for (long k = 0; k < lanes; k += 32) {                                                 \
            vec a, b, r;                                                                       \
            exponent_near = rnd();                                                             \
            for (int i = 0; i < 32; i++) a.w[i] = pick_##pa(), b.w[i] = pick_##pb();           \
            r.v = name(a.v, b.v);                                                              \
            for (int i = 0; i < 32; i++) {                                                     \
                const num      x = from_##pa(a.w[i]), y = from_##pb(b.w[i]);                   \
                const uint32_t want = rule;                                                    \
                if (r.w[i] != want) differ(#name, a.w[i], b.w[i], r.w[i], want);               \
            }                                                                                  \
        }                                                                                      \
    }
WORDS(Q6_Vqf32_vadd_Vqf32Vqf32, qf32, qf32, sum(x, y, 0, QF32))
WORDS(Q6_Vqf32_vsub_Vqf32Vqf32, qf32, qf32, sum(x, negated(y), 0, QF32))
WORDS(Q6_Vqf32_vadd_Vqf32Vsf, qf32, sf, sum(x, with_sign(y), 0, QF32))
WORDS(Q6_Vqf32_vsub_Vqf32Vsf, qf32, sf, sum(x, negated(with_sign(y)), 0, QF32))
WORDS(Q6_Vqf32_vsub_VsfVqf32, sf, qf32, sum(with_sign(x), negated(y), 0, QF32))
WORDS(Q6_Vqf32_vadd_VsfVsf, sf, sf, sum_ieee(x, y, QF32))
WORDS(Q6_Vqf32_vsub_VsfVsf, sf, sf, sum_ieee(x, ((num) {y.sig, y.e, !y.neg}), QF32))
WORDS(Q6_Vqf32_vmpy_Vqf32Vqf32, qf32, qf32, product(x, y, 0, QF32))
WORDS(Q6_Vqf32_vmpy_VsfVsf, sf, sf, product_ieee(x, y, QF32))

#define HALVES(name, pa, pb, rule)                                                             \
    static void test_##name(long lanes) {                                                      \
        for (long k = 0; k < lanes; k += 64) {                                                 \
            vec a, b, r;                                                                       \
            exponent_near = rnd();                                                             \
            for (int i = 0; i < 64; i++)                                                       \
                a.h[i] = (uint16_t) pick_##pa(), b.h[i] = (uint16_t) pick_##pb();              \
            r.v = name(a.v, b.v);                                                              \
            for (int i = 0; i < 64; i++) {                                                     \
                const num      x = from_##pa(a.h[i]), y = from_##pb(b.h[i]);                   \
                const uint32_t want = rule;                                                    \
                if (r.h[i] != want) differ(#name, a.h[i], b.h[i], r.h[i], want);               \
            }                                                                                  \
        }                                                                                      \
    }
HALVES(Q6_Vqf16_vadd_Vqf16Vqf16, qf16, qf16, sum(x, y, 0, QF16))
HALVES(Q6_Vqf16_vsub_Vqf16Vqf16, qf16, qf16, sum(x, negated(y), 0, QF16))
HALVES(Q6_Vqf16_vadd_Vqf16Vhf, qf16, hf, sum(x, with_sign(y), 0, QF16))
HALVES(Q6_Vqf16_vsub_Vqf16Vhf, qf16, hf, sum(x, negated(with_sign(y)), 0, QF16))
HALVES(Q6_Vqf16_vsub_VhfVqf16, hf, qf16, sum(with_sign(x), negated(y), 0, QF16))
HALVES(Q6_Vqf16_vadd_VhfVhf, hf, hf, sum_ieee(x, y, QF16))
HALVES(Q6_Vqf16_vsub_VhfVhf, hf, hf, sum_ieee(x, ((num) {y.sig, y.e, !y.neg}), QF16))
HALVES(Q6_Vqf16_vmpy_Vqf16Vqf16, qf16, qf16, product(x, y, 0, QF16))
HALVES(Q6_Vqf16_vmpy_VhfVhf, hf, hf, product_ieee(x, y, QF16))
HALVES(Q6_Vqf16_vmpy_Vqf16Vhf, qf16, hf, product(x, with_sign(y), 0, QF16))

// Halves to qf32: the even ones to the low, the odd ones to the high vector.
#define WIDE(name, pa, pb, rule)                                                               \
    static void test_##name(long lanes) {                                                      \
        for (long k = 0; k < lanes; k += 64) {                                                 \
            vec a, b, r[2];                                                                    \
            exponent_near = rnd();                                                             \
            for (int i = 0; i < 64; i++)                                                       \
                a.h[i] = (uint16_t) pick_##pa(), b.h[i] = (uint16_t) pick_##pb();              \
            const HVX_VectorPair w = name(a.v, b.v);                                           \
            r[0].v = Q6_V_lo_W(w);                                                             \
            r[1].v = Q6_V_hi_W(w);                                                             \
            for (int i = 0; i < 64; i++) {                                                     \
                const num      x = from_##pa(a.h[i]), y = from_##pb(b.h[i]);                   \
                const uint32_t want = rule, got = r[i % 2].w[i / 2];                           \
                if (got != want) differ(#name, a.h[i], b.h[i], got, want);                     \
            }                                                                                  \
        }                                                                                      \
    }
WIDE(Q6_Wqf32_vmpy_VhfVhf, hf, hf, product_ieee(x, y, QF32))
WIDE(Q6_Wqf32_vmpy_Vqf16Vqf16, qf16, qf16, product(x, y, 0, QF32))
WIDE(Q6_Wqf32_vmpy_Vqf16Vhf, qf16, hf, product(x, with_sign(y), 0, QF32))

static void test_conversions(long lanes) {
    for (long k = 0; k < lanes; k += 32) {
        vec a, b, s, h;
        exponent_near = k & 1 ? rnd() : 127;
        for (int i = 0; i < 32; i++) a.w[i] = pick_qf32(), b.w[i] = pick_qf32();
        s.v = Q6_Vsf_equals_Vqf32(a.v);
        h.v = Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(b.v, a.v));
        for (int i = 0; i < 32; i++) {
            const num      x = from_qf32(a.w[i]), y = from_qf32(b.w[i]);
            const uint32_t sf = to_ieee(x, 23, 8), lo = to_ieee(x, 10, 5), hi = to_ieee(y, 10, 5);
            if (s.w[i] != sf) differ("sf", a.w[i], 0, s.w[i], sf);
            if (h.h[2 * i] != lo) differ("hf lo", a.w[i], 0, h.h[2 * i], lo);
            if (h.h[2 * i + 1] != hi) differ("hf hi", b.w[i], 0, h.h[2 * i + 1], hi);
        }
    }
    for (uint32_t k = 0; k < 65536; k += 64) {
        vec a, h;
        for (uint32_t i = 0; i < 64; i++) a.h[i] = (uint16_t) (k + i);
        h.v = Q6_Vhf_equals_Vqf16(a.v);
        for (int i = 0; i < 64; i++) {
            const uint32_t want = to_ieee(from_qf16(a.h[i]), 10, 5);
            if (h.h[i] != want) differ("qf16", a.h[i], 0, h.h[i], want);
        }
    }
}

static float normal(void) {
    const double u = (rnd() + 1.0) * 0x1p-32, t = rnd() * 0x1p-32 * 6.283185307179586;
    return (float) (sqrt(-2 * log(u)) * cos(t));
}

// Of so many pairs of normally distributed numbers, how many results are not the IEEE ones.
static void statistics(long lanes) {
    long mul = 0, add = 0, far = 0;
    for (long k = 0; k < lanes; k += 32) {
        union { vec u; float f[32]; } a, b, m, s;
        for (int i = 0; i < 32; i++) a.f[i] = normal(), b.f[i] = normal();
        m.u.v = Q6_Vsf_equals_Vqf32(Q6_Vqf32_vmpy_VsfVsf(a.u.v, b.u.v));
        s.u.v = Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_VsfVsf(a.u.v, b.u.v));
        for (int i = 0; i < 32; i++) {
            const float p = a.f[i] * b.f[i], t = a.f[i] + b.f[i];
            mul += m.f[i] != p;
            add += s.f[i] != t;
            far += fabsf(m.f[i] - p) > fabsf(p) * 0x1p-22f;
        }
    }
    printf("mul %.4f add %.4f far %ld\n", (double) mul / (double) lanes, (double) add / (double) lanes, far);
}

int main(int argc, char ** argv) {
    const long n = argc > 1 ? atol(argv[1]) : 1 << 20;
#define RUN(name) test_##name(n)
    RUN(Q6_Vqf32_vadd_Vqf32Vqf32);
    RUN(Q6_Vqf32_vsub_Vqf32Vqf32);
    RUN(Q6_Vqf32_vadd_Vqf32Vsf);
    RUN(Q6_Vqf32_vsub_Vqf32Vsf);
    RUN(Q6_Vqf32_vsub_VsfVqf32);
    RUN(Q6_Vqf32_vadd_VsfVsf);
    RUN(Q6_Vqf32_vsub_VsfVsf);
    RUN(Q6_Vqf32_vmpy_Vqf32Vqf32);
    RUN(Q6_Vqf32_vmpy_VsfVsf);
    RUN(Q6_Vqf16_vadd_Vqf16Vqf16);
    RUN(Q6_Vqf16_vsub_Vqf16Vqf16);
    RUN(Q6_Vqf16_vadd_Vqf16Vhf);
    RUN(Q6_Vqf16_vsub_Vqf16Vhf);
    RUN(Q6_Vqf16_vsub_VhfVqf16);
    RUN(Q6_Vqf16_vadd_VhfVhf);
    RUN(Q6_Vqf16_vsub_VhfVhf);
    RUN(Q6_Vqf16_vmpy_Vqf16Vqf16);
    RUN(Q6_Vqf16_vmpy_VhfVhf);
    RUN(Q6_Vqf16_vmpy_Vqf16Vhf);
    RUN(Q6_Wqf32_vmpy_VhfVhf);
    RUN(Q6_Wqf32_vmpy_Vqf16Vqf16);
    RUN(Q6_Wqf32_vmpy_Vqf16Vhf);
    test_conversions(n);
    statistics(n);
    printf("%ld wrong\n", wrong);
    return wrong != 0;
}
