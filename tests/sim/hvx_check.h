// The runtime's part that the headers need, and checks that say what they found.
#include <hexagon_types.h>
#include <stdio.h>
#include <string.h>

__thread struct sim_thread sim_self;
uint8_t *                  sim_vtcm_base;
uint32_t                   sim_vtcm_size, sim_checks;

static int          faults;
static const void * fault_addr;
static size_t       fault_size;
void sim_fault(enum sim_fault kind, const void * addr, size_t size, const void * pc) {
    (void) pc;
    faults += kind == SIM_FAULT_region;
    fault_addr = addr;
    fault_size = size;
}

static int failed;
#define CHECK(what, got, want)                                                                  \
    do {                                                                                        \
        const unsigned long long g_ = (got), w_ = (want);                                       \
        if (g_ != w_ && failed++ < 20)                                                          \
            printf("%s:%d: %s: %llx, not %llx\n", __FILE__, __LINE__, what, g_, w_);            \
    } while (0)

typedef union {
    HVX_Vector v;
    uint8_t    b[128];
    uint16_t   h[64];
    uint32_t   w[32];
    float      f[32];
} vec;

static HVX_Vector words(uint32_t w) { return Q6_V_vsplat_R((int) w); }
static HVX_Vector halves(uint32_t h) { return Q6_Vh_vsplat_R((int) h); }
static uint32_t   word(HVX_Vector v) {
    const vec x = {v};
    for (int i = 1; i < 32; i++) CHECK("all words alike", x.w[i], x.w[0]);
    return x.w[0];
}
static uint32_t half(HVX_Vector v) {
    const vec x = {v};
    for (int i = 1; i < 64; i++) CHECK("all halves alike", x.h[i], x.h[0]);
    return x.h[0];
}
