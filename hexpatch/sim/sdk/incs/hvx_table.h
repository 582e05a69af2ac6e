// The regular integer intrinsics of HVX: one row each.
//
// X(kind, name, class, lane type, expression on lanes). The kind names the arguments:
//   V_V V_VV V_VR     a = Vu, b = Vv, r = Rt (the scalar), all in lanes of the given type
//   V_XV V_XVV V_XVR  x = the accumulator Vx besides
//   V_VVR             a, b, r
//   W_WW              the same as V_VV on pairs
//   Q_VV              a comparison; makes the plain, the and, the or and the xacc form; name is the
//                     comparison and the operand type: eq, b
//   E_VV E_XVV        widening: lanes are `type`, once for the even elements of Vu and Vv (low
//   E_VR E_XVR        result) and once for the odd ones (high result); the operand types follow.
//                     A scalar operand is Rt in every word.
// class: which unit it occupies, see hvx_lanes.h. Lane arithmetic wraps.
#ifndef HVX_TABLE_H
#define HVX_TABLE_H

#define HVX_TABLE_ADD(X)                                                              \
    X(V_VV, Q6_Vb_vadd_VbVb, alu, ub, a + b)                                          \
    X(W_WW, Q6_Wb_vadd_WbWb, alu, ub, a + b)                                          \
    X(V_VV, Q6_Vh_vadd_VhVh, alu, uh, a + b)                                          \
    X(W_WW, Q6_Wh_vadd_WhWh, alu, uh, a + b)                                          \
    X(V_VV, Q6_Vw_vadd_VwVw, alu, uw, a + b)                                          \
    X(W_WW, Q6_Ww_vadd_WwWw, alu, uw, a + b)                                          \
    X(V_VV, Q6_Vb_vsub_VbVb, alu, ub, a - b)                                          \
    X(W_WW, Q6_Wb_vsub_WbWb, alu, ub, a - b)                                          \
    X(V_VV, Q6_Vh_vsub_VhVh, alu, uh, a - b)                                          \
    X(W_WW, Q6_Wh_vsub_WhWh, alu, uh, a - b)                                          \
    X(V_VV, Q6_Vw_vsub_VwVw, alu, uw, a - b)                                          \
    X(W_WW, Q6_Ww_vsub_WwWw, alu, uw, a - b)                                          \
    X(V_VV, Q6_Vb_vadd_VbVb_sat, alu, b, HVX_ADD_SAT(LT, a, b))                       \
    X(W_WW, Q6_Wb_vadd_WbWb_sat, alu, b, HVX_ADD_SAT(LT, a, b))                       \
    X(V_VV, Q6_Vub_vadd_VubVub_sat, alu, ub, HVX_ADD_SAT(LT, a, b))                   \
    X(W_WW, Q6_Wub_vadd_WubWub_sat, alu, ub, HVX_ADD_SAT(LT, a, b))                   \
    X(V_VV, Q6_Vh_vadd_VhVh_sat, alu, h, HVX_ADD_SAT(LT, a, b))                       \
    X(W_WW, Q6_Wh_vadd_WhWh_sat, alu, h, HVX_ADD_SAT(LT, a, b))                       \
    X(V_VV, Q6_Vuh_vadd_VuhVuh_sat, alu, uh, HVX_ADD_SAT(LT, a, b))                   \
    X(W_WW, Q6_Wuh_vadd_WuhWuh_sat, alu, uh, HVX_ADD_SAT(LT, a, b))                   \
    X(V_VV, Q6_Vw_vadd_VwVw_sat, alu, w, HVX_ADD_SAT(LT, a, b))                       \
    X(W_WW, Q6_Ww_vadd_WwWw_sat, alu, w, HVX_ADD_SAT(LT, a, b))                       \
    X(V_VV, Q6_Vuw_vadd_VuwVuw_sat, alu, uw, HVX_ADD_SAT(LT, a, b))                   \
    X(W_WW, Q6_Wuw_vadd_WuwWuw_sat, alu, uw, HVX_ADD_SAT(LT, a, b))                   \
    X(V_VV, Q6_Vb_vsub_VbVb_sat, alu, b, HVX_SUB_SAT(LT, a, b))                       \
    X(W_WW, Q6_Wb_vsub_WbWb_sat, alu, b, HVX_SUB_SAT(LT, a, b))                       \
    X(V_VV, Q6_Vub_vsub_VubVub_sat, alu, ub, HVX_SUB_SAT(LT, a, b))                   \
    X(W_WW, Q6_Wub_vsub_WubWub_sat, alu, ub, HVX_SUB_SAT(LT, a, b))                   \
    X(V_VV, Q6_Vh_vsub_VhVh_sat, alu, h, HVX_SUB_SAT(LT, a, b))                       \
    X(W_WW, Q6_Wh_vsub_WhWh_sat, alu, h, HVX_SUB_SAT(LT, a, b))                       \
    X(V_VV, Q6_Vuh_vsub_VuhVuh_sat, alu, uh, HVX_SUB_SAT(LT, a, b))                   \
    X(W_WW, Q6_Wuh_vsub_WuhWuh_sat, alu, uh, HVX_SUB_SAT(LT, a, b))                   \
    X(V_VV, Q6_Vw_vsub_VwVw_sat, alu, w, HVX_SUB_SAT(LT, a, b))                       \
    X(W_WW, Q6_Ww_vsub_WwWw_sat, alu, w, HVX_SUB_SAT(LT, a, b))                       \
    X(V_VV, Q6_Vuw_vsub_VuwVuw_sat, alu, uw, HVX_SUB_SAT(LT, a, b))                   \
    X(W_WW, Q6_Wuw_vsub_WuwWuw_sat, alu, uw, HVX_SUB_SAT(LT, a, b))                   \
    X(V_VV, Q6_Vub_vadd_VubVb_sat, alu, ub,                                           \
      HVX_SEL(hvx_ub, (hvx_b) b < 0, HVX_SUB_SAT(LT, a, -b), HVX_ADD_SAT(LT, a, b)))  \
    X(V_VV, Q6_Vub_vsub_VubVb_sat, alu, ub,                                           \
      HVX_SEL(hvx_ub, (hvx_b) b < 0, HVX_ADD_SAT(LT, a, -b), HVX_SUB_SAT(LT, a, b)))

