// IEEE forms and conversions, one element at a time in double precision. Also with the conversion
// of halves that needs no help of the host.
#include <math.h>

#include "hvx_check.h"

static uint64_t state = 88172645463325252ull;
static uint32_t rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 16);
}

static double hf_value(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}
static float sf_value(uint32_t w) {
    float f;
    memcpy(&f, &w, 4);
    return f;
}
static uint32_t sf_bits(double v) {
    const float f = (float) v;
    uint32_t    w;
    memcpy(&w, &f, 4);
    return isnan(v) ? 0x7fffffff : w;
}
// Nearest even, from an exact value.
static uint16_t hf_bits(double v) {
    if (isnan(v)) return 0x7fff;
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    v = fabs(v);
    if (v >= 65520) return sign | 0x7c00;
    if (v < ldexp(1, -14)) return sign | (uint16_t) nearbyint(ldexp(v, 24));
    const int e = ilogb(v);
    return sign | (uint16_t) (((e + 14) << 10) + (int) nearbyint(ldexp(v, 10 - e)));
}
static uint16_t bf_bits(uint32_t w) {
    if ((w & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (uint16_t) ((w + 0x7fff + (w >> 16 & 1)) >> 16);
}
static float bf_value(uint16_t b) { return sf_value((uint32_t) b << 16); }

static uint32_t edge(void) {
    static const uint32_t e[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x00800000, 0x7f7fffff,
                                 0x3f800000, 0x3c003c00, 0x7c007c00, 0xfc007c00, 0x7e000001, 0x80010400, 0x03ff83ff, 0x7bff7bff, 0x477fe000, 0x477ff000, 0x38800000, 0x33000000, 0x33000001, 0x4f000000, 0xcf000000, 0x4effffff, 0xcf000001};
    return rnd() & 3 ? rnd() : e[rnd() % (sizeof(e) / sizeof(*e))];
}
// Near each other, so that sums cancel and round.
static uint32_t near(uint32_t w) { return rnd() & 1 ? edge() : (w & 0xff800000) ^ (rnd() & 0x80ffffff); }
static int clamp(double v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : (int) v; }
// Halves as the integer conversions read them: the largest exponent is an ordinary one.
static double hf_plain(uint16_t h) {
    if ((h >> 10 & 31) != 31) return hf_value(h);
    const double v = ldexp(1024 + (h & 1023), 6);
    return h & 0x8000 ? -v : v;
}

static void round_trip(void) {
    vec a, r;
    for (uint32_t k = 0; k < 65536; k += 64) {
        for (uint32_t i = 0; i < 64; i++) a.h[i] = (uint16_t) (k + i);
        const hvx_w2 wide = hvx_widen_h(a.v);
        const hvx_f2 ours = hvx_from_hf_hvx_f2(wide), host = hvx_hf_values(a.v);
        r.v = hvx_narrow_w2(hvx_to_hf_hvx_f2(ours));
        const vec t = {hvx_hf_round(host)};
        for (int i = 0; i < 64; i++) {
            const double v = hf_value(a.h[i]);
            if (!isnan(v)) CHECK("half to single", ours[i] == v && host[i] == v, 1);
            CHECK("and back", r.h[i], isnan(v) ? 0x7fff : a.h[i]);
            CHECK("and back by the host", t.h[i], r.h[i]);
        }
    }
}

int main(void) {
    round_trip();
    for (int k = 0; k < 20000; k++) {
        vec a, b, c, d, lo, hi, r;
        for (int i = 0; i < 32; i++) {
            a.w[i] = edge();
            b.w[i] = near(a.w[i]);
            c.w[i] = near(a.w[i]);
            d.w[i] = edge();
        }
#define SF(form, expr)                                                                         \
    r.v = form;                                                                                \
    for (int i = 0; i < 32; i++) {                                                             \
        const double x = sf_value(a.w[i]), y = sf_value(b.w[i]);                               \
        CHECK(#form, r.w[i], sf_bits(expr));                                                   \
    }
        SF(Q6_Vsf_vadd_VsfVsf(a.v, b.v), x + y)
        SF(Q6_Vsf_vsub_VsfVsf(a.v, b.v), x - y)
        SF(Q6_Vsf_vmpy_VsfVsf(a.v, b.v), x * y)
#define HF(form, expr)                                                                         \
    r.v = form;                                                                                \
    for (int i = 0; i < 64; i++) {                                                             \
        const double x = hf_value(a.h[i]), y = hf_value(b.h[i]), z = hf_value(c.h[i]);         \
        (void) z;                                                                              \
        CHECK(#form, r.h[i], hf_bits(expr));                                                   \
    }
        HF(Q6_Vhf_vadd_VhfVhf(a.v, b.v), x + y)
        HF(Q6_Vhf_vsub_VhfVhf(a.v, b.v), x - y)
        HF(Q6_Vhf_vmpy_VhfVhf(a.v, b.v), x * y)
        HF(Q6_Vhf_vmpyacc_VhfVhfVhf(c.v, a.v, b.v), x * y + z)
#define WSF(form, value, expr)                                                                 \
    {                                                                                          \
        const HVX_VectorPair w_ = form;                                                        \
        lo.v = Q6_V_lo_W(w_);                                                                  \
        hi.v = Q6_V_hi_W(w_);                                                                  \
        for (int i = 0; i < 64; i++) {                                                         \
            const double x = value(a.h[i]), y = value(b.h[i]);                                 \
            const double z = sf_value(i % 2 ? d.w[i / 2] : c.w[i / 2]);                        \
            (void) z;                                                                          \
            CHECK(#form, (i % 2 ? hi : lo).w[i / 2], sf_bits(expr));                           \
        }                                                                                      \
    }
        WSF(Q6_Wsf_vadd_VhfVhf(a.v, b.v), hf_value, x + y)
        WSF(Q6_Wsf_vsub_VhfVhf(a.v, b.v), hf_value, x - y)
        WSF(Q6_Wsf_vmpy_VhfVhf(a.v, b.v), hf_value, x * y)
        WSF(Q6_Wsf_vmpyacc_WsfVhfVhf(Q6_W_vcombine_VV(d.v, c.v), a.v, b.v), hf_value, (float) z + (float) (x * y))
        WSF(Q6_Wsf_vadd_VbfVbf(a.v, b.v), bf_value, x + y)
        WSF(Q6_Wsf_vmpy_VbfVbf(a.v, b.v), bf_value, x * y)
        WSF(Q6_Wsf_vcvt_Vhf(a.v), hf_value, ((void) y, x))
        r.v = Q6_Vsf_vdmpy_VhfVhf(a.v, b.v);
        const vec r2 = {Q6_Vsf_vdmpyacc_VsfVhfVhf(c.v, a.v, b.v)};
        for (int i = 0; i < 32; i++) {
            const double p = hf_value(a.h[2 * i]) * hf_value(b.h[2 * i]);
            const double q = hf_value(a.h[2 * i + 1]) * hf_value(b.h[2 * i + 1]);
            CHECK("vdmpy", r.w[i], sf_bits(p + q));
            CHECK("vdmpyacc", r2.w[i], sf_bits(p + q + sf_value(c.w[i])));
        }
        r.v = Q6_Vhf_vcvt_VsfVsf(a.v, b.v);
        const vec bf = {Q6_Vbf_vcvt_VsfVsf(a.v, b.v)};
        for (int i = 0; i < 64; i++) {
            const uint32_t w = i % 2 ? b.w[i / 2] : a.w[i / 2];
            CHECK("vcvt sf hf", r.h[i], hf_bits(sf_value(w)));
            CHECK("vcvt sf bf", bf.h[i], bf_bits(w));
        }
        const vec h = {Q6_Vh_vcvt_Vhf(a.v)}, uh = {Q6_Vuh_vcvt_Vhf(a.v)}, t = {Q6_Vh_equals_Vhf(a.v)};
        const vec by = {Q6_Vb_vcvt_VhfVhf(a.v, b.v)}, ub = {Q6_Vub_vcvt_VhfVhf(a.v, b.v)};
        const vec fh = {Q6_Vhf_vcvt_Vh(a.v)}, fuh = {Q6_Vhf_vcvt_Vuh(a.v)}, eh = {Q6_Vhf_equals_Vh(a.v)};
        for (int i = 0; i < 64; i++) {
            const double x = hf_plain(a.h[i]), y = hf_plain(b.h[i]);
            CHECK("h=vcvt(hf)", h.h[i], (uint16_t) clamp(nearbyint(x), -32768, 32767));
            CHECK("uh=vcvt(hf)", uh.h[i], (uint16_t) clamp(nearbyint(x), 0, 65535));
            CHECK("h=hf", t.h[i], (uint16_t) clamp(trunc(x), -32768, 32767));
            CHECK("b=vcvt", by.b[2 * i], (uint8_t) clamp(nearbyint(x), -128, 127));
            CHECK("b=vcvt", by.b[2 * i + 1], (uint8_t) clamp(nearbyint(y), -128, 127));
            CHECK("ub=vcvt", ub.b[2 * i + 1], (uint8_t) clamp(nearbyint(y), 0, 255));
            CHECK("hf=vcvt(h)", fh.h[i], hf_bits((int16_t) a.h[i]));
            CHECK("hf=h", eh.h[i], hf_bits((int16_t) a.h[i]));
            CHECK("hf=vcvt(uh)", fuh.h[i], hf_bits(a.h[i]));
        }
        const HVX_VectorPair wb = Q6_Whf_vcvt_Vb(a.v), wub = Q6_Whf_vcvt_Vub(a.v);
        const vec bl = {Q6_V_lo_W(wb)}, bh = {Q6_V_hi_W(wb)}, ul = {Q6_V_lo_W(wub)}, uhi = {Q6_V_hi_W(wub)};
        for (int i = 0; i < 64; i++) {
            CHECK("hf=vcvt(b)", bl.h[i], hf_bits((int8_t) a.b[2 * i]));
            CHECK("hf=vcvt(b)", bh.h[i], hf_bits((int8_t) a.b[2 * i + 1]));
            CHECK("hf=vcvt(ub)", ul.h[i], hf_bits(a.b[2 * i]));
            CHECK("hf=vcvt(ub)", uhi.h[i], hf_bits(a.b[2 * i + 1]));
        }
        r.v = Q6_Vw_equals_Vsf(a.v);
        const vec s = {Q6_Vsf_equals_Vw(b.v)};
        for (int i = 0; i < 32; i++) {
            const double x = (a.w[i] & 0x7f800000) == 0x7f800000 ? (a.w[i] >> 31 ? -1e30 : 1e30) : sf_value(a.w[i]);
            CHECK("w=sf", r.w[i], (uint32_t) (x <= -0x1p31 ? INT32_MIN : x >= 0x1p31 ? INT32_MAX : (int32_t) x));
            CHECK("sf=w", s.w[i], sf_bits((int32_t) b.w[i]));
        }
        if (failed) break;
    }
    return failed != 0;
}
