// FastRPC calls: a uri opens a DSP library in a session, calls run on the session's FastRPC thread.
#define _GNU_SOURCE
#include "sim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "AEEStdErr.h"

typedef int (*skel_invoke)(remote_handle64 h, uint32_t sc, remote_arg * pra);

// What a host handle stands for.
struct sim_handle {
    struct sim_handle *  next;
    struct sim_session * session;
    void *               dl;
    skel_invoke          invoke;
    remote_handle64      dsp;  // the DSP side's handle
    char                 path[PATH_MAX];
};

struct sim_call {
    skel_invoke     invoke;
    remote_handle64 h;
    uint32_t        sc;
    remote_arg *    pra;
    int             result;
    bool            done;
};

static struct sim_handle * handles;
static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;

static void rpc_thread(void * arg) {
    struct sim_session * s = arg;
    pthread_mutex_lock(&s->rpc_lock);
    for (;;) {
        while (!s->call || s->call->done) {
            pthread_cond_wait(&s->rpc_cond, &s->rpc_lock);
        }
        struct sim_call * call = s->call;
        pthread_mutex_unlock(&s->rpc_lock);
        call->result = call->invoke(call->h, call->sc, call->pra);
        pthread_mutex_lock(&s->rpc_lock);
        call->done = true;
        pthread_cond_broadcast(&s->rpc_cond);
    }
}

// Arguments travel by copy through DSP memory, as they do for buffers that aren't shared.
static int invoke(struct sim_session * s, skel_invoke f, remote_handle64 h, uint32_t sc, remote_arg * pra) {
    const unsigned n_in  = REMOTE_SCALARS_INBUFS(sc);
    const unsigned n_buf = n_in + REMOTE_SCALARS_OUTBUFS(sc);
    const unsigned n     = REMOTE_SCALARS_LENGTH(sc);
    remote_arg *   args  = sim_dsp_malloc(8, (n + 1) * sizeof(*args));
    if (!args) {
        return AEE_ENOMEMORY;
    }
    memcpy(args, pra, n * sizeof(*args));
    int err = AEE_SUCCESS;
    for (unsigned i = 0; i < n_buf; i++) {
        args[i].buf.pv = err || !pra[i].buf.nLen ? NULL : sim_dsp_malloc(8, pra[i].buf.nLen);
        if (!args[i].buf.pv && pra[i].buf.nLen) {
            err = AEE_ENOMEMORY;
        } else if (i < n_in && pra[i].buf.nLen) {
            memcpy(args[i].buf.pv, pra[i].buf.pv, pra[i].buf.nLen);
        } else if (pra[i].buf.nLen) {
            memset(args[i].buf.pv, 0, pra[i].buf.nLen);
        }
    }
    if (!err) {
        struct sim_call call = { f, h, sc, args, AEE_EFAILED, false };
        pthread_mutex_lock(&s->call_lock);
        pthread_mutex_lock(&s->rpc_lock);
        if (!s->rpc_started) {
            s->rpc_started = sim_thread_start(s, "fastrpc", 192, 0, rpc_thread, s) != 0;
        }
        if (s->rpc_started) {
            s->call = &call;
            pthread_cond_broadcast(&s->rpc_cond);
            while (!call.done) {
                pthread_cond_wait(&s->rpc_cond, &s->rpc_lock);
            }
            s->call = NULL;
            err     = call.result;
        } else {
            err = AEE_ENOMEMORY;
        }
        pthread_mutex_unlock(&s->rpc_lock);
        pthread_mutex_unlock(&s->call_lock);
    }
    for (unsigned i = 0; i < n_buf; i++) {
        if (i >= n_in && !err && pra[i].buf.nLen) {
            memcpy(pra[i].buf.pv, args[i].buf.pv, pra[i].buf.nLen);
        }
        sim_dsp_free(args[i].buf.pv);
    }
    if (n > n_buf) {
        memcpy(pra + n_buf, args + n_buf, (n - n_buf) * sizeof(*args));
    }
    sim_dsp_free(args);
    return err;
}

