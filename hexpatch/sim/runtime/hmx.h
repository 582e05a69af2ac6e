// The matrix unit (HMX) as the instructions see it: state of one thread and the parts of the model.
//
// Files: hmx.c (instructions, checks, faults), hmx_pair.c (operands of a load pair),
// hmx_mac.c (the plain loop, which is the specification), hmx_fast.c (tile-aligned multiplies),
// hmx_xfp.c (FP16 arithmetic), hmx_cvt.c (accumulator to result), hmx_store.c (result to memory),
// hmx_fastcvt.c (the usual converts and stores).
#ifndef HMX_H
#define HMX_H

#include <stdbool.h>
#include <stdint.h>

#include "hexsim.h"

// `bias = mxmem(Rs)` loads the first word of each channel. Models differ in what becomes of the
// second: the newer one keeps it, the older one clears it. Not settled on a device.
#define HMX_MXMEM_KEEPS_WORD1 1

enum {
    HMX_ROWS  = 64,    // spatial positions of an integer tile; FP16 uses 32
    HMX_COLS  = 32,    // output channels
    HMX_TILE  = 2048,  // bytes of an activation or output tile ("crouton")
    HMX_AGES  = 3,     // results of the last converts
    HMX_STEPS = 512,   // integer steps (4 channels each) a packet can make
    HMX_FSTEP = 128,   // FP steps (8 channels each)
    HMX_WMAX  = 65536, // weight bytes a packet can use
};

// One FP accumulator: s * 2^(e - 22), s in 30 bits. Not necessarily normalised.
struct hmx_xfp {
    int32_t s;
    int16_t e;
    uint8_t flags;  // HMX_NAN.. ; only when exponent 31 means Inf and NaN
};

enum { HMX_NAN = 1, HMX_PINF = 2, HMX_NINF = 4 };

enum hmx_kind { HMX_NONE, HMX_INT, HMX_HF, HMX_F8 };

// What a convert leaves for the stores: bytes with 4 fraction bits, fp16 with 4 more mantissa bits
// (20 bits), or two f8 codes (even in bits 7:0, odd in 15:8).
struct hmx_age {
    enum hmx_kind kind;
    _Alignas(64) union {
        uint16_t i[HMX_ROWS][HMX_COLS];
        uint32_t f[HMX_ROWS / 2][HMX_COLS];
    };
};

struct hmx {
    // value of an integer accumulator: s64(s32(hi << 4)) + s64(lo); both wrap at 32 bits
    uint32_t hi[2][HMX_ROWS][HMX_COLS];
    uint32_t lo[2][HMX_ROWS][HMX_COLS];
    union {
        double         d[2][HMX_ROWS / 2][HMX_COLS];  // HEXPATCH_SIM_HMX_FP=exact
        struct hmx_xfp x[2][HMX_ROWS / 2][HMX_COLS];  // HEXPATCH_SIM_HMX_FP=xfp
    } fp;
    uint32_t       bias[4][2 * HMX_COLS];  // group, word0 of the channels then word1
    struct hmx_age age[HMX_AGES];          // ring, newest at [now]
    int            now;
    int            iset;  // current integer set
    int            fset;  // current FP set
} __attribute__((aligned(64)));

// -- switches ---------------------------------------------------------------------------------

// What an operand with exponent 31 is. The unit's power-on rule is HMX_ORDINARY.
enum hmx_policy {
    HMX_ORDINARY,  // a number, 2^16 * 1.f; 0 times it is 0
    HMX_IEEE,      // Inf or NaN; 0 times it is NaN
    HMX_NAN0,      // Inf or NaN, but 0 times it is 0
};

struct hmx_switches {
    bool            xfp;      // bit-exact grouping instead of exact sums
    enum hmx_policy policy;
    bool            plain;    // never take a fast path (tests)
    bool            portable; // no machine-specific fast path (tests)
};

extern struct hmx_switches hmx_sw;

// HEXPATCH_SIM_HMX_FP = exact (default) | xfp, HEXPATCH_SIM_HMX_NAN = xfp (default) | ieee | nan0;
// the word nan0 in HEXPATCH_SIM_CHECKS selects nan0, too. Called at the first instruction.
void         hmx_read_switches(void);
const char * hmx_mode(void);  // "fp=exact nan=xfp": for reports

struct hmx * hmx_self(void);  // this thread's unit
bool         hmx_avx2(void);  // the machine has it and hmx_sw.portable is not set

// -- operands of a load pair ------------------------------------------------------------------

enum hmx_atype { HMX_A_UB, HMX_A_HF, HMX_A_F8 };
enum hmx_amod { HMX_A_BLOCK, HMX_A_DEEP, HMX_A_ABOVE, HMX_A_SINGLE, HMX_A_DILATE };
enum hmx_wtype {
    HMX_W_B, HMX_W_SM, HMX_W_N, HMX_W_C, HMX_W_SC, HMX_W_UBIT, HMX_W_SBIT, HMX_W_N2X,
    HMX_W_HF, HMX_W_F8,
};
enum hmx_wmod { HMX_W_NORMAL, HMX_W_SINGLE, HMX_W_DROP, HMX_W_DEEP, HMX_W_AFTER, HMX_W_DILATE };

struct hmx_pair {
    enum hmx_atype atype;
    enum hmx_amod  amod;
    int            fmt;       // bits below the channel: 2 spatial-major, 0 channel-major
    const uint8_t * act;      // first tile
    uint32_t       dy;        // to the neighbour below
    int            blocks;    // tiles
    int            c0, c1;    // channels [c0, c1); of the first and last tile when there are many
    uint32_t       ymask, xmask, fy, fx;
    int            odd;       // f8: which byte of the halfword

