#ifndef QURT_MEMORY_H
#define QURT_MEMORY_H

#include "qurt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    QURT_MEM_CACHE_FLUSH,
    QURT_MEM_CACHE_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_ALL,
    QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL,
} qurt_mem_cache_op_t;

typedef enum {
    QURT_MEM_ICACHE,
    QURT_MEM_DCACHE,
} qurt_mem_cache_type_t;

// Nothing to do here: host and DSP see one memory. Forgotten cache flushes stay unseen.
int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode,
                         qurt_mem_cache_type_t type);

#ifdef __cplusplus
}
#endif

#endif
