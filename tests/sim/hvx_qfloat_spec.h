// The rules of qfloat before v79, written down plainly, one element at a time in double precision.
//
// qf32: (2 S + 1) 2^-23 2^(E - 127), S 24 bits signed above E's 8. qf16: 2^-10, 2^(E - 15), 11 and
// 5 bits. p = 23 or 10 fraction bits, emax = 128 or 16, emin = 1 - emax.
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    double sig;  // exact
    int    e;
    int    neg;  // sign bit of an IEEE operand
} num;

typedef struct {
    int p, emax;
} fmt;
static const fmt QF32 = {23, 128}, QF16 = {10, 16};

// -- operands -----------------------------------------------------------------------------------

static num from_qf32(uint32_t v) {
    return (num) {ldexp(2.0 * ((int32_t) v >> 8) + 1, -23), (int) (v & 255) - 127, 0};
}
static num from_qf16(uint16_t v) {
    return (num) {ldexp(2.0 * ((int16_t) v >> 5) + 1, -10), (int) (v & 31) - 15, 0};
}
// IEEE operands: magnitude and sign. The largest exponent is an ordinary one; subnormals have the
// smallest, with their value.
static num from_ieee(uint32_t v, int fbits, int ebits) {
    const int    bias = (1 << (ebits - 1)) - 1;
    const int    e = (int) (v >> fbits) & ((1 << ebits) - 1);
    const double f = ldexp(v & ((1u << fbits) - 1), -fbits);
    return (num) {e ? 1 + f : 2 * f, e - bias, (int) (v >> (fbits + ebits)) & 1};
}
static num from_sf(uint32_t v) { return from_ieee(v, 23, 8); }
static num from_hf(uint16_t v) { return from_ieee(v, 10, 5); }
static num with_sign(num n) {
    if (n.neg) n.sig = -n.sig;
    return n;
}
static num negated(num n) {
    n.sig = -n.sig;
    return n;
}

// -- rounding -------------------------------------------------------------------------------------

// sig 2^e, plus something of the sign `low` that is too small for sig; gives S and E.
static void round_qf(double sig, int e, int low, fmt f, int32_t * S, int32_t * E) {
    const int emin = 1 - f.emax, top = e == f.emax;
    if (sig == 0 && low == 0) {
        *S = *E = 0;
        return;
    }
    const int  negative = sig < 0;
    const int  ovf = fabs(sig) >= 2 && sig != -2;
    const int  halved = ovf || e == emin - 1;
    const int  below = e < emin - 1;
    if (halved) {
        sig /= 2;
        e += 1;
    }
    const double R = ldexp(sig, f.p), q = floor(R / 4), r = R - 4 * q;
    double       odd;  // the result's 2 S + 1
    if (r == 0 && low < 0) {
        odd = 4 * q - 1;
    } else if (halved || top) {
        odd = r < 2 || (r == 2 && low <= 0) ? 4 * q + 1 : 4 * q + 3;
    } else if (r < 1.5 || (r == 1.5 && low <= 0)) {
        odd = 4 * q + 1;
    } else if (r < 2.5 || (r == 2.5 && low <= 0)) {
        odd = 2 * q + 1;
        e += 1;
    } else {
        odd = 4 * q + 3;
    }
    *S = (int32_t) ((odd - 1) / 2);
    *E = e + f.emax - 1;
    if (e > f.emax) {
        *E = 2 * f.emax - 1;
        *S = negative ? -(1 << f.p) : (1 << f.p) - 1;
    } else if (below) {
        *E = 0;
        *S = negative ? -1 : 0;
    }
}

static uint32_t pack(int32_t S, int32_t E, fmt f) {
    return f.p == 23 ? (uint32_t) S << 8 | (uint32_t) E : ((uint32_t) S << 5 | (uint32_t) E) & 0xffff;
}

// -- operations -------------------------------------------------------------------------------------

static int ilog(double sig, fmt f) { return sig == 0 ? -(f.p + 1) : ilogb(sig); }

static uint32_t sum(num a, num b, int complement, fmt f) {
    const int e = a.e > b.e ? fmax(b.e, a.e + ilog(a.sig, f)) : fmax(a.e, b.e + ilog(b.sig, f));
    const double x = ldexp(a.sig, a.e - e), y = ldexp(b.sig, b.e - e);
    volatile double s = x + y, back = s - x, rest = s - back;
    const double err = (x - rest) + (y - back);
    int32_t S, E;
    round_qf(s, e, (err > 0) - (err < 0), f, &S, &E);
    return pack(complement ? ~S : S, E, f);
}
// Two IEEE operands, both negative: the sum of the magnitudes, then the one's complement of S.
static uint32_t sum_ieee(num a, num b, fmt f) {
    return a.neg && b.neg ? sum(a, b, 1, f) : sum(with_sign(a), with_sign(b), 0, f);
}
static uint32_t product(num a, num b, int complement, fmt f) {
    int32_t S, E;
    round_qf(a.sig * b.sig, a.e + b.e, 0, f, &S, &E);
    return pack(complement ? ~S : S, E, f);
}
static uint32_t product_ieee(num a, num b, fmt f) { return product(a, b, a.neg != b.neg, f); }

// -- conversions --------------------------------------------------------------------------------------

// Nearest even, the largest exponent an ordinary one, too large = all ones.
static uint32_t to_ieee(num n, int fbits, int ebits) {
    const int      bias = (1 << (ebits - 1)) - 1;
    const uint32_t sign = signbit(n.sig) ? 1u << (fbits + ebits) : 0;
    const double   v = fabs(n.sig) * 1.0;
    const int      lg = ilogb(v) + n.e;
    const int      unit = (lg < 1 - bias ? 1 - bias : lg) - fbits;  // the last place's exponent
    const double   m = nearbyint(ldexp(v, n.e - unit));
    const uint64_t bits = (uint64_t) m + (lg < 1 - bias ? 0 : (uint64_t) (lg + bias - 1) << fbits);
    const uint32_t max = (1u << (fbits + ebits)) - 1;
    return sign | (bits > max ? max : (uint32_t) bits);
}
