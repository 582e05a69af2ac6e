#ifndef HAP_ETM_CONFIG_H
#define HAP_ETM_CONFIG_H

#ifdef __cplusplus
extern "C" {
#endif

// There is no trace unit: both return AEE_EVERSIONNOTSUPPORT.
int HAP_user_etm_enable(void);
int HAP_user_etm_disable(void);

#ifdef __cplusplus
}
#endif

#endif
