// Inputs that test-backend-ops does not draw, computed on HTP0.
//
//     extremes CASE
//
// A line for each variant of the case: "nmse X TEXT" against float64, where an output that is not
// finite counts 1, or "wrong N TEXT", the number of elements that are not as they should be.
#include "extremes.h"

#include <functional>
#include <map>

// --- attention ---

// q [head][token][d]; k, v [KV head][cell][d]; mask [token][cell]; mask, sinks: empty for none
struct attention {
    int    d, n_heads, n_kv_heads, n_tokens, n_kv;
    rng    r;
    floats q, k, v, mask, sinks;
    float  softcap = 0.0f;

    attention(uint64_t seed, int d, int n_heads, int n_kv_heads, int n_tokens, int n_kv) :
        d(d), n_heads(n_heads), n_kv_heads(n_kv_heads), n_tokens(n_tokens), n_kv(n_kv), r{ seed },
        q(r.normals(d * n_tokens * n_heads)),
        k(r.normals(d * n_kv * n_kv_heads)),
        v(r.normals(d * n_kv * n_kv_heads)) {}

    float scale() const { return 1.0f / sqrtf((float) d); }

    template <typename F> void set_mask(F value) {
        mask.resize(n_tokens * n_kv);
        for (int i = 0; i < n_tokens * n_kv; i++) {
            mask[i] = value(i / n_kv, i % n_kv);
        }
    }

    // what a token does not see gets `hidden`
    void set_causal_mask(float hidden) {
        set_mask([&](int token, int cell) { return cell <= n_kv - n_tokens + token ? 0.0f : hidden; });
    }

    doubles reference() const {
        const floats kh = decode(GGML_TYPE_F16, encode(GGML_TYPE_F16, k, d));
        const floats vh = decode(GGML_TYPE_F16, encode(GGML_TYPE_F16, v, d));
        doubles      out(q.size());
        for (int i = 0; i < n_heads * n_tokens; i++) {
            row(i / n_tokens, mask.empty() ? nullptr : &mask[i % n_tokens * n_kv], &q[i * d], kh, vh, &out[i * d]);
        }
        return out;
    }

    void row(int head, const float * bias, const float * qr, const floats & kh, const floats & vh, double * out) const {
        const int first = head / (n_heads / n_kv_heads) * n_kv;
        doubles   s(n_kv, -INFINITY);
        double    max   = sinks.empty() ? -INFINITY : sinks[head];
        for (int i = 0; i < n_kv; i++) {
            if (bias && bias[i] == -INFINITY) {
                continue;
            }
            double dot = 0.0;
            for (int c = 0; c < d; c++) {
                dot += (double) qr[c] * kh[(first + i) * d + c];
            }
            s[i] = softcap > 0.0f ? softcap * tanh(dot * scale() / softcap) : dot * scale();
            s[i] += bias ? bias[i] : 0.0f;
            max = std::max(max, s[i]);
        }
        double sum = sinks.empty() ? 0.0 : exp(sinks[head] - max);
        for (int i = 0; i < n_kv; i++) {
            const double p = s[i] == -INFINITY ? 0.0 : exp(s[i] - max);
            sum += p;
            for (int c = 0; c < d && p > 0.0; c++) {
                out[c] += p * vh[(first + i) * d + c];
            }
        }
        for (int c = 0; c < d && sum > 0.0; c++) {
            out[c] /= sum;
        }
    }

    floats run() const {
        graph         g(htp);
        ggml_tensor * qt = g.input({ d, n_tokens, n_heads }, q);
        ggml_tensor * kt = g.input(GGML_TYPE_F16, { d, n_kv, n_kv_heads }, k);
        ggml_tensor * vt = g.input(GGML_TYPE_F16, { d, n_kv, n_kv_heads }, v);
        ggml_tensor * mt = mask.empty() ? nullptr : g.input(GGML_TYPE_F16, { n_kv, n_tokens }, mask);
        ggml_tensor * t  = ggml_flash_attn_ext(g.ctx, qt, kt, vt, mt, scale(), 0.0f, softcap);
        if (!sinks.empty()) {
            ggml_flash_attn_ext_add_sinks(t, g.input({ n_heads }, sinks));
        }
        const floats raw = decode(GGML_TYPE_F32, g.run(t));  // [token][head]
        floats       out(raw.size());
        for (int i = 0; i < n_heads * n_tokens; i++) {
            memcpy(&out[i * d], &raw[(i % n_tokens * n_heads + i / n_tokens) * d], d * sizeof(float));
        }
        return out;
    }

