// The kernels of hmx-int-fa-kernels.h as functions that a test can call. Buffers are in VTCM, which is mapped low.
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "hmx-int-fa-kernels.h"

#define API __attribute__((visibility("default")))

uint32_t test_vtcm(uint32_t size);

API uint8_t * lab_vtcm(uint32_t size) { return (uint8_t *) (uintptr_t) test_vtcm(size); }

API void lab_counts(uint64_t * n) { memcpy(n, sim_self.n, sizeof(sim_self.n)); }
API uint32_t lab_store_shift(uint32_t dk) { return fa_int_store_shift(dk); }
API float    lab_q_norm(uint32_t dk) { return fa_int_q_norm(dk); }

API void lab_exp2(const uint16_t * d, uint16_t * p, uint32_t n_vec) {
    for (uint32_t i = 0; i < n_vec; i++) {
        ((HVX_Vector *) p)[i] = fa_int_exp2(((const HVX_Vector *) d)[i], fa_int_exp2_init());
    }
}

API void lab_tanh(const int16_t * h, int16_t * t, uint32_t n_vec) {
    const struct fa_int_tanh_coef c = fa_int_tanh_init();
    for (uint32_t i = 0; i < n_vec; i++) {
        ((HVX_Vector *) t)[i] = fa_int_tanh(((const HVX_Vector *) h)[i], &c);
    }
}

API int lab_stats(uint8_t * stats, const uint8_t * rows, uint32_t pitch, uint32_t n, uint32_t dk, int center, float scale, uint8_t * tmp) {
    return fa_int_k_stats(fa_int_stats_at(stats, hmx_ceil_div(dk, 64)), rows, pitch, n, dk, center, scale, (HVX_Vector *) tmp);
}

API void lab_k(uint8_t * tiles, uint8_t * bias, uint8_t * scale, const uint8_t * rows, uint32_t pitch, uint32_t n, uint32_t dk,
               uint8_t * stats, int center, uint8_t * buf, uint8_t * tmp) {
    const uint32_t n_vec = hmx_ceil_div(dk, 64);
    fa_int_k_convert(tiles, (HVX_Vector *) bias, (HVX_Vector *) scale, rows, pitch, n, n_vec, hmx_ceil_div(dk, 32),
                     fa_int_store_shift(dk), fa_int_stats_at(stats, n_vec), center, (HVX_Vector *) buf, (HVX_Vector *) tmp);
}

API void lab_v(uint8_t * tiles, uint32_t stride, int wide, uint8_t * step, uint8_t * mean, const uint8_t * rows, uint32_t pitch, uint32_t n,
               int first) {
    fa_int_v_convert(tiles, stride, wide, (HVX_Vector *) step, (HVX_Vector *) mean, rows, pitch, n, first);
}

API void lab_q(uint8_t * tiles, uint8_t * scale, const uint8_t * rows, uint32_t pitch, int f32, uint32_t n, uint32_t dk, uint8_t * stats,
               uint8_t * buf, uint8_t * tmp) {
    *(HVX_Vector *) scale = fa_int_q_pack(tiles, rows, pitch, f32, n, hmx_ceil_div(dk, 32), fa_int_store_shift(dk), fa_int_q_norm(dk),
                                          fa_int_stats_at(stats, hmx_ceil_div(dk, 64)), (HVX_Vector *) buf, (HVX_Vector *) tmp);
}

// after lab_q
API void lab_dots(uint8_t * dots, uint32_t dk, uint8_t * stats, uint8_t * buf, uint8_t * tmp) {
    *(HVX_Vector *) dots = fa_int_q_dots((HVX_Vector *) buf, hmx_ceil_div(dk, 32), fa_int_stats_at(stats, hmx_ceil_div(dk, 64)), (HVX_Vector *) tmp);
}

