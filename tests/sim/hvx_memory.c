// Gather, scatter, masked stores and the counters.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "hvx_check.h"

#define SIZE 65536

static uint8_t * region;  // in VTCM, below 4 GiB
static uint32_t at(size_t offset) { return (uint32_t) (uintptr_t) (region + offset); }
static uint32_t old_word(size_t offset) {
    uint32_t w;
    memcpy(&w, region + offset, 4);
    return w;
}
static void refill(void) {
    for (int i = 0; i < SIZE; i++) region[i] = (uint8_t) (i * 7 + (i >> 8));
}

static void gathers(void) {
    HVX_Vector * dst = (HVX_Vector *) (region + 4096);
    vec off, got;
    for (int i = 0; i < 32; i++) off.w[i] = (uint32_t) (i * 61 % 2000);  // any alignment
    off.w[3] = (uint32_t) -4;
    off.w[4] = 2047 - 3;  // the last word that fits
    off.w[5] = 2047 - 2;
    *dst = words(0x11111111);
    Q6_vgather_ARMVw((uint8_t *) dst + 5, at(0), 2047, off.v);  // the destination is truncated
    got.v = *dst;
    for (int i = 0; i < 32; i++) {
        const int drop = i == 3 || i == 5;
        CHECK("vgather.w", got.w[i], drop ? 0x11111111 : old_word(off.w[i]));
    }
    for (int i = 0; i < 64; i++) off.h[i] = (uint16_t) (i * 3);
    off.h[7] = 40001;  // unsigned
    *dst = words(0x11111111);
    Q6_vgather_ARMVh(dst, at(0), 40002, off.v);
    got.v = *dst;
    for (int i = 0; i < 64; i++) CHECK("vgather.h", got.h[i], old_word(off.h[i]) & 0xffff);
    *dst = words(0x11111111);
    Q6_vgather_AQRMVh(dst, Q6_Q_vsetq_R(64), at(0), 180, off.v);
    got.v = *dst;
    for (int i = 0; i < 64; i++) {
        const int keep = i < 32 && off.h[i] + 1 <= 180;
        CHECK("vgather.h, masked", got.h[i], keep ? old_word(off.h[i]) & 0xffff : 0x1111);
    }
    vec lo, hi;
    for (int i = 0; i < 32; i++) lo.w[i] = (uint32_t) (4 * i), hi.w[i] = (uint32_t) (1000 + 6 * i);
    Q6_vgather_ARMWw(dst, at(0), 2047, Q6_W_vcombine_VV(hi.v, lo.v));
    got.v = *dst;
    for (int i = 0; i < 64; i++) {
        const uint32_t from = i % 2 ? hi.w[i / 2] : lo.w[i / 2];
        CHECK("vgather.h, word offsets", got.h[i], old_word(from) & 0xffff);
    }
    *dst = words(0x11111111);
    Q6_vgather_AQRMVw(dst, Q6_Q_vand_VR(words(0x00ffff00), -1), at(0), 2047, words(12));
    got.v = *dst;
    CHECK("vgather.w, some bytes", got.w[9], 0x11000011 | (old_word(12) & 0x00ffff00));
}