#define HVX_TABLE_WIDE(X)                                                             \
    X(E_VV, Q6_Wh_vadd_VubVub, mpy, h, ub, ub, a + b)                                 \
    X(E_VV, Q6_Ww_vadd_VhVh, mpy, w, h, h, a + b)                                     \
    X(E_VV, Q6_Ww_vadd_VuhVuh, mpy, w, uh, uh, a + b)                                 \
    X(E_XVV, Q6_Wh_vaddacc_WhVubVub, mpy, h, ub, ub, x + a + b)                       \
    X(E_XVV, Q6_Ww_vaddacc_WwVhVh, mpy, w, h, h, x + a + b)                           \
    X(E_XVV, Q6_Ww_vaddacc_WwVuhVuh, mpy, w, uh, uh, x + a + b)                       \
    X(E_VV, Q6_Wh_vsub_VubVub, mpy, h, ub, ub, a - b)                                 \
    X(E_VV, Q6_Ww_vsub_VhVh, mpy, w, h, h, a - b)                                     \
    X(E_VV, Q6_Ww_vsub_VuhVuh, mpy, w, uh, uh, a - b)                                 \
    X(E_VV, Q6_Wh_vmpy_VbVb, mpy, h, b, b, a * b)                                     \
    X(E_VV, Q6_Wh_vmpy_VubVb, mpy, h, ub, b, a * b)                                   \
    X(E_VV, Q6_Wuh_vmpy_VubVub, mpy, h, ub, ub, a * b)                                \
    X(E_VV, Q6_Ww_vmpy_VhVh, mpy, w, h, h, a * b)                                     \
    X(E_VV, Q6_Ww_vmpy_VhVuh, mpy, w, h, uh, a * b)                                   \
    X(E_VV, Q6_Wuw_vmpy_VuhVuh, mpy, w, uh, uh, a * b)                                \
    X(E_XVV, Q6_Wh_vmpyacc_WhVbVb, mpy, h, b, b, x + a * b)                           \
    X(E_XVV, Q6_Wh_vmpyacc_WhVubVb, mpy, h, ub, b, x + a * b)                         \
    X(E_XVV, Q6_Wuh_vmpyacc_WuhVubVub, mpy, h, ub, ub, x + a * b)                     \
    X(E_XVV, Q6_Ww_vmpyacc_WwVhVh, mpy, w, h, h, x + a * b)                           \
    X(E_XVV, Q6_Ww_vmpyacc_WwVhVuh, mpy, w, h, uh, x + a * b)                         \
    X(E_XVV, Q6_Wuw_vmpyacc_WuwVuhVuh, mpy, w, uh, uh, x + a * b)                     \
    X(E_VR, Q6_Wh_vmpy_VubRb, mpy, h, ub, b, a * b)                                   \
    X(E_VR, Q6_Wuh_vmpy_VubRub, mpy, h, ub, ub, a * b)                                \
    X(E_VR, Q6_Ww_vmpy_VhRh, mpy, w, h, h, a * b)                                     \
    X(E_VR, Q6_Wuw_vmpy_VuhRuh, mpy, w, uh, uh, a * b)                                \
    X(E_XVR, Q6_Wh_vmpyacc_WhVubRb, mpy, h, ub, b, x + a * b)                         \
    X(E_XVR, Q6_Wuh_vmpyacc_WuhVubRub, mpy, h, ub, ub, x + a * b)                     \
    X(E_XVR, Q6_Ww_vmpyacc_WwVhRh, mpy, w, h, h, x + a * b)                           \
    X(E_XVR, Q6_Ww_vmpyacc_WwVhRh_sat, mpy, w, h, h, HVX_ADD_SAT(hvx_w, x, a * b))    \
    X(E_XVR, Q6_Wuw_vmpyacc_WuwVuhRuh, mpy, w, uh, uh, x + a * b)