    void report(const std::string & variant) const {
        report_nmse(run(), reference(), text("d %d, %d tokens, %d cells", d, n_tokens, n_kv) + variant);
    }
};

struct prompt {
    int d, n_heads, n_kv_heads, n_tokens, n_kv, used;
};

// a prompt in a cache of more cells; `fill` makes something of those that no token sees
static void prompts(const std::string & variant, const std::function<float(float)> & fill) {
    static const prompt all[] = {
        { 64, 2, 1, 56, 768, 115 }, { 64, 7, 1, 54, 768, 54 }, { 128, 4, 1, 40, 1024, 92 },
        { 128, 8, 2, 10, 512, 10 }, { 64, 4, 2, 17, 256, 17 },
    };
    for (const prompt & p : all) {
        attention a(1, p.d, p.n_heads, p.n_kv_heads, p.n_tokens, p.n_kv);
        a.set_mask([&](int, int cell) { return cell < p.used ? 0.0f : -INFINITY; });
        for (size_t i = 0; i < a.k.size(); i++) {
            if ((int) i / p.d % p.n_kv >= p.used) {
                a.k[i] = fill(a.k[i]);
                a.v[i] = fill(a.v[i]);
            }
        }
        a.report(text(", %d filled, ", p.used) + variant);
    }
}

static void hostile_cells() {
    for (float bad : { NAN, INFINITY, -65504.0f }) {
        prompts(text("%g behind", bad), [=](float) { return bad; });
    }
}

// the first key's scores are `lead` above the others', and its value is small
static void sink_token() {
    for (const auto & [lead, size] : { std::pair(9.0, 0.15), { 7.0, 0.1 }, { 5.0, 0.1 }, { 3.0, 0.3 } }) {
        for (int d : { 64, 128 }) {
            attention a(2, d, 4, 1, 24, 300);
            for (size_t i = 0; i < a.q.size(); i++) {
                a.q[i] += lead / sqrt(d) * a.k[i % d];
            }
            std::transform(a.v.begin(), a.v.begin() + d, a.v.begin(), [s = size](float x) { return x * s; });
            a.report(text(", lead %g, value %g", lead, size));
        }
    }
}

// one row that is no number leaves the others right
static void broken_query() {
    for (float bad : { NAN, INFINITY, -INFINITY }) {
        attention a(3, 128, 4, 2, 24, 300);
        const int row = 29 * a.d;
        a.q[row + 77] = bad;
        floats  out = a.run();
        doubles ref = a.reference();
        std::fill_n(out.begin() + row, a.d, 0.0f);
        std::fill_n(ref.begin() + row, a.d, 0.0);
        report_nmse(out, ref, text("beside a row with %g", bad));
    }
}

static void mean_keys(double mean, bool sinks) {
    for (int d : { 64, 128 }) {
        attention    a(4, d, 4, 2, 24, 300);
        const floats means = a.r.normals(d, mean);
        for (size_t i = 0; i < a.k.size(); i++) {
            a.k[i] += means[i % d];
        }
        if (sinks) {
            a.sinks = a.r.normals(a.n_heads);
        } else {
            a.softcap = 50.0f;
        }
        a.report("");
    }
}

static void tiny_heads() {
    for (int d : { 2, 3 }) {
        attention(5, d, 4, 2, 33, 200).report("");
    }
}

