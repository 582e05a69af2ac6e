// How wrong a device's tensor is: against another backend's, and against float64 where that is simple.
#pragma once

#include "ggml.h"
#include "ggml-backend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

static inline std::vector<float> values_of(const ggml_tensor * t) {
    std::vector<uint8_t> data(ggml_nbytes(t));
    ggml_backend_tensor_get(t, data.data(), 0, data.size());
    const auto * traits = ggml_get_type_traits(t->type);
    const int64_t block = ggml_blck_size(t->type);
    std::vector<float> out(ggml_nelements(t));
    size_t at = 0;
    for (int64_t i3 = 0; i3 < t->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < t->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < t->ne[1]; i1++) {
                for (int64_t i0 = 0; i0 < t->ne[0]; i0 += block, at += block) {
                    const uint8_t * p = &data[i3*t->nb[3] + i2*t->nb[2] + i1*t->nb[1] + i0/block*t->nb[0]];
                    switch (t->type) {
                        case GGML_TYPE_F32: std::memcpy(&out[at], p, sizeof(float)); break;
                        case GGML_TYPE_I32: { int32_t v; std::memcpy(&v, p, sizeof(v)); out[at] = (float) v; } break;
                        case GGML_TYPE_I64: { int64_t v; std::memcpy(&v, p, sizeof(v)); out[at] = (float) v; } break;
                        case GGML_TYPE_I16: { int16_t v; std::memcpy(&v, p, sizeof(v)); out[at] = (float) v; } break;
                        case GGML_TYPE_I8:  out[at] = (float) (int8_t) *p; break;
                        default:
                            if (traits->to_float) {
                                traits->to_float(p, &out[at], block);
                            }
                    }
                }
            }
        }
    }
    return out;
}

// As upstream's default: the squared difference by the device's own squares. Infinities that agree are left
// out, others give infinity.
static inline double nmse(const std::vector<float> & a, const std::vector<float> & b) {
    double wrong = 0, whole = 0;
    for (size_t i = 0; i < a.size(); i++) {
        if (a[i] == b[i] && std::isinf(a[i])) {
            continue;
        }
        const double d = (double) a[i] - b[i];
        wrong += d * d;
        whole += (double) a[i] * a[i];
    }
    return wrong == 0 ? 0 : wrong / whole;
}

// Sums of squares: of the errors, of what they are errors of.
struct Squares {
    double wrong = 0, whole = 0;

    void add(double got, double right) {
        wrong += (got - right) * (got - right);
        whole += right * right;
    }

    double ratio() const {
        return wrong == 0 ? 0 : wrong / whole;
    }
};

// At most 64 of each kind, spread evenly
static inline int64_t stride_of(int64_t n) {
    return std::max<int64_t>(1, (n + 63) / 64);
}

// a [k, m], b [k, n], repeated over the matrices of b: t [m, n]
static inline double exact_mul_mat(const ggml_tensor * t, const ggml_tensor * a, const ggml_tensor * b) {
    const std::vector<float> va = values_of(a);
    const std::vector<float> vb = values_of(b);
    const std::vector<float> vt = values_of(t);
    const int64_t k = a->ne[0], m = a->ne[1], n = b->ne[1];
    const int64_t r2 = b->ne[2] / a->ne[2], r3 = b->ne[3] / a->ne[3];
    Squares squares;
    for (int64_t i3 = 0; i3 < b->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < b->ne[2]; i2++) {
            const int64_t ma = (i3/r3*a->ne[2] + i2/r2)*m, mb = i3*b->ne[2] + i2;
            for (int64_t i = 0; i < m; i += stride_of(m)) {
                for (int64_t j = 0; j < n; j += stride_of(n)) {
                    const float * pa = &va[(ma + i)*k];
                    const float * pb = &vb[(mb*n + j)*k];
                    double sum = 0;
                    for (int64_t l = 0; l < k; l++) {
                        sum += (double) pa[l] * pb[l];
                    }
                    squares.add(vt[(mb*n + j)*m + i], sum);
                }
            }
        }
    }
    return squares.ratio();
}

