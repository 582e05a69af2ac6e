// Tile-aligned multiplies, which is what software uses: whole tiles, one tap. Results equal those of
// hmx_mac.c bit for bit: integers because nothing overflows on the way, FP because the product of
// two fp16 numbers is exact in a double and the sums are taken in the same order, with or without
// fused multiply-add.
#include <string.h>

#include "hmx.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_AVX2 1
#endif

#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif

#define INLINE static inline __attribute__((always_inline))

typedef uint8_t  v32b __attribute__((vector_size(32), may_alias));
typedef uint32_t v4u __attribute__((vector_size(16), may_alias));
typedef int32_t  v4w __attribute__((vector_size(16), may_alias));
typedef int32_t  v8w __attribute__((vector_size(32), may_alias));
typedef int16_t  v8h __attribute__((vector_size(16), may_alias));
typedef float    v4f __attribute__((vector_size(16), may_alias));
typedef double   v4d __attribute__((vector_size(32), may_alias));

// -- integers -----------------------------------------------------------------------------------

// Weights of 32 channels as signed nibbles, w = 16 * hi + lo, hi in -8..8: [channel / 4][output * 4
// + channel % 4], as in memory. With |nibble| <= 8, 32 products of a byte stay below 2^15 a lane.
struct weights {
    int8_t lo[8][128];
    int8_t hi[8][128];
} __attribute__((aligned(64)));

INLINE void split(struct weights * w, enum hmx_wtype type, const uint8_t * from) {
    for (int q = 0; q < 8; q++) {
        for (int i = 0; i < 128; i += 32) {
            v32b v;
            if (type == HMX_W_N) {
                memcpy(&v, from + (q >> 1) * 128 + i, sizeof v);
                if (q & 1) {
                    v >>= 4;
                }
            } else {
                memcpy(&v, from + q * 128 + i, sizeof v);
                if (type == HMX_W_SM) {
                    v ^= (v >> 7) * 127;
                }
                v32b hi = ((v >> 4) ^ 8) - 8;
                if (type != HMX_W_N2X) {
                    hi += v >> 3 & 1;
                }
                memcpy(&w->hi[q][i], &hi, sizeof hi);
            }
            v = ((v & 15) ^ 8) - 8;
            memcpy(&w->lo[q][i], &v, sizeof v);
        }
    }
}

struct iset {
    uint32_t (*hi)[HMX_COLS];
    uint32_t (*lo)[HMX_COLS];
};

