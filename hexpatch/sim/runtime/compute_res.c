// The compute resource manager: a core has one VTCM and one matrix unit for all its sessions.
// Each session sees its own addresses for VTCM; only one at a time may hold it.
#define _GNU_SOURCE
#include "sim.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "AEEStdErr.h"
#include "HAP_compute_res.h"

#define MAX_RES 64

struct res {
    struct sim_session * session;  // NULL: free
    compute_res_attr_t   attr;
    bool                 holds;  // the core's VTCM
};

struct core {
    struct res *     vtcm;       // who holds it
    struct sim_ctx * hmx;        // the thread that has the matrix unit locked
    int              hmx_depth;
};

static struct res      table[MAX_RES];
static struct core     cores[4];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  change;

__attribute__((constructor(104))) static void res_init(void) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &attr);
}

static struct res * by_id(unsigned id) {
    return id && id <= MAX_RES && table[id - 1].session ? &table[id - 1] : NULL;
}

static struct timespec deadline(unsigned timeout_us) {
    const uint64_t ns = sim_now_ns() + (uint64_t) timeout_us * 1000;
    return (struct timespec) { (time_t) (ns / 1000000000u), (long) (ns % 1000000000u) };
}

// Take the VTCM, with the lock held. A holder that lent a release callback is asked for it.
static int take(struct res * r, unsigned timeout_us) {
    struct core *         c     = &cores[r->session->core];
    const struct timespec until = deadline(timeout_us);
    const struct res *    asked = NULL;
    while (c->vtcm && c->vtcm != r) {
        struct res * holder = c->vtcm;
        if (holder != asked && holder->attr.release_callback) {
            int (*f)(unsigned int, void *) = holder->attr.release_callback;
            void * context = holder->attr.client_context;
            asked = holder;
            pthread_mutex_unlock(&lock);
            f((unsigned) (holder - table) + 1, context);
            pthread_mutex_lock(&lock);
            continue;
        }
        if (pthread_cond_timedwait(&change, &lock, &until) == ETIMEDOUT) {
            return AEE_EEXPIRED;
        }
    }
    c->vtcm  = r;
    r->holds = true;
    return AEE_SUCCESS;
}

static void give(struct res * r) {
    if (r->holds) {
        r->holds = false;
        cores[r->session->core].vtcm = NULL;
        pthread_cond_broadcast(&change);
    }
}

SIM_API int HAP_compute_res_attr_init(compute_res_attr_t * attr) {
    memset(attr, 0, sizeof(*attr));
    return AEE_SUCCESS;
}

SIM_API int HAP_compute_res_attr_set_serialize(compute_res_attr_t * attr, unsigned int serialize) {
    attr->serialize = serialize;
    return AEE_SUCCESS;
}

SIM_API int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t * attr, unsigned int cache_mode) {
    attr->cache_mode = cache_mode;
    return AEE_SUCCESS;
}

SIM_API int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t * attr, unsigned int size, unsigned int single) {
    attr->vtcm_size     = size;
    attr->vtcm_min_size = size;
    attr->vtcm_min_page = single ? size : 0;
    return AEE_SUCCESS;
}

SIM_API int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t * attr, unsigned int vtcm_size,
                                                   unsigned int min_page_size, unsigned int min_vtcm_size) {
    attr->vtcm_size     = vtcm_size;
    attr->vtcm_min_page = min_page_size;
    attr->vtcm_min_size = min_vtcm_size;
    return AEE_SUCCESS;
}

SIM_API int HAP_compute_res_attr_set_release_callback(compute_res_attr_t * attr,
                                                      int (*callback)(unsigned int context_id, void * client_context),
                                                      void * client_context) {
    attr->release_callback = callback;
    attr->client_context   = client_context;
    return AEE_SUCCESS;
}

SIM_API int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t * attr, unsigned int use_hmx) {
    attr->hmx = use_hmx;
    return AEE_SUCCESS;
}

SIM_API void * HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t * attr) {
    return attr->vtcm_ptr;
}

SIM_API int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t * attr, void ** vtcm_ptr,
                                                 unsigned int * vtcm_size) {
    *vtcm_ptr  = attr->vtcm_ptr;
    *vtcm_size = attr->vtcm_got;
    return attr->vtcm_ptr ? AEE_SUCCESS : AEE_EFAILED;
}

