// FastRPC: handles, calls, sessions.
#ifndef REMOTE_H
#define REMOTE_H

#include "stddef/AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t remote_handle;
typedef uint64_t remote_handle64;

typedef struct {
    void * pv;
    size_t nLen;
} remote_buf;

typedef struct {
    int32_t  fd;
    uint32_t offset;
} remote_dma_handle;

typedef union {
    remote_buf        buf;
    remote_handle     h;
    remote_handle64   h64;
    remote_dma_handle dma;
} remote_arg;

// Scalars of a call: method, then how many input and output buffers and handles there are.
#define REMOTE_SCALARS_MAKEX(attr, method, in, out, oin, oout)                              \
    ((((uint32_t) (attr) & 0x7) << 29) | (((uint32_t) (method) & 0x1f) << 24) |             \
     (((uint32_t) (in) & 0xff) << 16) | (((uint32_t) (out) & 0xff) << 8) |                  \
     (((uint32_t) (oin) & 0x0f) << 4) | ((uint32_t) (oout) & 0x0f))
#define REMOTE_SCALARS_MAKE(method, in, out) REMOTE_SCALARS_MAKEX(0, method, in, out, 0, 0)
#define REMOTE_SCALARS_METHOD(sc)            (((sc) >> 24) & 0x1f)
#define REMOTE_SCALARS_INBUFS(sc)            (((sc) >> 16) & 0xff)
#define REMOTE_SCALARS_OUTBUFS(sc)           (((sc) >> 8) & 0xff)
#define REMOTE_SCALARS_INHANDLES(sc)         (((sc) >> 4) & 0x0f)
#define REMOTE_SCALARS_OUTHANDLES(sc)        ((sc) & 0x0f)
#define REMOTE_SCALARS_LENGTH(sc)                                        \
    (REMOTE_SCALARS_INBUFS(sc) + REMOTE_SCALARS_OUTBUFS(sc) +            \
     REMOTE_SCALARS_INHANDLES(sc) + REMOTE_SCALARS_OUTHANDLES(sc))

#define ADSP_DOMAIN_ID   0
#define MDSP_DOMAIN_ID   1
#define SDSP_DOMAIN_ID   2
#define CDSP_DOMAIN_ID   3
#define CDSP1_DOMAIN_ID  4

#define ADSP_DOMAIN_NAME  "adsp"
#define CDSP_DOMAIN_NAME  "cdsp"
#define CDSP1_DOMAIN_NAME "cdsp1"

#define CDSP_DOMAIN  "&_dom=cdsp"
#define CDSP1_DOMAIN "&_dom=cdsp1"

typedef struct {
    int    id;
    char * uri;
} domain;

// -- remote_handle_control, remote_handle64_control, remote_session_control ---------------------

enum handle_control_req_id {
    DSPRPC_CONTROL_LATENCY = 1,
    DSPRPC_GET_DSP_INFO    = 2,
};

enum session_control_req_id {
    FASTRPC_THREAD_PARAMS           = 1,
    DSPRPC_CONTROL_UNSIGNED_MODULE  = 2,
    FASTRPC_SESSION_CLOSE           = 8,
    FASTRPC_RESERVE_NEW_SESSION     = 15,
    FASTRPC_GET_EFFECTIVE_DOMAIN_ID = 16,
    FASTRPC_GET_URI                 = 17,
};

enum remote_dsp_attributes {
    DOMAIN_SUPPORT        = 0,
    UNSIGNED_PD_SUPPORT   = 1,
    HVX_SUPPORT_64B       = 2,
    HVX_SUPPORT_128B      = 3,
    VTCM_PAGE             = 4,
    VTCM_COUNT            = 5,
    ARCH_VER              = 6,
    HMX_SUPPORT_DEPTH     = 7,
    HMX_SUPPORT_SPATIAL   = 8,
    ASYNC_FASTRPC_SUPPORT = 9,
    STATUS_NOTIFICATION_SUPPORT = 10,
};

