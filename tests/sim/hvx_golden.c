// Known values of both qfloat models and of the conversions.
#include "hvx_check.h"

#define ONE words(0x3f800000)
#define HALF words(0x3f000000)

#if HEXSIM_QF_ENCODED
static void qfloat(void) {
    // E and S: mul(1, 1) E = 127, S = 0x400000; add(0.5, 0.25) 126, 0x600000; add(1, 1) 128, 0x400000.
    CHECK("1 * 1", word(Q6_Vqf32_vmpy_VsfVsf(ONE, ONE)), 0x4000007f);
    CHECK("0.5 + 0.25", word(Q6_Vqf32_vadd_VsfVsf(HALF, words(0x3e800000))), 0x6000007e);
    CHECK("1 + 1", word(Q6_Vqf32_vadd_VsfVsf(ONE, ONE)), 0x40000080);
    CHECK("1 - 1", word(Q6_Vqf32_vsub_VsfVsf(ONE, ONE)), 0);
    CHECK("1 + -1", word(Q6_Vqf32_vadd_VsfVsf(ONE, words(0xbf800000))), 0);
    // There is no exact 1: the nearest numbers are odd multiples of 2^-23.
    CHECK("sf(1 * 1)", word(Q6_Vsf_equals_Vqf32(Q6_Vqf32_vmpy_VsfVsf(ONE, ONE))), 0x3f800001);
    CHECK("sf(0.5 + 0.25)", word(Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_VsfVsf(HALF, words(0x3e800000)))), 0x3f400001);
    CHECK("sf(1 - 1)", word(Q6_Vsf_equals_Vqf32(Q6_Vqf32_vsub_VsfVsf(ONE, ONE))), 0);
    CHECK("sf(-1 * 1)", word(Q6_Vsf_equals_Vqf32(Q6_Vqf32_vmpy_VsfVsf(words(0xbf800000), ONE))), 0xbf800001);
    // Overflow is no infinity: the largest exponent is an ordinary one.
    CHECK("huge", word(Q6_Vsf_equals_Vqf32(words(0x7fffffff))), 0x7fffffff);
    CHECK("tiny", word(Q6_Vsf_equals_Vqf32(words(0x00000000))), 0);
    // Encoded constants, as kernels write them.
    CHECK("hf(0x5082)", half(Q6_Vhf_equals_Vqf16(halves(0x5082))), 0x0909);
    CHECK("0x5082 * 1", half(Q6_Vhf_equals_Vqf16(Q6_Vqf16_vmpy_Vqf16Vhf(halves(0x5082), halves(0x3c00)))), 0x0909);
    CHECK("hf: too large", half(Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(words(0x7fffffff), words(0x7fffffff)))), 0x7fff);
}
#else
static void qfloat(void) {
    CHECK("1 * 1", word(Q6_Vsf_equals_Vqf32(Q6_Vqf32_vmpy_VsfVsf(ONE, ONE))), 0x3f800000);
    CHECK("0.5 + 0.25", word(Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_VsfVsf(HALF, words(0x3e800000)))), 0x3f400000);
    CHECK("2^127 * 2", word(Q6_Vqf32_vmpy_VsfVsf(words(0x7f000000), words(0x40000000))), 0x7f800000);
    CHECK("inf - inf", word(Q6_Vqf32_vsub_VsfVsf(words(0x7f800000), words(0x7f800000))), 0x7fffffff);
    CHECK("hf 1 * 1", half(Q6_Vqf16_vmpy_VhfVhf(halves(0x3c00), halves(0x3c00))), 0x3c00);
    // A pattern written out as a qf16 operand is the older encoding; anything else is IEEE.
    CHECK("0x5082 * 1", half(Q6_Vqf16_vmpy_Vqf16Vqf16(Q6_Vh_vsplat_R(0x5082), halves(0x3c00))), 0x0909);
    CHECK("36 * 1", half(Q6_Vqf16_vmpy_Vqf16Vqf16(halves(0x5082), halves(0x3c00))), 0x5082);
}
#endif

int main(void) {
    qfloat();
    // Halves to qf32: even elements to the low vector; back to their places.
    vec h, r;
    for (int i = 0; i < 64; i++) h.h[i] = (uint16_t) (0x3c00 + 16 * i);
    r.v = Q6_Vhf_equals_Wqf32(Q6_Wqf32_vmpy_VhfVhf(h.v, halves(0x3c00)));
    for (int i = 0; i < 64; i++) CHECK("places", r.h[i], h.h[i]);

    CHECK("w 2.9", word(Q6_Vw_equals_Vsf(words(0x4039999a))), 2);
    CHECK("w -2.9", word(Q6_Vw_equals_Vsf(words(0xc039999a))), 0xfffffffe);
    CHECK("w 3e9", word(Q6_Vw_equals_Vsf(words(0x4f32d05e))), 0x7fffffff);
    CHECK("w -3e9", word(Q6_Vw_equals_Vsf(words(0xcf32d05e))), 0x80000000);
    CHECK("sf 2^24 + 1", word(Q6_Vsf_equals_Vw(words(0x01000001))), 0x4b800000);
    CHECK("h -3.7", half(Q6_Vh_equals_Vhf(halves(0xc366))), 0xfffd);
    CHECK("h 65504", half(Q6_Vh_equals_Vhf(halves(0x7bff))), 0x7fff);
    CHECK("h, largest exponent", half(Q6_Vh_equals_Vhf(halves(0xfc00))), 0x8000);
    CHECK("hf 2049", half(Q6_Vhf_equals_Vh(halves(2049))), 0x6800);
    CHECK("hf 2051", half(Q6_Vhf_equals_Vh(halves(2051))), 0x6802);

    const HVX_Vector pz = Q6_V_vzero(), nz = words(0x80000000), nan = words(0x7fc00000), inf = words(0x7f800000);
    const HVX_Vector t = words(1);
#define GT(a, b) word(Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VsfVsf(a, b), t, Q6_V_vzero()))
    CHECK("1 > -1", GT(ONE, words(0xbf800000)), 1);
    CHECK("-2 > -1", GT(words(0xc0000000), words(0xbf800000)), 0);
    CHECK("+0 > -0", GT(pz, nz), 0);
    CHECK("max(-0, +0)", word(Q6_Vsf_vmax_VsfVsf(nz, pz)), 0);
    CHECK("min(+0, -0)", word(Q6_Vsf_vmin_VsfVsf(pz, nz)), 0x80000000);
#if __HVX_ARCH__ < 79
    CHECK("nan > inf", GT(nan, inf), 1);
    CHECK("max(1, nan)", word(Q6_Vsf_vmax_VsfVsf(ONE, nan)), 0x7fc00000);
#else
    CHECK("nan > inf", GT(nan, inf), 0);
    CHECK("max(1, nan)", word(Q6_Vsf_vmax_VsfVsf(ONE, nan)), 0x7fffffff);
    CHECK("min(1, nan)", word(Q6_Vsf_vmin_VsfVsf(ONE, nan)), 0xffffffff);
#endif
    return failed != 0;
}
