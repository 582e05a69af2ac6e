// Runs one op of any shape on a backend and on the CPU, once, and says how wrong the backend is.
//
//     hexpatch-opbench DEVICE SEED 'MUL_MAT(type_a=q4_0,m=9216,n=512,k=2560)'...
//
// One JSON object per case: {"case": .., "supported": .., "nmse": .., "exact": ..}. Parameters are those of
// test-backend-ops, with its meaning and layout; the ones that are left out have the defaults below.
#include "errors.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

namespace {

struct Params {
    std::string                        op;
    std::map<std::string, std::string> values;
    std::map<std::string, bool>        used;

    explicit Params(const std::string & text) {
        const size_t open = text.find('(');
        if (open == std::string::npos || text.back() != ')') {
            throw std::runtime_error("not of the form OP(name=value,...)");
        }
        op = text.substr(0, open);
        size_t at = open + 1;
        while (at < text.size() - 1) {
            size_t end = at;
            for (int depth = 0; end < text.size() - 1 && (depth || text[end] != ','); end++) {
                depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
            }
            const std::string part = text.substr(at, end - at);
            const size_t      eq   = part.find('=');
            if (eq == std::string::npos) {
                throw std::runtime_error(part + " is not name=value");
            }
            values[part.substr(0, eq)] = part.substr(eq + 1);
            at = end + 1;
        }
    }

    std::string text(const std::string & name, const std::string & otherwise) {
        used[name] = true;
        const auto found = values.find(name);
        return found == values.end() ? otherwise : found->second;
    }

    int64_t number(const std::string & name, int64_t otherwise) {
        const std::string given = text(name, std::to_string(otherwise));
        char *            end;
        const int64_t     value = std::strtoll(given.c_str(), &end, 10);
        return to_its_end(name, given, end), value;
    }

    float real(const std::string & name, float otherwise) {
        const std::string given = text(name, std::to_string(otherwise));
        char *            end;
        const float       value = std::strtof(given.c_str(), &end);
        return to_its_end(name, given, end), value;
    }

    static void to_its_end(const std::string & name, const std::string & given, const char * end) {
        if (end == given.c_str() || *end) {
            throw std::runtime_error(name + "=" + given + " is no number");
        }
    }

    std::vector<int64_t> list(const std::string & name, const std::string & otherwise, size_t size) {
        const std::string given = text(name, otherwise);
        std::vector<int64_t> out;
        const char * p = given.c_str() + (given[0] == '[');
        while (*p && *p != ']') {
            char * end;
            out.push_back(std::strtoll(p, &end, 10));
            if (end == p || (*end && *end != ',' && *end != ']')) {
                throw std::runtime_error(name + "=" + given + " is no list of numbers");
            }
            p = end + (*end == ',');
        }
        if (out.size() != size) {
            throw std::runtime_error(name + "=" + given + " needs " + std::to_string(size) + " numbers");
        }
        return out;
    }

    ggml_type type(const std::string & name, const std::string & otherwise) {
        const std::string given = text(name, otherwise);
        for (int i = 0; i < GGML_TYPE_COUNT; i++) {
            const char * known = ggml_type_name((ggml_type) i);
            if (known && given == known) {
                return (ggml_type) i;
            }
        }
        throw std::runtime_error(name + "=" + given + " is no type");
    }

    // A parameter with a value that is not modelled here would be measured as something else.
    void only(const std::string & name, const std::string & value) {
        if (text(name, value) != value) {
            throw std::runtime_error(name + "=" + values[name] + " can't be had here (only " + value + ")");
        }
    }

    void done() const {
        for (const auto & value : values) {
            if (!used.count(value.first)) {
                throw std::runtime_error(op + " has no parameter " + value.first + " here");
            }
        }
    }
};

struct Range {
    float low = -1.0f, high = 1.0f;
};

struct Graph {
    ggml_context *                 ctx;
    std::map<ggml_tensor *, Range> ranges;
    ggml_tensor *                  mask = nullptr;