struct remote_dsp_capability {
    uint32_t domain;
    uint32_t attribute_ID;
    uint32_t capability;
};

struct remote_rpc_control_latency {
    uint32_t enable;
    uint32_t latency;
};

struct remote_rpc_thread_params {
    int domain;
    int prio;
    int stack_size;
};

struct remote_rpc_control_unsigned_module {
    int domain;
    int enable;
};

struct remote_rpc_reserve_new_session {
    char *   domain_name;
    uint32_t domain_name_len;
    char *   session_name;
    uint32_t session_name_len;
    uint32_t effective_domain_id;
    uint32_t session_id;
};

struct remote_rpc_effective_domain_id {
    char *   domain_name;
    uint32_t domain_name_len;
    uint32_t session_id;
    uint32_t effective_domain_id;
};

struct remote_rpc_get_uri {
    char *   domain_name;
    uint32_t domain_name_len;
    uint32_t session_id;
    char *   module_uri;
    uint32_t module_uri_len;
    char *   uri;
    uint32_t uri_len;
};

// -- remote_system_request ----------------------------------------------------------------------

typedef enum {
    FASTRPC_GET_DOMAINS = 0,
} system_req_id;

typedef enum {
    FASTRPC_ALL_DOMAINS = 0,
    FASTRPC_LPASS       = 1,
    FASTRPC_MPSS        = 2,
    FASTRPC_SSC         = 3,
    FASTRPC_NSP         = 4,
    FASTRPC_HPASS       = 5,
} fastrpc_domain_type;

#define DOMAINS_LIST_FLAGS_SET_TYPE(flags, type) (((flags) & ~0xffull) | ((uint64_t) (type) & 0xff))
#define DOMAINS_LIST_FLAGS_GET_TYPE(flags)       ((int) ((flags) & 0xff))

#define MAX_DOMAIN_NAMELEN 30

typedef struct {
    int                 id;
    char                name[MAX_DOMAIN_NAMELEN];
    fastrpc_domain_type type;
    int                 status;
    int                 card;
    int                 soc_id;
    int                 instance_id;
} fastrpc_domain;

typedef struct {
    fastrpc_domain * domains;
    int              max_domains;
    int              num_domains;
    uint64_t         flags;
} fastrpc_domains_info;

typedef struct {
    system_req_id id;
    union {
        fastrpc_domains_info sys;
    };
} system_req_payload;

// -- memory -------------------------------------------------------------------------------------

enum fastrpc_map_flags {
    FASTRPC_MAP_STATIC               = 0,
    FASTRPC_MAP_RESERVED             = 1,
    FASTRPC_MAP_FD                   = 2,   // mapped on the DSP now, until fastrpc_munmap
    FASTRPC_MAP_FD_DELAYED           = 3,   // the DSP maps it by HAP_mmap
    FASTRPC_MAP_FD_NOMAP             = 16,
    FASTRPC_MAP_FD_DELAYED_EXTENDED  = 17,  // the DSP maps it above 4 GiB by HAP_mem_request
    FASTRPC_MAP_MAX,
};

int remote_handle64_open(const char * name, remote_handle64 * ph);
int remote_handle64_invoke(remote_handle64 h, uint32_t dwScalars, remote_arg * pra);
int remote_handle64_close(remote_handle64 h);
int remote_handle64_control(remote_handle64 h, uint32_t req, void * data, uint32_t datalen);
int remote_handle_control(uint32_t req, void * data, uint32_t datalen);
int remote_session_control(uint32_t req, void * data, uint32_t datalen);
int remote_system_request(system_req_payload * req);

int fastrpc_mmap(int domain, int fd, void * addr, int offset, size_t length, enum fastrpc_map_flags flags);
int fastrpc_munmap(int domain, int fd, void * addr, size_t length);

#ifdef __cplusplus
}
#endif

#endif