// 16 channels of a row times their weights, all outputs: at most 16 * 255 * 8, so 16 bits do.
INLINE void dot16(v8h sum[4], const int16_t * a, int16_t w[][HMX_COLS]) {
    v8h s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
    for (int c = 0; c < 16; c++) {
        const v8h v = a[c] - (v8h) { 0 };
        s0 += *(v8h *) &w[c][0] * v;
        s1 += *(v8h *) &w[c][8] * v;
        s2 += *(v8h *) &w[c][16] * v;
        s3 += *(v8h *) &w[c][24] * v;
    }
    sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

static void tile_int_plain(struct iset acc, const uint8_t * act, bool cm, const uint8_t * wgt,
                           enum hmx_wtype type) {
    struct weights w;
    int16_t        part[2][HMX_COLS][HMX_COLS] __attribute__((aligned(64)));  // [lo, hi][channel][output]
    split(&w, type, wgt);
    for (int c = 0; c < HMX_COLS; c++) {
        for (int o = 0; o < HMX_COLS; o++) {
            part[0][c][o] = w.lo[c >> 2][o * 4 + (c & 3)];
            part[1][c][o] = type == HMX_W_N ? 0 : w.hi[c >> 2][o * 4 + (c & 3)];
        }
    }
    for (int s = 0; s < HMX_ROWS; s++) {
        int16_t a[HMX_COLS];
        for (int c = 0; c < HMX_COLS; c++) {
            a[c] = cm ? act[s * 32 + c] : act[(s >> 2) * 128 + c * 4 + (s & 3)];
        }
        for (int half = 0; half < 2 - (type == HMX_W_N); half++) {
            uint32_t * out = half ? acc.hi[s] : acc.lo[s];
            v8h        x[4], y[4];
            dot16(x, a, part[half]);
            dot16(y, a + 16, part[half] + 16);
            for (int i = 0; i < 4; i++) {
                v8w v = __builtin_convertvector(x[i], v8w) + __builtin_convertvector(y[i], v8w);
                v += *(v8w *) (out + 8 * i);
                *(v8w *) (out + 8 * i) = v;
            }
        }
    }
}

#ifdef HAVE_AVX2
// Four rows at a time: their bytes are put as one word a row and channel group first.
#define AVX2 __attribute__((target("avx2,fma")))

AVX2 INLINE void tile_int_avx2_of(struct iset acc, const uint8_t * act, bool cm,
                                  const struct weights * w, bool two) {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i turn = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    int32_t a[32] __attribute__((aligned(64)));  // [channel / 4][row], :cm [row][channel / 4]
    const int dq = cm ? 1 : 4, dr = cm ? 8 : 1;
    for (int s = 0; s < HMX_ROWS; s += 4) {
        for (int i = 0; i < 4; i++) {
            __m256i v = _mm256_loadu_si256((const __m256i *) (act + s * 32 + i * 32));
            _mm256_store_si256((__m256i *) a + i, cm ? v : _mm256_shuffle_epi8(v, turn));
        }
        for (int o = 0; o < HMX_COLS; o += 8) {
            __m256i lo[4], hi[4];
            for (int r = 0; r < 4; r++) {
                lo[r] = hi[r] = _mm256_setzero_si256();
            }
#pragma GCC unroll 8
            for (int q = 0; q < 8; q++) {
                const __m256i wl = _mm256_load_si256((const __m256i *) &w->lo[q][o * 4]);
                const __m256i wh = _mm256_load_si256((const __m256i *) &w->hi[q][o * 4]);
#pragma GCC unroll 4
                for (int r = 0; r < 4; r++) {
                    const __m256i v = _mm256_set1_epi32(a[q * dq + r * dr]);
                    lo[r]           = _mm256_add_epi16(lo[r], _mm256_maddubs_epi16(v, wl));
                    if (two) {
                        hi[r] = _mm256_add_epi16(hi[r], _mm256_maddubs_epi16(v, wh));
                    }
                }
            }
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++) {
                __m256i * to = (__m256i *) &acc.lo[s + r][o];
                *to          = _mm256_add_epi32(*to, _mm256_madd_epi16(lo[r], ones));
                if (two) {
                    to  = (__m256i *) &acc.hi[s + r][o];
                    *to = _mm256_add_epi32(*to, _mm256_madd_epi16(hi[r], ones));
                }
            }
        }
    }
}

AVX2 static void tile_int_avx2(struct iset acc, const uint8_t * act, bool cm, const uint8_t * wgt,
                               enum hmx_wtype type) {
    struct weights w;
    switch (type) {  // constants, so that each becomes straight code
        case HMX_W_B:   split(&w, HMX_W_B, wgt); break;
        case HMX_W_SM:  split(&w, HMX_W_SM, wgt); break;
        case HMX_W_N2X: split(&w, HMX_W_N2X, wgt); break;
        default:        split(&w, HMX_W_N, wgt); break;
    }
    if (cm) {
        tile_int_avx2_of(acc, act, true, &w, type != HMX_W_N);
    } else if (type == HMX_W_N) {
        tile_int_avx2_of(acc, act, false, &w, false);
    } else {
        tile_int_avx2_of(acc, act, false, &w, true);
    }
}
#endif

// -- FP16 ---------------------------------------------------------------------------------------

// A tile as doubles, [row][column]. Memory has pairs of rows: word = column, halfword = row & 1.
// The bits of an fp16 put into a float's are 2^-112 of its value, exponent 31 and denormals, too.
INLINE void unpack_hf(double to[32][32], const uint8_t * from) {
    for (int pair = 0; pair < 16; pair++) {
        for (int c = 0; c < 32; c += 4) {
            v4w w;
            memcpy(&w, from + pair * 128 + c * 4, sizeof w);
            const v4w even = (w << 16) >> 3 & (int32_t) 0x8FFFE000, odd = w >> 3 & (int32_t) 0x8FFFE000;
            const v4f x = (v4f) even * 0x1p112f, y = (v4f) odd * 0x1p112f;
            *(v4d *) &to[2 * pair][c]     = __builtin_convertvector(x, v4d);
            *(v4d *) &to[2 * pair + 1][c] = __builtin_convertvector(y, v4d);
        }
    }
}