    enum hmx_wtype wtype;
    enum hmx_wmod  wmod;
    const uint8_t * wgt;
    uint32_t       wbytes;    // valid weight bytes, whole 128-byte vectors
    bool           negate, bf16;
};

enum hmx_bad { HMX_OK, HMX_BAD_ACT, HMX_BAD_WGT, HMX_BAD_OP };

// Fill pair from the operands of one packet. Anything but HMX_OK: the unit drops the pair.
// *odd_bits: address bits were set that the instruction ignores.
enum hmx_bad hmx_decode(struct hmx_pair * p, uint32_t aop, uint32_t ars, uint32_t art,
                        uint32_t wop, uint32_t wrs, uint32_t wrt, bool * odd_bits);

bool hmx_is_float(const struct hmx_pair * p);
int  hmx_weights_per_vector(enum hmx_wtype t);

// Weight k of output o as its two nibble parts, w = 16 * hi + lo. Beyond the operand: 0.
void hmx_weight(const struct hmx_pair * p, uint32_t k, int o, int * lo, int * hi);
// The same for FP: 16 bits, fp16 or bf16.
uint16_t hmx_weight_fp(const struct hmx_pair * p, uint32_t k, int o);

// -- multiply ---------------------------------------------------------------------------------

// The i-th position of a mask, and which position x is.
uint32_t hmx_deposit(uint32_t i, uint32_t mask);
uint32_t hmx_extract(uint32_t x, uint32_t mask);

// The specification. Returns the steps made (4 integer or 8 FP channels each); *cut: some were
// beyond what a packet can do.
int hmx_mac(struct hmx * h, const struct hmx_pair * p, bool * cut);

// The same for tile-aligned operands; false: not such a pair, nothing done.
bool hmx_mac_fast(struct hmx * h, const struct hmx_pair * p, int * steps);

// A NaN or Inf operand that meets a zero in this pair.
bool hmx_any_special(const struct hmx_pair * p);
bool hmx_zero_meets_nan(const struct hmx_pair * p);

// -- FP16 -------------------------------------------------------------------------------------

static inline int hmx_xfp_emin(void) { return sim_device.arch >= 81 ? -256 : -64; }

static inline bool hmx_special(uint16_t v, bool bf16) {
    return bf16 ? (v & 0x7F80) == 0x7F80 : (v & 0x7C00) == 0x7C00;
}

// A multiplier's operand: s * 2^(e - 9), |s| in 1024..2047 or 0. flags: Inf or NaN by the policy.
struct hmx_operand {
    int16_t s, e;
    uint8_t flags;
};

struct hmx_operand hmx_operand(uint16_t v, bool bf16);

double         hmx_value(uint16_t v, bool bf16);  // by the policy
// acc += a[0] * w[0] + ... + a[7] * w[7]
void           hmx_xfp_group(struct hmx_xfp * acc, const struct hmx_operand * a,
                             const struct hmx_operand * w);
int            hmx_xfp_lza(int32_t a, int32_t b);
struct hmx_xfp hmx_xfp_from(double v);
double         hmx_xfp_to(struct hmx_xfp v);

struct hmx_fcvt {
    bool clip;     // negative results become 0
    bool maxnorm;  // overflow gives the largest number
    bool wide;     // round to 14 mantissa bits
    bool f8;
};

// Convert one accumulator with a channel's bias words: 20 bits, or an f8 code.
uint32_t hmx_fp_convert(struct hmx_xfp acc, uint64_t bias, struct hmx_fcvt how);

// -- converts and stores ------------------------------------------------------------------------

enum hmx_shape { HMX_UB, HMX_UH21, HMX_UH22 };

struct hmx_icvt {
    enum hmx_shape shape;
    bool           sat;
    bool           jam;       // cvt.*: a sticky bit below the kept fraction
    bool           keep;      // 2x1: the low byte's 8 bits take part
    int            group;     // bias registers
    int            channel;   // 2x2: cvt's channel select
    int            feedback;  // 1: the last result is the output bias, 2: limits the scale
    bool           max;       // feedback 2: the larger one
};

int64_t hmx_int_value(const struct hmx * h, int set, int row, int col);

// Convert the current set into the newest age.
void hmx_convert_int(struct hmx * h, struct hmx_icvt how);
void hmx_convert_hf(struct hmx * h, int group, struct hmx_fcvt how, int feedback, bool max);
void hmx_convert_f8(struct hmx * h, int group, struct hmx_fcvt how, bool odd);

void hmx_clear_fp(struct hmx * h, int set);

// The same for the usual forms; false: not one of them.
bool hmx_convert_int_fast(const struct hmx * h, struct hmx_age * a, const struct hmx_icvt * how);
bool hmx_convert_hf_fast(const struct hmx * h, struct hmx_age * a, int group, struct hmx_fcvt how);
bool hmx_store_fast(const struct hmx_age * a, uint8_t * to);  // a whole spatial-major tile

// After a convert without :retain: the set that was read is cleared, the other one is current.
void hmx_next_int(struct hmx * h);
void hmx_next_fp(struct hmx * h);

struct hmx_store {
    int  fmt;
    bool pack;    // 2x2: 16 channels, from the odd ones
    int  after;   // age for positions from the offset on, -1: not written
    int  before;  // age for positions before it
};

// False: the output is not in VTCM, nothing was written.
bool hmx_store(const struct hmx * h, uint32_t rs, uint32_t rt, struct hmx_store how);
bool hmx_store_odd_bits(uint32_t rs, uint32_t rt, enum hmx_kind kind, struct hmx_store how);

#endif
