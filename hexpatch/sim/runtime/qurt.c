// The rest of QuRT, and what clocks and waiting instructions become.
#define _GNU_SOURCE
#include "qurt.h"
#include "sim.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t sim_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

SIM_API int qurt_futex_wait(void * lock, int val) {
    syscall(SYS_futex, lock, FUTEX_WAIT_PRIVATE, val, NULL, NULL, 0);
    return QURT_EOK;
}

SIM_API int qurt_futex_wake(void * lock, int n_to_wake) {
    return (int) syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, n_to_wake, NULL, NULL, 0);
}

SIM_API int qurt_hvx_lock(qurt_hvx_mode_t lock_mode) {
    return lock_mode == QURT_HVX_MODE_128B ? QURT_EOK : QURT_EINVALID;
}

SIM_API int qurt_hvx_unlock(void) {
    return QURT_EOK;
}

SIM_API int qurt_hvx_get_units(void) {
    return sim_device.threads << 8;
}

SIM_API int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t * mhwt) {
    mhwt->max_hthreads = (unsigned short) sim_device.threads;
    return QURT_EOK;
}

SIM_API void qurt_sleep(unsigned long long usec) {
    const struct timespec t = { (time_t) (usec / 1000000), (long) (usec % 1000000) * 1000 };
    nanosleep(&t, NULL);
}

SIM_API int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode,
                                 qurt_mem_cache_type_t type) {
    (void) addr, (void) size, (void) opcode, (void) type;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return QURT_EOK;
}

// No performance monitor: the counters stand still.
SIM_API void qurt_pmu_set(int reg_id, unsigned int reg_value) {
    (void) reg_id, (void) reg_value;
}

SIM_API unsigned int qurt_pmu_get(int red_id) {
    (void) red_id;
    return 0;
}

SIM_API void qurt_pmu_enable(int enable) {
    (void) enable;
}

SIM_API uint32_t sim_pmu(int i) {
    (void) i;
    return 0;
}

// A DSP has a hardware thread for each of its spinning threads, this machine may not: give way at
// once, and sleep after a while so that ten spinning threads don't starve the one that works.
SIM_API void sim_pause(void) {
    static __thread unsigned spins __attribute__((tls_model("initial-exec")));
    if (++spins % 256) {
        sched_yield();
    } else {
        const struct timespec t = { 0, 50000 };
        nanosleep(&t, NULL);
    }
}

SIM_API uint64_t sim_cycles(void) {
    return (uint64_t) ((unsigned __int128) sim_now_ns() * sim_device.hz / 1000000000u);
}

SIM_API uint64_t sim_packets(void) {
    return sim_cycles();
}

SIM_API unsigned long long qurt_get_core_pcycles(void) {
    return sim_cycles();
}