    ggml_tensor * make(ggml_type type, int64_t a, int64_t b = 1, int64_t c = 1, int64_t d = 1, Range range = {}) {
        ggml_tensor * t = ggml_new_tensor_4d(ctx, type, a, b, c, d);
        ranges[t] = range;
        return t;
    }
};

ggml_tensor * mul_mat(Graph & g, Params & p) {
    const auto bs = p.list("bs", "[1,1]", 2), nr = p.list("nr", "[1,1]", 2);
    const int64_t k = p.number("k", 256);
    p.only("per", "[0,1,2,3]");
    p.only("k_v", "0");
    p.only("o", "1");
    p.only("src_overlap", "0");
    p.only("m_v", "0");
    p.only("pad", "0");
    ggml_tensor * a = g.make(p.type("type_a", "q4_0"), k, p.number("m", 256), bs[0], bs[1]);
    ggml_tensor * b = g.make(p.type("type_b", "f32"), k, p.number("n", 64), bs[0]*nr[0], bs[1]*nr[1]);
    ggml_tensor * out = ggml_mul_mat(g.ctx, a, b);
    if (p.text("add", "").empty()) {
        return out;
    }
    const auto ne = p.list("add", "", 4);  // a residual, which may be repeated: backends fuse it
    return ggml_add(g.ctx, out, g.make(GGML_TYPE_F32, ne[0], ne[1], ne[2], ne[3]));
}

ggml_tensor * flash_attn_ext(Graph & g, Params & p) {
    const int64_t hsk = p.number("hsk", 128), hsv = p.number("hsv", hsk);
    const int64_t nh = p.number("nh", 4), kv = p.number("kv", 512), nb = p.number("nb", 64);
    const auto nr = p.list("nr23", "[1,1]", 2);
    const ggml_type type_k = p.type("type_K", "f16"), type_v = p.type("type_V", "f16");
    p.only("permute", "[0,1,2,3]");
    p.only("v_is_view_of_k", "0");
    p.only("n_kv_max", "0");
    p.only("prec", "f32");
    const bool view = p.number("kv_view", 1) != 0;
    auto cache = [&](ggml_type type, int64_t size) {  // usually a view of a larger cache
        ggml_tensor * t = g.make(type, size, view ? 2*kv : kv, nh, nr[1]);
        return view ? ggml_view_4d(g.ctx, t, size, kv, nh, nr[1], t->nb[1], t->nb[2], t->nb[3], 0) : t;
    };
    ggml_tensor * q = g.make(GGML_TYPE_F32, hsk, nb, nh*nr[0], nr[1]);
    ggml_tensor * k = cache(type_k, hsk);
    ggml_tensor * v = cache(type_v, hsv);
    if (p.number("mask", 1)) {
        g.mask = g.make(GGML_TYPE_F16, kv, nb, 1, nr[1]);
    }
    const float max_bias = p.real("max_bias", 0.0f), softcap = p.real("logit_softcap", 0.0f);
    ggml_tensor * out = ggml_flash_attn_ext(g.ctx, q, k, v, g.mask, 1.0f/std::sqrt((float) hsk), max_bias, softcap);
    if (p.number("sinks", 0)) {
        ggml_flash_attn_ext_add_sinks(out, g.make(GGML_TYPE_F32, nh*nr[0], 1, 1, 1, { -10.0f, 10.0f }));
    }
    return out;
}

#ifdef HEXPATCH_GATED_DELTA_NET
ggml_tensor * gated_delta_net(Graph & g, Params & p) {
    const ggml_type type = p.type("type", "f32");
    const int64_t heads = p.number("head_count", 4), size = p.number("head_size", 128);
    const int64_t tokens = p.number("n_seq_tokens", 64), seqs = p.number("n_seqs", 1);
    const int64_t repeat = p.number("v_repeat", 1), kda = p.number("kda", 0);
    p.only("permuted", "0");
    ggml_tensor * q     = g.make(type, size, heads, tokens, seqs);
    ggml_tensor * k     = g.make(type, size, heads, tokens, seqs);
    ggml_tensor * v     = g.make(type, size, heads*repeat, tokens, seqs, { -0.3f, 5.0f });
    ggml_tensor * gate  = g.make(type, kda ? size : 1, heads*repeat, tokens, seqs, { -20.0f, -1e-4f });
    ggml_tensor * beta  = g.make(type, 1, heads*repeat, tokens, seqs, { 0.0f, 1.0f });
    ggml_tensor * state = g.make(type, size, size, heads*repeat, seqs);
    // the op itself is measured, so its inputs are normalised where they are made
    return ggml_gated_delta_net(g.ctx, ggml_l2_norm(g.ctx, q, 1e-6f), ggml_l2_norm(g.ctx, k, 1e-6f), v, gate, beta,
                                state, p.number("K", 1));
}
#endif

ggml_tensor * cpy(Graph & g, Params & p) {
    const auto ne = p.list("ne_src", p.text("ne", "[10,10,10,1]"), 4);
    const ggml_type from = p.type("type_src", "f32"), to = p.type("type_dst", "f32");
    const auto order = p.list("permute_src", "[0,0,0,0]", 4);
    p.only("permute_dst", "[0,0,0,0]");
    ggml_tensor * src = g.make(from, ne[0], ne[1], ne[2], ne[3], { -150.0f, 150.0f });
    if (order[0] + order[1] + order[2] + order[3] > 0) {
        src = ggml_permute(g.ctx, src, (int) order[0], (int) order[1], (int) order[2], (int) order[3]);
    }
    if (p.number("_src_transpose", 0)) {
        src = ggml_transpose(g.ctx, src);
    }
    return ggml_cpy(g.ctx, src, g.make(to, src->ne[0], src->ne[1], src->ne[2], src->ne[3]));
}

ggml_tensor * concat(Graph & g, Params & p) {
    const ggml_type type = p.type("type", "f32");
    const auto ne = p.list("ne_a", "[10,5,5,5]", 4);
    const int dim = (int) p.number("dim", 0);
    p.only("v", "0");
    auto other = ne;
    other.at(dim) = p.number("ne_b_d", 5);
    ggml_tensor * a = g.make(type, ne[0], ne[1], ne[2], ne[3]);
    return ggml_concat(g.ctx, a, g.make(type, other[0], other[1], other[2], other[3]), dim);
}

ggml_tensor * build(Graph & g, Params & p) {
    if (p.op == "MUL_MAT")         { return mul_mat(g, p); }
    if (p.op == "FLASH_ATTN_EXT")  { return flash_attn_ext(g, p); }
#ifdef HEXPATCH_GATED_DELTA_NET
    if (p.op == "GATED_DELTA_NET") { return gated_delta_net(g, p); }
#endif
    if (p.op == "CPY")             { return cpy(g, p); }
    if (p.op == "CONCAT")          { return concat(g, p); }
    throw std::runtime_error("op " + p.op + " is not known here");
}

struct Random {
    uint64_t state;

