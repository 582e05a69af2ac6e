// Shared buffers. Each is a memory file: the host maps it anywhere, a session maps it into its
// low memory, as on the phone. So host pointers are useless to a kernel, and vmem is a real limit.
#define _GNU_SOURCE
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpcmem.h"

#define MAX_FD 65536

static struct sim_block blocks[MAX_FD];  // by fd
static uint64_t         serial;
static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;

bool sim_block_by_fd(int fd, struct sim_block * out) {
    pthread_mutex_lock(&lock);
    const bool found = fd >= 0 && fd < MAX_FD && blocks[fd].host;
    if (found) {
        *out = blocks[fd];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void * alloc(size_t size) {
    size = (size + 4095) & ~(size_t) 4095;
    if (!size) {
        return NULL;
    }
    const int fd = memfd_create("rpcmem", MFD_CLOEXEC);
    if (fd < 0 || fd >= MAX_FD || ftruncate(fd, (off_t) size)) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    void * p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    blocks[fd] = (struct sim_block) { p, size, fd, ++serial };
    pthread_mutex_unlock(&lock);
    return p;
}

// The fd of the block that starts at p, -1 = none. With the lock held.
static int find(const void * p) {
    for (int fd = 0; fd < MAX_FD; fd++) {
        if (blocks[fd].host == p) {
            return fd;
        }
    }
    return -1;
}

SIM_API void rpcmem_init(void) {}

SIM_API void rpcmem_deinit(void) {}

SIM_API void * rpcmem_alloc(int heapid, uint32 flags, int size) {
    (void) heapid, (void) flags;
    return size > 0 ? alloc((size_t) size) : NULL;
}

SIM_API void * rpcmem_alloc2(int heapid, uint32 flags, size_t size) {
    (void) heapid, (void) flags;
    return alloc(size);
}

SIM_API void rpcmem_free(void * po) {
    if (!po) {
        return;
    }
    pthread_mutex_lock(&lock);
    const int fd = find(po);
    if (fd >= 0) {
        munmap(blocks[fd].host, blocks[fd].size);
        memset(&blocks[fd], 0, sizeof(blocks[fd]));
        close(fd);
    }
    pthread_mutex_unlock(&lock);
    if (fd < 0) {
        sim_log("rpcmem_free: %p is no buffer", po);
    }
}

SIM_API int rpcmem_to_fd(void * po) {
    pthread_mutex_lock(&lock);
    const int fd = po ? find(po) : -1;
    pthread_mutex_unlock(&lock);
    return fd;
}
