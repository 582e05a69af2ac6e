// HMX instructions: what each does to the unit, what is checked, what is counted.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hmx.h"

// Whether this thread holds the HMX lock; another part of the runtime knows.
__attribute__((weak)) bool sim_hmx_locked(void);

// -- switches and state ---------------------------------------------------------------------------

struct hmx_switches hmx_sw;

static bool is(const char * variable, const char * value) {
    const char * v = getenv(variable);
    return v && !strcmp(v, value);
}

void hmx_read_switches(void) {
    hmx_sw.xfp    = is("HEXPATCH_SIM_HMX_FP", "xfp");
    hmx_sw.policy = is("HEXPATCH_SIM_HMX_NAN", "ieee")                                     ? HMX_IEEE
                    : is("HEXPATCH_SIM_HMX_NAN", "nan0") || (sim_modes & SIM_MODE_nan0) ? HMX_NAN0
                                                                                           : HMX_ORDINARY;
}

const char * hmx_mode(void) {
    static const char * const names[2][3] = {
        { "fp=exact nan=xfp", "fp=exact nan=ieee", "fp=exact nan=nan0" },
        { "fp=xfp nan=xfp", "fp=xfp nan=ieee", "fp=xfp nan=nan0" },
    };
    return names[hmx_sw.xfp][hmx_sw.policy];
}

static __thread struct hmx * mine;
static pthread_key_t         at_exit;
static pthread_once_t        once = PTHREAD_ONCE_INIT;

static void start(void) {
    hmx_read_switches();
    pthread_key_create(&at_exit, free);
}

struct hmx * hmx_self(void) {
    if (!mine) {
        mine = aligned_alloc(_Alignof(struct hmx), sizeof *mine);
        if (!mine) {
            abort();
        }
        memset(mine, 0, sizeof *mine);
        hmx_clear_fp(mine, 0);
        hmx_clear_fp(mine, 1);
        pthread_setspecific(at_exit, mine);
    }
    return mine;
}

// -- checks -------------------------------------------------------------------------------------

#define HERE __builtin_return_address(0)

static void fault(enum sim_fault kind, uint32_t at, size_t size, const void * pc) {
    if (sim_checked(kind)) {
        sim_fault(kind, (const void *) (uintptr_t) at, size, pc);
    }
}

// Without a matrix unit nothing happens; without the lock the instruction still runs.
static bool ready(const void * pc) {
    const bool locked = !sim_hmx_locked || sim_hmx_locked();
    pthread_once(&once, start);
    if (!sim_device.hmx || !locked) {
        fault(SIM_FAULT_hmx_lock, 0, 0, pc);
    }
    return sim_device.hmx;
}

// Operands that a DMA still writes, or a result that one still reads: looked for by 128-byte lines.
static void touch(const void * at, size_t size, bool store, const void * pc) {
    if (!sim_checked(SIM_FAULT_dma_order)) {
        return;
    }
    for (const uint8_t * p = at; size > 0; p += 128, size -= size < 128 ? size : 128) {
        const size_t n = size < 128 ? size : 128;
        if (store) {
            sim_touch_write(p, n, pc);
        } else {
            sim_touch_read(p, n, pc);
        }
    }
}

// Weights a pair can use: its tiles' worth, whatever more Rt covers.
static size_t weight_bytes(const struct hmx_pair * p) {
    const size_t tile = p->wtype == HMX_W_HF ? HMX_TILE : HMX_TILE / 2;
    const size_t most = (size_t) p->blocks * tile * (p->wmod == HMX_W_DEEP ? 2 : 1);
    return p->wbytes < most ? p->wbytes : most;
}

// -- multiply -----------------------------------------------------------------------------------

void sim_hmx_load(uint32_t aop, uint32_t ars, uint32_t art, uint32_t wop, uint32_t wrs, uint32_t wrt) {
    if (!ready(HERE)) {
        return;
    }
    struct hmx_pair p;
    bool            odd_bits, cut = false;
    int             steps;
    switch (hmx_decode(&p, aop, ars, art, wop, wrs, wrt, &odd_bits)) {
        case HMX_OK: break;
        case HMX_BAD_WGT: fault(SIM_FAULT_hmx_operand, wrs, (size_t) wrt + 1, HERE); return;
        case HMX_BAD_ACT: fault(SIM_FAULT_hmx_operand, ars, (size_t) art + 1, HERE); return;
        default: fault(SIM_FAULT_hmx_operand, ars, 0, HERE); return;
    }
    if (odd_bits) {  // the unit looks past them
        fault(SIM_FAULT_hmx_operand, ars, (size_t) art + 1, HERE);
    }
    touch(p.act, (size_t) p.dy + HMX_TILE, false, HERE);
    touch(p.wgt, weight_bytes(&p), false, HERE);
    const bool fp = hmx_is_float(&p);
    if (fp && !sim_device.hmx_fp16) {
        return;  // no multipliers: the accumulators stay as they are, which is zero
    }
    if (fp && sim_checked(SIM_FAULT_hmx_nan) && hmx_zero_meets_nan(&p)) {
        fault(SIM_FAULT_hmx_nan, ars, (size_t) art + 1, HERE);
    }
    struct hmx * h = hmx_self();
    if (!hmx_mac_fast(h, &p, &steps)) {
        steps = hmx_mac(h, &p, &cut);
    }
    if (cut) {
        fault(SIM_FAULT_hmx_operand, ars, (size_t) art + 1, HERE);
    }
    if (fp) {
        sim_count_n(hmx_tiles_f, (steps + 3) / 4);
    } else {
        sim_count_n(hmx_tiles_i, (steps + 7) / 8);
    }
}

