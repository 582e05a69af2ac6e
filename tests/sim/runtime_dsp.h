// What the two halves of the test DSP library share.
#ifndef RUNTIME_DSP_H
#define RUNTIME_DSP_H

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <AEEStdErr.h>
#include <HAP_compute_res.h>
#include <HAP_farf.h>
#include <HAP_mem.h>
#include <HAP_perf.h>
#include <HAP_power.h>
#include <dspqueue.h>
#include <hexsim.h>
#include <qurt.h>
#include <remote.h>

struct job {
    char      name[32];
    uint32_t  a[4];     // arguments
    uint64_t  r[4];     // results
    int       status;   // of the op
    uint8_t * vtcm;
    uint8_t * ddr;      // a mapped buffer of 64 KiB, filled with 0, 1, 2 ...
    unsigned  rctx;
    uint32_t  asked;    // times another session wanted the VTCM
};

struct kernel {
    const char * name;
    void (*run)(struct job *);
};

#define K(name) { #name, name }

extern const struct kernel dma_kernels[];  // the last has no name

// Runs the kernel of that name; false: there is none.
bool run_kernel(struct job * j);

#endif