static void blind_rows() {
    attention a(6, 64, 4, 2, 40, 300);
    a.set_causal_mask(-INFINITY);
    for (int token : { 0, 7, 8, 39 }) {
        std::fill_n(&a.mask[token * a.n_kv], a.n_kv, -INFINITY);
    }
    a.report(", 4 tokens see nothing");
    std::fill(a.mask.begin(), a.mask.end(), -INFINITY);
    a.report(", no token sees anything");
}

static void finite_masks() {
    for (float hidden : { -65504.0f, -30000.0f, -1000.0f }) {
        attention a(7, 64, 4, 2, 40, 300);
        a.set_causal_mask(hidden);
        a.report(text(", mask %g", hidden));
    }
}

static void equal_scores() {
    for (float size : { 0.0f, 1.0f, 50.0f }) {
        attention a(8, 128, 4, 2, 24, 300);
        floats    key = a.r.normals(a.d, size);
        for (size_t i = 0; i < a.k.size(); i++) {
            a.k[i] = key[i % a.d];
        }
        a.report(text(", keys of size %g", size));
    }
}

// --- copies ---

struct window {
    int row, rows, planes, step1, step2;  // steps in elements
};

static ggml_tensor * copy_of(const std::string & op, graph & g, ggml_tensor * view) {
    if (op == "cont") {
        return ggml_cont(g.ctx, view);
    }
    rng           r{ 9 };
    const int64_t row   = op == "cpy" ? view->ne[0] : 3;
    const int64_t rows  = view->ne[1], planes = view->ne[2];
    ggml_tensor * other = g.input(view->type, { row, rows, planes }, r.normals(row * rows * planes));
    if (op == "cpy") {
        return ggml_cpy(g.ctx, view, other);
    }
    return op == "concat" ? ggml_concat(g.ctx, view, other, 0) : ggml_concat(g.ctx, other, view, 0);
}

static bytes copied(const std::string & op, ggml_backend_t backend, ggml_type type, const window & w) {
    graph         g(backend);
    rng           r{ 10 };
    const size_t  size = ggml_type_size(type);
    const int     n    = w.row * w.rows * w.planes + 100;  // as if the view were contiguous
    ggml_tensor * x    = g.input(type, { n }, r.normals(n));
    return g.run(copy_of(
        op, g, ggml_view_3d(g.ctx, x, w.row, w.rows, w.planes, w.step1 * size, w.step2 * size, 7 * size)));
}

static void copies(const std::string & op) {
    static const window windows[] = {
        { 39, 1387, 2, 0, 73 }, { 2, 312, 2, 0, 60 }, { 5, 783, 3, 0, 0 },  // rows repeat
        { 27, 600, 2, 3, 50 },  { 4, 512, 2, 1, 0 },                        // rows overlap
    };
    for (ggml_type type : { GGML_TYPE_F32, GGML_TYPE_F16 }) {
        for (const window & w : windows) {
            const bytes  want = copied(op, cpu, type, w);
            const bytes  got  = copied(op, htp, type, w);
            const size_t size = ggml_type_size(type);
            int64_t      n    = 0;
            for (size_t i = 0; i < want.size(); i += size) {
                n += memcmp(&got[i], &want[i], size) != 0;
            }
            report_wrong(n, text("%s [%d,%d,%d], steps %d and %d", ggml_type_name(type), w.row, w.rows, w.planes,
                                 w.step1, w.step2));
        }
    }
}

// --- gated delta net ---

// rows are [token][head][d]; whose name is in `repeated` has the first token's for all
struct delta_net {
    int         d, n_heads, n_tokens;
    std::string repeated;
    rng         r{ 11 };
    const int   n     = d * n_heads * n_tokens;
    floats      q     = r.normals(n, 1.0 / sqrt(d));
    floats      k     = r.normals(n, 1.0 / sqrt(d));
    floats      v     = r.normals(n);
    floats      gate  = r.uniforms(n_heads * n_tokens, -1.0);
    floats      beta  = r.uniforms(n_heads * n_tokens);
    floats      state = r.normals(d * d * n_heads);

    bool is_repeated(char name) const { return repeated.find(name) != std::string::npos; }

