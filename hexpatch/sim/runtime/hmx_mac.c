// The multiply as plain loops. This is the specification; hmx_fast.c must agree with it.
#include "hmx.h"

struct taps {
    int n;
    int at[64];
};

// Taps of one axis, as position numbers: from `first` to `last` in steps.
static struct taps between(uint32_t first, uint32_t last, int step, uint32_t mask) {
    struct taps t   = { 0 };
    const int   end = (int) hmx_extract(last, mask);
    for (int i = (int) hmx_extract(first, mask); i <= end; i += step) {
        t.at[t.n++] = i;
    }
    return t;
}

static struct taps y_taps(const struct hmx_pair * p) {
    switch (p->amod) {
        case HMX_A_DEEP:   return between(0, 0, 1, p->ymask);
        case HMX_A_ABOVE:  return between(p->fy, p->ymask, 1, p->ymask);
        case HMX_A_SINGLE: return between(p->fy, p->fy, 1, p->ymask);
        case HMX_A_DILATE: return between(0, p->fy, 2, p->ymask);
        default:           return between(0, p->fy, 1, p->ymask);
    }
}

static struct taps x_taps(const struct hmx_pair * p) {
    switch (p->wmod) {
        case HMX_W_DEEP:   return between(0, 0, 1, p->xmask);
        case HMX_W_SINGLE: return between(p->fx, p->fx, 1, p->xmask);
        case HMX_W_AFTER:  return between(p->fx, p->xmask, 1, p->xmask);
        case HMX_W_DILATE: return between(0, p->fx, 2, p->xmask);
        default:           return between(0, p->fx, 1, p->xmask);
    }
}

// One step: a tap, and 4 (integer) or 8 (FP) consecutive channels or what is left of them.
struct step {
    const uint8_t * tile;
    int             ty, tx;
    int             second;  // the other set of 32 outputs of weight :deep
    int             c, n;
    uint32_t        k;       // first weight
};

// The y tap moves the input; past the end it is in the neighbour tile. The x tap moves the output;
// past the end it is in the other set. Calls at(input byte of channel 0, set, spatial row).
#define FOR_POSITIONS(p, st, cur, in, set, row)                                             \
    for (uint32_t y_ = 0, ny_ = 1u << __builtin_popcount((p)->ymask); y_ < ny_; y_++)       \
        for (uint32_t x_ = 0, nx_ = 1u << __builtin_popcount((p)->xmask); x_ < nx_; x_++)   \
            if (set_of((p), (st), (cur), x_, nx_, &(set)))                                  \
                if ((in) = input((p), (st), y_, ny_, x_), (row) = row_of((p), (st), y_, x_, nx_), true)

static bool set_of(const struct hmx_pair * p, const struct step * st, int cur, uint32_t x,
                   uint32_t nx, int * set) {
    const bool over = (uint32_t) st->tx + x >= nx;
    if (over && (p->wmod == HMX_W_DROP || p->wmod == HMX_W_DEEP)) {
        return false;
    }
    *set = cur ^ over ^ st->second;
    return true;
}

static const uint8_t * input(const struct hmx_pair * p, const struct step * st, uint32_t y,
                             uint32_t ny, uint32_t x) {
    const uint32_t to = (uint32_t) st->ty + y;
    return st->tile + (to >= ny ? p->dy : 0) + hmx_deposit(to, p->ymask) + hmx_deposit(x, p->xmask);
}

static int row_of(const struct hmx_pair * p, const struct step * st, uint32_t y, uint32_t x,
                  uint32_t nx) {
    const uint32_t at = hmx_deposit(((uint32_t) st->tx + x) & (nx - 1), p->xmask)
                        | hmx_deposit(y, p->ymask);
    return p->fmt == 2 ? (int) ((at >> 7) << 2 | (at & 3)) : (int) (at >> 5);
}

static void step_int(struct hmx * h, const struct hmx_pair * p, const struct step * st) {
    int lo[4][HMX_COLS], hi[4][HMX_COLS];
    for (int i = 0; i < st->n; i++) {
        for (int o = 0; o < HMX_COLS; o++) {
            hmx_weight(p, st->k + (uint32_t) i, o, &lo[i][o], &hi[i][o]);
        }
    }
    const uint8_t * in;
    int             set, row;
    FOR_POSITIONS(p, st, h->iset, in, set, row) {
        for (int i = 0; i < st->n; i++) {
            const int a = in[(st->c + i) << p->fmt];
            for (int o = 0; o < HMX_COLS; o++) {
                h->lo[set][row][o] += (uint32_t) (a * lo[i][o]);
                h->hi[set][row][o] += (uint32_t) (a * hi[i][o]);
            }
        }
    }
}

static uint16_t activation_fp(const struct hmx_pair * p, const uint8_t * at) {
    if (p->atype == HMX_A_F8) {
        const unsigned b = at[p->odd];
        return b == 0x80 ? 0xFE00 : (uint16_t) ((b & 0x80) << 8 | (b & 0x7F) << 7);
    }
    return (uint16_t) (at[0] | at[1] << 8);
}

