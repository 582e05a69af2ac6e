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

// NMSE of a matrix product against one computed in float64 from the same (dequantised) operands, over at
// most 64 x 64 outputs of each matrix spread evenly; -1 for any other op. `other` has the operands as plain
// data: a device may keep its own in another order.
static inline double exact_nmse(const ggml_tensor * t, const ggml_tensor * other) {
    if (t->op != GGML_OP_MUL_MAT || !other->src[0] || !other->src[1]) {
        return -1;
    }
    const ggml_tensor * a = other->src[0];
    const ggml_tensor * b = other->src[1];
    const std::vector<float> va = values_of(a);
    const std::vector<float> vb = values_of(b);
    const std::vector<float> vt = values_of(t);
    const int64_t k = a->ne[0], m = a->ne[1], n = b->ne[1];
    const int64_t step_m = std::max<int64_t>(1, m / 64), step_n = std::max<int64_t>(1, n / 64);
    const int64_t r2 = b->ne[2] / a->ne[2], r3 = b->ne[3] / a->ne[3];
    double wrong = 0, whole = 0;
    for (int64_t i3 = 0; i3 < b->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < b->ne[2]; i2++) {
            const int64_t ma = (i3/r3*a->ne[2] + i2/r2)*m, mb = i3*b->ne[2] + i2;
            for (int64_t i = 0; i < m; i += step_m) {
                for (int64_t j = 0; j < n; j += step_n) {
                    const float * pa = &va[(ma + i)*k];
                    const float * pb = &vb[(mb*n + j)*k];
                    double sum = 0;
                    for (int64_t l = 0; l < k; l++) {
                        sum += (double) pa[l] * pb[l];
                    }
                    const double d = vt[(mb*n + j)*m + i] - sum;
                    wrong += d * d;
                    whole += sum * sum;
                }
            }
        }
    }
    return wrong == 0 ? 0 : wrong / whole;
}