    ggml_tensor * tokens(graph & g, char name, const floats & rows) const {
        ggml_tensor * t = g.input({ d, n_heads, n_tokens }, rows);
        return ggml_view_4d(g.ctx, t, d, n_heads, n_tokens, 1, t->nb[1], is_repeated(name) ? 0 : t->nb[2], t->nb[3], 0);
    }

    floats run() const {
        graph         g(htp);
        ggml_tensor * gt = g.input({ 1, n_heads, n_tokens, 1 }, gate);
        ggml_tensor * bt = g.input({ 1, n_heads, n_tokens, 1 }, beta);
        ggml_tensor * st = g.input({ d, d, n_heads, 1 }, state);
        return decode(GGML_TYPE_F32, g.run(ggml_gated_delta_net(g.ctx, tokens(g, 'q', q), tokens(g, 'k', k),
                                                                tokens(g, 'v', v), gt, bt, st, 1)));
    }

    // outputs, then states
    doubles reference() const {
        doubles out(n), states(state.begin(), state.end());
        for (int i = 0; i < n; i++) {
            const int     at    = i / d, head = at % n_heads;
            const float * qr    = &q[(is_repeated('q') ? head : at) * d];
            const float * kr    = &k[(is_repeated('k') ? head : at) * d];
            const double  value = v[is_repeated('v') ? head * d + i % d : i];
            double *      s     = &states[(head * d + i % d) * d];  // a row of the state
            double        known = 0.0;
            for (int c = 0; c < d; c++) {
                s[c] *= exp((double) gate[at]);
                known += s[c] * kr[c];
            }
            for (int c = 0; c < d; c++) {
                s[c] += (value - known) * beta[at] * kr[c];
                out[i] += s[c] * qr[c] / sqrt(d);
            }
        }
        out.insert(out.end(), states.begin(), states.end());
        return out;
    }
};

static void repeated_tokens() {
    for (int d : { 64, 128 }) {
        for (const char * who : { "none", "q", "k", "v", "qkv" }) {
            const delta_net net{ d, 2, 25, who };
            report_nmse(net.run(), net.reference(), text("d %d, repeated: %s", d, who));
        }
    }
}

// --- matrix products ---

static void product(ggml_type type, const bytes & w, const floats & a, int64_t k, const std::string & variant) {
    const floats  wf = decode(type, w);
    const int64_t m = wf.size() / k, n = a.size() / k;
    graph         g(htp);
    ggml_tensor * t = ggml_mul_mat(g.ctx, g.input(type, { k, m }, w), g.input({ k, n }, a));
    doubles       ref(m * n);
    for (int64_t i = 0; i < m * n; i++) {
        for (int64_t c = 0; c < k; c++) {
            ref[i] += (double) wf[i % m * k + c] * a[i / m * k + c];
        }
    }
    report_nmse(decode(GGML_TYPE_F32, g.run(t)), ref, variant);
}

// activations whose signs follow a bit of their place: a rounding that does so too adds up
static void signs(ggml_type type) {
    const int64_t k = 4096;
    rng           r{ 12 };
    const bytes   w = encode(type, r.normals(64 * k), k);
    const floats  a = r.uniforms(8 * k);
    product(type, w, a, k, "all positive");
    for (int bit = 0; bit < 6; bit++) {
        floats s = a;
        for (size_t i = 0; i < s.size(); i++) {
            s[i] *= i % k >> bit & 1 ? -1.0f : 1.0f;
        }
        product(type, w, s, k, text("signs by bit %d", bit));
    }
}

// 1 of 100 weights is `times` as large as the rest
static void weight_outliers(float times) {
    const int64_t k = 4096;
    for (ggml_type type : { GGML_TYPE_Q8_0, GGML_TYPE_Q4_0 }) {
        rng    r{ 14 };
        floats w = r.normals(64 * k);
        for (float & x : w) {
            x *= r.uniform() < 0.01 ? times : 1.0f;
        }
        product(type, encode(type, w, k), r.normals(8 * k), k, ggml_type_name(type));
    }
}

// tokens in two dimensions of batches; a plane holds `spare` more that are not taken
struct batches {
    int64_t tokens, n2, n3, spare;
    rng     r{ 13 };