#define HVX_TABLE_LOGIC(X)                                                            \
    X(V_VV, Q6_V_vand_VV, alu, w, a & b)                                              \
    X(V_VV, Q6_V_vor_VV, alu, w, a | b)                                               \
    X(V_VV, Q6_V_vxor_VV, alu, w, a ^ b)                                              \
    X(V_V, Q6_V_vnot_V, alu, w, ~a)                                                   \
    X(V_VV, Q6_Vb_vmax_VbVb, alu, b, HVX_MAX(a, b))                                   \
    X(V_VV, Q6_Vub_vmax_VubVub, alu, ub, HVX_MAX(a, b))                               \
    X(V_VV, Q6_Vh_vmax_VhVh, alu, h, HVX_MAX(a, b))                                   \
    X(V_VV, Q6_Vuh_vmax_VuhVuh, alu, uh, HVX_MAX(a, b))                               \
    X(V_VV, Q6_Vw_vmax_VwVw, alu, w, HVX_MAX(a, b))                                   \
    X(V_VV, Q6_Vb_vmin_VbVb, alu, b, HVX_MIN(a, b))                                   \
    X(V_VV, Q6_Vub_vmin_VubVub, alu, ub, HVX_MIN(a, b))                               \
    X(V_VV, Q6_Vh_vmin_VhVh, alu, h, HVX_MIN(a, b))                                   \
    X(V_VV, Q6_Vuh_vmin_VuhVuh, alu, uh, HVX_MIN(a, b))                               \
    X(V_VV, Q6_Vw_vmin_VwVw, alu, w, HVX_MIN(a, b))                                   \
    X(V_V, Q6_Vb_vabs_Vb, alu, b, HVX_MAX(a, -a))                                     \
    X(V_V, Q6_Vh_vabs_Vh, alu, h, HVX_MAX(a, -a))                                     \
    X(V_V, Q6_Vw_vabs_Vw, alu, w, HVX_MAX(a, -a))                                     \
    X(V_V, Q6_Vb_vabs_Vb_sat, alu, b, HVX_MAX(a, HVX_SUB_SAT(LT, (LT) {0}, a)))       \
    X(V_V, Q6_Vh_vabs_Vh_sat, alu, h, HVX_MAX(a, HVX_SUB_SAT(LT, (LT) {0}, a)))       \
    X(V_V, Q6_Vw_vabs_Vw_sat, alu, w, HVX_MAX(a, HVX_SUB_SAT(LT, (LT) {0}, a)))       \
    X(V_VV, Q6_Vub_vabsdiff_VubVub, mpy, ub, HVX_MAX(a, b) - HVX_MIN(a, b))           \
    X(V_VV, Q6_Vuh_vabsdiff_VhVh, mpy, h, HVX_MAX(a, b) - HVX_MIN(a, b))              \
    X(V_VV, Q6_Vuh_vabsdiff_VuhVuh, mpy, uh, HVX_MAX(a, b) - HVX_MIN(a, b))           \
    X(V_VV, Q6_Vuw_vabsdiff_VwVw, mpy, w, HVX_MAX(a, b) - HVX_MIN(a, b))              \
    /* (a + b) >> 1 in more bits, without and with 1 added before the shift */        \
    X(V_VV, Q6_Vb_vavg_VbVb, alu, b, (a & b) + ((a ^ b) >> 1))                        \
    X(V_VV, Q6_Vub_vavg_VubVub, alu, ub, (a & b) + ((a ^ b) >> 1))                    \
    X(V_VV, Q6_Vh_vavg_VhVh, alu, h, (a & b) + ((a ^ b) >> 1))                        \
    X(V_VV, Q6_Vuh_vavg_VuhVuh, alu, uh, (a & b) + ((a ^ b) >> 1))                    \
    X(V_VV, Q6_Vw_vavg_VwVw, alu, w, (a & b) + ((a ^ b) >> 1))                        \
    X(V_VV, Q6_Vuw_vavg_VuwVuw, alu, uw, (a & b) + ((a ^ b) >> 1))                    \
    X(V_VV, Q6_Vb_vavg_VbVb_rnd, alu, b, (a | b) - ((a ^ b) >> 1))                    \
    X(V_VV, Q6_Vub_vavg_VubVub_rnd, alu, ub, (a | b) - ((a ^ b) >> 1))                \
    X(V_VV, Q6_Vh_vavg_VhVh_rnd, alu, h, (a | b) - ((a ^ b) >> 1))                    \
    X(V_VV, Q6_Vuh_vavg_VuhVuh_rnd, alu, uh, (a | b) - ((a ^ b) >> 1))                \
    X(V_VV, Q6_Vw_vavg_VwVw_rnd, alu, w, (a | b) - ((a ^ b) >> 1))                    \
    X(V_VV, Q6_Vuw_vavg_VuwVuw_rnd, alu, uw, (a | b) - ((a ^ b) >> 1))                \
    /* (a - b) >> 1 in more bits */                                                   \
    X(V_VV, Q6_Vb_vnavg_VbVb, alu, b, (a >> 1) - (b >> 1) - (~a & b & 1))             \
    X(V_VV, Q6_Vb_vnavg_VubVub, alu, ub, (a >> 1) - (b >> 1) - (~a & b & 1))          \
    X(V_VV, Q6_Vh_vnavg_VhVh, alu, h, (a >> 1) - (b >> 1) - (~a & b & 1))             \
    X(V_VV, Q6_Vw_vnavg_VwVw, alu, w, (a >> 1) - (b >> 1) - (~a & b & 1))

