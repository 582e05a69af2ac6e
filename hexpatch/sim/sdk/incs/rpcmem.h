// Shared memory between host and DSP.
#ifndef RPCMEM_H
#define RPCMEM_H

#include "stddef/AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RPCMEM_HEAP_ID_SYSTEM 25
#define RPCMEM_DEFAULT_FLAGS  1
#define RPCMEM_DEFAULT_HEAP   (-1)
#define RPCMEM_HEAP_NOREG     0x40000000

void   rpcmem_init(void);
void   rpcmem_deinit(void);
void * rpcmem_alloc(int heapid, uint32 flags, int size);
void * rpcmem_alloc2(int heapid, uint32 flags, size_t size);
void   rpcmem_free(void * po);
int    rpcmem_to_fd(void * po);

#ifdef __cplusplus
}
#endif

#endif
