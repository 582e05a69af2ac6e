// Operands of a load pair: which tiles, positions, taps, channels and weights they name.
#include "hmx.h"

// -- operation codes ----------------------------------------------------------------------------

struct acode {
    uint8_t        code;
    enum hmx_atype type;
    enum hmx_amod  mod;
    bool           cm;
};

static const struct acode ACODES[] = {
    { 0xE0, HMX_A_UB, HMX_A_DEEP,   false }, { 0xE1, HMX_A_UB, HMX_A_DEEP,   true  },
    { 0xE2, HMX_A_HF, HMX_A_DEEP,   false }, { 0xE3, HMX_A_F8, HMX_A_DEEP,   false },
    { 0xE4, HMX_A_HF, HMX_A_BLOCK,  false }, { 0xE5, HMX_A_F8, HMX_A_BLOCK,  false },
    { 0xE6, HMX_A_HF, HMX_A_ABOVE,  false }, { 0xE7, HMX_A_F8, HMX_A_ABOVE,  false },
    { 0xE8, HMX_A_UB, HMX_A_DILATE, false }, { 0xE9, HMX_A_UB, HMX_A_DILATE, true  },
    { 0xEC, HMX_A_UB, HMX_A_BLOCK,  false }, { 0xED, HMX_A_UB, HMX_A_BLOCK,  true  },
    { 0xEE, HMX_A_UB, HMX_A_ABOVE,  false }, { 0xEF, HMX_A_UB, HMX_A_ABOVE,  true  },
    { 0xF0, HMX_A_UB, HMX_A_SINGLE, false }, { 0xF1, HMX_A_UB, HMX_A_SINGLE, true  },
    { 0xF8, HMX_A_HF, HMX_A_SINGLE, false }, { 0xF9, HMX_A_F8, HMX_A_SINGLE, false },
    { 0xFA, HMX_A_HF, HMX_A_DILATE, false }, { 0xFB, HMX_A_F8, HMX_A_DILATE, false },
};

// By enum hmx_wmod: normal, single, drop, deep, after, dilate.
static const uint8_t WCODES[][6] = {
    [HMX_W_B]    = { 0xE0, 0xE6, 0xE7, 0xE8, 0xE9, 0xEB },
    [HMX_W_SM]   = { 0xF1, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3 },
    [HMX_W_N]    = { 0xE1, 0xEC, 0xED, 0xEE, 0xF7, 0xF8 },
    [HMX_W_C]    = { 0xE2, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD },
    [HMX_W_SC]   = { 0xF0, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4 },
    [HMX_W_UBIT] = { 0xE3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9 },
    [HMX_W_SBIT] = { 0xE4, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE },
    [HMX_W_N2X]  = { 0x46, 0x41, 0x42, 0x43, 0x45, 0x44 },
    [HMX_W_HF]   = { 0xEF, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6 },
    [HMX_W_F8]   = { 0x47, 0x48, 0x49, 0x4A, 0x4B, 0x4C },
};

static bool find_act(struct hmx_pair * p, uint32_t op) {
    for (size_t i = 0; i < sizeof ACODES / sizeof *ACODES; i++) {
        if (ACODES[i].code == op) {
            p->atype = ACODES[i].type;
            p->amod  = ACODES[i].mod;
            p->fmt   = ACODES[i].cm ? 0 : 2;
            return p->atype != HMX_A_F8 || sim_device.arch >= 79;
        }
    }
    return false;
}

static bool find_wgt(struct hmx_pair * p, uint32_t op) {
    for (int t = 0; t <= HMX_W_F8; t++) {
        for (int m = 0; m < 6; m++) {
            if (WCODES[t][m] == op) {
                p->wtype = (enum hmx_wtype) t;
                p->wmod  = (enum hmx_wmod) m;
                return sim_device.arch >= (t == HMX_W_F8 ? 79 : t == HMX_W_N2X ? 73 : 68);
            }
        }
    }
    return false;
}

bool hmx_is_float(const struct hmx_pair * p) { return p->atype != HMX_A_UB; }

// -- positions ----------------------------------------------------------------------------------

