// Preloaded into test-backend-ops. Without an environment variable it does nothing.
//
// HEXPATCH_SEED=n    A case's inputs follow from n and from the case alone, so that the base, the stack and
//                    a later run get the same ones, whichever cases are run before. Wants -j 1.
// HEXPATCH_ERRORS=f  Appends a line per compared case to f: its largest NMSE and the op that has it
//                    (test-backend-ops prints the error of failing cases only). With HEXPATCH_EXACT=1 also
//                    the error against a float64 matrix product; -1 for other ops.
// HEXPATCH_LIST=1    No op is supported: the test then prints every case it knows and runs none (its own
//                    `support` mode leaves out the cases of fused graphs).
//
// They hang on functions that the program calls in libggml-base and libstdc++ through the linker; a tree
// whose test does it another way loses the effect, not the result.
#include "errors.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

namespace {

template <typename F> F next(const char * name) {
    return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// -- seeds ------------------------------------------------------------------------------------------------

bool seed_of(uint64_t & seed) {
    static const char * text = std::getenv("HEXPATCH_SEED");
    seed = text ? std::strtoull(text, nullptr, 0) : 0;
    return text != nullptr && *text != '\0';
}

thread_local uint64_t state = 0;

uint64_t mixed(uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t key_of(ggml_context * ctx) {
    uint64_t key = 0xcbf29ce484222325u;
    auto add = [&](const void * data, size_t size) {
        for (size_t i = 0; i < size; i++) {
            key = (key ^ static_cast<const uint8_t *>(data)[i]) * 0x100000001b3u;
        }
    };
    for (ggml_tensor * t = ggml_get_first_tensor(ctx); t != nullptr; t = ggml_get_next_tensor(ctx, t)) {
        // names, not numbers: a new op or type must not change the inputs of the others
        const char * op   = ggml_op_name(t->op);
        const char * type = ggml_type_name(t->type);
        add(op, std::strlen(op));
        add(type, std::strlen(type));
        add(t->ne, sizeof(t->ne));
        add(t->nb, sizeof(t->nb));
        add(t->op_params, sizeof(t->op_params));
    }
    return key;
}

// The test keeps its generator in a thread_local, which would go on from case to case: put the thread's
// block of the program itself back to what it was when the thread began.
int reset_tls(dl_phdr_info * info, size_t size, void *) {
    if (size >= offsetof(dl_phdr_info, dlpi_tls_data) + sizeof(info->dlpi_tls_data) && info->dlpi_tls_data) {
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const auto & part = info->dlpi_phdr[i];
            if (part.p_type == PT_TLS) {
                auto * block = static_cast<uint8_t *>(info->dlpi_tls_data);
                std::memcpy(block, reinterpret_cast<const void *>(info->dlpi_addr + part.p_vaddr), part.p_filesz);
                std::memset(block + part.p_filesz, 0, part.p_memsz - part.p_filesz);
            }
        }
    }
    return 1;  // the first object is the program; no other is wanted
}

// -- errors -----------------------------------------------------------------------------------------------

struct Watched {
    ggml_backend_eval_callback callback;
    void *                     user_data;
    double                     worst = 0;
    double                     exact = -1;
    const char *               op    = "";
};

bool want_exact = false;

bool watch(int index, ggml_tensor * t1, ggml_tensor * t2, void * user_data) {
    auto & w = *static_cast<Watched *>(user_data);
    if (t1->op != GGML_OP_NONE) {  // a sentinel
        const double err = nmse(values_of(t1), values_of(t2));
        if (!(err <= w.worst) || w.op[0] == '\0') {
            w.worst = err;
            w.op    = ggml_op_desc(t1);
            w.exact = want_exact ? exact_nmse(t1, t2) : -1;
        }
    }
    return w.callback(index, t1, t2, w.user_data);
}

}  // namespace

#pragma GCC visibility push(default)

ggml_backend_buffer_t ggml_backend_alloc_ctx_tensors(ggml_context * ctx, ggml_backend_t backend) {
    uint64_t seed;
    if (seed_of(seed)) {
        state = mixed(seed) ^ key_of(ctx);
        std::srand((unsigned) mixed(state));
        dl_iterate_phdr(reset_tls, nullptr);
    }
    static const auto real = next<decltype(&ggml_backend_alloc_ctx_tensors)>(__func__);
    return real(ctx, backend);
}

bool ggml_backend_supports_op(ggml_backend_t backend, const ggml_tensor * op) {
    static const auto real = next<decltype(&ggml_backend_supports_op)>(__func__);
    static const bool list = std::getenv("HEXPATCH_LIST") != nullptr;
    return !list && real(backend, op);
}

ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char * params) {
    static const auto real = next<decltype(&ggml_backend_init_by_type)>(__func__);
    ggml_backend_t backend = real(type, params);
    uint64_t seed;
    if (backend != nullptr && type == GGML_BACKEND_DEVICE_TYPE_CPU && seed_of(seed)) {
        auto * reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
        auto * set = reinterpret_cast<ggml_backend_set_n_threads_t>(
            ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"));
        if (set) {
            set(backend, 1);
        }
    }
    return backend;
}

bool ggml_backend_compare_graph_backend(ggml_backend_t backend1, ggml_backend_t backend2, ggml_cgraph * graph,
                                        ggml_backend_eval_callback callback, void * user_data,
                                        ggml_tensor const * const * test_nodes, size_t num_test_nodes) {
    static const auto   real = next<decltype(&ggml_backend_compare_graph_backend)>(__func__);
    static const char * path = std::getenv("HEXPATCH_ERRORS");
    if (path == nullptr || *path == '\0') {
        return real(backend1, backend2, graph, callback, user_data, test_nodes, num_test_nodes);
    }
    want_exact = std::getenv("HEXPATCH_EXACT") != nullptr;
    Watched w = { callback, user_data };
    const bool ok = real(backend1, backend2, graph, watch, &w, test_nodes, num_test_nodes);
    if (FILE * file = std::fopen(path, "a")) {
        std::fprintf(file, "%.6g\t%s\t%.6g\n", w.worst, w.op, w.exact);
        std::fclose(file);
    }
    return ok;
}

// std::random_device::_M_getval and std::thread::hardware_concurrency of libstdc++
extern "C" unsigned hexpatch_random(void *) __asm__("_ZNSt13random_device9_M_getvalEv");
extern "C" unsigned hexpatch_cores() __asm__("_ZNSt6thread20hardware_concurrencyEv");

unsigned hexpatch_random(void *) {
    uint64_t seed;
    unsigned value = 0;
    if (seed_of(seed)) {
        state = mixed(state);
        return (unsigned) (state >> 32);
    }
    return getrandom(&value, sizeof(value), 0) == sizeof(value) ? value : 4;
}

// Two: the test then fills tensors in one thread, and its numbers don't depend on the machine.
unsigned hexpatch_cores() {
    uint64_t seed;
    if (seed_of(seed)) {
        return 2;
    }
    static const auto real = next<unsigned (*)()>("_ZNSt6thread20hardware_concurrencyEv");
    return real ? real() : 1;
}

#pragma GCC visibility pop
