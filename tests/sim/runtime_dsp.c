// The DSP half of the runtime's tests: a skel written by hand.
#include "runtime_dsp.h"

static unsigned   calls;  // static data: one per session
static dspqueue_t queue;
static unsigned   thread;
static bool       stopped;

struct packed {
    uint32_t a;
    uint64_t b;
};

// -- queue ----------------------------------------------------------------------------------------

// Adds 1 to every byte of the packet's buffer and sends it back with the message reversed.
static int answer(dspqueue_t q, bool wait) {
    struct dspqueue_buffer buf;
    uint32_t flags, n, length;
    uint8_t  message[256], back[256];
    int err = wait ? dspqueue_read(q, &flags, 1, &n, &buf, sizeof(message), &length, message, DSPQUEUE_TIMEOUT_NONE)
                   : dspqueue_read_noblock(q, &flags, 1, &n, &buf, sizeof(message), &length, message);
    if (err) {
        return err;
    }
    for (uint32_t i = 0; n && i < buf.size; i++) {
        ((uint8_t *) buf.ptr)[i]++;
    }
    for (uint32_t i = 0; i < length; i++) {
        back[i] = message[length - 1 - i];
    }
    return dspqueue_write(q, flags + 1, n, &buf, length, back, DSPQUEUE_TIMEOUT_NONE);
}

static void serve(void * arg) {
    uint32_t flags, n, length;
    (void) arg;
    while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE)) {
        if (dspqueue_peek(queue, &flags, &n, &length, 1000) == AEE_SUCCESS) {
            answer(queue, true);
        }
    }
}

static void on_packet(dspqueue_t q, AEEResult error, void * context) {
    (void) context;
    while (!error && answer(q, false) == AEE_SUCCESS) {
    }
}

static int start(uint64_t id, bool callback) {
    int err = dspqueue_import(id, callback ? on_packet : NULL, NULL, NULL, &queue);
    if (err || callback) {
        return err;
    }
    qurt_thread_attr_t attr;
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_name(&attr, "server");
    qurt_thread_attr_set_stack_size(&attr, 16384);
    stopped = false;
    return qurt_thread_create(&thread, &attr, serve, NULL);
}

static int stop(void) {
    int status;
    __atomic_store_n(&stopped, true, __ATOMIC_RELEASE);
    if (thread) {
        qurt_thread_join(thread, &status);
        thread = 0;
    }
    return dspqueue_close(queue);
}

// -- kernels ----------------------------------------------------------------------------------------

static void run(void * arg) {
    struct job * j = arg;
    sim_op_begin(j->name, j);
    j->status = run_kernel(j) ? 0 : AEE_ENOSUCH;
    sim_op_end(j->status);
}

static int want_back(unsigned int rctx, void * context) {
    struct job * j = context;
    (void) rctx;
    __atomic_fetch_add(&j->asked, 1, __ATOMIC_RELAXED);
    return AEE_SUCCESS;
}

// On a thread of its own, with VTCM and the shared buffer.
static int kernel(const char * name, const uint32_t * a, int fd, uint64_t r[4]) {
    struct job * j = calloc(1, sizeof(*j));
    compute_res_attr_t attr;
    unsigned size = 0;
    strncpy(j->name, name, sizeof(j->name) - 1);
    memcpy(j->a, a, sizeof(j->a));
    HAP_compute_res_query_VTCM(0, &size, NULL, NULL, NULL);
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param_v2(&attr, size, size, size);
    HAP_compute_res_attr_set_hmx_param(&attr, 1);
    HAP_compute_res_attr_set_cache_mode(&attr, 1);
    HAP_compute_res_attr_set_release_callback(&attr, want_back, j);
    j->rctx = HAP_compute_res_acquire(&attr, 1000000);
    if (!j->rctx || HAP_compute_res_attr_get_vtcm_ptr_v2(&attr, (void **) &j->vtcm, &size)) {
        return AEE_ENOMEMORY;
    }
    int status = HAP_compute_res_acquire_cached(j->rctx, 100000);
    if (status) {
        return status;
    }
    j->ddr = HAP_mmap(NULL, 65536, HAP_PROT_READ | HAP_PROT_WRITE, 0, fd, 0);
    qurt_thread_attr_t t;
    qurt_thread_t      id;
    qurt_thread_attr_init(&t);
    qurt_thread_attr_set_name(&t, "kernel");
    qurt_thread_attr_set_stack_size(&t, 16384);
    qurt_thread_create(&id, &t, run, j);
    qurt_thread_join(id, &status);
    memcpy(r, j->r, sizeof(j->r));
    status = j->status;
    HAP_munmap(j->ddr, 65536);
    HAP_compute_res_release(j->rctx);
    free(j);
    return status;
}

// -- skel -------------------------------------------------------------------------------------------

int test_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg * pra);

int test_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg * pra) {
    switch (REMOTE_SCALARS_METHOD(sc)) {
        case 0:
            if (strstr(pra[1].buf.pv, "refuse")) {
                return AEE_ENOTALLOWED;
            }
            *(uint64_t *) pra[2].buf.pv = 0x1234;
            return AEE_SUCCESS;
        case 1:
            return h == 0x1234 ? AEE_SUCCESS : AEE_EBADPARM;
        case 2: {  // echo: the bytes reversed, their address and the caller's priority
            const uint32_t  n   = *(uint32_t *) pra[0].buf.pv;
            const uint8_t * in  = pra[1].buf.pv;
            struct packed * out = pra[2].buf.pv;
            uint8_t *       to  = pra[3].buf.pv;
            out->a = (uint32_t) qurt_thread_get_priority(qurt_thread_get_id());
            out->b = (uint64_t) (uintptr_t) in | (uint64_t) (uintptr_t) &n | (uint64_t) (uintptr_t) out;
            for (uint32_t i = 0; i < n; i++) {
                to[i] = in[n - 1 - i];
            }
            return AEE_SUCCESS;
        }
        case 3:
            *(uint32_t *) pra[0].buf.pv = ++calls;
            return AEE_SUCCESS;
        case 4: {
            const struct packed * in = pra[0].buf.pv;
            return start(in->b, in->a);
        }
        case 5:
            return stop();
        case 6: {
            const uint32_t * in = pra[0].buf.pv;
            return kernel(pra[1].buf.pv, in + 1, (int) in[0], pra[2].buf.pv);
        }
        case 7: {  // map and unmap by fd: where, in 32 bits or extended
            const uint32_t * in   = pra[0].buf.pv;
            uint64_t *       out  = pra[1].buf.pv;
            HAP_mem_req_payload_t m = { .request_id = HAP_MEM_MAP };
            m.mmap.fd    = (int) in[0];
            m.mmap.len   = in[1];
            m.mmap.flags = in[2] ? HAP_MEM_FLAGS_EXTENDED_MAP : 0;
            const int err = HAP_mem_request(&m);
            *out = m.mmap.dsp_va;
            return err;
        }
        case 8:
            return HAP_munmap((void *) (uintptr_t) *(uint64_t *) pra[0].buf.pv, 0);
        default:
            return AEE_EUNSUPPORTED;
    }
}
