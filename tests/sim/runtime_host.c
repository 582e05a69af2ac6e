// The host half of the runtime's tests: one command per run, answers on stdout as "name value ...".
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "AEEStdErr.h"
#include "domain.h"
#include "dspqueue.h"
#include "remote.h"
#include "rpcmem.h"

#define URI "file:///libtest-dsp.so?test_skel_handle_invoke&_modver=1.0"

struct packed {
    uint32_t a;
    uint64_t b;
};

static int call(remote_handle64 h, uint32_t sc, void * in0, size_t n0, void * in1, size_t n1, void * out0, size_t m0,
                void * out1, size_t m1) {
    remote_arg pra[4];
    void *     pv[4] = { in0, in1, out0, out1 };
    size_t     n[4]  = { n0, n1, m0, m1 };
    int        k     = 0;
    for (int i = 0; i < 4; i++) {
        if (pv[i]) {
            pra[k].buf.pv   = pv[i];
            pra[k++].buf.nLen = n[i];
        }
    }
    return remote_handle64_invoke(h, sc, pra);
}

static uint32_t count(remote_handle64 h) {
    uint32_t n = 0;
    call(h, REMOTE_SCALARS_MAKE(3, 0, 1), NULL, 0, NULL, 0, &n, sizeof(n), NULL, 0);
    return n;
}

static remote_handle64 open_session(int session) {
    remote_handle64 h = 0;
    char uri[256];
    struct remote_rpc_get_uri u = { 0 };
    u.domain_name     = (char *) CDSP_DOMAIN_NAME;
    u.domain_name_len = (uint32_t) strlen(CDSP_DOMAIN_NAME);
    u.session_id      = (uint32_t) session;
    u.module_uri      = (char *) URI;
    u.module_uri_len  = (uint32_t) strlen(URI);
    u.uri             = uri;
    u.uri_len         = sizeof(uri);
    if (remote_session_control(FASTRPC_GET_URI, &u, sizeof(u))) {
        return 0;
    }
    const int err = remote_handle64_open(uri, &h);
    if (err) {
        printf("open %d\n", err);
    }
    return h;
}

static int reserve(uint32_t * session, uint32_t * domain) {
    struct remote_rpc_reserve_new_session r = { 0 };
    r.domain_name     = (char *) CDSP_DOMAIN_NAME;
    r.domain_name_len = (uint32_t) strlen(CDSP_DOMAIN_NAME);
    r.session_name    = (char *) "HTP1";
    r.session_name_len = 4;
    const int err = remote_session_control(FASTRPC_RESERVE_NEW_SESSION, &r, sizeof(r));
    *session = r.session_id;
    *domain  = r.effective_domain_id;
    return err;
}

static int rpc(void) {
    remote_handle64 h = 0;
    uint8_t         in[] = "stressed", out[sizeof(in)] = { 0 };
    uint32_t        n = sizeof(in) - 1;
    struct packed   p = { 0, 0 };
    printf("missing %d\n", remote_handle64_open("file:///libnone.so?test_skel_handle_invoke", &h) == AEE_EUNABLETOLOAD);
    printf("refused %d\n", remote_handle64_open(URI "&refuse", &h) == AEE_ENOTALLOWED);
    h = open_session(0);
    printf("echo %d\n", call(h, REMOTE_SCALARS_MAKE(2, 2, 2), &n, sizeof(n), in, n, &p, sizeof(p), out, n));
    printf("text %s\n", out);
    printf("priority %u\n", p.a);
    printf("places 0x%" PRIx64 "\n", p.b);
    printf("unknown %d\n", call(h, REMOTE_SCALARS_MAKE(30, 0, 0), NULL, 0, NULL, 0, NULL, 0, NULL, 0) == AEE_EUNSUPPORTED);
    count(h);
    printf("count %u\n", count(h));
    printf("close %d\n", remote_handle64_close(h));
    printf("closed %d\n", remote_handle64_close(h) == AEE_EINVHANDLE);
    h = open_session(0);
    printf("again %u\n", count(h));
    return remote_handle64_close(h);
}

