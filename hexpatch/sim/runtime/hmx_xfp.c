// FP16 arithmetic. A number is s * 2^(e - F), s in two's complement, without a hidden bit.
#include <math.h>
#include <string.h>

#include "hmx.h"

// Right shift that keeps whether anything was lost in the last bit.
static int64_t srs(int64_t x, int n) {
    n = n > 63 ? 63 : n;
    return (x >> n) | (((uint64_t) x & ((UINT64_C(1) << n) - 1)) != 0);
}

// Places of x below the top one of `bits` that repeat the sign.
static int spare(int64_t x, int bits) {
    const uint64_t m = (uint64_t) (x < 0 ? ~x : x);
    return bits - 1 - (m ? 64 - __builtin_clzll(m) : 0);
}

struct num {
    int64_t s;
    int     e;
};

// 1.f with `extra` more mantissa bits below: F = 9 + extra bits, e = E - 16 (E = 0 as E = 1, without
// the hidden bit). Exponent 31 is a number like any other.
static struct num number(uint16_t v, int extra, unsigned more) {
    const int E    = v >> 10 & 31;
    int64_t   s    = (int64_t) (v & 0x3FF) << extra | more;
    struct num out = { s + (E ? INT64_C(1024) << extra : 0), E - 16 + (E == 0) };
    if (v & 0x8000) {
        out.s = -out.s;
    }
    return out;
}

struct hmx_operand hmx_operand(uint16_t v, bool bf16) {
    struct num x;
    if (bf16) {  // 8 exponent and 7 mantissa bits
        const int E = v >> 7 & 255;
        x.s         = ((v & 0x7F) + (E ? 128 : 0)) * 8;
        x.e         = E - 128 + (E == 0);
        x.s         = v & 0x8000 ? -x.s : x.s;
    } else {
        x = number(v, 0, 0);
    }
    while (x.s != 0 && x.s > -1024 && x.s < 1024) {  // denormals are shifted up
        x.s *= 2;
        x.e--;
    }
    struct hmx_operand out = { (int16_t) x.s, (int16_t) x.e, 0 };
    if (hmx_sw.policy != HMX_ORDINARY && hmx_special(v, bf16)) {
        out.flags = v & (bf16 ? 0x7F : 0x3FF) ? HMX_NAN : v & 0x8000 ? HMX_NINF : HMX_PINF;
    }
    return out;
}

double hmx_value(uint16_t v, bool bf16) {
    const int    E    = v >> 7 & 255;  // of a bf16
    const double sign = v & 0x8000 ? -1.0 : 1.0;
    if (hmx_sw.policy != HMX_ORDINARY && hmx_special(v, bf16)) {
        return v & (bf16 ? 0x7F : 0x3FF) ? NAN : sign * INFINITY;
    }
    // the same bits in a wider float, times the difference of the exponents' bias
    const uint32_t bits = (uint32_t) (v & 0x8000) << 16 | (uint32_t) (v & 0x7FFF) << 13;
    float          f;
    memcpy(&f, &bits, sizeof f);
    return bf16 ? sign * ldexp((v & 0x7F) + (E ? 128 : 0), (E ? E : 1) - 134) : f * 0x1p112;
}

// Leading sign anticipation on 31 bits: the spare sign bits of (a + b) >> 1 in 30 bits, or one less.
int hmx_xfp_lza(int32_t a, int32_t b) {
    const uint32_t p = (uint32_t) (a ^ b), g = (uint32_t) (a & b), z = ~(uint32_t) (a | b);
    const uint32_t m  = 0x7FFFFFFF;
    const uint32_t Z  = (p ^ ~(z << 1)) & m;
    const uint32_t O  = (p ^ ~(g << 1)) & m;
    const int      nz = __builtin_clz((Z >> 30 ? ~Z & m : Z) << 1 | 1) - 1;
    const int      no = __builtin_clz((O >> 30 ? ~O & m : O) << 1 | 1) - 1;
    return z >> 30 & 1 ? nz : g >> 30 & 1 ? no : nz > no ? nz : no;
}

// What Inf and NaN in a product leave in the accumulator.
static unsigned special_product(struct hmx_operand a, struct hmx_operand w) {
    if (a.s == 0 || w.s == 0) {
        return hmx_sw.policy == HMX_NAN0 ? 0 : HMX_NAN;
    }
    return (a.flags | w.flags) & HMX_NAN ? HMX_NAN : (a.s < 0) != (w.s < 0) ? HMX_NINF : HMX_PINF;
}

