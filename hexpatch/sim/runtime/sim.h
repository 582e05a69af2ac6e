// What the runtime's files share. Public names are in ../sdk/incs/hexsim.h and the SDK headers.
#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "hexsim.h"
#include "remote.h"

#define SIM_LOW_BEGIN 0x20000000u  // everything a kernel may point to with 32 bits
#define SIM_LOW_END   0xfff00000u
#define SIM_HIGH      0x1000000000ull  // extended mappings (40-bit DMA addresses) grow from here
#define SIM_STACK     (1u << 20)
#define SIM_GRANULE   128u
#define SIM_MAX_SESSIONS 16
#define SIM_MAX_MAPS     128
#define SIM_HMX_FIFO     1024

// -- low memory (mem.c) -------------------------------------------------------------------------

enum mem_kind { MEM_NONE, MEM_VTCM, MEM_DDR, MEM_HEAP, MEM_STACK, MEM_LIB };

#define MEM_KIND    0x07
#define MEM_DMA_DST 0x10  // a transfer that was not waited for writes here
#define MEM_DMA_SRC 0x20  // ... reads here

extern uint8_t * sim_shadow;  // one byte per granule of the low 4 GiB: kind and flags

// A page-aligned range with a guard page behind it; backed by fd (shared) when fd >= 0.
// 0: no room. Freed ranges are reserved again.
uintptr_t sim_low_alloc(size_t size, enum mem_kind kind, int fd, size_t offset);
void      sim_low_free(uintptr_t at, size_t size);
void      sim_shadow_set(uintptr_t at, size_t size, uint8_t value);

static inline enum mem_kind sim_kind(uintptr_t at) {
    return at >> 32 ? MEM_NONE : (enum mem_kind) (sim_shadow[at / SIM_GRANULE] & MEM_KIND);
}

// -- shared buffers (rpcmem.c) --------------------------------------------------------------------

struct sim_block {
    uint8_t * host;
    size_t    size;
    int       fd;
    uint64_t  serial;  // file descriptors are reused, serials are not
};

// The block an fd stands for; false when there is none.
bool sim_block_by_fd(int fd, struct sim_block * out);

// -- sessions (session.c) -----------------------------------------------------------------------

struct sim_map {
    int      fd;
    uint64_t serial;
    uint64_t base;  // DSP address
    size_t   size;
    int      refs;
    int      pins;  // of these, by the host
    bool     extended;
};

struct sim_dma_pending;

// A session is a process on a DSP: its address space, VTCM, libraries and threads.
struct sim_session {
    int       domain;  // effective domain id: how the host names it
    int       core;
    int       index;   // on that core; 0 needs no reservation
    bool      reserved;
    uint8_t * vtcm;
    bool      hmx_powered;

    pthread_mutex_t lock;  // maps
    struct sim_map  maps[SIM_MAX_MAPS];
    uint64_t        vmem;  // bytes mapped

    uintptr_t lib_lo, lib_hi;  // the DSP library in memory

    // Calls: one FastRPC thread per session serves them in order.
    pthread_mutex_t call_lock, rpc_lock;
    pthread_cond_t  rpc_cond;
    bool            rpc_started;
    struct sim_call * call;

    // The op that is running.
    const char * op;
    int          op_depth;
    uint64_t     op_base[SIM_N_COUNTERS];
    uint64_t     n_faults[SIM_N_FAULTS], fault_base[SIM_N_FAULTS];
    uint64_t     dead[SIM_N_COUNTERS];  // counts of threads that are gone
    const void * hmx_fifo[SIM_HMX_FIFO];  // who pushed a job that was not popped; NULL: a signal
    unsigned     hmx_in, hmx_out;

    // DMA that was not waited for.
    pthread_mutex_t dma_lock;
    struct sim_dma_pending * pending;
};

extern struct sim_session sim_sessions[SIM_MAX_SESSIONS];
extern int                sim_n_sessions;

struct sim_session * sim_session_by_domain(int domain);
bool                 sim_session_map(struct sim_session * s, int fd, uint64_t len, bool extended, uint64_t * base);
bool                 sim_session_unmap(struct sim_session * s, uint64_t base);
// The host's pinned mappings.
bool                 sim_session_pin(struct sim_session * s, int fd, uint64_t len);
void                 sim_session_unpin(struct sim_session * s, int fd);
// DSP address of an fd's mapping, and the reverse; 0 = not mapped.
uint64_t             sim_session_fd_base(struct sim_session * s, int fd, size_t * size);

// -- threads (thread.c) ---------------------------------------------------------------------------

struct sim_engine {
    uint64_t next;    // descriptor to run; 0 = idle
    bool     paused;
    bool     error;
};

struct sim_ctx {
    struct sim_ctx *     link;
    struct sim_thread *  self;  // its sim_self
    struct sim_session * session;
    unsigned             id;
    char                 name[16];
    int                  priority;
    void               (*entry)(void *);
    void *               arg;
    size_t               stack_asked;
    uintptr_t            stack;       // 0: not ours
    uintptr_t            stack_top;   // where its own frames begin: libc's data lies above
    size_t               stack_used;
    bool                 stack_told;  // fault reported
    void *               signal_stack;
    bool                 joinable, done;
    int                  status;
    pthread_t            pthread;
    bool                 hmx_held;    // the matrix unit is locked by this thread
    struct sim_engine    dma;
};

struct sim_ctx * sim_me(void);  // registers the thread when it is new
// A DSP thread; its id, 0 = failed. stack_asked 0: the stack is not checked.
unsigned sim_thread_start(struct sim_session * s, const char * name, int priority, size_t stack_asked,
                          void (*entry)(void *), void * arg);
int      sim_thread_join(unsigned id, int * status);
void     sim_session_counts(struct sim_session * s, uint64_t n[SIM_N_COUNTERS]);
void     sim_total_counts(uint64_t n[SIM_N_COUNTERS]);
void     sim_each_thread(struct sim_session * s, void (*visit)(struct sim_ctx *, void *), void * arg);
void     sim_stack_scan(struct sim_ctx * c);

// -- reports (report.c, fault.c) --------------------------------------------------------------

void sim_log(const char * format, ...) __attribute__((format(printf, 1, 2)));  // stderr
void sim_report_line(const char * json);
void sim_report_stack(const struct sim_ctx * c);
void sim_report_op(const char * op, int status, const uint64_t n[SIM_N_COUNTERS], const uint64_t faults[SIM_N_FAULTS]);
void sim_fault_in(const char * op, enum sim_fault kind, const void * addr, size_t size, const void * pc);
// "libx.so+0x12" for an address in a loaded library: what addr2line -e wants.
void sim_where(const void * pc, char * out, size_t size);
void sim_faults_json(FILE * f);
void sim_faults_text(void);
const char * sim_fault_name(enum sim_fault kind);
const char * sim_intern(const char * s);

// -- DMA (dma.c) ------------------------------------------------------------------------------

// The end of an op: what is queued and was not waited for is a fault, and is run now.
void sim_dma_finish(struct sim_session * s);
bool sim_dma_conflict(uintptr_t at, size_t size, bool store);

// -- others --------------------------------------------------------------------------------------

void *   sim_signal_stack(void);
uint64_t sim_now_ns(void);
void *   sim_dsp_malloc(size_t align, size_t size);
void     sim_dsp_free(void * p);

#endif
