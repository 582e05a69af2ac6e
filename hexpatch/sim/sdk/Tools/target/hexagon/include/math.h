#ifndef SIM_MATH_H
#define SIM_MATH_H

#define INFINITY      __builtin_inff()
#define NAN           __builtin_nanf("")
#define HUGE_VALF     __builtin_huge_valf()
#define isnan(x)      __builtin_isnan(x)
#define isinf(x)      __builtin_isinf(x)
#define isfinite(x)   __builtin_isfinite(x)
#define signbit(x)    __builtin_signbit(x)

#define SIM_MATH(name)  double name(double x); float name##f(float x);
#define SIM_MATH2(name) double name(double x, double y); float name##f(float x, float y);
SIM_MATH(sqrt) SIM_MATH(fabs) SIM_MATH(floor) SIM_MATH(ceil) SIM_MATH(round) SIM_MATH(trunc)
SIM_MATH(rint) SIM_MATH(nearbyint) SIM_MATH(exp) SIM_MATH(exp2) SIM_MATH(expm1) SIM_MATH(log)
SIM_MATH(log2) SIM_MATH(log10) SIM_MATH(log1p) SIM_MATH(sin) SIM_MATH(cos) SIM_MATH(tan)
SIM_MATH(asin) SIM_MATH(acos) SIM_MATH(atan) SIM_MATH(sinh) SIM_MATH(cosh) SIM_MATH(tanh)
SIM_MATH(erf) SIM_MATH(erfc) SIM_MATH(cbrt)
SIM_MATH2(pow) SIM_MATH2(fmod) SIM_MATH2(fmin) SIM_MATH2(fmax) SIM_MATH2(atan2) SIM_MATH2(copysign)
SIM_MATH2(hypot) SIM_MATH2(fdim)
#undef SIM_MATH
#undef SIM_MATH2
double ldexp(double x, int e);
float  ldexpf(float x, int e);
double frexp(double x, int * e);
float  frexpf(float x, int * e);
double fma(double x, double y, double z);
float  fmaf(float x, float y, float z);
long   lroundf(float x);
long   lrintf(float x);

#endif
