// What the QuRT headers share.
#ifndef QURT_TYPES_H
#define QURT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define QURT_EOK       0
#define QURT_EVAL      1
#define QURT_EMEM      2
#define QURT_EINVALID  4
#define QURT_EFAILED   12
#define QURT_ENOTHREAD 18

typedef uintptr_t          qurt_addr_t;
typedef size_t             qurt_size_t;
typedef unsigned long long qurt_paddr_64_t;

#endif
