// What the generated comparison of the intrinsics needs, on Hexagon (bare, Linux system calls) and
// on the host: reproducible vectors with many edge cases, and an output buffer.
#include <hexagon_types.h>

typedef unsigned char      u8;
typedef unsigned int       u32;
typedef unsigned long long u64;

static u32 rng_state;
static u32 rng(void) {
    rng_state = rng_state * 1664525u + 1013904223u;
    return rng_state ^ (rng_state >> 16);
}

static const u32 edges[16] = {0,          1,          0xffffffff, 0x7fffffff, 0x80000000, 0x80000001,
                              0x00007fff, 0x00008000, 0x7fff8000, 0x80008000, 0xffff0000, 0x0000ffff,
                              0x7f7f7f7f, 0x80808080, 0x0000ff00, 0x55aaaa55};

static u32 scalar(void) {
    const u32 r = rng();
    switch (r >> 29) {
    case 0: return edges[r & 15];
    case 1: return r & 15;
    case 2: return -(r & 127);
    case 3: return r & 127;
    default: return rng();
    }
}
static u64 scalar64(void) {
    const u64 hi = scalar();
    return hi << 32 | rng();
}
// A vector is random, or small numbers, or edge cases of words, or a mix by word.
static void fill(u32 * p, int words) {
    const u32 how = rng() >> 29;
    for (int i = 0; i < words; i++) {
        u32 r = rng();
        switch (how) {
        case 0: r = edges[r & 15]; break;
        case 1: r = r & 0x07070707; break;
        case 2: r = r & 0x001f003f; break;
        case 3: r = r & 64 ? edges[r & 15] : rng(); break;
        default: break;
        }
        p[i] = r;
    }
}
static u32 vec_buf[64] __attribute__((aligned(256)));
static HVX_Vector vec(void) {
    fill(vec_buf, 32);
    return *(HVX_Vector *) vec_buf;
}
static HVX_VectorPair pair(void) {
    fill(vec_buf, 64);
    return Q6_W_vcombine_VV(((HVX_Vector *) vec_buf)[1], ((HVX_Vector *) vec_buf)[0]);
}
static HVX_VectorPred pred(void) {
    const HVX_Vector v = vec();
    return Q6_Q_vand_VR(v, 0x01010101 << (rng() & 7));
}

// -- output ---------------------------------------------------------------------------------------

static u8  out_buf[65536] __attribute__((aligned(256)));
static u32 out_n;

#ifdef __hexagon__
static long sys(long nr, long a, long b, long c) {
    register long r0 asm("r0") = a;
    register long r1 asm("r1") = b;
    register long r2 asm("r2") = c;
    register long r6 asm("r6") = nr;
    asm volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r6) : "memory");
    return r0;
}
static void out_flush(void) {
    for (u32 i = 0; i < out_n;) i += (u32) sys(64, 1, (long) (out_buf + i), (long) (out_n - i));
    out_n = 0;
}
void * memcpy(void * to, const void * from, __SIZE_TYPE__ n) {
    for (__SIZE_TYPE__ i = 0; i < n; i++) ((volatile u8 *) to)[i] = ((const u8 *) from)[i];
    return to;
}
void * memset(void * to, int c, __SIZE_TYPE__ n) {
    for (__SIZE_TYPE__ i = 0; i < n; i++) ((volatile u8 *) to)[i] = (u8) c;
    return to;
}
static void run(void);
__attribute__((used)) void start_c(void) {
    run();
    out_flush();
    sys(93, 0, 0, 0);
}
asm(".globl _start\n_start:\n{ r29 = and(r29, #-256)\n}\n{ call start_c\n}\n");
#else
#include <unistd.h>
static void out_flush(void) {
    for (u32 i = 0; i < out_n;) i += (u32) write(1, out_buf + i, out_n - i);
    out_n = 0;
}
__thread struct sim_thread sim_self;
static void run(void);
int main(void) {
    run();
    out_flush();
    return 0;
}
#endif

static HVX_Vector * slot(void) {
    if (out_n + 256 > sizeof(out_buf)) out_flush();
    HVX_Vector * p = (HVX_Vector *) (out_buf + out_n);
    out_n += 128;
    return p;
}
static void put_V(HVX_Vector v) { *slot() = v; }
static void put_W(HVX_VectorPair v) {
    put_V(Q6_V_lo_W(v));
    put_V(Q6_V_hi_W(v));
}
static void put_Q(HVX_VectorPred q) { put_V(Q6_V_vand_QR(q, 0x01010101)); }
static void put_R(u32 r) { put_V(Q6_V_vsplat_R((int) r)); }
static void put_P(u64 r) { put_W(Q6_W_vcombine_VV(Q6_V_vsplat_R((int) (r >> 32)), Q6_V_vsplat_R((int) r))); }
