// Converts and stores of the forms software uses, in vectors. Results equal those of hmx_cvt.c,
// hmx_xfp.c and hmx_store.c bit for bit; where that is not certain these step aside.
#include <string.h>

#include "hmx.h"

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
// Two of each: for any machine and for AVX2.
#define BOTH(type, name, params, args)                           \
    static type name##_plain params { return name##_of args; }   \
    AVX2 static type name##_avx2 params { return name##_of args; } \
    static type name params { return hmx_avx2() ? name##_avx2 args : name##_plain args; }
#else
#define BOTH(type, name, params, args) \
    static type name params { return name##_of args; }
#endif

typedef uint16_t v8uh __attribute__((vector_size(16), may_alias));
typedef int32_t  v8w __attribute__((vector_size(32), may_alias));
typedef uint32_t v8u __attribute__((vector_size(32), may_alias));
typedef uint32_t v4u __attribute__((vector_size(16), may_alias));
typedef int64_t  v4l __attribute__((vector_size(32), may_alias));
typedef double   v4d __attribute__((vector_size(32), may_alias));

// -- integers -----------------------------------------------------------------------------------

// 32 bits are enough unless something overflows, which is noted in the signs of *over.
INLINE v8w plus(v8w a, v8w b, v8w * over) {
    const v8w sum = (v8w) ((v8u) a + (v8u) b);
    *over |= (a ^ sum) & (b ^ sum);
    return sum;
}

INLINE v8w value(const struct hmx * h, int s, int c, v8w * over) {
    const v8u hi = *(const v8u *) &h->hi[h->iset][s][c];
    return plus((v8w) (hi << 4), *(const v8w *) &h->lo[h->iset][s][c], over);
}

struct columns {
    v8w right, left, high, scale, bias, add;  // of 8 channels
};

INLINE v8w scaled(v8w B, const struct columns * k, int F, int bits, bool sat) {
    const v8w neg = B >> 31, all = (v8w) ((v8u) (B >> k->right) << (v8u) k->left);
    const v8w b33 = (v8w) ((B >> k->high) != neg) ^ neg;
    const v8w R   = (all & ((2 << F) - 1)) + (b33 & (2 << F)) - (neg & (4 << F));
    const v8w y   = (R >> 11) * k->scale + ((R & 2047) * k->scale >> 11) + k->add;
    const int top = (1 << bits) - 1;
    if (!sat) {
        return y & top;
    }
    const v8w low = y & ~(y >> 31), big = (v8w) (low > top);
    return (low & ~big) | (big & top);
}

INLINE bool convert_int_of(const struct hmx * h, struct hmx_age * a, const struct hmx_icvt * how) {
    const uint32_t * bias = h->bias[how->group];
    const bool       uh   = how->shape == HMX_UH21;
    const int        F    = uh ? 24 : 12;
    v8w              over = { 0 };
    for (int c = 0; c < HMX_COLS; c += 8) {
        struct columns k;
        for (int i = 0; i < 8; i++) {
            const uint32_t w   = bias[c + i];
            const int      exp = w >> 10 & 31, sh = 32 - F - exp;
            k.right[i] = sh > 0 ? sh : 0;
            k.left[i]  = sh < 0 ? -sh : 0;
            k.high[i]  = exp < 2 ? 31 : 33 - exp;
            k.scale[i] = (int) ((~w >> 16 & 1) << 11 | (w & 1023) << 1 | w >> 31);
            k.add[i]   = (int) (uh ? (w >> 22 & 1) * 128
                                   : (w >> 23 & 255) << 4 | (w >> 22 & 1) << 3 | (w >> 19 & 7));
            k.bias[i]  = (int32_t) bias[HMX_COLS + c + i];
        }
        for (int s = 0; s < HMX_ROWS; s += uh ? 2 : 1) {
            v8w B = value(h, s, c, &over);
            if (uh) {
                B = plus(value(h, s + 1, c, &over), B >> 8, &over);
            }
            const v8w y = scaled(plus(B, k.bias, &over), &k, F, uh ? 24 : 12, how->sat);
            if (uh) {
                *(v8uh *) &a->i[s][c]     = __builtin_convertvector(y >> 4 & 0xFFF, v8uh);
                *(v8uh *) &a->i[s + 1][c] = __builtin_convertvector(y >> 12, v8uh);
            } else {
                *(v8uh *) &a->i[s][c] = __builtin_convertvector(y, v8uh);
            }
        }
    }
    for (int i = 0; i < 8; i++) {
        if (over[i] < 0) {
            return false;
        }
    }
    return true;
}

BOTH(bool, convert_int, (const struct hmx * h, struct hmx_age * a, const struct hmx_icvt * how),
     (h, a, how))

bool hmx_convert_int_fast(const struct hmx * h, struct hmx_age * a, const struct hmx_icvt * how) {
    if (hmx_sw.plain || how->jam || how->keep || how->feedback || how->shape == HMX_UH22) {
        return false;
    }
    for (int c = 0; c < HMX_COLS; c++) {
        if (h->bias[how->group][c] & 0x68000) {  // a shape
            return false;
        }
    }
    return convert_int(h, a, how);
}

// -- FP16 ---------------------------------------------------------------------------------------

// v with 15 significant bits, the last one sticky.
INLINE v4d odd15(v4d v) {
    const int64_t lost = (INT64_C(1) << 38) - 1;
    const v4l     bits = (v4l) v;
    return (v4d) ((bits & ~lost) | (((bits & lost) + lost) & (lost + 1)));
}

INLINE v4l magnitude(v4d v) { return (v4l) v & INT64_MAX; }

// Nearest even fp16, exponent 31 ordinary, as 20 bits.
INLINE v4u half(v4d r) {
    const v4l ab     = magnitude(r), sign = (v4l) r >> 63 & 0x8000;
    const v4l normal = ((ab + ((INT64_C(1) << 41) - 1) + (ab >> 42 & 1)) >> 42) - (1008 << 10);
    const v4l over   = (v4l) (normal > 0x7FFF);
    const v4l number = (normal & ~over) | (over & 0x7FFF);
    const v4l small  = (v4l) ((v4d) ab + 0x1p28) & 0xFFF;  // in units of 2^-24
    const v4l is_sub = (v4l) ((v4d) ab < 0x1p-14), some = (v4l) (ab != 0);
    return __builtin_convertvector(((((number & ~is_sub) | (small & is_sub)) | sign) & some) << 4, v4u);
}

// 15 bits times 11 plus 11 bits. The unit shifts the smaller term to the larger one's 26 fraction
// bits: up to 4 places nothing is lost, beyond that the terms cannot cancel and rounding hides it.
INLINE bool convert_hf_of(const struct hmx * h, struct hmx_age * a, int group) {
    const uint32_t * bias = h->bias[group];
    for (int c = 0; c < HMX_COLS; c += 4) {
        v4d scale, ob;
        for (int i = 0; i < 4; i++) {
            scale[i] = hmx_value((uint16_t) bias[c + i], false);
            ob[i]    = hmx_value((uint16_t) (bias[c + i] >> 16), false);
        }
        for (int r = 0; r < HMX_ROWS / 2; r++) {
            const v4d v = *(const v4d *) &h->fp.d[h->fset][r][c];
            *(v4u *) &a->f[r][c] = half(odd15(v) * scale + ob);
        }
    }
    return true;
}

BOTH(bool, convert_hf, (const struct hmx * h, struct hmx_age * a, int group), (h, a, group))

static bool normal_or_zero(uint32_t v) { return (v & 0x7C00) || !(v & 0x7FFF); }

// Scale and output bias only, and no denormals among them.
bool hmx_convert_hf_fast(const struct hmx * h, struct hmx_age * a, int group, struct hmx_fcvt how) {
    if (hmx_sw.plain || hmx_sw.xfp || hmx_sw.policy != HMX_ORDINARY || how.clip || how.wide) {
        return false;
    }
    for (int c = 0; c < HMX_COLS; c++) {
        const uint32_t w = h->bias[group][c];
        if (h->bias[group][HMX_COLS + c] || !(w & 0x7C00) || !normal_or_zero(w >> 16)) {
            return false;
        }
    }
    return convert_hf(h, a, group);
}

// -- stores -------------------------------------------------------------------------------------

INLINE v8u bytes(const uint16_t * at) { return __builtin_convertvector(*(const v8uh *) at, v8u) >> 4; }

INLINE bool store_tile_of(const struct hmx_age * a, uint8_t * to) {
    for (int s = 0; s < HMX_ROWS; s += 4) {
        for (int c = 0; c < HMX_COLS; c += 8) {
            v8u w;
            if (a->kind == HMX_HF) {
                w = *(const v8u *) &a->f[s / 2][c] >> 4 | *(const v8u *) &a->f[s / 2 + 1][c] >> 4 << 16;
            } else {
                w = bytes(&a->i[s][c]) | bytes(&a->i[s + 1][c]) << 8 | bytes(&a->i[s + 2][c]) << 16
                    | bytes(&a->i[s + 3][c]) << 24;
            }
            memcpy(to + s * 32 + c * 4, &w, sizeof w);
        }
    }
    return true;
}

BOTH(bool, store_tile, (const struct hmx_age * a, uint8_t * to), (a, to))

bool hmx_store_fast(const struct hmx_age * a, uint8_t * to) {
    return !hmx_sw.plain && (a->kind == HMX_HF || a->kind == HMX_INT) && store_tile(a, to);
}
