#ifndef QURT_PMU_H
#define QURT_PMU_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QURT_PMUCNT0,
    QURT_PMUCNT1,
    QURT_PMUCNT2,
    QURT_PMUCNT3,
    QURT_PMUCNT4,
    QURT_PMUCNT5,
    QURT_PMUCNT6,
    QURT_PMUCNT7,
    QURT_PMUCFG,
    QURT_PMUEVTCFG,
    QURT_PMUEVTCFG1,
};

void         qurt_pmu_set(int reg_id, unsigned int reg_value);
unsigned int qurt_pmu_get(int red_id);
void         qurt_pmu_enable(int enable);

#ifdef __cplusplus
}
#endif

#endif