// Products and accumulator are aligned to the largest exponent with sticky shifts; the sum is
// halved and then normalised by at most three places.
void hmx_xfp_group(struct hmx_xfp * acc, const struct hmx_operand * a, const struct hmx_operand * w) {
    const int emin = hmx_xfp_emin();
    int64_t   s[8], S = 0;
    int       e[8], E = emin;
    bool      az = true, wz = true;
    for (int i = 0; i < 8; i++) {
        az   = az && a[i].s == 0;
        wz   = wz && w[i].s == 0;
        s[i] = a[i].s * w[i].s;  // F = 18
        e[i] = a[i].e + w[i].e;
        if (a[i].flags | w[i].flags) {
            acc->flags |= (uint8_t) special_product(a[i], w[i]);
            s[i] = 0;
        } else if (s[i] && e[i] > E) {
            E = e[i];
        }
    }
    if (hmx_sw.policy == HMX_ORDINARY && (az || wz)) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        if (s[i]) {
            S += srs(16 * s[i], E - e[i]);  // F = 22
        }
    }
    int           top = acc->e > E ? acc->e : E;
    const int32_t x   = (int32_t) srs(acc->s, top - acc->e);
    const int32_t y   = (int32_t) srs(S, top - E);
    int           n   = hmx_xfp_lza(x, y);
    top += 1;
    n      = n > 3 ? 3 : n;
    n      = top - n < emin ? top - emin : n;
    acc->s = (int32_t) ((uint32_t) srs((int64_t) x + y, 1) << n);
    acc->e = (int16_t) (top - n);
    if (acc->e >= -emin) {
        acc->flags |= acc->s < 0 ? HMX_NINF : HMX_PINF;
    }
}

