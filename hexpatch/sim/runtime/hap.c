// HAP: mapping, power, clocks, log.
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "AEEStdErr.h"
#include "HAP_etm_config.h"
#include "HAP_farf.h"
#include "HAP_mem.h"
#include "HAP_perf.h"
#include "HAP_power.h"

// -- memory -------------------------------------------------------------------------------------

static void * map(uint64_t len, int fd, long offset) {
    struct sim_session * s = sim_me()->session;
    uint64_t             base;
    if (!s || offset || !sim_session_map(s, fd, len, false, &base)) {
        return (void *) -1;
    }
    return (void *) (uintptr_t) base;
}

static int unmap(uint64_t base) {
    struct sim_session * s = sim_me()->session;
    return s && sim_session_unmap(s, base) ? AEE_SUCCESS : AEE_EBADPARM;
}

SIM_API void * HAP_mmap(void * addr, int len, int prot, int flags, int fd, long offset) {
    (void) addr, (void) prot, (void) flags;
    return map((uint64_t) (unsigned) len, fd, offset);
}

SIM_API int HAP_munmap(void * addr, int len) {
    (void) len;
    return unmap((uintptr_t) addr);
}

SIM_API void * HAP_mmap2(void * addr, size_t len, int prot, int flags, int fd, long offset) {
    (void) addr, (void) prot, (void) flags;
    return map(len, fd, offset);
}

SIM_API int HAP_munmap2(void * addr, size_t len) {
    (void) len;
    return unmap((uintptr_t) addr);
}

SIM_API int HAP_mem_request(HAP_mem_req_payload_t * request) {
    struct sim_session * s = sim_me()->session;
    if (!s || !request) {
        return AEE_EBADPARM;
    }
    switch (request->request_id) {
        case HAP_MEM_MAP: {
            HAP_mem_map_payload_t * m = &request->mmap;
            const bool extended = m->flags & HAP_MEM_FLAGS_EXTENDED_MAP;
            if (extended && sim_device.arch < 81) {
                return AEE_EUNSUPPORTED;
            }
            return sim_session_map(s, m->fd, m->len, extended, &m->dsp_va) ? AEE_SUCCESS : AEE_ENOMEMORY;
        }
        case HAP_MEM_UNMAP:
            return unmap(request->munmap.dsp_va);
        default:
            return AEE_EUNSUPPORTED;
    }
}

// -- power --------------------------------------------------------------------------------------

SIM_API int HAP_power_set(void * context, HAP_power_request_t * request) {
    struct sim_session * s = sim_me()->session;
    (void) context;
    if (!request) {
        return AEE_EBADPARM;
    }
    bool power = false, up = false, clock = false;
    if (request->type == HAP_power_set_HMX) {
        power = true;
        up    = request->hmx.power_up;
    } else if (request->type == HAP_power_set_HMX_v2) {
        power = request->hmx_v2.set_power;
        up    = request->hmx_v2.power_up;
        clock = request->hmx_v2.set_clock;
    }
    if (((power && up) || clock) && !sim_device.hmx) {
        return AEE_EUNSUPPORTED;
    }
    if (clock && !sim_device.hmx_clock) {
        return AEE_EUNSUPPORTED;
    }
    if (power && s) {
        s->hmx_powered = up;
    }
    return AEE_SUCCESS;
}

// -- time ---------------------------------------------------------------------------------------

SIM_API uint64_t HAP_perf_get_qtimer_count(void) {
    return (uint64_t) ((unsigned __int128) sim_now_ns() * 192 / 10000);  // 19.2 MHz
}

SIM_API uint64_t HAP_perf_qtimer_count_to_us(uint64_t count) {
    return (uint64_t) ((unsigned __int128) count * 10 / 192);
}

SIM_API uint64_t HAP_perf_get_time_us(void) {
    return sim_now_ns() / 1000;
}

SIM_API uint64_t HAP_perf_get_pcycles(void) {
    return sim_cycles();
}

// -- log and trace --------------------------------------------------------------------------------

SIM_API void HAP_sim_farf(const char * level, const char * file, int line, const char * format, ...) {
    static int wanted = -1;
    if (wanted < 0) {
        wanted = getenv("HEXPATCH_SIM_FARF") != NULL;
    }
    if (!wanted) {
        return;
    }
    char         text[1024];
    const char * name = strrchr(file, '/');
    va_list      args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const size_t n = strlen(text);
    fprintf(stderr, "%s: %s:%d: %s%s", level, name ? name + 1 : file, line, text, n && text[n - 1] == '\n' ? "" : "\n");
}

SIM_API int HAP_setFARFRuntimeLoggingParams(unsigned int mask, const char * files[], unsigned short num_files) {
    (void) mask, (void) files, (void) num_files;
    return AEE_SUCCESS;
}

SIM_API int HAP_user_etm_enable(void) {
    return AEE_EVERSIONNOTSUPPORT;
}

SIM_API int HAP_user_etm_disable(void) {
    return AEE_EVERSIONNOTSUPPORT;
}