// What can't be given: more VTCM than there is, a page larger than VTCM, a matrix unit where none is.
SIM_API unsigned int HAP_compute_res_acquire(compute_res_attr_t * attr, unsigned int timeout_us) {
    struct sim_session * s = sim_me()->session;
    if (!s || attr->vtcm_min_size > sim_device.vtcm || attr->vtcm_min_page > sim_device.vtcm ||
        (attr->hmx && !sim_device.hmx)) {
        return 0;
    }
    unsigned id = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MAX_RES && !id; i++) {
        if (!table[i].session) {
            table[i] = (struct res) { s, *attr, false };
            id       = i + 1;
        }
    }
    if (id && attr->vtcm_size) {
        attr->vtcm_got = attr->vtcm_size < sim_device.vtcm ? attr->vtcm_size : sim_device.vtcm;
        attr->vtcm_ptr = s->vtcm;
        if (!attr->cache_mode && take(&table[id - 1], timeout_us)) {
            table[id - 1].session = NULL;
            id = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return id;
}

SIM_API int HAP_compute_res_release(unsigned int context_id) {
    pthread_mutex_lock(&lock);
    struct res * r = by_id(context_id);
    if (r) {
        give(r);
        memset(r, 0, sizeof(*r));
    }
    pthread_mutex_unlock(&lock);
    return r ? AEE_SUCCESS : AEE_EBADPARM;
}

SIM_API int HAP_compute_res_acquire_cached(unsigned int context_id, unsigned int timeout_us) {
    pthread_mutex_lock(&lock);
    struct res * r   = by_id(context_id);
    const int    err = r ? take(r, timeout_us) : AEE_EBADPARM;
    pthread_mutex_unlock(&lock);
    return err;
}

SIM_API int HAP_compute_res_release_cached(unsigned int context_id) {
    pthread_mutex_lock(&lock);
    struct res * r = by_id(context_id);
    if (r) {
        give(r);
    }
    pthread_mutex_unlock(&lock);
    return r ? AEE_SUCCESS : AEE_EBADPARM;
}

SIM_API int HAP_compute_res_check_release_request(unsigned int context_id) {
    (void) context_id;
    return 0;
}

SIM_API int HAP_compute_res_update_priority(unsigned int context_id, unsigned int priority) {
    (void) context_id, (void) priority;
    return AEE_SUCCESS;
}

// The lock belongs to the thread: only it may issue HMX instructions.
SIM_API int HAP_compute_res_hmx_lock(unsigned int context_id) {
    struct sim_ctx * me = sim_me();
    int err = AEE_EBADPARM;
    pthread_mutex_lock(&lock);
    struct res * r = by_id(context_id);
    if (r && r->attr.hmx) {
        struct core * c = &cores[r->session->core];
        while (c->hmx && c->hmx != me) {
            pthread_cond_wait(&change, &lock);
        }
        c->hmx = me;
        c->hmx_depth++;
        me->hmx_held = true;
        err = AEE_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

SIM_API int HAP_compute_res_hmx_unlock(unsigned int context_id) {
    struct sim_ctx * me = sim_me();
    int err = AEE_EBADPARM;
    pthread_mutex_lock(&lock);
    struct res * r = by_id(context_id);
    if (r && cores[r->session->core].hmx == me) {
        struct core * c = &cores[r->session->core];
        if (!--c->hmx_depth) {
            c->hmx       = NULL;
            me->hmx_held = false;
            pthread_cond_broadcast(&change);
        }
        err = AEE_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

SIM_API bool sim_hmx_locked(void) {
    const struct sim_ctx * me = sim_me();
    return me->hmx_held && me->session && me->session->hmx_powered;
}

SIM_API int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int * total_block_size,
                                       compute_res_vtcm_page_t * total_block_layout, unsigned int * avail_block_size,
                                       compute_res_vtcm_page_t * avail_block_layout) {
    (void) application_id, (void) total_block_layout, (void) avail_block_layout;
    if (total_block_size) {
        *total_block_size = sim_device.vtcm;
    }
    if (avail_block_size) {
        *avail_block_size = sim_device.vtcm;
    }
    return AEE_SUCCESS;
}