INLINE void tile_hf_of(double (*acc)[HMX_COLS], const uint8_t * act, const uint8_t * wgt) {
    double a[32][32] __attribute__((aligned(64))), w[32][32] __attribute__((aligned(64)));
    unpack_hf(a, act);
    unpack_hf(w, wgt);
    for (int o = 0; o < HMX_COLS; o += 8) {
        for (int r = 0; r < 32; r += 4) {
            v4d * to[4];
            v4d   s[4][2];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                to[i]   = (v4d *) &acc[r + i][o];
                s[i][0] = to[i][0];
                s[i][1] = to[i][1];
            }
            for (int k = 0; k < 32; k++) {
                const v4d x = *(v4d *) &w[k][o], y = *(v4d *) &w[k][o + 4];
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++) {
                    s[i][0] += x * a[r + i][k];
                    s[i][1] += y * a[r + i][k];
                }
            }
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                to[i][0] = s[i][0];
                to[i][1] = s[i][1];
            }
        }
    }
}

static void tile_hf_plain(double (*acc)[HMX_COLS], const uint8_t * act, const uint8_t * wgt) {
    tile_hf_of(acc, act, wgt);
}

#ifdef HAVE_AVX2
AVX2 static void tile_hf_avx2(double (*acc)[HMX_COLS], const uint8_t * act, const uint8_t * wgt) {
    tile_hf_of(acc, act, wgt);
}

#endif

bool hmx_avx2(void) {
#ifdef HAVE_AVX2
    return !hmx_sw.portable && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

// A halfword with exponent 31 in [at, at + size).
static bool any_special(const uint8_t * at, size_t size) {
    v4u found = { 0 };
    for (size_t i = 0; i < size; i += 16) {
        v4u v;
        memcpy(&v, at + i, sizeof v);
        const v4u t = (v & 0x7C007C00) + 0x04000400;  // bit 15 of a half: all ones
        found |= t & 0x80008000;
    }
    return found[0] | found[1] | found[2] | found[3];
}

// Whether a NaN or Inf may be among the operands.
bool hmx_any_special(const struct hmx_pair * p) {
    return p->atype == HMX_A_F8 || p->wtype == HMX_W_F8 || p->bf16
           || any_special(p->act, (size_t) p->dy + HMX_TILE) || any_special(p->wgt, p->wbytes);
}

// -- which pairs --------------------------------------------------------------------------------

// Bytes of a 32 x 32 weight tile, 0: this type has no fast path.
static uint32_t weight_tile(enum hmx_wtype t) {
    switch (t) {
        case HMX_W_B:
        case HMX_W_SM:
        case HMX_W_N2X: return 1024;
        case HMX_W_N:   return 512;
        case HMX_W_HF:  return 2048;
        default:        return 0;
    }
}

bool hmx_mac_fast(struct hmx * h, const struct hmx_pair * p, int * steps) {
    const bool     fp    = hmx_is_float(p);
    const uint32_t all_y = fp ? 0x782 : p->fmt == 2 ? 0x783 : 0x7E0;
    const uint32_t tile  = weight_tile(p->wtype);
    const int      n     = p->wmod == HMX_W_DEEP ? 2 : 1;
    const uint32_t need  = tile * (uint32_t) (p->blocks * n);
    const int      made  = p->blocks * n * (fp ? 4 : 8);
    if (hmx_sw.plain || !tile || p->ymask != all_y || p->c0 != 0 || p->c1 != HMX_COLS
        || (p->amod != HMX_A_DEEP && (p->amod != HMX_A_BLOCK || p->fy != 0))
        || need > p->wbytes || made > (fp ? HMX_FSTEP : HMX_STEPS)) {
        return false;
    }
    if (fp && (p->atype != HMX_A_HF || p->negate || p->bf16 || hmx_sw.xfp
               || (hmx_sw.policy != HMX_ORDINARY && hmx_any_special(p)))) {
        return false;
    }
    *steps = made;
    const uint8_t * w = p->wgt;
    for (int b = 0; b < p->blocks; b++) {
        const uint8_t * a = p->act + (size_t) b * HMX_TILE;
        for (int d = 0; d < n; d++, w += tile) {
            if (fp) {
                double (*acc)[HMX_COLS] = h->fp.d[h->fset ^ d];
#ifdef HAVE_AVX2
                (hmx_avx2() ? tile_hf_avx2 : tile_hf_plain)(acc, a, w);
#else
                tile_hf_plain(acc, a, w);
#endif
            } else {
                const struct iset acc = { h->hi[h->iset ^ d], h->lo[h->iset ^ d] };
#ifdef HAVE_AVX2
                (hmx_avx2() ? tile_int_avx2 : tile_int_plain)(acc, a, p->fmt == 0, w, p->wtype);
#else
                tile_int_plain(acc, a, p->fmt == 0, w, p->wtype);
#endif
            }
        }
    }
    return true;
}