    int64_t plane() const { return tokens + spare; }

    ggml_tensor * taken(graph & g, int64_t row, const floats & all) const {
        ggml_tensor * t = g.input({ row, plane(), n2, n3 }, all);
        return ggml_view_4d(g.ctx, t, row, tokens, n2, n3, t->nb[1], t->nb[2], t->nb[3], 0);
    }

    void multiply(bool added) {
        const int64_t   k = 256, m = 64, n = plane() * n2 * n3;
        const ggml_type type = GGML_TYPE_Q8_0;
        const bytes     w    = encode(type, r.normals(k * m), k);
        const floats    wf   = decode(type, w);
        const floats    a    = r.normals(k * n);
        const floats    sum  = r.normals(m * n, added ? 100.0 : 0.0);
        graph           g(htp);
        ggml_tensor *   t = ggml_mul_mat(g.ctx, g.input(type, { k, m }, w), taken(g, k, a));
        if (added) {
            t = ggml_add(g.ctx, t, taken(g, m, sum));
        }
        doubles ref;
        for (int64_t token = 0; token < n; token++) {
            for (int64_t i = 0; i < m && token % plane() < tokens; i++) {
                ref.push_back(sum[token * m + i]);
                for (int64_t c = 0; c < k; c++) {
                    ref.back() += (double) wf[i * k + c] * a[token * k + c];
                }
            }
        }
        report_nmse(decode(GGML_TYPE_F32, g.run(t)), ref,
                    text("[%d,%d,%d], %d spare", (int) tokens, (int) n2, (int) n3, (int) spare));
    }
};

static void batched(bool added) {
    for (const batches & b : { batches{ 8, 1, 1, 0 }, { 1, 6, 1, 0 }, { 1, 1, 6, 0 }, { 1, 3, 2, 0 }, { 7, 3, 2, 0 },
                               { 7, 1, 4, 0 }, { 7, 1, 4, 2 }, { 7, 4, 1, 2 }, { 6, 2, 2, 1 }, { 1, 1, 6, 2 } }) {
        batches(b).multiply(added);
    }
}

static std::map<std::string, std::function<void()>> cases() {
    std::map<std::string, std::function<void()>> all = {
        { "empty-cells", [] { prompts("zeros behind", [](float) { return 0.0f; }); } },
        { "stale-cells", [] { prompts("stale behind", [](float x) { return 3.0f * x; }); } },
        { "hostile-cells", hostile_cells },
        { "sink-token", sink_token },
        { "beside-broken-query", broken_query },
        { "tiny-heads", tiny_heads },
        { "blind-rows", blind_rows },
        { "finite-masks", finite_masks },
        { "equal-scores", equal_scores },
        { "repeated-tokens", repeated_tokens },
        { "weight-outliers", [] { weight_outliers(20.0f); } },
        { "batches", [] { batched(false); } },
        { "batches-added", [] { batched(true); } },
    };
    for (int mean : { 3, 10 }) {
        all[text("mean-%d-sinks", mean)]   = [=] { mean_keys(mean, true); };
        all[text("mean-%d-softcap", mean)] = [=] { mean_keys(mean, false); };
    }
    for (const char * op : { "cont", "cpy", "concat", "concat-to" }) {
        all[op] = [=] { copies(op); };
    }
    for (ggml_type type : { GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4,
                            GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K }) {
        all[std::string("signs-") + ggml_type_name(type)] = [=] { signs(type); };
    }
    return all;
}

int main(int argc, char ** argv) {
    const auto all   = cases();
    const auto found = all.find(argc == 2 ? argv[1] : "");
    if (found == all.end()) {
        fail("usage: extremes CASE");
    }
    ggml_backend_load_all();
    htp = ggml_backend_init_by_name("HTP0", nullptr);
    cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    if (!htp || !cpu) {
        fail("there is no HTP0, or no CPU");
    }
    found->second();
    ggml_backend_free(cpu);
    ggml_backend_free(htp);
    return 0;
}