// q [dk, n_q, heads, seqs], k and v [d, n_kv, KV heads, seqs], mask [n_kv, n_q, ..], sinks [heads]: t [dv, heads, n_q, seqs].
// Formula: ggml_flash_attn_ext in ggml.h; slopes of ALiBi as in its CPU backend.
static inline double exact_attention(const ggml_tensor * t, const ggml_tensor * const * src) {
    const ggml_tensor * q = src[0], * k = src[1], * v = src[2], * mask = src[3], * sinks = src[4];
    const std::vector<float> vq = values_of(q), vk = values_of(k), vv = values_of(v), vt = values_of(t);
    const std::vector<float> vm = mask ? values_of(mask) : std::vector<float>();
    const std::vector<float> vs = sinks ? values_of(sinks) : std::vector<float>();
    float params[3];  // scale, max_bias, logit_softcap
    std::memcpy(params, t->op_params, sizeof(params));
    const int64_t dk = q->ne[0], dv = v->ne[0], n_kv = k->ne[1], n_q = q->ne[1], heads = q->ne[2];
    int64_t pow2 = 1;
    while (2*pow2 <= heads) {
        pow2 *= 2;
    }
    Squares squares;
    std::vector<double> p(n_kv), out(dv);
    for (int64_t s = 0; s < q->ne[3]; s++) {
        for (int64_t h = 0; h < heads; h++) {
            const double exponent = h < pow2 ? -(double) params[1] / pow2 * (h + 1)
                                             : -(double) params[1] / 2 / pow2 * (2*(h - pow2) + 1);
            const double slope = params[1] > 0 ? std::exp2(exponent) : 1.0;
            const float * pk = &vk[(s*k->ne[3]/q->ne[3]*k->ne[2] + h*k->ne[2]/heads)*n_kv*dk];
            const float * pv = &vv[(s*v->ne[3]/q->ne[3]*v->ne[2] + h*v->ne[2]/heads)*n_kv*dv];
            for (int64_t i = 0; i < n_q; i += stride_of(n_q)) {
                const float * pq = &vq[((s*heads + h)*n_q + i)*dk];
                const float * pm = mask ? &vm[((s%mask->ne[3]*mask->ne[2] + h%mask->ne[2])*mask->ne[1] + i)*n_kv] : nullptr;
                double top = sinks ? vs[h] : -INFINITY;
                for (int64_t j = 0; j < n_kv; j++) {
                    p[j] = pm ? slope*pm[j] : 0.0;
                    if (p[j] == -INFINITY) {
                        continue;  // whatever the key holds
                    }
                    double sum = 0;
                    for (int64_t l = 0; l < dk; l++) {
                        sum += (double) pq[l] * pk[j*dk + l];
                    }
                    sum *= params[0];
                    p[j] += params[2] != 0 ? params[2]*std::tanh(sum/params[2]) : sum;
                    top = std::max(top, p[j]);
                }
                double whole = sinks ? std::exp(vs[h] - top) : 0.0;
                std::fill(out.begin(), out.end(), 0.0);
                for (int64_t j = 0; j < n_kv; j++) {
                    if (p[j] != -INFINITY) {
                        const double w = std::exp(p[j] - top);
                        whole += w;
                        for (int64_t l = 0; l < dv; l++) {
                            out[l] += w * pv[j*dv + l];
                        }
                    }
                }
                for (int64_t l = 0; l < dv; l++) {
                    squares.add(vt[((s*n_q + i)*heads + h)*dv + l], whole > 0 ? out[l]/whole : 0.0);
                }
            }
        }
    }
    return squares.ratio();
}

// NMSE of a matrix product or of attention against float64 from the same (dequantised) operands, over at most
// 64 rows (and 64 columns of a product) of each matrix; -1 for any other op. `other` has the operands as
// plain data: a device may keep its own in another order.
static inline double exact_nmse(const ggml_tensor * t, const ggml_tensor * other) {
    const ggml_tensor * const * src = other->src;
    switch (t->op) {
        case GGML_OP_MUL_MAT:        return src[0] && src[1] ? exact_mul_mat(t, src[0], src[1]) : -1;
        case GGML_OP_FLASH_ATTN_EXT: return src[0] && src[1] && src[2] ? exact_attention(t, src) : -1;
        default:                     return -1;
    }
}