static void scatters(void) {
    vec off, val;
    for (int i = 0; i < 32; i++) off.w[i] = (uint32_t) (128 * ((i * 5) % 16) + 4 * (i / 16) + 1), val.w[i] = 0x01000000u * (uint32_t) i + 0xabcdef;
    off.w[2] = 2048 - 3;  // one byte too far
    off.w[9] = 0xfffffffc;
    refill();
    Q6_vscatter_RMVwV(at(0), 2047, off.v, val.v);
    for (int i = 0; i < 32; i++) {
        if (i == 2 || i == 9) continue;
        CHECK("vscatter.w", old_word(off.w[i]), val.w[i]);
    }
    CHECK("vscatter.w, dropped", region[2048 - 3], (uint8_t) ((2048 - 3) * 7 + ((2048 - 3) >> 8)));

    refill();
    Q6_vscatter_QRMVwV(Q6_Q_vsetq_R(64), at(4096), 2047, off.v, val.v);  // the lower half only
    for (int i = 0; i < 32; i++) {
        uint32_t before = 0;
        for (int j = 0; j < 4; j++) {
            const uint32_t k = 4096 + off.w[i] + (uint32_t) j;
            before |= (uint32_t) (uint8_t) (k * 7 + (k >> 8)) << (8 * j);
        }
        if (i == 2 || i == 9) continue;
        CHECK("vscatter.w, masked", old_word(4096 + off.w[i]), i < 16 ? val.w[i] : before);
    }

    vec hoff, hval;
    for (int i = 0; i < 64; i++) hoff.h[i] = (uint16_t) (i * 30), hval.h[i] = (uint16_t) (i * 1000);
    Q6_vscatter_RMVhV(at(0), 64 * 30, hoff.v, hval.v);
    for (int i = 0; i < 64; i++) CHECK("vscatter.h", old_word(hoff.h[i]) & 0xffff, hval.h[i]);
    Q6_vscatter_QRMVhV(Q6_Q_vsetq_R(2), at(0), 64 * 30, hoff.v, words(0));
    CHECK("vscatter.h, masked", old_word(0) & 0xffff, 0);
    CHECK("vscatter.h, masked off", old_word(30) & 0xffff, 1000);

    memset(region, 0, 256);
    Q6_vscatteracc_RMVwV(at(0), 255, words(23), words(3));  // all to one word, which is aligned
    CHECK("vscatter.w +=", old_word(20), 96);
    Q6_vscatteracc_RMVhV(at(0), 255, halves(41), halves(2));
    CHECK("vscatter.h +=", old_word(40) & 0xffff, 128);
    Q6_vscatteracc_RMWwV(at(0), 255, Q6_W_vcombine_VV(words(62), words(60)), words(0x00020001));
    CHECK("vscatter.h +=, pair", old_word(60), 0x00400020);
    Q6_vscatter_RMWwV(at(0), 255, Q6_W_vcombine_VV(words(72), words(70)), words(0x00040003));
    CHECK("vscatter.h, pair", old_word(70), 0x00040003);
    Q6_vscatter_QRMWwV(Q6_Q_vand_VR(words(0xffff), -1), at(0), 255, Q6_W_vcombine_VV(words(82), words(80)), words(0x00060005));
    CHECK("vscatter.h, pair, masked", old_word(80), 5);
}

static void stores(void) {
    refill();
    vec x;
    for (int i = 0; i < 128; i++) x.b[i] = (uint8_t) (200 + i);
    Q6_vmem_QRIV(Q6_Q_vsetq_R(77), region + 256 + 33, x.v);
    for (int i = 0; i < 128; i++) CHECK("vmem", region[256 + i], i < 77 ? x.b[i] : (uint8_t) ((256 + i) * 7 + 1));
    Q6_vmem_QnRIV(Q6_Q_vsetq_R(77), region + 512, x.v);
    for (int i = 0; i < 128; i++) CHECK("vmem, not", region[512 + i], i >= 77 ? x.b[i] : (uint8_t) ((512 + i) * 7 + 2));
    Q6_vmem_QRIV_nt(Q6_Q_vcmp_eq_VbVb(x.v, x.v), region + 768, x.v);
    CHECK("vmem, all", memcmp(region + 768, &x, 128), 0);
    Q6_vmem_QnRIV_nt(Q6_Q_vcmp_eq_VbVb(x.v, x.v), region + 896, x.v);
    CHECK("vmem, none", region[896], (uint8_t) (896 * 7 + 3));
}

static void region_faults(void) {
    HVX_Vector * dst = (HVX_Vector *) region;
    faults = 0;
    sim_checks = 0;
    sim_vtcm_base = region;
    sim_vtcm_size = 8192;
    Q6_vgather_ARMVw(dst, at(8192), 127, Q6_V_vzero());
    CHECK("not looked for", (unsigned) faults, 0);
    sim_checks = 1u << SIM_FAULT_region;
    Q6_vgather_ARMVw(dst, at(0), 8191, Q6_V_vzero());
    Q6_vscatter_RMVwV(at(0), 8191, Q6_V_vzero(), Q6_V_vzero());
    CHECK("the whole VTCM", (unsigned) faults, 0);
    Q6_vgather_ARMVw(dst, at(0), 8192, Q6_V_vzero());
    CHECK("region too long", (unsigned) faults, 1);
    CHECK("its size", fault_size, 8193);
    CHECK("its place", fault_addr == region, 1);
    Q6_vgather_ARMVw(region + 8192, at(0), 127, Q6_V_vzero());
    CHECK("destination outside", (unsigned) faults, 2);
    CHECK("its place", fault_addr == region + 8192, 1);
    Q6_vscatter_RMVhV(at(8064), 255, Q6_V_vzero(), Q6_V_vzero());
    CHECK("scatter", (unsigned) faults, 3);
}

