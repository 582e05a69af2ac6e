// The per-token route of upstream on the same heads, for comparison.
#define TOKEN_ROUTE
#include "gdn_kernels.c"
#include "hvx-copy.h"
#include "hvx-reduce.h"
#include "token_steps.h"
static void run_token(const struct head * h, float * o, float * snap) {
    const int D = h->D;
    float * s = alloc(D * D * 4);
    float * row = alloc(8 * D * 4);
    memcpy(s, h->s, D * D * 4);
    for (int t = 0; t < h->T; t++) {
        memcpy(row, h->q + t * D, D * 4); memcpy(row + D, h->k + t * D, D * 4); memcpy(row + 2 * D, h->v + t * D, D * 4);
        memcpy(row + 3 * D, h->g + (h->kda ? t * D : t), (h->kda ? D : 1) * 4);
        if (h->kda) gdn_step_kda_f32(s, row + 4 * D, row, row + D, row + 2 * D, row + 3 * D, h->b[t], 1.0f / sqrtf((float) D), D);
        else gdn_step_scalar_f32(s, row + 4 * D, row, row + D, row + 2 * D, row + 3 * D, h->b[t], 1.0f / sqrtf((float) D), D);
        memcpy(o + t * D, row + 4 * D, D * 4);
    }
    memcpy(snap, s, D * D * 4);
}
