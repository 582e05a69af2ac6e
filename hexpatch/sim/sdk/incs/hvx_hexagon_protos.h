// Vector intrinsics of HVX, 128-byte mode.
//
// A regular integer intrinsic is a row of hvx_table.h; the others are functions of the file of their
// subject. What exists only from some generation on (v66 ... v81) is declared for every one: a kernel
// that uses it too early compiles here though not for the device, so compile for the device as well.
// What depends on the generation asks __HVX_ARCH__: qfloat (hvx_qfloat.h) and the order of floats
// (hvx_ieee.h).
//
// Not modelled, so a build error that names them: v6mpy; v79's f8, vcvt2, vmerge, vsetqfext and
// vgetqfext, and products of a vector and a scalar in qfloat; v81's valign4, vilog2, conversions
// between f8 or bf and qfloat.
#ifndef HVX_HEXAGON_PROTOS_H
#define HVX_HEXAGON_PROTOS_H

#include "hexagon_types.h"

#include "hvx_regular.h"
#include "hvx_permute.h"
#include "hvx_predicate.h"
#include "hvx_lookup.h"
#include "hvx_multiply.h"
#include "hvx_bits.h"
#include "hvx_memory.h"
#include "hvx_qfloat.h"
#include "hvx_ieee.h"
#include "hvx_convert.h"

#endif