    float uniform(Range r) {  // splitmix64
        uint64_t x = state += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return r.low + (r.high - r.low) * (float) ((x ^ (x >> 31)) >> 40) * 0x1p-24f;
    }
};

// Causal: the last token sees all, each one before sees one less.
std::vector<float> causal(const ggml_tensor * t) {
    std::vector<float> data(ggml_nelements(t));
    for (size_t i = 0; i < data.size(); i++) {
        const int64_t col = i % t->ne[0], row = i / t->ne[0] % t->ne[1];
        data[i] = col > t->ne[0] - t->ne[1] + row ? -INFINITY : 0.0f;
    }
    return data;
}

void fill(const Graph & g, uint64_t seed) {
    Random random = { seed };
    for (ggml_tensor * t = ggml_get_first_tensor(g.ctx); t; t = ggml_get_next_tensor(g.ctx, t)) {
        const auto found = g.ranges.find(t);
        if (found == g.ranges.end()) {
            continue;
        }
        std::vector<float> data(ggml_nelements(t));
        for (float & x : data) {
            x = random.uniform(found->second);
        }
        if (t == g.mask) {
            data = causal(t);
        }
        if (t->type == GGML_TYPE_F32) {
            ggml_backend_tensor_set(t, data.data(), 0, data.size()*sizeof(float));
        } else {
            std::vector<uint8_t> bytes(ggml_nbytes(t));
            std::vector<float>   weights(t->ne[0], 1.0f);
            ggml_quantize_chunk(t->type, data.data(), bytes.data(), 0, ggml_nrows(t), t->ne[0], weights.data());
            ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
        }
    }
}

struct Errors {
    double nmse = 0, exact = -1;
};

void run(const std::string & text, ggml_backend_t device, ggml_backend_t cpu, uint64_t seed) {
    Params p(text);
    ggml_init_params size = { ggml_tensor_overhead()*64 + ggml_graph_overhead(), nullptr, true };
    Graph g = { ggml_init(size), {}, nullptr };
    ggml_tensor * out = build(g, p);
    p.done();
    ggml_cgraph * graph = ggml_new_graph(g.ctx);
    ggml_build_forward_expand(graph, out);
    bool supported = true;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        supported = supported && ggml_backend_supports_op(device, ggml_graph_node(graph, i));
    }
    if (!supported) {
        std::printf("{\"case\": \"%s\", \"supported\": false}\n", text.c_str());
        ggml_free(g.ctx);
        return;
    }
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(g.ctx, device);
    if (!buffer) {
        throw std::runtime_error("the tensors don't fit into the device's memory");
    }
    fill(g, seed);
    Errors errors;
    auto compare = [](int, ggml_tensor * t1, ggml_tensor * t2, void * user) {
        auto & e = *static_cast<Errors *>(user);
        e.nmse  = nmse(values_of(t1), values_of(t2));
        e.exact = exact_nmse(t1, t2);
        return true;
    };
    // node by node, unless what is measured is how nodes are fused
    const ggml_tensor * last[] = { out };
    if (!ggml_backend_compare_graph_backend(device, cpu, graph, compare, &errors, last, out->op == GGML_OP_ADD)) {
        throw std::runtime_error("the graph could not be copied to the CPU");
    }
    std::printf("{\"case\": \"%s\", \"supported\": true, \"nmse\": \"%.6g\", \"exact\": \"%.6g\"}\n", text.c_str(),
                errors.nmse, errors.exact);
    std::fflush(stdout);
    ggml_backend_buffer_free(buffer);
    ggml_free(g.ctx);
}

}  // namespace

int main(int argc, char ** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s DEVICE SEED 'OP(name=value,...)'...\n", argv[0]);
        return 2;
    }
    ggml_backend_load_all();
    ggml_backend_dev_t dev = ggml_backend_dev_by_name(argv[1]);
    ggml_backend_t device = dev ? ggml_backend_dev_init(dev, nullptr) : nullptr;
    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    if (!device || !cpu) {
        std::fprintf(stderr, "there is no device %s\n", argv[1]);
        return 1;
    }
    int status = 0;
    for (int i = 3; i < argc; i++) {
        try {
            run(argv[i], device, cpu, std::strtoull(argv[2], nullptr, 0));
        } catch (const std::exception & error) {
            std::fprintf(stderr, "%s: %s\n", argv[i], error.what());
            status = 2;
        }
    }
    ggml_backend_free(device);
    ggml_backend_free(cpu);
    return status;
}
