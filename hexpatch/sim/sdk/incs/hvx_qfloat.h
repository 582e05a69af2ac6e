// Qualcomm's qfloat.
//
// Two models; HEXSIM_QF_ENCODED chooses, by default as the machine's generation is:
//   1 (arch < 79)  qf32 and qf16 are as they lie in a register and in memory:
//                  qf32 = (2 S + 1) 2^-23 2^(E - 127), S = bits 31:8 signed, E = bits 7:0;
//                  qf16 = (2 S + 1) 2^-10 2^(E - 15),  S = bits 15:5 signed, E = bits 4:0.
//                  No zero, infinity or NaN; one bit less than IEEE where the number is normalised.
//   0 (arch >= 79) memory holds IEEE numbers and an operation followed by a conversion is the
//                  correctly rounded IEEE operation. The hardware keeps a few more bits in the
//                  register; a C variable is memory here, so each operation rounds to nearest even.
#ifndef HVX_QFLOAT_H
#define HVX_QFLOAT_H

#include "hvx_float.h"

#ifndef HEXSIM_QF_ENCODED
#define HEXSIM_QF_ENCODED (__HVX_ARCH__ < 79)
#endif

#if HEXSIM_QF_ENCODED
#include "hvx_qfloat_encoded.h"
#else
#include "hvx_qfloat_ieee.h"
#endif

#endif
