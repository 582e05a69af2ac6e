// A runtime of the functions that compiled code calls: it notes the calls for tests/sim/test_cc.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hexsim.h"

__thread struct sim_thread sim_self __attribute__((tls_model("initial-exec")));
char noted[65536];

static void note(const char * format, unsigned long a, unsigned long b, unsigned long c) {
    const size_t at = strlen(noted);
    snprintf(noted + at, sizeof(noted) - at, format, a, b, c);
}

void sim_hmx_load(uint32_t ao, uint32_t as, uint32_t at, uint32_t wo, uint32_t ws, uint32_t wt) {
    note("load %lx %lx %lx", ao, as, at);
    note(" %lx %lx %lx\n", wo, ws, wt);
}
void sim_hmx_op(uint32_t w, uint32_t op6, uint32_t rs, uint32_t rt) {
    note("op %lx %lx", w, op6, 0);
    note(" %lx %lx\n", rs, rt, 0);
}
void sim_hmx_bias(uint32_t op8, uint32_t rs) { note("bias %lx %lx\n", op8, rs, 0); }
void sim_hmx_cvt(uint32_t sub, uint32_t rs) { note("cvt %lu %lx\n", sub, rs, 0); }

void     sim_dmstart(void * d) { note("dmstart %lx\n", (unsigned long) d, 0, 0); }
void     sim_dmlink(void * t, void * d) { note("dmlink %lx %lx\n", (unsigned long) t, (unsigned long) d, 0); }
uint32_t sim_dmpoll(void) { note("dmpoll\n", 0, 0, 0); return 7; }
uint32_t sim_dmwait(void) { note("dmwait\n", 0, 0, 0); return 8; }
uint32_t sim_dmpause(void) { note("dmpause\n", 0, 0, 0); return 9; }
void     sim_dmresume(void * d) { note("dmresume %lx\n", (unsigned long) d, 0, 0); }
void     sim_pause(void) { note("pause\n", 0, 0, 0); }
uint64_t sim_cycles(void) { return 0x123456789abcull; }
uint64_t sim_packets(void) { return 0xdef012345678ull; }
uint32_t sim_pmu(int i) { return 100 + i; }

void sim_op_begin(const char * name, void * octx) {
    sim_self.op = name;
    note("begin ", 0, 0, 0);
    note(name, 0, 0, 0);
    note(" %lx\n", (unsigned long) octx, 0, 0);
}
void sim_hmx_push(bool job) { note("push %lu\n", job, 0, 0); }
void sim_hmx_pop(void) { note("pop\n", 0, 0, 0); }
void sim_op_end(int status) { note("end %lu\n", status, 0, 0); }

void sim_vld(const void * p) { note("vld %lu\n", (uintptr_t) p % 4096, 0, 0); }
void sim_vst(const void * p) { note("vst %lu\n", (uintptr_t) p % 4096, 0, 0); }

#define CALLBACK(n)                                                                                   \
    void __asan_load##n##_noabort(uintptr_t at);                                                      \
    void __asan_store##n##_noabort(uintptr_t at);                                                     \
    void __asan_load##n##_noabort(uintptr_t at) { note("ld" #n " %lu\n", at % 4096, 0, 0); }          \
    void __asan_store##n##_noabort(uintptr_t at) { note("st" #n " %lu\n", at % 4096, 0, 0); }
CALLBACK(1)
CALLBACK(2)
CALLBACK(4)
CALLBACK(8)
CALLBACK(16)
void __asan_loadN_noabort(uintptr_t at, size_t size);
void __asan_storeN_noabort(uintptr_t at, size_t size);
void __asan_handle_no_return(void);
void __asan_loadN_noabort(uintptr_t at, size_t size) { note("ldN %lu %lu\n", at % 4096, size, 0); }
void __asan_storeN_noabort(uintptr_t at, size_t size) { note("stN %lu %lu\n", at % 4096, size, 0); }
void __asan_handle_no_return(void) {}

// As upstream's link line asks for.
void * __wrap_malloc(size_t size);
void * __wrap_calloc(size_t n, size_t size);
void * __wrap_realloc(void * p, size_t size);
void * __wrap_memalign(size_t alignment, size_t size);
void   __wrap_free(void * p);
void * __wrap_malloc(size_t size) { note("malloc %lu\n", size, 0, 0); return malloc(size); }
void * __wrap_calloc(size_t n, size_t size) { return calloc(n, size); }
void * __wrap_realloc(void * p, size_t size) { return realloc(p, size); }
void * __wrap_memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
void   __wrap_free(void * p) { free(p); }

// And one that only the runtime asks for.
int __wrap_puts(const char * text);
int __wrap_puts(const char * text) { note("puts %lu\n", strlen(text), 0, 0); return 0; }
