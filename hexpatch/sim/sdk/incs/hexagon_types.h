// Vector types of HVX with 128-byte vectors, by their SDK names.
//
// HVX_Vector is an int vector, so that what a kernel loads or stores through it is `<32 x i32>,
// align 128` in LLVM's IR: the toolchain truncates those addresses as the hardware does.
// A predicate has one bit a byte on the machine; here it is a byte mask (0 or -1) inside a struct,
// so that passing a vector for a predicate or the reverse does not compile.
#ifndef HEXAGON_TYPES_H
#define HEXAGON_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifndef __HVX_ARCH__
#error "hexsim: __HVX_ARCH__ is not defined (73, 75, 79 or 81)"
#endif

// Vectors wider than the host's registers change the ABI with -m options; nothing here crosses one.
#pragma clang diagnostic ignored "-Wpsabi"

typedef int HVX_Vector __attribute__((vector_size(128), aligned(128), may_alias));
typedef int HVX_VectorPair __attribute__((vector_size(256), aligned(128), may_alias));
typedef int HVX_UVector __attribute__((vector_size(128), aligned(1), may_alias));
typedef int HVX_UVectorPair __attribute__((vector_size(256), aligned(1), may_alias));

typedef struct {
    signed char m __attribute__((vector_size(128), aligned(128)));
} HVX_VectorPred;

typedef HVX_Vector     HEXAGON_Vect1024;
typedef HVX_VectorPair HEXAGON_Vect2048;
typedef HVX_UVector    HEXAGON_UVect1024;

// Scalars as the intrinsics' prototypes name them.
typedef int                Word32;
typedef unsigned int       UWord32;
typedef long long          Word64;
typedef unsigned long long UWord64;
typedef void *             Address;
typedef unsigned char      Byte;
typedef long long          HEXAGON_Vect64;
typedef int                HEXAGON_Vect32;

// User DMA: the descriptors and what their fields say.
#define HEXAGON_UDMA_DM0_STATUS_IDLE        0
#define HEXAGON_UDMA_DM0_STATUS_RUN         1
#define HEXAGON_UDMA_DM0_STATUS_ERROR       2
#define HEXAGON_UDMA_DESC_DSTATE_INCOMPLETE 0
#define HEXAGON_UDMA_DESC_DSTATE_COMPLETE   1
#define HEXAGON_UDMA_DESC_ORDER_NOORDER     0
#define HEXAGON_UDMA_DESC_ORDER_ORDER       1
#define HEXAGON_UDMA_DESC_BYPASS_OFF        0
#define HEXAGON_UDMA_DESC_BYPASS_ON         1
#define HEXAGON_UDMA_DESC_COMP_NONE         0
#define HEXAGON_UDMA_DESC_COMP_DLBC         1
#define HEXAGON_UDMA_DESC_DESCTYPE_TYPE0    0
#define HEXAGON_UDMA_DESC_DESCTYPE_TYPE1    1

// Pointers are as wide as the host's here; the DMA model reads the fields accordingly.
#define HEXAGON_UDMA_COMMON                                                            \
    void *       next;                                                                 \
    unsigned int length : 24, desctype : 2, dstcomp : 1, srccomp : 1, dstbypass : 1,   \
        srcbypass : 1, order : 1, dstate : 1;                                          \
    void *       src;                                                                  \
    void *       dst;

typedef struct hexagon_udma_descriptor_type0_s {
    HEXAGON_UDMA_COMMON
} hexagon_udma_descriptor_type0_t;

typedef struct hexagon_udma_descriptor_type1_s {
    HEXAGON_UDMA_COMMON
    unsigned int allocation : 28, padding : 4;
    unsigned int roiwidth : 16, roiheight : 16;
    unsigned int srcstride : 16, dststride : 16;
    unsigned int srcwidthoffset : 16, dstwidthoffset : 16;
} hexagon_udma_descriptor_type1_t;

#include <hexagon_protos.h>

#endif
