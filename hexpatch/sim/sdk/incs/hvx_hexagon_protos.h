// Vector intrinsics of HVX, 128-byte mode.
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
