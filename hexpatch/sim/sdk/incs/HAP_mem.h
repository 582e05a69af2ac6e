// The DSP maps shared memory by its file descriptor.
#ifndef HAP_MEM_H
#define HAP_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAP_PROT_NONE  0
#define HAP_PROT_READ  1
#define HAP_PROT_WRITE 2
#define HAP_PROT_EXEC  4

#define HAP_MEM_CACHE_WRITEBACK  0x10
#define HAP_MEM_CACHE_NONE       0x20
#define HAP_MEM_CACHE_NON_SHARED 0x40

#define HAP_MEM_FLAGS_EXTENDED_MAP 0x100

// (void *) -1 when the address space is used up or the fd is unknown.
void * HAP_mmap(void * addr, int len, int prot, int flags, int fd, long offset);
int    HAP_munmap(void * addr, int len);
void * HAP_mmap2(void * addr, size_t len, int prot, int flags, int fd, long offset);
int    HAP_munmap2(void * addr, size_t len);

typedef enum {
    HAP_MEM_MAP   = 1,
    HAP_MEM_UNMAP = 2,
} HAP_mem_request_id;

typedef struct {
    uint64_t len;
    uint64_t offset;
    uint32_t prot;
    uint32_t flags;
    int      fd;
    uint64_t dsp_va;  // out; above 4 GiB with HAP_MEM_FLAGS_EXTENDED_MAP: for DMA only
} HAP_mem_map_payload_t;

typedef struct {
    uint64_t dsp_va;
    uint64_t len;
} HAP_mem_unmap_payload_t;

typedef struct {
    HAP_mem_request_id request_id;
    union {
        HAP_mem_map_payload_t   mmap;
        HAP_mem_unmap_payload_t munmap;
    };
} HAP_mem_req_payload_t;

int HAP_mem_request(HAP_mem_req_payload_t * request);

#ifdef __cplusplus
}
#endif

#endif
