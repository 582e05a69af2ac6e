// Plain types of the SDK. 64-bit ones differ by side: upstream's host code passes `unsigned long
// long` to generated stubs, its DSP code passes uint64_t, which is `unsigned long` on Linux.
#ifndef AEESTDDEF_H
#define AEESTDDEF_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t      byte;
typedef uint8_t      uint8;
typedef uint16_t     uint16;
typedef uint32_t     uint32;
typedef int8_t       int8;
typedef int16_t      int16;
typedef int32_t      int32;
typedef unsigned int boolean;
typedef int          AEEResult;

#ifdef __hexagon__
typedef uint64_t uint64;
typedef int64_t  int64;
#else
typedef unsigned long long uint64;
typedef long long          int64;
#endif

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#endif