uint32_t hmx_deposit(uint32_t i, uint32_t mask) {
    uint32_t x = 0;
    for (; mask; mask &= mask - 1, i >>= 1) {
        if (i & 1) {
            x |= mask & -mask;
        }
    }
    return x;
}

uint32_t hmx_extract(uint32_t x, uint32_t mask) {
    uint32_t i = 0;
    for (uint32_t bit = 1; mask; mask &= mask - 1, bit <<= 1) {
        if (x & mask & -mask) {
            i |= bit;
        }
    }
    return i;
}

// -- operands -----------------------------------------------------------------------------------

// Base: the 2048-byte tile of Rs. Rt above bit 10: distance to the neighbour below or, :deep, the
// tiles that follow. In the position bits of the format a one in Rt is y, a zero is x, and Rs has
// the last tap there. In the channel bits Rs has the first channel (a multiple of 4) and Rt the
// last one's group. Rt bit 31, wrapping or leaving VTCM: dropped.
static enum hmx_bad decode_act(struct hmx_pair * p, uint32_t rs, uint32_t rt, bool * odd_bits) {
    uint32_t sp = p->fmt == 2 ? 0x783 : 0x7E0;
    if (hmx_is_float(p)) {
        sp &= ~1u;
    }
    p->act    = (const uint8_t *) (uintptr_t) (rs & ~2047u);
    p->dy     = rt & ~2047u;
    p->blocks = p->amod == HMX_A_DEEP ? (int) (p->dy >> 11) + 1 : 1;
    p->ymask  = rt & sp;
    p->xmask  = ~rt & sp;
    p->fy     = rs & p->ymask;
    p->fx     = rs & p->xmask;
    p->odd    = rs & 1;

    const int start = (rs >> p->fmt) & 31;
    const int stop  = (rt >> p->fmt) & 31;
    p->c0           = start & ~3;
    p->c1           = (stop | 3) + 1;

    // what the instruction does not look at
    uint32_t ignored = 3u << p->fmt;
    if (p->atype == HMX_A_HF) {
        ignored |= 1;
    }
    if (p->amod == HMX_A_DEEP) {
        ignored |= p->ymask;
    }
    *odd_bits |= (rs & ignored) != 0;

    if ((rt >> 31) || rs + rt < rs || !sim_in_vtcm(p->act, (size_t) p->dy + HMX_TILE)) {
        return HMX_BAD_ACT;
    }
    // first channel after the last one in one tile: group convolution, which is not modelled, or
    // with :deep no channels at all. Weights below a byte always take the whole tile.
    if (p->wtype >= HMX_W_N && p->wtype <= HMX_W_SBIT) {
        p->c0 = 0;
        p->c1 = HMX_COLS;
    } else if (start > stop && p->blocks == 1) {
        return HMX_BAD_OP;
    }
    return HMX_OK;
}

// Base: Rs without its low 7 bits; the last valid vector is the one of base + Rt. FP: Rs[5]
// negates, Rs[6] makes both operands bf16. Rs[4], compressed weights, is not modelled.
static enum hmx_bad decode_wgt(struct hmx_pair * p, uint32_t rs, uint32_t rt, bool * odd_bits) {
    const bool fp = hmx_is_float(p);
    p->wgt        = (const uint8_t *) (uintptr_t) (rs & ~127u);
    p->negate     = fp && (rs & 32);
    p->bf16       = fp && (rs & 64);
    *odd_bits |= (rs & (fp ? 15u : 0x6Fu)) != 0;
    if (rs & 16) {
        return HMX_BAD_OP;
    }
    if (p->bf16 && (sim_device.arch < 81 || p->atype != HMX_A_HF || p->wtype != HMX_W_HF)) {
        return HMX_BAD_OP;
    }
    const size_t size = ((size_t) rt | 127) + 1;
    if ((rt >> 31) || !sim_in_vtcm(p->wgt, size)) {
        return HMX_BAD_WGT;
    }
    // The unit takes no more than 64 KiB; a longer Rt is fine, the surplus is not looked at.
    p->wbytes = size > HMX_WMAX ? HMX_WMAX : (uint32_t) size;
    return HMX_OK;
}