// The nearest below with 30 bits, sticky: what follows rounds it as it would round v.
struct hmx_xfp hmx_xfp_from(double v) {
    struct hmx_xfp out = { 0, (int16_t) hmx_xfp_emin(), 0 };
    uint64_t       bits;
    memcpy(&bits, &v, sizeof bits);
    const int E = bits >> 52 & 2047;
    if (E == 2047) {
        out.flags = isnan(v) ? HMX_NAN : v > 0 ? HMX_PINF : HMX_NINF;
    } else if (E != 0) {  // sums of products are never that small
        const int64_t s = (int64_t) ((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52);
        out.s           = (int32_t) srs(v < 0 ? -s : s, 24);
        out.e           = (int16_t) (E - 1029);  // s * 2^(E - 1075) = (s >> 24) * 2^(e - 22)
    }
    return out;
}

double hmx_xfp_to(struct hmx_xfp v) {
    if (v.flags & HMX_NAN || (v.flags & (HMX_PINF | HMX_NINF)) == (HMX_PINF | HMX_NINF)) {
        return NAN;
    }
    return v.flags & HMX_PINF ? INFINITY : v.flags & HMX_NINF ? -INFINITY : ldexp(v.s, v.e - 22);
}

// -- convert ------------------------------------------------------------------------------------

static uint32_t overflow(bool neg, struct hmx_fcvt how, bool nan) {
    if (how.f8) {
        return hmx_sw.policy != HMX_ORDINARY && (nan || !how.maxnorm) ? 0x80 : neg ? 0xFF : 0x7F;
    }
    if (nan) {
        return how.clip ? 0 : 0xFFFFF;  // USR[21] clear
    }
    uint32_t top = 0x7FFF;
    if (hmx_sw.policy != HMX_ORDINARY) {
        top = how.maxnorm ? 0x7BFF : 0x7C00;
    }
    return (uint32_t) neg << 19 | top << 4 | (top == 0x7FFF && how.wide ? 15 : 0);
}

// s * 2^q rounded to nearest even: fp16 (5 exponent bits, bias 15) with 4 more mantissa bits which
// are zero unless `wide`, or e4m3 (bias 7, no infinity, 0x80 is NaN). Exponent 31 is ordinary
// unless it means Inf.
static uint32_t encode(int64_t s, int q, struct hmx_fcvt how) {
    const bool neg = s < 0;
    uint64_t   m   = (uint64_t) (neg ? -s : s);
    if (m == 0 || (neg && how.clip)) {
        return 0;
    }
    const int bits = how.f8 ? 3 : how.wide ? 14 : 10;
    const int emin = how.f8 ? -6 : -14;
    const int top  = 63 - __builtin_clzll(m) + q;
    const int ex   = top > emin ? top : emin;
    const int drop = ex - bits - q;  // bits of m below the last place
    if (drop > 62) {
        m = 0;
    } else if (drop > 0) {
        const uint64_t half = UINT64_C(1) << (drop - 1), rest = m & (2 * half - 1);
        m >>= drop;
        m += rest > half || (rest == half && (m & 1));
    } else {
        m <<= -drop;
    }
    m += (uint64_t) (ex - emin) << bits;  // the hidden bit is one more
    if (how.f8) {
        return m > 0x7F ? overflow(neg, how, false) : neg && m ? (uint32_t) m | 0x80 : (uint32_t) m;
    }
    const uint64_t end = (uint64_t) (hmx_sw.policy == HMX_ORDINARY ? 32 : 31) << bits;
    return m >= end ? overflow(neg, how, false)
                    : (uint32_t) neg << 19 | (uint32_t) m << (14 - bits);
}

// Bias words: scale 15:0, output bias 31:16, their 4 extra mantissa bits 35:32 and 39:36, shape 41:40
// (1 min(0, x), 2 max(0, x), 3 abs), negate 42, extra bits 47:43 of the accumulator bias 63:48.
static uint32_t special_convert(struct hmx_xfp acc, uint64_t b, struct hmx_fcvt how) {
    double v = hmx_xfp_to(acc) + hmx_value((uint16_t) (b >> 48), false);
    switch (b >> 40 & 3) {
        case 1: v = v > 0 ? 0 : v; break;
        case 2: v = v < 0 ? 0 : v; break;
        case 3: v = fabs(v); break;
        default: break;
    }
    v = (b >> 42 & 1 ? -v : v) * hmx_value((uint16_t) b, false);
    v += hmx_value((uint16_t) (b >> 16), false);
    if (isnan(v)) {
        return overflow(false, how, true);
    }
    if (isinf(v)) {
        return v < 0 && how.clip ? 0 : overflow(v < 0, how, false);
    }
    const struct hmx_xfp x = hmx_xfp_from(v);
    return encode(x.s, x.e - 22, how);
}

uint32_t hmx_fp_convert(struct hmx_xfp acc, uint64_t b, struct hmx_fcvt how) {
    if (hmx_sw.policy != HMX_ORDINARY
        && (acc.flags || hmx_special((uint16_t) b, false) || hmx_special((uint16_t) (b >> 16), false)
            || hmx_special((uint16_t) (b >> 48), false))) {
        return special_convert(acc, b, how);
    }
    if (acc.flags) {  // the accumulator's exponent overflowed
        return overflow(!(acc.flags & HMX_PINF), how, false);
    }
    // v = accumulator + its bias, F = 22
    struct num v = { acc.s, acc.e }, ab = number((uint16_t) (b >> 48), 5, b >> 43 & 31);
    ab.s *= 256;  // F = 14 -> 22
    if (ab.s) {
        const int top = !v.s || ab.e > v.e ? ab.e : v.e;
        v.s           = (v.s ? srs(v.s, top - v.e) : 0) + srs(ab.s, top - ab.e);
        v.e           = top;
    }
    // 15 significant bits, F = 13
    const int n = v.s ? spare(v.s, 31) : 0;
    v.s         = srs(v.s * (INT64_C(1) << n), 15);
    v.e += 6 - n;

    const unsigned shape = b >> 40 & 3;
    if ((shape == 1 && v.s > 0) || (shape == 2 && v.s < 0)) {
        v.s = 0;
    }
    if ((b >> 42 & 1) != (shape == 3 && v.s < 0)) {
        v.s = -v.s;
    }
    const struct num scale = number((uint16_t) b, 4, b >> 32 & 15);  // F = 13
    struct num       r     = { v.s * scale.s, v.e + scale.e }, ob = number((uint16_t) (b >> 16), 4, b >> 36 & 15);
    ob.s *= 1 << 13;  // F = 26
    if (ob.s) {
        const int top = !r.s || ob.e > r.e ? ob.e : r.e;
        r.s           = (r.s ? srs(r.s, top - r.e) : 0) + srs(ob.s, top - ob.e);
        r.e           = top;
    }
    return encode(r.s, r.e - 26, how);
}