#define HVX_TABLE_SHIFT(X)                                                            \
    X(V_VR, Q6_Vh_vasl_VhR, alu, h, a << (short) (r & 15))                            \
    X(V_VR, Q6_Vw_vasl_VwR, alu, w, a << (r & 31))                                    \
    X(V_VR, Q6_Vh_vasr_VhR, alu, h, a >> (short) (r & 15))                            \
    X(V_VR, Q6_Vw_vasr_VwR, alu, w, a >> (r & 31))                                    \
    X(V_VR, Q6_Vub_vlsr_VubR, alu, ub, a >> (unsigned char) (r & 7))                  \
    X(V_VR, Q6_Vuh_vlsr_VuhR, alu, uh, a >> (unsigned short) (r & 15))                \
    X(V_VR, Q6_Vuw_vlsr_VuwR, alu, uw, a >> (unsigned) (r & 31))                      \
    X(V_XVR, Q6_Vh_vaslacc_VhVhR, alu, h, x + (a << (short) (r & 15)))                \
    X(V_XVR, Q6_Vw_vaslacc_VwVwR, alu, w, x + (a << (r & 31)))                        \
    X(V_XVR, Q6_Vh_vasracc_VhVhR, alu, h, x + (a >> (short) (r & 15)))                \
    X(V_XVR, Q6_Vw_vasracc_VwVwR, alu, w, x + (a >> (r & 31)))                        \
    /* by vector: the count is 5 (6) bits signed, negative shifts the other way */    \
    X(V_VV, Q6_Vh_vasl_VhVh, alu, h, HVX_BY(HVX_5(b), a << FWD, a >> BACK >> 1))      \
    X(V_VV, Q6_Vw_vasl_VwVw, alu, w, HVX_BY(HVX_6(b), a << FWD, a >> BACK >> 1))      \
    X(V_VV, Q6_Vh_vasr_VhVh, alu, h, HVX_BY(HVX_5(b), a >> FWD, a << BACK << 1))      \
    X(V_VV, Q6_Vw_vasr_VwVw, alu, w, HVX_BY(HVX_6(b), a >> FWD, a << BACK << 1))      \
    X(V_VV, Q6_Vh_vlsr_VhVh, alu, h,                                                  \
      HVX_BY(HVX_5(b), (LT) ((hvx_uh) a >> (hvx_uh) FWD), a << BACK << 1))            \
    X(V_VV, Q6_Vw_vlsr_VwVw, alu, w,                                                  \
      HVX_BY(HVX_6(b), (LT) ((hvx_uw) a >> (hvx_uw) FWD), a << BACK << 1))            \
    X(V_VV, Q6_Vuw_vrotr_VuwVuw, alu, uw, (a >> (b & 31)) | (a << (-b & 31)))

