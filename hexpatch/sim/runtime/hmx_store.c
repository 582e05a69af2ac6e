// Stores of a converted result.
#include "hmx.h"

// Rs as for an activation: position bits from the mask are the offset (x0, y0). `after` writes the
// positions x >= x0, from the result's x = 0 on; `before` those below, from where `after` would go
// on. Rows y >= y0 come first, the others go to the tile below. Offset 0: the whole tile.
struct masks {
    uint32_t sp, x, y;
};

static struct masks masks_of(uint32_t rt, enum hmx_kind kind, struct hmx_store how) {
    uint32_t sp = how.fmt == 2 ? 0x783 : 0x7E0;
    if (kind != HMX_INT) {
        sp &= ~1u;
    }
    return (struct masks) { sp, ~rt & sp, rt & sp };
}

bool hmx_store_odd_bits(uint32_t rs, uint32_t rt, enum hmx_kind kind, struct hmx_store how) {
    (void) rt;
    const uint32_t used = masks_of(rt, kind, how).sp | (how.pack ? 0x40 : 0);
    return (rs & 2047 & ~used) != 0;
}

static void put(const struct hmx_age * a, uint8_t * at, int fmt, int row, int col, int from) {
    uint8_t * to = at + (col << fmt);
    switch (a->kind) {
        case HMX_INT: *to = (uint8_t) (a->i[row][from] >> 4); break;
        case HMX_HF:
            to[0] = (uint8_t) (a->f[row / 2][from] >> 4);
            to[1] = (uint8_t) (a->f[row / 2][from] >> 12);
            break;
        case HMX_F8:
            to[0] = (uint8_t) a->f[row / 2][from];
            to[1] = (uint8_t) (a->f[row / 2][from] >> 8);
            break;
        default: *to = 0; break;
    }
}

// One part: the positions of `side` (0 before, 1 after) from age a.
static void part(const struct hmx_age * a, uint8_t * base, uint32_t rs, uint32_t rt, int side,
                 struct hmx_store how) {
    const struct masks m  = masks_of(rt, a->kind, how);
    const uint32_t     dy = rt & ~2047u;
    const uint32_t     nx = 1u << __builtin_popcount(m.x), ny = 1u << __builtin_popcount(m.y);
    const uint32_t     x0 = hmx_extract(rs, m.x), y0 = hmx_extract(rs, m.y);
    for (uint32_t y = 0; y < ny; y++) {
        uint8_t * row = base + (y < y0 ? dy : 0) + hmx_deposit(y, m.y);
        for (uint32_t x = side ? x0 : 0; x < (side ? nx : x0); x++) {
            const uint32_t from = hmx_deposit((x - x0) & (nx - 1), m.x)
                                  | hmx_deposit((y - y0) & (ny - 1), m.y);
            uint8_t * at = row + hmx_deposit(x, m.x);
            const int s  = how.fmt == 2 ? (int) ((from >> 7) << 2 | (from & 3)) : (int) (from >> 5);
            if (how.pack) {
                for (int c = 0; c < 16; c++) {
                    put(a, at, how.fmt, s, (rs & 0x40 ? 16 : 0) + c, 2 * c + 1);
                }
            } else {
                for (int c = 0; c < HMX_COLS; c++) {
                    put(a, at, how.fmt, s, c, c);
                }
            }
        }
    }
}

bool hmx_store(const struct hmx * h, uint32_t rs, uint32_t rt, struct hmx_store how) {
    uint8_t * base = (uint8_t *) (uintptr_t) (rs & ~2047u);
    for (int side = 0; side < 2; side++) {
        const int age = side ? how.after : how.before;
        if (age < 0) {
            continue;
        }
        const struct hmx_age * a   = &h->age[(h->now - age + HMX_AGES) % HMX_AGES];
        const struct masks     m   = masks_of(rt, a->kind, how);
        const uint32_t         far = rs & m.y ? rt & ~2047u : 0;
        if (!sim_in_vtcm(base, HMX_TILE) || !sim_in_vtcm(base + far, HMX_TILE)) {
            return false;
        }
    }
    if (!(rs & 2047) && !how.pack && how.fmt == 2 && how.after >= 0
        && hmx_store_fast(&h->age[(h->now - how.after + HMX_AGES) % HMX_AGES], base)) {
        return true;  // nothing comes before the offset
    }
    for (int side = 0; side < 2; side++) {
        const int age = side ? how.after : how.before;
        if (age >= 0) {
            part(&h->age[(h->now - age + HMX_AGES) % HMX_AGES], base, rs, rt, side, how);
        }
    }
    return true;
}
