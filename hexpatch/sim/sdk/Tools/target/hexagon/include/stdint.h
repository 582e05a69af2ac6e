// The least of a C library for `hexpatch` to compile upstream's DSP sources for the real target and
// look at the assembly: declarations only, nothing of it is ever linked.
#ifndef SIM_STDINT_H
#define SIM_STDINT_H

typedef __INT8_TYPE__    int8_t;
typedef __INT16_TYPE__   int16_t;
typedef __INT32_TYPE__   int32_t;
typedef __INT64_TYPE__   int64_t;
typedef __UINT8_TYPE__   uint8_t;
typedef __UINT16_TYPE__  uint16_t;
typedef __UINT32_TYPE__  uint32_t;
typedef __UINT64_TYPE__  uint64_t;
typedef __INTPTR_TYPE__  intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTMAX_TYPE__  intmax_t;
typedef __UINTMAX_TYPE__ uintmax_t;
typedef int              int_fast8_t, int_fast16_t, int_fast32_t;
typedef unsigned         uint_fast8_t, uint_fast16_t, uint_fast32_t;
typedef int64_t          int_fast64_t, int_least64_t;
typedef uint64_t         uint_fast64_t, uint_least64_t;
typedef int8_t           int_least8_t;
typedef uint8_t          uint_least8_t;
typedef int16_t          int_least16_t;
typedef uint16_t         uint_least16_t;
typedef int32_t          int_least32_t;
typedef uint32_t         uint_least32_t;

#define INT8_MIN    (-128)
#define INT8_MAX    127
#define UINT8_MAX   255
#define INT16_MIN   (-32768)
#define INT16_MAX   32767
#define UINT16_MAX  65535
#define INT32_MIN   (-2147483647 - 1)
#define INT32_MAX   2147483647
#define UINT32_MAX  4294967295u
#define INT64_MAX   9223372036854775807ll
#define INT64_MIN   (-INT64_MAX - 1)
#define UINT64_MAX  18446744073709551615ull
#define INTPTR_MAX  INT32_MAX
#define UINTPTR_MAX UINT32_MAX
#define SIZE_MAX    UINT32_MAX
#define PTRDIFF_MAX INT32_MAX
#define INT8_C(x)   x
#define INT16_C(x)  x
#define INT32_C(x)  x
#define UINT8_C(x)  x
#define UINT16_C(x) x
#define UINT32_C(x) x##u
#define INT64_C(x)  x##ll
#define UINT64_C(x) x##ull

#endif
