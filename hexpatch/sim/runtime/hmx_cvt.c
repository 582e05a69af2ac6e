// Converts: accumulators of the current set to what a store writes.
#include <string.h>

#include "hmx.h"

// -- integers -----------------------------------------------------------------------------------

// Bias word 0: fraction 9:0, left shift 14:10, shape 15 (negate), 18 and 17, inverted integer bit
// 16, output bias 21:19, 22 and 30:23, one more fraction bit 31. Word 1 is added first.
struct icfg {
    int     exp, shape, scale, ob, rnd;
    int64_t bias;
};

static struct icfg icfg_of(uint32_t w0, uint32_t w1) {
    return (struct icfg) {
        .exp   = w0 >> 10 & 31,
        .shape = (int) ((w0 >> 15 & 1) << 2 | (w0 >> 18 & 1) << 1 | (w0 >> 17 & 1)),
        .scale = (int) ((~w0 >> 16 & 1) << 11 | (w0 & 1023) << 1 | w0 >> 31),  // / 2048
        .ob    = (int) ((w0 >> 23 & 255) << 4 | (w0 >> 22 & 1) << 3 | (w0 >> 19 & 7)),
        .rnd   = w0 >> 22 & 1,
        .bias  = (int32_t) w1,
    };
}

int64_t hmx_int_value(const struct hmx * h, int set, int row, int col) {
    return (int64_t) (int32_t) (h->hi[set][row][col] << 4) + (int32_t) h->lo[set][row][col];
}

// B << exp is a Q32.32 number V. Kept are F fraction bits (by floor), the unit bit, one bit for
// anything larger and the sign, so inside -4 <= V < 4 it is V. Returned in units of 2^-(F + 1);
// the last bit is the sticky one of cvt.*.
static int64_t limited(int64_t B, int exp, int F, int shape, bool jam) {
    const int     sh   = 32 - F - exp;
    const int64_t all  = sh >= 0 ? B >> sh : B * (INT64_C(1) << -sh);
    const int64_t unit = INT64_C(1) << F, top = all >> (F + 1);
    const bool    b33  = B >= 0 ? top != 0 : top == -1;
    const int64_t R    = (all & (2 * unit - 1)) + 2 * unit * b33 - (B < 0 ? 4 * unit : 0);
    const bool    drop = (shape >= 4 && !(shape == 7 && B < 0)) || (shape == 3 && B < 0);
    return 2 * R + (jam && R != 0 && !drop);
}

// ~r is -r less one last place.
static int64_t shaped(int64_t r, int64_t B, int shape) {
    switch (shape) {
        case 1:  return r < 0 ? r : 0;
        case 2:  return r > 0 ? r : 0;
        case 3:  return r >= 0 ? r : ~r;
        case 4:  return B != 0 ? ~r : r;
        case 5:  return B >= 0 ? 0 : ~r;
        case 6:  return B <= 0 ? 0 : ~r;
        case 7:  return r >= 0 && B != 0 ? ~r : r;
        default: return r;
    }
}

static int64_t cut(int64_t y, int bits, bool sat) {
    const int64_t top = (INT64_C(1) << bits) - 1;
    return sat ? (y < 0 ? 0 : y > top ? top : y) : (y & top);
}

// One row, one channel: 12 bits.
static uint16_t convert_ub(const struct hmx * h, const struct hmx_icvt * how, struct icfg g, int s,
                           int c, uint16_t last) {
    if (how->feedback == 1) {
        g.ob = last;
    } else if (how->feedback == 2) {
        g.scale = how->max == (last > g.scale) ? last : g.scale;
    }
    const int64_t B = hmx_int_value(h, h->iset, s, c) + g.bias;
    const int64_t r = shaped(limited(B, g.exp, 12, g.shape, how->jam), B, g.shape);
    return (uint16_t) cut((r * g.scale >> 12) + g.ob, 12, how->sat);
}