enum hmx_bad hmx_decode(struct hmx_pair * p, uint32_t aop, uint32_t ars, uint32_t art,
                        uint32_t wop, uint32_t wrs, uint32_t wrt, bool * odd_bits) {
    *p        = (struct hmx_pair) { 0 };
    *odd_bits = false;
    if (!find_act(p, aop) || !find_wgt(p, wop)) {
        return HMX_BAD_OP;
    }
    // FP16 and f8 may be mixed, integers and FP may not
    if (hmx_is_float(p) != (p->wtype >= HMX_W_HF)) {
        return HMX_BAD_OP;
    }
    const enum hmx_bad bad = decode_act(p, ars, art, odd_bits);
    if (bad != HMX_OK) {
        return bad;
    }
    return decode_wgt(p, wrs, wrt, odd_bits);
}

// -- weights ------------------------------------------------------------------------------------

int hmx_weights_per_vector(enum hmx_wtype t) {
    static const uint8_t N[] = {
        [HMX_W_B] = 4,     [HMX_W_SM] = 4,    [HMX_W_N] = 8,   [HMX_W_C] = 16, [HMX_W_SC] = 16,
        [HMX_W_UBIT] = 32, [HMX_W_SBIT] = 32, [HMX_W_N2X] = 4, [HMX_W_HF] = 2, [HMX_W_F8] = 4,
    };
    return N[t];
}

static int nibble(int v) { return ((v & 15) ^ 8) - 8; }

// Output o has word o of each vector. Bytes hold the weights in order (b, sm, n:2x); narrower ones
// fill bit field 0 of the four bytes, then field 1 and so on.
void hmx_weight(const struct hmx_pair * p, uint32_t k, int o, int * lo, int * hi) {
    static const int8_t C[]  = { 0, 1, -2, -1 };
    static const int8_t SC[] = { 2, 1, -2, -1 };
    const int           per  = hmx_weights_per_vector(p->wtype);
    const size_t        at   = (size_t) (k / (unsigned) per) * 128;
    const int           i    = (int) (k % (unsigned) per);

    *lo = *hi = 0;
    if (at >= p->wbytes) {
        return;  // it still counts as a weight
    }
    const int byte  = p->wgt[at + 4 * (size_t) o + (i & 3)];
    const int field = i >> 2;
    int       w     = 0;
    switch (p->wtype) {
        case HMX_W_B:    w = (int8_t) byte; break;
        case HMX_W_SM:   w = byte & 0x80 ? -((byte & 0x7F) + 1) : byte; break;
        case HMX_W_N:    w = nibble(byte >> 4 * field); break;
        case HMX_W_C:    w = C[byte >> 2 * field & 3]; break;
        case HMX_W_SC:   w = SC[byte >> 2 * field & 3]; break;
        case HMX_W_UBIT: w = byte >> field & 1; break;
        case HMX_W_SBIT: w = byte >> field & 1 ? -1 : 1; break;
        case HMX_W_N2X:
            *lo = nibble(byte);
            *hi = nibble(byte >> 4);
            return;
        default: return;
    }
    *lo = nibble(w);
    *hi = (w - *lo) / 16;
}

// fp16: two halfwords a word. f8: bytes 0, 2, 1, 3, their seven low bits become the top of an
// fp16's, so the value is 2^-8 of the e4m3 one; 0x80 is NaN.
uint16_t hmx_weight_fp(const struct hmx_pair * p, uint32_t k, int o) {
    static const uint8_t F8_ORDER[] = { 0, 2, 1, 3 };
    const unsigned       per        = (unsigned) hmx_weights_per_vector(p->wtype);
    const size_t         at         = (size_t) (k / per) * 128;
    if (at >= p->wbytes) {
        return 0;
    }
    const uint8_t * word = p->wgt + at + 4 * (size_t) o;
    uint16_t        v;
    if (p->wtype == HMX_W_F8) {
        const unsigned b = word[F8_ORDER[k % per]];
        v                = b == 0x80 ? 0xFE00 : (uint16_t) ((b & 0x80) << 8 | (b & 0x7F) << 7);
    } else {
        v = (uint16_t) (word[2 * (k % per)] | word[2 * (k % per) + 1] << 8);
    }
    return p->negate ? v ^ 0x8000 : v;
}
