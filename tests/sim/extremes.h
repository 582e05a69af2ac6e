// What extremes.cpp is made of: numbers, a graph for one backend, and what is printed of an output.
#pragma once

#include "ggml-backend.h"
#include "ggml.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using floats  = std::vector<float>;
using doubles = std::vector<double>;
using bytes   = std::vector<uint8_t>;

static ggml_backend_t htp;
static ggml_backend_t cpu;

// splitmix64
struct rng {
    uint64_t state;

    double uniform() {
        uint64_t x = state += 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return ((x ^ (x >> 31)) >> 11) * 0x1p-53;
    }

    floats uniforms(int64_t n, double scale = 1.0) {
        floats out(n);
        std::generate(out.begin(), out.end(), [&] { return (float) (scale * uniform()); });
        return out;
    }

    floats normals(int64_t n, double scale = 1.0) {
        floats out(n);
        std::generate(out.begin(), out.end(), [&] {
            const double length = sqrt(-2.0 * log(1.0 - uniform()));
            return (float) (scale * length * cos(6.283185307179586 * uniform()));
        });
        return out;
    }
};

static bytes encode(ggml_type type, const floats & values, int64_t row) {
    bytes out(ggml_row_size(type, values.size()));
    if (type == GGML_TYPE_F32) {
        memcpy(out.data(), values.data(), out.size());
    } else {
        ggml_quantize_chunk(type, values.data(), out.data(), 0, values.size() / row, row, nullptr);
    }
    return out;
}

static floats decode(ggml_type type, const bytes & data) {
    floats out(data.size() / ggml_type_size(type) * ggml_blck_size(type));
    if (type == GGML_TYPE_F32) {
        memcpy(out.data(), data.data(), data.size());
    } else {
        ggml_get_type_traits(type)->to_float(data.data(), out.data(), out.size());
    }
    return out;
}

[[noreturn]] static void fail(const std::string & text) {
    fprintf(stderr, "%s\n", text.c_str());
    exit(2);
}

// A graph for one backend, and its inputs.
struct graph {
    ggml_backend_t                               backend;
    ggml_context *                               ctx;
    std::vector<std::pair<ggml_tensor *, bytes>> inputs;

    explicit graph(ggml_backend_t backend) : backend(backend) {
        ctx = ggml_init({ 64 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true });
    }

    graph(const graph &) = delete;

    ~graph() { ggml_free(ctx); }

    ggml_tensor * input(ggml_type type, const std::vector<int64_t> & ne, const bytes & data) {
        inputs.emplace_back(ggml_new_tensor(ctx, type, (int) ne.size(), ne.data()), data);
        return inputs.back().first;
    }

    ggml_tensor * input(ggml_type type, const std::vector<int64_t> & ne, const floats & values) {
        return input(type, ne, encode(type, values, ne[0]));
    }

    ggml_tensor * input(const std::vector<int64_t> & ne, const floats & values) {
        return input(GGML_TYPE_F32, ne, values);
    }

    bytes run(ggml_tensor * out) {
        ggml_cgraph * gf = ggml_new_graph(ctx);
        ggml_build_forward_expand(gf, out);
        for (int i = 0; i < ggml_graph_n_nodes(gf); i++) {
            if (!ggml_backend_supports_op(backend, ggml_graph_node(gf, i))) {
                fail(std::string(ggml_backend_name(backend)) + " does not support this " +
                     ggml_op_desc(ggml_graph_node(gf, i)));
            }
        }
        ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
        ggml_backend_buffer_clear(buffer, 0xa5);
        for (const auto & [t, data] : inputs) {
            ggml_backend_tensor_set(t, data.data(), 0, data.size());
        }
        if (ggml_backend_graph_compute(backend, gf) != GGML_STATUS_SUCCESS) {
            fail(std::string(ggml_op_desc(out)) + " failed");
        }
        bytes data(ggml_nbytes(out));
        ggml_backend_tensor_get(out, data.data(), 0, data.size());
        ggml_backend_buffer_free(buffer);
        return data;
    }
};

template <typename... T> static std::string text(const char * format, T... values) {
    char out[256];
    snprintf(out, sizeof(out), format, values...);
    return out;
}

static void report_wrong(int64_t n, const std::string & variant) {
    printf("wrong %lld %s\n", (long long) n, variant.c_str());
}

static void report_nmse(const floats & out, const doubles & ref, const std::string & variant) {
    double error = 0.0, sum = 1e-30, broken = 0.0;
    for (size_t i = 0; i < ref.size(); i++) {
        sum += ref[i] * ref[i];
        if (std::isfinite(out[i])) {
            error += (out[i] - ref[i]) * (out[i] - ref[i]);
        } else {
            broken += 1.0;
        }
    }
    printf("nmse %.3g %s\n", broken + error / sum, variant.c_str());
}