// Two rows, one channel: 24 bits. The low row counts 1/256, without its fraction.
static int64_t convert_21(const struct hmx * h, const struct hmx_icvt * how, struct icfg g, int s,
                          int c) {
    const int64_t lo = hmx_int_value(h, h->iset, s, c), hi = hmx_int_value(h, h->iset, s + 1, c);
    int64_t       B  = hi + (lo >> 8) + g.bias;
    int           sh = g.exp;
    if (how->keep && g.exp > 8) {
        B = (hi + g.bias) * 256 + lo;
        sh -= 8;
    }
    const int64_t r = shaped(limited(B, sh, 24, g.shape, how->jam), B, g.shape);
    return cut((r * g.scale >> 12) + 128 * g.rnd, 24, how->sat);
}

// Two rows, two channels: the odd channel's weights are the high bytes. Shift, shape and bias are
// those of the even channel, scale and output bias are put together from both.
static int64_t convert_22(const struct hmx * h, const struct hmx_icvt * how, const uint32_t * bias,
                          int s, int c) {
    const struct icfg g = icfg_of(bias[c], bias[HMX_COLS + c]), g2 = icfg_of(bias[c + 1], 0);
    const int64_t ll = hmx_int_value(h, h->iset, s, c), lh = hmx_int_value(h, h->iset, s, c + 1);
    const int64_t hl = hmx_int_value(h, h->iset, s + 1, c);
    const int64_t hh = hmx_int_value(h, h->iset, s + 1, c + 1);
    const int64_t B  = (ll + (lh + hl + hh * 256) * 256 + g.bias * 65536) >> 16;
    const int64_t r  = shaped(limited(B, g.exp, 24, g.shape, how->jam), B, g.shape);
    // the high part is the odd channel's integer bit and fraction, without its extra bit
    const int64_t scale = (int64_t) (g2.scale >> 1) << 11 | (g.scale & 2047);
    return cut((r * scale >> 22) + 16 * (((int64_t) g2.ob << 12) + g.ob), 24, how->sat);
}

// The newest age becomes the previous one.
static struct hmx_age * next_age(struct hmx * h, enum hmx_kind kind, bool stay) {
    if (!stay) {
        h->now = (h->now + 1) % HMX_AGES;
    }
    struct hmx_age * a = &h->age[h->now];
    if (a->kind != kind || !stay) {
        memset(a, 0, sizeof *a);
        a->kind = kind;
    }
    return a;
}

static void put16(struct hmx_age * a, int s, int c, int64_t y) {
    a->i[s][c]     = (uint16_t) (y >> 4 & 0xFFF);
    a->i[s + 1][c] = (uint16_t) (y >> 12 & 0xFFF);
}

void hmx_convert_int(struct hmx * h, struct hmx_icvt how) {
    struct hmx_age * a    = next_age(h, HMX_INT, how.feedback != 0);
    const uint32_t * bias = h->bias[how.group];
    if (hmx_convert_int_fast(h, a, &how)) {
        return;
    }
    if (how.shape == HMX_UH22) {
        for (int s = 0; s < HMX_ROWS; s += 2) {
            for (int c = 0; c < HMX_COLS; c += 2) {
                const int64_t y = convert_22(h, &how, bias, s, c);
                put16(a, s, c, how.channel >= 2 ? y : 0);
                put16(a, s, c + 1, how.channel != 2 ? y : 0);
            }
        }
        return;
    }
    for (int c = 0; c < HMX_COLS; c++) {
        const struct icfg g = icfg_of(bias[c], bias[HMX_COLS + c]);
        for (int s = 0; s < HMX_ROWS; s += how.shape == HMX_UB ? 1 : 2) {
            if (how.shape == HMX_UB) {
                a->i[s][c] = convert_ub(h, &how, g, s, c, a->i[s][c]);
            } else {
                put16(a, s, c, convert_21(h, &how, g, s, c));
            }
        }
    }
}