// -- bias ---------------------------------------------------------------------------------------

// Four groups of registers from v75 on, chosen by the address's last two bits.
static int group_of(uint32_t bits) { return sim_device.arch >= 75 ? (int) (bits & 3) : 0; }

static uint32_t * bias_memory(uint32_t rs, uint32_t size, const void * pc) {
    uint32_t * at = (uint32_t *) (uintptr_t) (rs & -size);
    if ((rs & (size - 1) & ~3u) || !sim_in_vtcm(at, size)) {
        fault(SIM_FAULT_hmx_operand, rs, size, pc);
    }
    return sim_in_vtcm(at, size) ? at : NULL;
}

void sim_hmx_bias(uint32_t op8, uint32_t rs) {
    if (!ready(HERE)) {
        return;
    }
    const bool       two = op8 == 0xFE;
    const uint32_t * at  = bias_memory(rs, two ? 256 : 128, HERE);
    if (at) {
        touch(at, two ? 256 : 128, false, HERE);
        uint32_t * bias = hmx_self()->bias[group_of(rs)];
        memcpy(bias, at, two ? 256 : 128);
        if (!two && !HMX_MXMEM_KEEPS_WORD1) {
            memset(bias + HMX_COLS, 0, 128);
        }
        sim_count(hmx_bias);
    }
}

static void store_bias(uint32_t rs, uint32_t size, const void * pc) {
    uint32_t * at = bias_memory(rs, size, pc);
    if (at) {
        memcpy(at, hmx_self()->bias[group_of(rs)], size);
    }
}

// -- converts and stores ------------------------------------------------------------------------

static void store(struct hmx * h, uint32_t rs, uint32_t rt, enum hmx_kind kind,
                  struct hmx_store how, const void * pc) {
    touch((const void *) (uintptr_t) (rs & ~2047u), HMX_TILE, true, pc);
    const bool written = hmx_store(h, rs, rt, how);
    if (!written || hmx_store_odd_bits(rs, rt, kind, how)) {
        fault(SIM_FAULT_hmx_operand, rs, HMX_TILE, pc);
    }
    sim_count_n(hmx_stores, written);
}

// mxmem(Rs, Rt):before|after[...] = acc: a convert with bias group 0, then a store of one part.
struct legacy {
    enum { L_NONE, L_UB, L_HF, L_UH21, L_UH22 } type;
    bool after, retain, sat, cm, pos;
};

static struct legacy legacy_of(uint32_t w, uint32_t op) {
    struct legacy l = { .type = L_NONE };
    if (w == 0 && op < 0x10) {
        l = (struct legacy) { L_UB, op & 4, op & 8, !(op & 2), op & 1, false };
    } else if (w == 1 && op < 0x20) {
        static const uint8_t HF[][4] = {  // op, after, retain, pos
            { 0x00, 0, 0, 0 }, { 0x01, 0, 0, 1 }, { 0x04, 1, 0, 0 }, { 0x09, 1, 0, 1 },
            { 0x08, 0, 1, 0 }, { 0x05, 0, 1, 1 }, { 0x0C, 1, 1, 0 }, { 0x0D, 1, 1, 1 },
        };
        if ((op & 2) && (op & 16) && sim_device.arch < 69) {
            return l;
        }
        if (op & 2) {
            l = (struct legacy) { op & 16 ? L_UH22 : L_UH21, op & 8, op & 4, !(op & 1), false, false };
        }
        for (size_t i = 0; i < sizeof HF / sizeof *HF; i++) {
            if (HF[i][0] == op) {
                l = (struct legacy) { L_HF, HF[i][1], HF[i][2], false, false, HF[i][3] };
            }
        }
    }
    return l;
}

static void legacy_store(struct hmx * h, struct legacy l, uint32_t rs, uint32_t rt, const void * pc) {
    const bool             hf  = l.type == L_HF;
    const struct hmx_store how = { .fmt = l.cm ? 0 : 2, .pack = l.type == L_UH22,
                                   .after = l.after ? 0 : -1, .before = l.after ? -1 : 0 };
    if (hf) {
        hmx_convert_hf(h, 0, (struct hmx_fcvt) { .clip = l.pos }, 0, false);
    } else {
        const enum hmx_shape shape = l.type == L_UB ? HMX_UB : l.type == L_UH21 ? HMX_UH21 : HMX_UH22;
        hmx_convert_int(h, (struct hmx_icvt) { .shape = shape, .sat = l.sat });
    }
    store(h, rs, rt, hf ? HMX_HF : HMX_INT, how, pc);
    if (!l.retain) {
        (hf ? hmx_next_fp : hmx_next_int)(h);
    }
}

