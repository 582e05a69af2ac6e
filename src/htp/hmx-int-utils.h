// Integer HMX: 16-bit activations x 8-bit weights.
//
// A 2048-byte activation tile holds 32 tokens x 32 k as u16, half (t / 2) * 64 + 2 * k + (t & 1): the low byte of a
// token is byte-row 2t, the high byte 2t + 1. Values are offset binary (32768 = 0).
// A 1024-byte weight tile holds 32 k x 32 columns as s8, byte (k / 4) * 128 + 4 * c + k % 4.
// The 2x1 store adds hi + (lo >> 8) + bias of its column and scales by a power of two; 32 tokens x 32 columns of s16
// come out in the order of an activation tile.

#ifndef HMX_INT_UTILS_H
#define HMX_INT_UTILS_H

#define HMX_INT_ACT_TILE_SIZE  2048
#define HMX_INT_WGT_TILE_SIZE  1024
#define HMX_INT_OUT_TILE_SIZE  2048
#define HMX_INT_BIAS_SIZE      256   // 32 scale words, 32 bias words

#define HMX_INT_OUT_SHIFT      4
// scale word of the store: out = (acc + bias) >> HMX_INT_OUT_SHIFT, exponent in bits 10..14, 16 means no shift
#define HMX_INT_SCALE_WORD     ((16 - HMX_INT_OUT_SHIFT) << 10)
// what 32768 in every activation adds to the accumulator, per unit of the column's weight sum
#define HMX_INT_OFFSET_SHIFT   7

#define HMX_INT_CLRACC() \
    "mxclracc\n"

#define HMX_INT_LOAD_MPY_DEEP(act, wt, range)              \
    "{\n"                                                  \
    "    activation.ub = mxmem(" act ", " range "):deep\n" \
    "    weight.b = mxmem(" wt ", " range ")\n"            \
    "}\n"

// stores, clears the accumulators it read and goes on with the other set
#define HMX_INT_STORE_AFTER(out, zero) \
    "mxmem(" out ", " zero "):after.uh = acc:2x1\n"

#endif // HMX_INT_UTILS_H
