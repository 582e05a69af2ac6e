#ifndef QURT_HVX_H
#define QURT_HVX_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    QURT_HVX_MODE_64B  = 0,
    QURT_HVX_MODE_128B = 1,
} qurt_hvx_mode_t;

int qurt_hvx_lock(qurt_hvx_mode_t lock_mode);
int qurt_hvx_unlock(void);
int qurt_hvx_get_units(void);  // [15:8] 128-byte contexts, [7:0] 64-byte ones

#ifdef __cplusplus
}
#endif

#endif