// -- loading --------------------------------------------------------------------------------------

// The library's file in ADSP_LIBRARY_PATH (; or : between folders).
static bool find_library(const char * name, char path[PATH_MAX]) {
    static const char * const variables[] = { "ADSP_LIBRARY_PATH", "DSP_LIBRARY_PATH", "LD_LIBRARY_PATH" };
    for (unsigned i = 0; i < 3; i++) {
        const char * value = getenv(variables[i]);
        char *       copy  = value ? strdup(value) : NULL;
        char *       rest  = copy;
        for (char * dir; (dir = strsep(&rest, ";:")) != NULL;) {
            if (*dir && snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && !access(path, R_OK)) {
                free(copy);
                return true;
            }
        }
        free(copy);
    }
    return false;
}

static bool copy_file(const char * from, const char * to) {
    bool ok  = false;
    int  in  = open(from, O_RDONLY | O_CLOEXEC);
    int  out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (in >= 0 && out >= 0) {
        char    buf[1 << 16];
        ssize_t n;
        while ((n = read(in, buf, sizeof(buf))) > 0 && write(out, buf, (size_t) n) == n) {
        }
        ok = n == 0;
    }
    if (in >= 0) {
        close(in);
    }
    if (out >= 0) {
        close(out);
    }
    return ok;
}

// Each session needs its own static data: when the file is loaded already, load a copy of it.
static void * load(const char * path, bool copy) {
    if (!copy) {
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    const char * tmp  = getenv("TMPDIR");
    const char * name = strrchr(path, '/') + 1;
    char         dir[PATH_MAX - 256];
    char         file[PATH_MAX];
    void *       dl = NULL;
    snprintf(dir, sizeof(dir), "%s/hexpatch-sim-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        return NULL;
    }
    snprintf(file, sizeof(file), "%s/%.200s", dir, name);
    if (copy_file(path, file)) {
        dl = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    unlink(file);
    rmdir(dir);
    return dl;
}

struct span {
    const char * name;
    uintptr_t    lo, hi;
};

static int find_span(struct dl_phdr_info * info, size_t size, void * arg) {
    struct span * s = arg;
    (void) size;
    if (strcmp(info->dlpi_name, s->name)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) * ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD) {
            const uintptr_t lo = info->dlpi_addr + ph->p_vaddr;
            const uintptr_t hi = lo + ph->p_memsz;
            s->lo = s->lo && s->lo < lo ? s->lo : lo;
            s->hi = s->hi > hi ? s->hi : hi;
        }
    }
    return 1;
}

// file:///libx.so?symbol&_modver=1.0&_dom=cdsp&_session=1
static bool parse(const char * uri, char lib[256], char symbol[256], int * core, int * index) {
    const char * begin = strstr(uri, "://");
    begin = begin ? begin + 3 : uri;
    while (*begin == '/') {
        begin++;
    }
    const size_t n = strcspn(begin, "?&");
    if (!n || n >= 256 || begin[n] != '?') {
        return false;
    }
    snprintf(lib, 256, "%.*s", (int) n, begin);
    const char * sym = begin + n + 1;
    snprintf(symbol, 256, "%.*s", (int) strcspn(sym, "&"), sym);
    const char * dom = strstr(uri, "&_dom=cdsp");
    const char * ses = strstr(uri, "&_session=");
    *core  = dom && dom[10] >= '1' && dom[10] <= '9' ? atoi(dom + 10) : 0;
    *index = ses ? atoi(ses + 10) : 0;
    return true;
}

// FastRPC skels number open as method 0 (the uri's length, the uri; out the handle), close as 1.
static int skel_open(struct sim_handle * h, const char * uri) {
    uint32_t   length = (uint32_t) strlen(uri) + 1;
    remote_arg pra[3];
    pra[0].buf.pv = &length, pra[0].buf.nLen = sizeof(length);
    pra[1].buf.pv = (void *) uri, pra[1].buf.nLen = length;
    pra[2].buf.pv = &h->dsp, pra[2].buf.nLen = sizeof(h->dsp);
    return invoke(h->session, h->invoke, 0, REMOTE_SCALARS_MAKE(0, 2, 1), pra);
}

