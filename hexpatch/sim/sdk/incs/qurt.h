// The umbrella header of QuRT, as far as it is used.
#ifndef QURT_H
#define QURT_H

#include "qurt_futex.h"
#include "qurt_hvx.h"
#include "qurt_memory.h"
#include "qurt_pmu.h"
#include "qurt_thread.h"
#include "qurt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    unsigned short max_hthreads;
} qurt_sysenv_max_hthreads_t;

int                qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t * mhwt);
void               qurt_sleep(unsigned long long usec);
unsigned long long qurt_get_core_pcycles(void);

#ifdef __cplusplus
}
#endif

#endif
