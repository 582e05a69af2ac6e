// qfloat with IEEE numbers in memory (see hvx_qfloat.h).
#ifndef HVX_QFLOAT_IEEE_H
#define HVX_QFLOAT_IEEE_H

#include "hvx_float.h"

#define HVX_QI32(name, op)                                                       \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {                       \
        hvx_count(hvx_fp);                                                       \
        return (HVX_Vector) hvx_quiet_hvx_f((hvx_f) Vu op(hvx_f) Vv);            \
    }
HVX_QI32(Q6_Vqf32_vadd_Vqf32Vqf32, +)
HVX_QI32(Q6_Vqf32_vadd_Vqf32Vsf, +)
HVX_QI32(Q6_Vqf32_vadd_VsfVsf, +)
HVX_QI32(Q6_Vqf32_vsub_Vqf32Vqf32, -)
HVX_QI32(Q6_Vqf32_vsub_Vqf32Vsf, -)
HVX_QI32(Q6_Vqf32_vsub_VsfVqf32, -)
HVX_QI32(Q6_Vqf32_vsub_VsfVsf, -)
HVX_QI32(Q6_Vqf32_vmpy_Vqf32Vqf32, *)
HVX_QI32(Q6_Vqf32_vmpy_VsfVsf, *)

// A single sum or product of halves, rounded to half afterwards, is the correctly rounded one.
#define HVX_QI16(name, op)                                                       \
    HVX_FN HVX_Vector name(HVX_Vector Vu, HVX_Vector Vv) {                       \
        hvx_count(hvx_fp);                                                       \
        return hvx_hf_round(hvx_hf_values(Vu) op hvx_hf_values(Vv));             \
    }
HVX_QI16(Q6_Vqf16_vadd_Vqf16Vqf16, +)
HVX_QI16(Q6_Vqf16_vadd_Vqf16Vhf, +)
HVX_QI16(Q6_Vqf16_vadd_VhfVhf, +)
HVX_QI16(Q6_Vqf16_vsub_Vqf16Vqf16, -)
HVX_QI16(Q6_Vqf16_vsub_Vqf16Vhf, -)
HVX_QI16(Q6_Vqf16_vsub_VhfVqf16, -)
HVX_QI16(Q6_Vqf16_vsub_VhfVhf, -)
HVX_QI16(Q6_Vqf16_vmpy_Vqf16Vqf16, *)
HVX_QI16(Q6_Vqf16_vmpy_Vqf16Vhf, *)
HVX_QI16(Q6_Vqf16_vmpy_VhfVhf, *)

// A bit pattern written out as a qf16 operand is no result of an operation: kernels that run on all
// generations write the encoded form of older ones (0x5082 for 1.5e-4 in upstream's exp2), and their
// results on v79 say that it is understood there. So that spelling, and only that, is decoded.
HVX_FN HVX_Vector hvx_qf16_raw(HVX_Vector v) {
    const hvx_w2 h = hvx_widen_h(v);
    const hvx_f2 scale = (hvx_f2) (((h & 31) + (127 - 25)) << 23);
    return hvx_hf_round(HVX_CONV(hvx_f2, (h >> 4) | 1) * scale);
}
#define HVX_RAW16(x) (__builtin_strncmp(#x, "Q6_Vh_vsplat_R(", 15) == 0 ? hvx_qf16_raw(x) : (x))
#define Q6_Vqf16_vmpy_Vqf16Vqf16(Vu, Vv) (Q6_Vqf16_vmpy_Vqf16Vqf16)(HVX_RAW16(Vu), HVX_RAW16(Vv))

#define HVX_QIW(name)                                                            \
    HVX_FN HVX_VectorPair name(HVX_Vector Vu, HVX_Vector Vv) {                   \
        hvx_count(hvx_fp);                                                       \
        return hvx_pair((HVX_Vector) hvx_quiet_hvx_f(hvx_hf_even(Vu) * hvx_hf_even(Vv)), \
                        (HVX_Vector) hvx_quiet_hvx_f(hvx_hf_odd(Vu) * hvx_hf_odd(Vv)));  \
    }
HVX_QIW(Q6_Wqf32_vmpy_VhfVhf)
HVX_QIW(Q6_Wqf32_vmpy_Vqf16Vhf)
HVX_QIW(Q6_Wqf32_vmpy_Vqf16Vqf16)

#define HVX_QI_V(name, ...) \
    HVX_FN HVX_Vector name(HVX_Vector Vu) { hvx_count(hvx_fp); return (HVX_Vector) (__VA_ARGS__); }
HVX_QI_V(Q6_Vsf_equals_Vqf32, Vu)
HVX_QI_V(Q6_Vhf_equals_Vqf16, Vu)
HVX_QI_V(Q6_Vqf32_equals_Vsf, Vu)
HVX_QI_V(Q6_Vqf16_equals_Vhf, Vu)
HVX_QI_V(Q6_Vqf32_equals_Vqf32, Vu)
HVX_QI_V(Q6_Vqf16_equals_Vqf16, Vu)
HVX_QI_V(Q6_Vqf32_vneg_Vqf32, Vu ^ (int) 0x80000000)
HVX_QI_V(Q6_Vqf32_vneg_Vsf, Vu ^ (int) 0x80000000)
HVX_QI_V(Q6_Vqf32_vabs_Vqf32, Vu & 0x7fffffff)
HVX_QI_V(Q6_Vqf32_vabs_Vsf, Vu & 0x7fffffff)
HVX_QI_V(Q6_Vqf16_vneg_Vqf16, Vu ^ (int) 0x80008000)
HVX_QI_V(Q6_Vqf16_vneg_Vhf, Vu ^ (int) 0x80008000)
HVX_QI_V(Q6_Vqf16_vabs_Vqf16, Vu & 0x7fff7fff)
HVX_QI_V(Q6_Vqf16_vabs_Vhf, Vu & 0x7fff7fff)
HVX_FN HVX_Vector Q6_Vhf_equals_Wqf32(HVX_VectorPair Vuu) {
    hvx_count(hvx_fp);
    return hvx_hf_il((hvx_f) hvx_lo(Vuu), (hvx_f) hvx_hi(Vuu));
}

#endif