static int sessions(void) {
    uint32_t session = 0, domain = 0, other;
    remote_handle64 a = open_session(0);
    printf("unreserved %d\n", open_session(1) == 0);
    printf("reserve %d %u %u\n", reserve(&session, &domain), session, domain);
    printf("full %d\n", reserve(&other, &other) != 0);
    remote_handle64 b = open_session((int) session);
    count(a);
    count(a);
    printf("a %u\n", count(a));
    printf("b %u\n", count(b));
    struct remote_rpc_effective_domain_id e = { (char *) "cdsp", 4, session, 0 };
    printf("effective %d %u\n", remote_session_control(FASTRPC_GET_EFFECTIVE_DOMAIN_ID, &e, sizeof(e)), e.effective_domain_id);
    // each session has its own mapping of one buffer
    uint8_t *  p  = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 65536);
    const int  fd = rpcmem_to_fd(p);
    uint32_t   in[3] = { (uint32_t) fd, 65536, 0 };
    uint64_t   at[2];
    remote_handle64 hs[2] = { a, b };
    for (int i = 0; i < 2; i++) {
        call(hs[i], REMOTE_SCALARS_MAKE(7, 1, 1), in, sizeof(in), NULL, 0, &at[i], sizeof(at[i]), NULL, 0);
    }
    printf("apart %d\n", at[0] && at[1] && at[0] != at[1]);
    printf("close %d %d\n", remote_handle64_close(b), remote_handle64_close(a));
    printf("freed %d\n", reserve(&session, &domain));
    return 0;
}

static int queue(int argc, char ** argv) {
    const bool callback = argc > 0 && !strcmp(argv[0], "callback");
    remote_handle64 h = open_session(0);
    dspqueue_t q;
    struct packed start = { callback, 0 };
    uint8_t * p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 8192);
    const int fd = rpcmem_to_fd(p);
    printf("create %d\n", dspqueue_create(CDSP_DOMAIN_ID, 0, 256, 256, NULL, NULL, NULL, &q));
    dspqueue_export(q, &start.b);
    struct dspqueue_buffer buf = { .fd = (uint32_t) fd, .size = 16, .offset = 4096, .flags = 4, .ptr = p + 4096 };
    uint8_t  text[] = "abc", back[16];
    uint32_t flags, n, length;
    printf("unmapped %d\n", dspqueue_write(q, 0, 1, &buf, 3, text, 1000) == AEE_EBADPARM);
    printf("pin %d\n", fastrpc_mmap(CDSP_DOMAIN_ID, fd, p, 0, 8192, FASTRPC_MAP_FD));
    printf("empty %d\n", dspqueue_read(q, &flags, 1, &n, &buf, 16, &length, back, 0) == AEE_EWOULDBLOCK);
    printf("late %d\n", dspqueue_read(q, &flags, 1, &n, &buf, 16, &length, back, 2000) == AEE_EEXPIRED);
    int full = 0;  // nobody reads yet
    while (dspqueue_write(q, 7, 1, &buf, 3, text, 0) == AEE_SUCCESS) {
        full++;
    }
    printf("fits %d\n", full);
    printf("blocked %d\n", dspqueue_write(q, 7, 1, &buf, 3, text, 2000) == AEE_EEXPIRED);
    printf("start %d\n", call(h, REMOTE_SCALARS_MAKE(4, 1, 0), &start, sizeof(start), NULL, 0, NULL, 0, NULL, 0));
    for (int i = 0; i < 100; i++) {
        if (i >= full) {
            dspqueue_write(q, 7, 1, &buf, 3, text, DSPQUEUE_TIMEOUT_NONE);
        }
        dspqueue_peek(q, &flags, &n, &length, DSPQUEUE_TIMEOUT_NONE);
        printf("%s", i || length == 3 ? "" : "peek bad\n");
        struct dspqueue_buffer got;
        const int err = dspqueue_read(q, &flags, 1, &n, &got, 16, &length, back, DSPQUEUE_TIMEOUT_NONE);
        if (err || flags != 8 || n != 1 || length != 3 || memcmp(back, "cba", 3) || got.ptr != p + 4096) {
            printf("packet %d bad\n", i);
        }
    }
    printf("added %d %d\n", p[4096], p[4096 + 15]);
    printf("beside %d\n", p[4096 + 16] + p[4095]);
    printf("small %d\n", dspqueue_write(q, 7, 1, &buf, 3, text, 0));
    printf("toosmall %d\n", dspqueue_read(q, &flags, 1, &n, &buf, 2, &length, back, DSPQUEUE_TIMEOUT_NONE) == AEE_EBADPARM);
    printf("stop %d\n", call(h, REMOTE_SCALARS_MAKE(5, 0, 0), NULL, 0, NULL, 0, NULL, 0, NULL, 0));
    dspqueue_read(q, &flags, 1, &n, &buf, 16, &length, back, 1000);
    printf("over %d\n", dspqueue_read(q, &flags, 1, &n, &buf, 16, &length, back, 1000) == AEE_EBADSTATE);
    printf("close %d\n", dspqueue_close(q));
    fastrpc_munmap(CDSP_DOMAIN_ID, fd, p, 8192);
    rpcmem_free(p);
    return remote_handle64_close(h);
}

