#ifndef HAP_PERF_H
#define HAP_PERF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Wall clock of this machine: 19.2 MHz timer ticks, and cycles at the device's clock.
uint64_t HAP_perf_get_qtimer_count(void);
uint64_t HAP_perf_qtimer_count_to_us(uint64_t count);
uint64_t HAP_perf_get_time_us(void);
uint64_t HAP_perf_get_pcycles(void);

#ifdef __cplusplus
}
#endif

#endif