API void lab_softmax(uint8_t * a, uint8_t * b, uint32_t n_keys, uint32_t n_rows, uint8_t * k_scale, uint8_t * q_scale,
                     const uint8_t * mask, uint32_t mask_pitch, const float * slopes, float softcap, uint8_t * max, uint8_t * sum, uint8_t * tmp) {
    struct fa_int_scores s = { .a = a, .b = b, .n_cols = hmx_ceil_div(n_keys, 32), .n_keys = n_keys, .n_pairs = (n_rows + 1) / 2,
                               .k_scale = (HVX_Vector *) k_scale, .q_scale = *(HVX_Vector *) q_scale, .softcap = softcap, .tmp = (HVX_Vector *) tmp };
    for (uint32_t r = 0; r < 8; r++) {
        s.mask[r] = mask + (r < n_rows ? r : 0) * mask_pitch;
    }
    for (uint32_t p = 0; p < 4; p++) {
        union { __fp16 h[2]; int32_t w; } u = { .h = { (__fp16) (slopes[2 * p] * FA_INT_SCORE_UNIT), (__fp16) (slopes[2 * p + 1] * FA_INT_SCORE_UNIT) } };
        s.slope[p] = Q6_V_vsplat_R(u.w);
    }
    if (mask) {
        if (softcap != 0) { fa_int_softmax_mask_softcap(&s, (HVX_Vector *) max, (HVX_Vector *) sum); }
        else if (slopes[0] != 1) { fa_int_softmax_alibi(&s, (HVX_Vector *) max, (HVX_Vector *) sum); }
        else              { fa_int_softmax_mask(&s, (HVX_Vector *) max, (HVX_Vector *) sum); }
    } else {
        if (softcap != 0) { fa_int_softmax_softcap(&s, (HVX_Vector *) max, (HVX_Vector *) sum); }
        else              { fa_int_softmax(&s, (HVX_Vector *) max, (HVX_Vector *) sum); }
    }
}

API void lab_out(const uint8_t * tiles, uint8_t * o, uint32_t pitch, uint32_t n_cols, uint32_t n_rows, uint8_t * step, uint8_t * mean,
                 uint8_t * fo, uint8_t * fa, uint8_t * fm, int how) {
    HVX_Vector * s = (HVX_Vector *) step, * m = (HVX_Vector *) mean;
    const uint32_t n = (n_rows + 1) / 2;
    if (how == 0) { fa_int_out_first(tiles, o, pitch, n_cols, n, s, m, *(HVX_Vector *) fa, *(HVX_Vector *) fm); }
    if (how == 1) { fa_int_out_add(tiles, o, pitch, n_cols, n, s, m, *(HVX_Vector *) fa, *(HVX_Vector *) fm); }
    if (how == 2) { fa_int_out_scale(tiles, o, pitch, n_cols, n, s, m, *(HVX_Vector *) fo, *(HVX_Vector *) fa, *(HVX_Vector *) fm); }
}

// pieces of n_rows rows
API uint32_t lab_mask(const uint8_t * rows, uint32_t pitch, uint32_t n_rows, uint32_t n_pieces, uint32_t n_keys) {
    struct fa_int_mask_scan s;
    fa_int_mask_start(&s);
    for (uint32_t i = 0; i < n_pieces; i++) {
        fa_int_mask_scan(&s, rows + i * n_rows * pitch, pitch, n_rows, n_keys);
    }
    return fa_int_mask_flag(&s);
}

API void lab_exp2_f32(const uint8_t * x, uint8_t * y) { *(HVX_Vector *) y = fa_int_exp2_f32(*(HVX_Vector *) x); }
API void lab_dequant(uint8_t * row, uint32_t n) { fa_int_dequant_q8_0(row, n); }
API void lab_qk(uint8_t * out, const uint8_t * a, const uint8_t * w, const uint8_t * bias, uint32_t n_cols, uint32_t n_k) { fa_int_hmx_qk(out, a, w, bias, n_cols, n_k); }
API void lab_pv(uint8_t * out, const uint8_t * a, const uint8_t * w, uint32_t stride, uint8_t * bias, uint32_t n_cols, uint32_t n_k) {
    fa_int_hmx_pv_bias((HVX_Vector *) bias);
    fa_int_hmx_pv(out, a, w, stride, bias, n_cols, n_k);
}