static int run(remote_handle64 h, int fd, const char * name, const uint32_t * a, uint64_t r[4]) {
    uint32_t in[5] = { (uint32_t) fd, a[0], a[1], a[2], a[3] };
    return call(h, REMOTE_SCALARS_MAKE(6, 2, 1), in, sizeof(in), (void *) name, strlen(name) + 1, r, 4 * sizeof(*r), NULL, 0);
}

struct holder {
    remote_handle64 h;
    int             fd;
    uint32_t        a[4];
    uint64_t        r[4];
};

static void * hold(void * arg) {
    struct holder * o = arg;
    run(o->h, o->fd, "vtcm_hold", o->a, o->r);
    return NULL;
}

// Two sessions of one core want its VTCM; the first lets go after that many microseconds.
static int contend(int argc, char ** argv) {
    uint32_t session, domain;
    struct holder o = { open_session(0), 0, { argc ? (uint32_t) atoi(argv[0]) : 0 }, { 0 } };
    reserve(&session, &domain);
    remote_handle64 b = open_session((int) session);
    o.fd = rpcmem_to_fd(rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 65536));
    pthread_t thread;
    uint64_t  r[4] = { 0 };
    pthread_create(&thread, NULL, hold, &o);
    usleep(50000);
    printf("second %d\n", run(b, o.fd, "nothing", o.a, r));
    pthread_join(thread, NULL);
    printf("asked %d\n", (int) o.r[0]);
    return 0;
}

// kernel NAME [a b c d] [/ NAME ...]
static int kernel(int argc, char ** argv) {
    remote_handle64 h = open_session(0);
    uint8_t * p  = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 65536);
    const int fd = rpcmem_to_fd(p);
    for (int i = 0; i < 65536; i++) {
        p[i] = (uint8_t) i;
    }
    for (int i = 0; i < argc;) {
        const char * name  = argv[i++];
        uint32_t     a[4]  = { 0 };
        uint64_t     r[4]  = { 0 };
        for (int k = 0; i < argc && strcmp(argv[i], "/"); k++) {
            a[k & 3] = (uint32_t) strtoul(argv[i++], NULL, 0);
        }
        i++;
        const int err = run(h, fd, name, a, r);
        printf("%s %d", name, err);
        for (int k = 0; k < 4; k++) {
            printf(" 0x%" PRIx64, r[k]);
        }
        printf("\n");
    }
    fflush(stdout);
    return 0;  // the session stays open: its threads live when the process ends
}

static uint64_t dsp_map(remote_handle64 h, int fd, uint32_t size, int extended) {
    uint32_t in[3] = { (uint32_t) fd, size, (uint32_t) extended };
    uint64_t at    = 0;
    return call(h, REMOTE_SCALARS_MAKE(7, 1, 1), in, sizeof(in), NULL, 0, &at, sizeof(at), NULL, 0) ? 0 : at;
}