// Two vectors of wide lanes to one of half as wide ones: each lane of Vv gives the lower, each of
// Vu the upper half. N_VV: s = one lane; N_VVR: r = the count besides, masked to what the form takes.
#define HVX_TABLE_NARROW(X)                                                           \
    X(N_VV, Q6_Vb_vshuffe_VbVb, alu, h, s)                                            \
    X(N_VV, Q6_Vb_vshuffo_VbVb, alu, h, s >> 8)                                       \
    X(N_VV, Q6_Vh_vshuffe_VhVh, alu, w, s)                                            \
    X(N_VV, Q6_Vh_vshuffo_VhVh, alu, w, s >> 16)                                      \
    X(N_VV, Q6_Vub_vsat_VhVh, alu, h, HVX_UB(s))                                      \
    X(N_VV, Q6_Vh_vsat_VwVw, alu, w, HVX_H(s))                                        \
    X(N_VV, Q6_Vuh_vsat_VuwVuw, alu, w, HVX_UMIN(uw, s, 65535))                       \
    X(N_VV, Q6_Vb_vround_VhVh_sat, alu, h, HVX_B(HVX_RSH(s, 8)))                      \
    X(N_VV, Q6_Vub_vround_VhVh_sat, alu, h, HVX_UB(HVX_RSH(s, 8)))                    \
    X(N_VV, Q6_Vub_vround_VuhVuh_sat, alu, h, HVX_UMIN(uh, HVX_RSH((hvx_uh) s, 8), 255))      \
    X(N_VV, Q6_Vh_vround_VwVw_sat, alu, w, HVX_H(HVX_RSH(s, 16)))                     \
    X(N_VV, Q6_Vuh_vround_VwVw_sat, alu, w, HVX_UH(HVX_RSH(s, 16)))                   \
    X(N_VV, Q6_Vuh_vround_VuwVuw_sat, alu, w, HVX_UMIN(uw, HVX_RSH((hvx_uw) s, 16), 65535))   \
    X(N_VVR, Q6_Vh_vasr_VwVwR, alu, w, s >> r)                                        \
    X(N_VVR, Q6_Vh_vasr_VwVwR_sat, alu, w, HVX_H(s >> r))                             \
    X(N_VVR, Q6_Vh_vasr_VwVwR_rnd_sat, alu, w, HVX_H(HVX_RASR(s, r)))                 \
    X(N_VVR, Q6_Vuh_vasr_VwVwR_sat, alu, w, HVX_UH(s >> r))                           \
    X(N_VVR, Q6_Vuh_vasr_VwVwR_rnd_sat, alu, w, HVX_UH(HVX_RASR(s, r)))               \
    X(N_VVR, Q6_Vuh_vasr_VuwVuwR_sat, alu, w, HVX_UMIN(uw, (hvx_uw) s >> (hvx_uw) r, 65535))  \
    X(N_VVR, Q6_Vuh_vasr_VuwVuwR_rnd_sat, alu, w,                                     \
      HVX_UMIN(uw, HVX_RASR((hvx_uw) s, (hvx_uw) r), 65535))                          \
    X(N_VVR, Q6_Vb_vasr_VhVhR_sat, alu, h, HVX_B(s >> r))                             \
    X(N_VVR, Q6_Vb_vasr_VhVhR_rnd_sat, alu, h, HVX_B(HVX_RASR(s, r)))                 \
    X(N_VVR, Q6_Vub_vasr_VhVhR_sat, alu, h, HVX_UB(s >> r))                           \
    X(N_VVR, Q6_Vub_vasr_VhVhR_rnd_sat, alu, h, HVX_UB(HVX_RASR(s, r)))               \
    X(N_VVR, Q6_Vub_vasr_VuhVuhR_sat, alu, h, HVX_UMIN(uh, (hvx_uh) s >> (hvx_uh) r, 255))    \
    X(N_VVR, Q6_Vub_vasr_VuhVuhR_rnd_sat, alu, h,                                     \
      HVX_UMIN(uh, HVX_RASR((hvx_uh) s, (hvx_uh) r), 255))

#define HVX_TABLE_COMPARE(X)                                                          \
    X(Q_VV, eq, b, b, a == b)                                                         \
    X(Q_VV, eq, h, h, a == b)                                                         \
    X(Q_VV, eq, w, w, a == b)                                                         \
    X(Q_VV, gt, b, b, a > b)                                                          \
    X(Q_VV, gt, ub, ub, a > b)                                                        \
    X(Q_VV, gt, h, h, a > b)                                                          \
    X(Q_VV, gt, uh, uh, a > b)                                                        \
    X(Q_VV, gt, w, w, a > b)                                                          \
    X(Q_VV, gt, uw, uw, a > b)

#endif