// mxmem(Rs, Rt)... = cvt: positions before the offset from the previous result, the others from
// the newest; :deep takes both one older.
static bool cvt_store(struct hmx * h, uint32_t op, uint32_t rs, uint32_t rt, const void * pc) {
    static const struct {
        uint8_t op, fmt, pack, deep, arch;
    } STORES[] = {
        { 0x18, 2, 0, 0, 73 }, { 0x19, 0, 0, 0, 73 }, { 0x1A, 2, 1, 0, 73 }, { 0x1B, 2, 0, 1, 79 },
        { 0x1C, 0, 0, 1, 79 }, { 0x1D, 2, 0, 0, 81 }, { 0x1E, 2, 0, 1, 81 },
    };
    for (size_t i = 0; i < sizeof STORES / sizeof *STORES; i++) {
        if (STORES[i].op == op && sim_device.arch >= STORES[i].arch) {
            const int              age = STORES[i].deep;
            const struct hmx_store how = { STORES[i].fmt, STORES[i].pack, age, age + 1 };
            store(h, rs, rt, h->age[(h->now + HMX_AGES - age) % HMX_AGES].kind, how, pc);
            return true;
        }
    }
    return false;
}

static void shift16(struct hmx * h) {
    for (int s = 0; s < HMX_ROWS; s++) {
        for (int c = 0; c < HMX_COLS; c++) {
            h->hi[h->iset][s][c] <<= 16;
            h->lo[h->iset][s][c] <<= 16;
        }
    }
}

void sim_hmx_op(uint32_t w, uint32_t op6, uint32_t rs, uint32_t rt) {
    if (!ready(HERE)) {
        return;
    }
    struct hmx *        h = hmx_self();
    const struct legacy l = legacy_of(w, op6);
    if (l.type != L_NONE) {
        legacy_store(h, l, rs, rt, HERE);
        return;
    }
    switch (w << 8 | op6) {
        case 0x10: store_bias(rs, 128, HERE); return;
        case 0x16: store_bias(rs, 256, HERE); return;
        case 0x11:
            memset(h->hi, 0, sizeof h->hi);
            memset(h->lo, 0, sizeof h->lo);
            return;
        case 0x13:
            hmx_clear_fp(h, 0);
            hmx_clear_fp(h, 1);
            return;
        case 0x14: h->iset ^= 1; return;
        case 0x15: h->fset ^= 1; return;
        case 0x17:
            if (sim_device.arch < 79) {
                shift16(h);
                return;
            }
            break;
        default:
            if (w == 0 && cvt_store(h, op6, rs, rt, HERE)) {
                return;
            }
            break;
    }
    fault(SIM_FAULT_hmx_operand, rs, 0, HERE);
}

// cvt.* = acc(Rs). Rs: 0 retain, 1 clear to saturate (FP: to clip negatives), 3:2 feedback, 4 its
// limit is a maximum, 5 keep the low byte's bits, 6 largest number instead of Inf, 7 bf16, 8 round
// to 14 mantissa bits, 10:9 channel of 2x2, 11 odd half of f8, 13:12 bias group.
void sim_hmx_cvt(uint32_t sub, uint32_t rs) {
    if (!ready(HERE)) {
        return;
    }
    struct hmx *          h = hmx_self();
    const struct hmx_icvt i = {
        .shape    = sub == 24 ? HMX_UH21 : sub == 25 ? HMX_UH22 : HMX_UB,
        .sat      = !(rs & 2),
        .jam      = true,
        .keep     = (rs & 32) && sim_device.arch >= 79,
        .group    = group_of(rs >> 12),
        .channel  = (int) (rs >> 9 & 3),
        .feedback = (int) (rs >> 2 & 3),
        .max      = rs & 16,
    };
    const struct hmx_fcvt f = { .clip = !(rs & 2), .maxnorm = rs & 64, .wide = rs & 256 };
    if (sub == 0) {
        store_bias(rs, 128, HERE);
        return;
    }
    // feedback is only known for results that fill the field they replace
    const bool known = i.feedback == 0 || (i.feedback < 3 && (sub == 23 || sub == 26));
    if (sim_device.arch >= 73 && known && sub >= 23 && sub <= 25) {
        hmx_convert_int(h, i);
        if (!(rs & 1)) {
            hmx_next_int(h);
        }
    } else if (known && !(rs & 128) && (sub == 26 ? sim_device.arch >= 73 : sub == 27 && sim_device.arch >= 81)) {
        if (sub == 26) {
            hmx_convert_hf(h, i.group, f, i.feedback, i.max);
        } else {
            hmx_convert_f8(h, i.group, f, rs & 2048);
        }
        if (!(rs & 1)) {
            hmx_next_fp(h);
        }
    } else {  // cvt.ub:sc0 and :sc1, bf16 results and the rest are not modelled
        fault(SIM_FAULT_hmx_operand, rs, 0, HERE);
    }
}
