// Power and clock votes. Granted, except HMX ones the device model refuses.
#ifndef HAP_POWER_H
#define HAP_POWER_H

#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    HAP_power_set_apptype = 1,
    HAP_power_set_mips_bw,
    HAP_power_set_HVX,
    HAP_power_set_DCVS_v2,
    HAP_power_set_DCVS_v3,
    HAP_power_set_HMX,
    HAP_power_set_HMX_v2,
} HAP_Power_request_type;

typedef enum {
    HAP_POWER_UNKNOWN_CLIENT_CLASS = 0,
    HAP_POWER_COMPUTE_CLIENT_CLASS = 4,
} HAP_power_app_type_payload;

typedef enum {
    HAP_DCVS_V2_ADJUST_UP_DOWN   = 1,
    HAP_DCVS_V2_POWER_SAVER_MODE = 4,
    HAP_DCVS_V2_PERFORMANCE_MODE = 8,
} HAP_dcvs_v2_option_t;

typedef enum {
    HAP_DCVS_VCORNER_DISABLE = 0,
    HAP_DCVS_VCORNER_NOM     = 6,
    HAP_DCVS_VCORNER_TURBO   = 8,
    HAP_DCVS_VCORNER_MAX     = 255,
} HAP_dcvs_voltage_corner_t;

typedef enum {
    HAP_DCVS_EXP_VCORNER_DISABLE = 0,
    HAP_DCVS_EXP_VCORNER_NOM     = 0x100,
    HAP_DCVS_EXP_VCORNER_TUR     = 0x140,
    HAP_DCVS_EXP_VCORNER_MAX     = 0xffff,
} HAP_dcvs_exp_voltage_corner_t;

typedef enum {
    HAP_CLK_PERF_HIGH = 0,
    HAP_CLK_PERF_LOW  = 1,
} HAP_clk_perf_mode_t;

typedef struct {
    HAP_dcvs_voltage_corner_t target_corner;
    HAP_dcvs_voltage_corner_t min_corner;
    HAP_dcvs_voltage_corner_t max_corner;
    uint32_t                  param1;
    uint32_t                  param2;
    uint32_t                  param3;
} HAP_dcvs_v3_params_t;

typedef struct {
    boolean              set_dcvs_enable;
    boolean              dcvs_enable;
    HAP_dcvs_v2_option_t dcvs_option;
    boolean              set_latency;
    uint32_t             latency;
    boolean              set_core_params;
    HAP_dcvs_v3_params_t core_params;
    boolean              set_bus_params;
    HAP_dcvs_v3_params_t bus_params;
    boolean              set_sleep_disable;
    boolean              sleep_disable;
} HAP_power_dcvs_v3_payload;

typedef struct {
    boolean power_up;
} HAP_power_hvx_payload, HAP_power_hmx_payload;

typedef struct {
    boolean                       set_power;
    boolean                       power_up;
    boolean                       set_clock;
    HAP_dcvs_exp_voltage_corner_t target_corner;
    HAP_dcvs_exp_voltage_corner_t min_corner;
    HAP_dcvs_exp_voltage_corner_t max_corner;
    HAP_clk_perf_mode_t           perf_mode;
} HAP_power_hmx_v2_payload;

typedef struct {
    HAP_Power_request_type type;
    union {
        HAP_power_app_type_payload apptype;
        HAP_power_dcvs_v3_payload  dcvs_v3;
        HAP_power_hvx_payload      hvx;
        HAP_power_hmx_payload      hmx;
        HAP_power_hmx_v2_payload   hmx_v2;
    };
} HAP_power_request_t;

int HAP_power_set(void * context, HAP_power_request_t * request);

#ifdef __cplusplus
}
#endif

#endif