// Unload the handle's library. A session that was reserved is free again with its last handle.
static void forget(struct sim_handle * h) {
    bool last = true;
    pthread_mutex_lock(&lock);
    struct sim_handle ** q = &handles;
    while (*q != h) {
        q = &(*q)->next;
    }
    *q = h->next;
    for (const struct sim_handle * o = handles; o; o = o->next) {
        last &= o->session != h->session;
    }
    if (last) {
        h->session->reserved = false;
    }
    struct sim_session * s = h->session;
    if (s->lib_hi && s->lib_hi <= SIM_LOW_BEGIN) {
        sim_shadow_set(s->lib_lo, s->lib_hi - s->lib_lo, MEM_NONE);
    }
    s->lib_lo = s->lib_hi = 0;
    dlclose(h->dl);
    pthread_mutex_unlock(&lock);
    free(h);
}

SIM_API int remote_handle64_open(const char * name, remote_handle64 * ph) {
    char lib[256], symbol[256];
    int  core, index;
    if (!name || !ph || !parse(name, lib, symbol, &core, &index)) {
        return AEE_EBADPARM;
    }
    struct sim_session * s = sim_session_by_domain(CDSP_DOMAIN_ID + core + 16 * index);
    struct sim_handle *  h = calloc(1, sizeof(*h));
    if (!s || !h || (s->index && !s->reserved)) {
        free(h);
        return AEE_ERESOURCENOTFOUND;
    }
    h->session = s;
    if (!find_library(lib, h->path)) {
        sim_log("%s is in no folder of ADSP_LIBRARY_PATH", lib);
        free(h);
        return AEE_EUNABLETOLOAD;
    }
    pthread_mutex_lock(&lock);
    bool copy = false;
    for (const struct sim_handle * o = handles; o; o = o->next) {
        copy |= !strcmp(o->path, h->path);
    }
    h->dl = load(h->path, copy);
    if (h->dl) {
        *(void **) &h->invoke = dlsym(h->dl, symbol);
    }
    if (!h->dl || !h->invoke) {
        sim_log("%s: %s", lib, dlerror());
        pthread_mutex_unlock(&lock);
        free(h);
        return AEE_EUNABLETOLOAD;
    }
    struct link_map * map = NULL;
    if (!dlinfo(h->dl, RTLD_DI_LINKMAP, &map)) {
        struct span span = { map->l_name, 0, 0 };
        dl_iterate_phdr(find_span, &span);
        s->lib_lo = span.lo, s->lib_hi = span.hi;
        if (span.hi <= SIM_LOW_BEGIN) {
            sim_shadow_set(span.lo, span.hi - span.lo, MEM_LIB);
        }
    }
    h->next = handles;
    handles = h;
    pthread_mutex_unlock(&lock);
    const int err = skel_open(h, name);
    if (err) {
        forget(h);
        return err;
    }
    *ph = (remote_handle64) (uintptr_t) h;
    return AEE_SUCCESS;
}

static struct sim_handle * handle(remote_handle64 h) {
    pthread_mutex_lock(&lock);
    struct sim_handle * p = handles;
    while (p && (remote_handle64) (uintptr_t) p != h) {
        p = p->next;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

SIM_API int remote_handle64_invoke(remote_handle64 h, uint32_t dwScalars, remote_arg * pra) {
    struct sim_handle * p = handle(h);
    return p ? invoke(p->session, p->invoke, p->dsp, dwScalars, pra) : AEE_EINVHANDLE;
}

// The library stays loaded when its close fails: its threads may still run.
SIM_API int remote_handle64_close(remote_handle64 h) {
    struct sim_handle * p = handle(h);
    if (!p) {
        return AEE_EINVHANDLE;
    }
    const int err = invoke(p->session, p->invoke, p->dsp, REMOTE_SCALARS_MAKE(1, 0, 0), NULL);
    if (!err) {
        forget(p);
    }
    return err;
}
