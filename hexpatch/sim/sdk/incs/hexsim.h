// What the simulator's parts say to each other: counters, faults, the device, HMX and DMA entry
// points. The DSP library (upstream's kernels), the HVX headers and the runtime all include it.
#ifndef HEXSIM_H
#define HEXSIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIM_API __attribute__((visibility("default")))

// -- counters ---------------------------------------------------------------------------------
//
// X(name, what one unit is)
#define SIM_COUNTERS(X)                                              \
    X(hvx_alu,      "HVX ALU, shift and compare intrinsics")         \
    X(hvx_mpy,      "HVX integer multiplies")                        \
    X(hvx_perm,     "HVX permutes, shuffles, lookups")               \
    X(hvx_fp,       "HVX qfloat, IEEE and conversion intrinsics")    \
    X(hvx_ld,       "aligned 128-byte loads")                        \
    X(hvx_st,       "aligned 128-byte stores, masked ones included") \
    X(hvx_ldu,      "unaligned 128-byte loads")                      \
    X(hvx_stu,      "unaligned 128-byte stores")                     \
    X(hvx_gather,   "vgather instructions")                          \
    X(hvx_scatter,  "vscatter instructions")                         \
    X(hmx_tiles_i,  "integer tile multiplies (2048 B x 1024 B)")     \
    X(hmx_tiles_f,  "FP16 tile multiplies (2048 B x 2048 B)")        \
    X(hmx_stores,   "HMX convert-and-store instructions")            \
    X(hmx_bias,     "HMX bias loads")                                \
    X(dma,          "DMA descriptors executed")                      \
    X(dma_rows,     "rows in them")                                  \
    X(dma_bytes,    "bytes they moved")                              \
    X(dma_waits,    "polls that found a descriptor not done")        \
    X(ddr_rd,       "bytes the cores read from mapped buffers")      \
    X(ddr_wr,       "bytes the cores wrote to mapped buffers")       \
    X(l2fetch,      "l2fetch requests")                              \
    X(vtcm_scalar,  "scalar loads and stores to VTCM")               \
    X(dispatches,   "work handed to the worker threads")             \
    X(jobs,         "worker functions run by dispatches")            \
    X(hmx_jobs,     "jobs handed to the HMX thread")                 \
    X(barriers,     "waits for a dispatch's workers or an HMX job")  \
    X(misaligned,   "vector accesses whose address was truncated")

enum sim_counter {
#define X(name, what) SIM_##name,
    SIM_COUNTERS(X)
#undef X
        SIM_N_COUNTERS
};

struct sim_thread {
    uint64_t     n[SIM_N_COUNTERS];
    const char * op;  // on the thread that runs an op: its function; NULL or "" otherwise
};

// One per thread. initial-exec: an increment is one instruction.
extern __thread struct sim_thread sim_self __attribute__((tls_model("initial-exec")));

// HEXSIM_COUNT=0 compiles a DSP library without counting (verdicts only).
#ifndef HEXSIM_COUNT
#define HEXSIM_COUNT 1
#endif
#if HEXSIM_COUNT
#define sim_count(what)      ((void) (sim_self.n[SIM_##what]++))
#define sim_count_n(what, k) ((void) (sim_self.n[SIM_##what] += (uint64_t) (k)))
#else
#define sim_count(what)      ((void) 0)
#define sim_count_n(what, k) ((void) (k))
#endif

// -- faults -----------------------------------------------------------------------------------
//
// A fault is counted per kind and place (pc) and reported with the op; the run goes on.
// X(name, the switch in HEXPATCH_SIM_CHECKS, text)
#define SIM_FAULTS(X)                                                                  \
    X(dma_order,   "dma",     "DMA result used or overwritten before it was waited for") \
    X(dma_bad,     "dma",     "DMA descriptor the engine refuses")                     \
    X(dma_left,    "balance", "DMA pushed but not popped at the end of an op")         \
    X(hmx_left,    "balance", "HMX job not waited for at the end of an op")            \
    X(scalar_vtcm, "scalar",  "scalar load or store to VTCM")                          \
    X(bounds,      "bounds",  "access outside mapped buffers")                         \
    X(misaligned,  "align",   "misaligned vector access (address truncated)")          \
    X(hmx_operand, "hmx",     "HMX operand not in VTCM, misaligned or crossing")       \
    X(hmx_lock,    "hmx",     "HMX used without its lock or power")                    \
    X(hmx_nan,     "nan",     "0 * NaN or 0 * Inf in an HMX multiply")                 \
    X(region,      "region",  "gather or scatter region not in VTCM")                  \
    X(stack,       "stack",   "more stack than the thread asked for")

