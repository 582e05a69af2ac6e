// FastRPC's questions and requests that aren't calls.
#include "sim.h"

#include <string.h>

#include "AEEStdErr.h"

// "cdsp" is core 0, "cdsp1" core 1 ...; -1 = no such core.
static int core_of(const char * name, uint32_t length) {
    if (length < 4 || strncmp(name, CDSP_DOMAIN_NAME, 4)) {
        return -1;
    }
    const int core = length > 4 && name[4] >= '1' && name[4] <= '9' ? name[4] - '0' : 0;
    return core < sim_device.cores ? core : -1;
}

static int reserve(struct remote_rpc_reserve_new_session * r) {
    const int core = core_of(r->domain_name, r->domain_name_len);
    for (int i = 0; core >= 0 && i < sim_n_sessions; i++) {
        struct sim_session * s = &sim_sessions[i];
        if (s->core == core && s->index && !s->reserved) {
            s->reserved            = true;
            r->session_id          = (uint32_t) s->index;
            r->effective_domain_id = (uint32_t) s->domain;
            return AEE_SUCCESS;
        }
    }
    sim_log("%s has no more than %d session(s)", sim_device.name, sim_device.sessions);
    return AEE_ERESOURCENOTFOUND;
}

static int effective(struct remote_rpc_effective_domain_id * e) {
    const int core = core_of(e->domain_name, e->domain_name_len);
    if (core < 0 || (int) e->session_id >= sim_device.sessions) {
        return AEE_EBADPARM;
    }
    e->effective_domain_id = (uint32_t) CDSP_DOMAIN_ID + (uint32_t) core + 16 * e->session_id;
    return AEE_SUCCESS;
}

static int uri(struct remote_rpc_get_uri * u) {
    if (core_of(u->domain_name, u->domain_name_len) < 0) {
        return AEE_EBADPARM;
    }
    const int n = snprintf(u->uri, u->uri_len, "%.*s&_dom=%.*s&_session=%u", (int) u->module_uri_len, u->module_uri,
                           (int) u->domain_name_len, u->domain_name, u->session_id);
    return n >= 0 && (uint32_t) n < u->uri_len ? AEE_SUCCESS : AEE_EBUFFERTOOSMALL;
}

SIM_API int remote_session_control(uint32_t req, void * data, uint32_t datalen) {
    (void) datalen;
    switch (req) {
        case FASTRPC_RESERVE_NEW_SESSION:
            return reserve(data);
        case FASTRPC_GET_EFFECTIVE_DOMAIN_ID:
            return effective(data);
        case FASTRPC_GET_URI:
            return uri(data);
        case DSPRPC_CONTROL_UNSIGNED_MODULE:
        case FASTRPC_THREAD_PARAMS:
            return AEE_SUCCESS;
        default:
            return AEE_EUNSUPPORTEDAPI;
    }
}

SIM_API int remote_handle64_control(remote_handle64 h, uint32_t req, void * data, uint32_t datalen) {
    (void) h, (void) data, (void) datalen;
    return req == DSPRPC_CONTROL_LATENCY ? AEE_SUCCESS : AEE_EUNSUPPORTEDAPI;
}

// The architecture is told in hexadecimal digits: v73 is 0x73.
SIM_API int remote_handle_control(uint32_t req, void * data, uint32_t datalen) {
    struct remote_dsp_capability * c = data;
    if (req != DSPRPC_GET_DSP_INFO || !c || datalen < sizeof(*c)) {
        return AEE_EUNSUPPORTEDAPI;
    }
    switch (c->attribute_ID) {
        case DOMAIN_SUPPORT:
        case UNSIGNED_PD_SUPPORT:
            c->capability = 1;
            break;
        case HVX_SUPPORT_128B:
            c->capability = (uint32_t) sim_device.threads;
            break;
        case VTCM_PAGE:
            c->capability = sim_device.vtcm;
            break;
        case VTCM_COUNT:
            c->capability = 1;
            break;
        case ARCH_VER:
            c->capability = (uint32_t) (sim_device.arch / 10 * 16 + sim_device.arch % 10);
            break;
        case HMX_SUPPORT_DEPTH:
        case HMX_SUPPORT_SPATIAL:
            c->capability = sim_device.hmx ? 1 : 0;
            break;
        default:
            return AEE_EUNSUPPORTED;
    }
    return AEE_SUCCESS;
}

SIM_API int remote_system_request(system_req_payload * req) {
    if (!req || req->id != FASTRPC_GET_DOMAINS) {
        return AEE_EUNSUPPORTEDAPI;
    }
    fastrpc_domains_info * info = &req->sys;
    const int type = DOMAINS_LIST_FLAGS_GET_TYPE(info->flags);
    info->num_domains = type == FASTRPC_ALL_DOMAINS || type == FASTRPC_NSP ? sim_device.cores : 0;
    for (int i = 0; i < info->num_domains && i < info->max_domains && info->domains; i++) {
        fastrpc_domain * d = &info->domains[i];
        memset(d, 0, sizeof(*d));
        d->id          = CDSP_DOMAIN_ID + i;
        d->type        = FASTRPC_NSP;
        d->status      = 1;
        d->instance_id = i;
        if (i) {
            snprintf(d->name, sizeof(d->name), "cdsp%d", i);
        } else {
            snprintf(d->name, sizeof(d->name), "cdsp");
        }
    }
    return AEE_SUCCESS;
}

// -- memory -------------------------------------------------------------------------------------

// FASTRPC_MAP_FD maps now; the delayed kinds only announce the buffer, the DSP maps it.
SIM_API int fastrpc_mmap(int domain, int fd, void * addr, int offset, size_t length, enum fastrpc_map_flags flags) {
    struct sim_session * s = sim_session_by_domain(domain);
    struct sim_block     b;
    (void) addr, (void) offset;
    if (!s || !sim_block_by_fd(fd, &b) || length > b.size) {
        return AEE_EBADPARM;
    }
    switch (flags) {
        case FASTRPC_MAP_STATIC:
        case FASTRPC_MAP_FD:
            return sim_session_pin(s, fd, length) ? AEE_SUCCESS : AEE_ENOMEMORY;
        case FASTRPC_MAP_FD_DELAYED:
        case FASTRPC_MAP_FD_DELAYED_EXTENDED:
            return length <= sim_device.vmem || flags == FASTRPC_MAP_FD_DELAYED_EXTENDED ? AEE_SUCCESS : AEE_ENOMEMORY;
        case FASTRPC_MAP_FD_NOMAP:
            return AEE_SUCCESS;
        default:
            return AEE_EUNSUPPORTED;
    }
}

SIM_API int fastrpc_munmap(int domain, int fd, void * addr, size_t length) {
    struct sim_session * s = sim_session_by_domain(domain);
    (void) addr, (void) length;
    if (!s) {
        return AEE_EBADPARM;
    }
    sim_session_unpin(s, fd);
    return AEE_SUCCESS;
}