static int memory(void) {
    remote_handle64 h = open_session(0);
    const size_t    MiB = 1u << 20;
    void *   p[8];
    uint64_t at[8];
    printf("zero %d\n", rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, 1, 0) == NULL);
    printf("nofd %d\n", rpcmem_to_fd(&h));
    int n = 0;
    for (int i = 0; i < 8; i++) {
        p[i]  = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, 1, 256 * MiB);
        at[i] = dsp_map(h, rpcmem_to_fd(p[i]), (uint32_t) (256 * MiB), 0);
        n += at[i] != 0;
    }
    printf("mapped %d\n", n);
    printf("low %d\n", at[0] >= 0x20000000 && at[n - 1] + 256 * MiB <= 0xfff00000);
    printf("same %d\n", dsp_map(h, rpcmem_to_fd(p[0]), 4096, 0) == at[0]);
    for (int i = 0; i < 2; i++) {  // twice mapped
        call(h, REMOTE_SCALARS_MAKE(8, 1, 0), &at[0], sizeof(at[0]), NULL, 0, NULL, 0, NULL, 0);
    }
    at[0] = dsp_map(h, rpcmem_to_fd(p[7]), (uint32_t) (256 * MiB), 0);
    printf("room %d\n", at[0] != 0);
    printf("toolong %d\n", dsp_map(h, rpcmem_to_fd(p[1]), (uint32_t) (257 * MiB), 0) == 0);
    const uint64_t wide = dsp_map(h, rpcmem_to_fd(p[2]), (uint32_t) (256 * MiB), 1);
    printf("wide %d\n", wide >> 32 && !(wide >> 40));
    for (int i = 0; i < 8; i++) {
        rpcmem_free(p[i]);
    }
    return remote_handle64_close(h);
}

static int extended(int argc, char ** argv) {
    const uint32_t  offset = argc > 0 ? (uint32_t) atoi(argv[0]) : 0;
    remote_handle64 h      = open_session(0);
    uint8_t * p  = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 65536);
    const int fd = rpcmem_to_fd(p);
    memcpy(p + offset, "far away", 8);
    const uint64_t at = dsp_map(h, fd, 65536, 1) + offset;
    const uint32_t a[4] = { (uint32_t) at, (uint32_t) (at >> 32), 0, 0 };
    uint64_t       r[4] = { 0 };
    run(h, fd, "dma_extended", a, r);
    printf("low %u\n", a[0]);
    printf("got %.8s\n", (const char *) r);
    return 0;
}

static int control(void) {
    struct remote_dsp_capability c = { CDSP_DOMAIN_ID, ARCH_VER, 0 };
    printf("arch %d 0x%x\n", remote_handle_control(DSPRPC_GET_DSP_INFO, &c, sizeof(c)), c.capability);
    system_req_payload req = { .id = FASTRPC_GET_DOMAINS };
    req.sys.flags = DOMAINS_LIST_FLAGS_SET_TYPE(0, FASTRPC_NSP);
    printf("domains %d %d\n", remote_system_request(&req), req.sys.num_domains);
    fastrpc_domain d[4];
    req.sys.domains     = d;
    req.sys.max_domains = 4;
    remote_system_request(&req);
    for (int i = 0; i < req.sys.num_domains; i++) {
        printf("domain%d %d %s %d\n", i, d[i].id, d[i].name, d[i].instance_id);
    }
    printf("supported %d\n", supported_domains[0].id);
    return 0;
}

static int divide(int argc, char ** argv) {
    volatile uint32_t a = 100, b = argc > 5 ? (uint32_t) atoi(argv[0]) : 0;
    volatile int64_t  c = -7, d = 0;
    volatile uint32_t many[3] = { 5, 0, 5 };
    volatile int      i = 1;
    printf("quotient %u %" PRId64 " %u\n", a / b, (int64_t) (c / d), a / many[i]);
    printf("remainder %u\n", a % b);
    return 0;
}

int main(int argc, char ** argv) {
    if (argc < 2) {
        return 2;
    }
    argc -= 2;
    argv += 2;
    const char * what = argv[-1];
    return !strcmp(what, "rpc")      ? rpc()
         : !strcmp(what, "sessions") ? sessions()
         : !strcmp(what, "queue")    ? queue(argc, argv)
         : !strcmp(what, "kernel")   ? kernel(argc, argv)
         : !strcmp(what, "contend")  ? contend(argc, argv)
         : !strcmp(what, "memory")   ? memory()
         : !strcmp(what, "extended") ? extended(argc, argv)
         : !strcmp(what, "control")  ? control()
         : !strcmp(what, "divide")   ? divide(argc, argv)
                                     : 2;
}