static void counters(void) {
    const HVX_Vector v = words(1);
    const HVX_VectorPred q = Q6_Q_vsetq_R(1);
    memset(&sim_self, 0, sizeof(sim_self));
#define COUNTS(counter, call)                                        \
    do {                                                             \
        const uint64_t n_ = sim_self.n[SIM_##counter];               \
        uint64_t all_ = 0, sum_ = 0;                                 \
        for (int i_ = 0; i_ < SIM_N_COUNTERS; i_++) all_ += sim_self.n[i_]; \
        call;                                                        \
        for (int i_ = 0; i_ < SIM_N_COUNTERS; i_++) sum_ += sim_self.n[i_]; \
        CHECK(#call, sim_self.n[SIM_##counter] - n_, 1);             \
        CHECK(#call " alone", sum_ - all_, 1);                       \
    } while (0)
    COUNTS(hvx_alu, (void) Q6_Vh_vadd_VhVh(v, v));
    COUNTS(hvx_alu, (void) Q6_Q_vcmp_gt_VwVw(v, v));
    COUNTS(hvx_alu, (void) Q6_Q_vcmp_gtand_QVwVw(q, v, v));
    COUNTS(hvx_alu, (void) Q6_Vw_vasr_VwR(v, 3));
    COUNTS(hvx_alu, (void) Q6_W_vcombine_VV(v, v));
    COUNTS(hvx_alu, (void) Q6_V_vmux_QVV(q, v, v));
    COUNTS(hvx_mpy, (void) Q6_Ww_vmpy_VhVh(v, v));
    COUNTS(hvx_mpy, (void) Q6_Vw_vrmpyacc_VwVbVb(v, v, v));
    COUNTS(hvx_mpy, (void) Q6_V_vsplat_R(3));
    COUNTS(hvx_perm, (void) Q6_W_vshuff_VVR(v, v, -4));
    COUNTS(hvx_perm, (void) Q6_Vb_vlut32_VbVbI(v, v, 0));
    COUNTS(hvx_perm, (void) Q6_V_vror_VR(v, 4));
    COUNTS(hvx_fp, (void) Q6_Vqf32_vadd_VsfVsf(v, v));
    COUNTS(hvx_fp, (void) Q6_Wqf32_vmpy_VhfVhf(v, v));
    COUNTS(hvx_fp, (void) Q6_Vsf_equals_Vqf32(v));
    COUNTS(hvx_fp, (void) Q6_Q_vcmp_gt_VsfVsf(v, v));
    COUNTS(hvx_fp, (void) Q6_Vhf_vmax_VhfVhf(v, v));
    COUNTS(hvx_st, Q6_vmem_QRIV(q, region, v));
    COUNTS(hvx_gather, Q6_vgather_ARMVw(region, at(0), 127, v));
    COUNTS(hvx_scatter, Q6_vscatter_RMVwV(at(0), 127, v, v));
    COUNTS(l2fetch, Q6_l2fetch_AP(region, 0));
    uint64_t before = 0, after = 0;
    for (int i = 0; i < SIM_N_COUNTERS; i++) before += sim_self.n[i];
    (void) Q6_V_lo_W(Q6_W_equals_W(hvx_pair(v, v)));
    for (int i = 0; i < SIM_N_COUNTERS; i++) after += sim_self.n[i];
    CHECK("half of a pair costs nothing", after - before, 0);
}

int main(void) {
    region = mmap((void *) 0x20000000, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (region == MAP_FAILED || (uintptr_t) region + SIZE > 0xffffffffu) return 77;
    refill();
    gathers();
    scatters();
    stores();
    region_faults();
    counters();
    return failed != 0;
}
