#ifndef HAP_DCVS_H
#define HAP_DCVS_H

#include "HAP_power.h"

// A bus vote that other clients can't lower; nothing to do here.
static inline void HAP_set_dcvs_v3_protected_bus_corners(HAP_power_request_t * request, uint32_t enable) {
    request->dcvs_v3.bus_params.param1 = enable;
}

#endif
