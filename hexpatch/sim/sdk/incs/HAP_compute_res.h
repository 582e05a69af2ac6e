// The compute resource manager: VTCM and HMX of a core, shared by its sessions.
#ifndef HAP_COMPUTE_RES_H
#define HAP_COMPUTE_RES_H

#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t serialize;
    uint32_t cache_mode;
    uint32_t vtcm_size;
    uint32_t vtcm_min_page;
    uint32_t vtcm_min_size;
    uint32_t hmx;
    int    (*release_callback)(unsigned int context_id, void * client_context);
    void *   client_context;
    void *   vtcm_ptr;   // filled by acquire
    uint32_t vtcm_got;
} compute_res_attr_t;

typedef struct {
    unsigned int page_list_len;
} compute_res_vtcm_page_t;

// acquire returns a context id, 0 for none. With cache_mode set the resources are only reserved:
// acquire_cached takes them for use, after asking another session's holder to let go (its release
// callback); release_cached hands them back.
int          HAP_compute_res_attr_init(compute_res_attr_t * attr);
int          HAP_compute_res_attr_set_serialize(compute_res_attr_t * attr, unsigned int serialize);
int          HAP_compute_res_attr_set_cache_mode(compute_res_attr_t * attr, unsigned int cache_mode);
int          HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t * attr, unsigned int size, unsigned int single);
int          HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t * attr, unsigned int vtcm_size,
                                                    unsigned int min_page_size, unsigned int min_vtcm_size);
int          HAP_compute_res_attr_set_release_callback(compute_res_attr_t * attr,
                                                       int (*callback)(unsigned int context_id, void * client_context),
                                                       void * client_context);
int          HAP_compute_res_attr_set_hmx_param(compute_res_attr_t * attr, unsigned int use_hmx);
void *       HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t * attr);
int          HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t * attr, void ** vtcm_ptr, unsigned int * vtcm_size);
unsigned int HAP_compute_res_acquire(compute_res_attr_t * attr, unsigned int timeout_us);
int          HAP_compute_res_release(unsigned int context_id);
int          HAP_compute_res_acquire_cached(unsigned int context_id, unsigned int timeout_us);
int          HAP_compute_res_release_cached(unsigned int context_id);
int          HAP_compute_res_check_release_request(unsigned int context_id);
int          HAP_compute_res_update_priority(unsigned int context_id, unsigned int priority);
int          HAP_compute_res_hmx_lock(unsigned int context_id);
int          HAP_compute_res_hmx_unlock(unsigned int context_id);
int          HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int * total_block_size,
                                        compute_res_vtcm_page_t * total_block_layout,
                                        unsigned int * avail_block_size,
                                        compute_res_vtcm_page_t * avail_block_layout);

#ifdef __cplusplus
}
#endif

#endif