// -- FP16 ---------------------------------------------------------------------------------------

static struct hmx_xfp accumulator(const struct hmx * h, int row, int col) {
    return hmx_sw.xfp ? h->fp.x[h->fset][row][col] : hmx_xfp_from(h->fp.d[h->fset][row][col]);
}

static uint64_t bias_of(const struct hmx * h, int group, int col) {
    return (uint64_t) h->bias[group][HMX_COLS + col] << 32 | h->bias[group][col];
}

// A last result in the place of the scale or the output bias: both are fp16 with 4 extra bits.
static uint64_t feed_back(uint64_t bias, uint32_t last, int feedback, bool max) {
    if (feedback == 1) {
        return (bias & ~(UINT64_C(0xFFFF) << 16) & ~(UINT64_C(15) << 36)) | (uint64_t) (last >> 4) << 16
               | (uint64_t) (last & 15) << 36;
    }
    // numbers of sign and magnitude
    const uint32_t scale = (uint32_t) (bias & 0xFFFF) << 4 | (uint32_t) (bias >> 32 & 15);
    const int32_t  x     = scale >> 19 ? -(int32_t) (scale & 0x7FFFF) : (int32_t) scale;
    const int32_t  y     = last >> 19 ? -(int32_t) (last & 0x7FFFF) : (int32_t) last;
    const uint32_t use   = max == (y > x) ? last : scale;
    return (bias & ~UINT64_C(0xFFFF) & ~(UINT64_C(15) << 32)) | use >> 4 | (uint64_t) (use & 15) << 32;
}

void hmx_convert_hf(struct hmx * h, int group, struct hmx_fcvt how, int feedback, bool max) {
    struct hmx_age * a = next_age(h, HMX_HF, feedback != 0);
    if (!sim_device.hmx_fp16) {
        return;  // zeros
    }
    if (!feedback && hmx_convert_hf_fast(h, a, group, how)) {
        return;
    }
    for (int c = 0; c < HMX_COLS; c++) {
        const uint64_t bias = bias_of(h, group, c);
        for (int r = 0; r < HMX_ROWS / 2; r++) {
            const uint64_t b = feedback ? feed_back(bias, a->f[r][c], feedback, max) : bias;
            a->f[r][c]       = hmx_fp_convert(accumulator(h, r, c), b, how);
        }
    }
}

// The even half starts a new result, the odd half joins it.
void hmx_convert_f8(struct hmx * h, int group, struct hmx_fcvt how, bool odd) {
    struct hmx_age * a = next_age(h, HMX_F8, odd);
    how.f8             = true;
    for (int r = 0; r < HMX_ROWS / 2; r++) {
        for (int c = 0; c < HMX_COLS; c++) {
            const uint32_t v = sim_device.hmx_fp16
                                   ? hmx_fp_convert(accumulator(h, r, c), bias_of(h, group, c), how)
                                   : 0;
            a->f[r][c] = odd ? (a->f[r][c] & 0xFF) | v << 8 : v;
        }
    }
}

// -- the next set -------------------------------------------------------------------------------

void hmx_next_int(struct hmx * h) {
    memset(h->hi[h->iset], 0, sizeof h->hi[0]);
    memset(h->lo[h->iset], 0, sizeof h->lo[0]);
    h->iset ^= 1;
}

void hmx_clear_fp(struct hmx * h, int set) {
    if (!hmx_sw.xfp) {
        memset(h->fp.d[set], 0, sizeof h->fp.d[0]);
        return;
    }
    for (int r = 0; r < HMX_ROWS / 2; r++) {
        for (int c = 0; c < HMX_COLS; c++) {
            h->fp.x[set][r][c] = (struct hmx_xfp) { 0, (int16_t) hmx_xfp_emin(), 0 };
        }
    }
}

void hmx_next_fp(struct hmx * h) {
    hmx_clear_fp(h, h->fset);
    h->fset ^= 1;
}