static void product_exact(double * acc, uint16_t a, uint16_t w, bool bf16) {
    const double x = hmx_value(a, bf16), y = hmx_value(w, bf16);
    if (hmx_sw.policy == HMX_NAN0 && (x == 0 || y == 0)) {
        return;
    }
    *acc += x * y;
}

static void step_fp(struct hmx * h, const struct hmx_pair * p, const struct step * st) {
    uint16_t           w[HMX_COLS][8] = { 0 }, a[8] = { 0 };  // missing channels are zeros
    struct hmx_operand wx[HMX_COLS][8], ax[8];
    for (int o = 0; o < HMX_COLS; o++) {
        for (int i = 0; i < 8; i++) {
            w[o][i]  = i < st->n ? hmx_weight_fp(p, st->k + (uint32_t) i, o) : 0;
            wx[o][i] = hmx_operand(w[o][i], p->bf16);
        }
    }
    const uint8_t * in;
    int             set, row;
    FOR_POSITIONS(p, st, h->fset, in, set, row) {
        for (int i = 0; i < 8; i++) {
            a[i]  = i < st->n ? activation_fp(p, in + ((st->c + i) << p->fmt)) : 0;
            ax[i] = hmx_operand(a[i], p->bf16);
        }
        for (int o = 0; o < HMX_COLS; o++) {
            if (hmx_sw.xfp) {
                hmx_xfp_group(&h->fp.x[set][row / 2][o], ax, wx[o]);
                continue;
            }
            for (int i = 0; i < st->n; i++) {
                product_exact(&h->fp.d[set][row / 2][o], a[i], w[o][i], p->bf16);
            }
        }
    }
}

int hmx_mac(struct hmx * h, const struct hmx_pair * p, bool * cut) {
    const bool        fp    = hmx_is_float(p);
    const int         group = fp ? 8 : 4;
    const int         limit = fp ? HMX_FSTEP : HMX_STEPS;
    const struct taps ty = y_taps(p), tx = x_taps(p);
    struct step       st    = { 0 };
    int               steps = 0;

    *cut = false;
    for (int b = 0; b < p->blocks; b++) {
        const int c0 = b == 0 ? p->c0 : 0;
        const int c1 = b == p->blocks - 1 ? p->c1 : HMX_COLS;
        st.tile      = p->act + (size_t) b * HMX_TILE;
        for (int y = 0; y < ty.n; y++) {
            for (st.second = 0; st.second <= (p->wmod == HMX_W_DEEP); st.second++) {
                for (int x = 0; x < tx.n; x++) {
                    for (st.c = c0; st.c < c1; st.c += st.n) {
                        if (steps == limit) {
                            *cut = true;
                            return steps;
                        }
                        st.ty = ty.at[y];
                        st.tx = tx.at[x];
                        st.n  = c1 - st.c < group ? c1 - st.c : group;
                        if (fp) {
                            step_fp(h, p, &st);
                        } else {
                            step_int(h, p, &st);
                        }
                        st.k += (uint32_t) st.n;
                        steps++;
                    }
                }
            }
        }
    }
    return steps;
}

bool hmx_zero_meets_nan(const struct hmx_pair * p) {
    const struct taps ty = y_taps(p), tx = x_taps(p);
    const int         seconds = p->wmod == HMX_W_DEEP ? 2 : 1;
    uint32_t          k       = 0;
    if (!hmx_any_special(p)) {
        return false;
    }
    for (int b = 0; b < p->blocks; b++) {
        const int c0 = b == 0 ? p->c0 : 0;
        const int c1 = b == p->blocks - 1 ? p->c1 : HMX_COLS;
        for (int t = 0; t < ty.n * seconds * tx.n; t++) {
            struct step st = { .tile = p->act + (size_t) b * HMX_TILE,
                               .ty = ty.at[t / (seconds * tx.n)], .tx = tx.at[t % tx.n] };
            for (int c = c0; c < c1; c++, k++) {
                bool wzero = false, wnan = false;
                if (k / (uint32_t) hmx_weights_per_vector(p->wtype) * 128 >= p->wbytes) {
                    return false;  // only stand-ins are left
                }
                for (int o = 0; o < HMX_COLS; o++) {
                    const uint16_t w = hmx_weight_fp(p, k, o);
                    wzero |= (w & 0x7FFF) == 0;
                    wnan |= hmx_special(w, p->bf16);
                }
                const uint8_t * in;
                int             set, row;
                FOR_POSITIONS(p, &st, 0, in, set, row) {
                    const uint16_t a = activation_fp(p, in + (c << p->fmt));
                    (void) set, (void) row;
                    if ((wzero && hmx_special(a, p->bf16)) || (wnan && (a & 0x7FFF) == 0)) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}