enum sim_fault {
#define X(name, sw, text) SIM_FAULT_##name,
    SIM_FAULTS(X)
#undef X
        SIM_N_FAULTS
};

// pc: where in the kernel; 0 = the caller's return address.
SIM_API void sim_fault(enum sim_fault kind, const void * addr, size_t size, const void * pc);

// -- the device -------------------------------------------------------------------------------

struct sim_device {
    char     name[32];
    int      arch;          // 73, 75, 79, 81
    int      threads;       // hardware threads, each with an HVX context
    uint32_t vtcm;          // bytes
    bool     hmx;           // a matrix unit at all
    bool     hmx_fp16;      // with FP16 multipliers
    bool     hmx_clock;     // false: the HMX clock request fails
    uint64_t hz;            // DSP clock
    uint64_t vmem;          // bytes a session may map
    int      sessions;      // how many sessions may be open on a core
    int      cores;         // how many such DSPs there are
};

// The VTCMs of all sessions lie in one arena below 4 GiB, sim_device.vtcm bytes each, back to back.
extern SIM_API struct sim_device sim_device;     // valid from load
extern SIM_API uint8_t *         sim_vtcm_base;  // the arena
extern SIM_API uint32_t          sim_vtcm_size;  // all of it
extern SIM_API uint32_t          sim_checks;     // bit i: fault i is looked for
extern SIM_API uint32_t          sim_modes;

enum sim_mode {
    SIM_MODE_lazy   = 1,  // DMA moves data at a poll or wait, one descriptor a poll
    SIM_MODE_poison = 2,  // VTCM holds NaN patterns when an op begins
    SIM_MODE_nan0   = 4,  // 0 * NaN and 0 * Inf count as 0 in the matrix unit
};

static inline bool sim_checked(enum sim_fault kind) { return sim_checks >> kind & 1; }

static inline bool sim_in_vtcm(const void * p, size_t size) {
    const uintptr_t at = (uintptr_t) p - (uintptr_t) sim_vtcm_base;
    return at < sim_vtcm_size && size <= sim_vtcm_size - at;
}

// -- what inline assembly becomes (hexpatch/sim/asmrules.py) ------------------------------------

// One packet of an activation and a weight load. Codes: op8 of the two loads (W=0 and W=1).
SIM_API void sim_hmx_load(uint32_t act_op8, uint32_t act_rs, uint32_t act_rt,
                          uint32_t wgt_op8, uint32_t wgt_rs, uint32_t wgt_rt);
// Every other HMX instruction: w and op6 of the convert/store form.
SIM_API void sim_hmx_op(uint32_t w, uint32_t op6, uint32_t rs, uint32_t rt);
SIM_API void sim_hmx_bias(uint32_t op8, uint32_t rs);  // 0xFE mxmem2, 0xFF mxmem
SIM_API void sim_hmx_cvt(uint32_t sub, uint32_t rs);   // cvt.*=acc(Rs): sub-op of op6 0x10

SIM_API void     sim_dmstart(void * desc);
SIM_API void     sim_dmlink(void * tail, void * desc);
SIM_API uint32_t sim_dmpoll(void);
SIM_API uint32_t sim_dmwait(void);
SIM_API uint32_t sim_dmpause(void);
SIM_API void     sim_dmresume(void * desc);
SIM_API void     sim_pause(void);      // yields
SIM_API uint64_t sim_cycles(void);     // c15:14
SIM_API uint64_t sim_packets(void);    // c19:18
SIM_API uint32_t sim_pmu(int i);       // upmucntI

// Does the calling thread hold the matrix unit, and did its session power it up?
SIM_API bool sim_hmx_locked(void);

// -- memory accesses ----------------------------------------------------------------------------
//
// A load or store through an HVX_Vector: counted; a misaligned address is a fault. For accesses
// the compiler's callbacks don't see, the other two: bounds and pending DMA only, nothing counted.
// pc: where in the kernel.
SIM_API void sim_vld(const void * p);
SIM_API void sim_vst(const void * p);
SIM_API void sim_touch_read(const void * p, size_t size, const void * pc);
SIM_API void sim_touch_write(const void * p, size_t size, const void * pc);

// -- op boundaries (the linker wraps every op_* function of the DSP library) --------------------

SIM_API void sim_op_begin(const char * function, void * octx);
SIM_API void sim_op_end(int status);

// A job or a signal of the HMX queue was pushed; its oldest entry was popped (none: nothing happens).
// Jobs still in there at the end of an op are hmx_left.
SIM_API void sim_hmx_push(bool job);
SIM_API void sim_hmx_pop(void);

#ifdef __cplusplus
}
#endif

#endif
