// Signals: say which op crashed and where, then die as without us. And a division by zero, which is
// 0 on the phone's cores and a signal on x86, gives 0: upstream's host code does that for no rows.
#define _GNU_SOURCE
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static const int        signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
static struct sigaction before[sizeof(signals) / sizeof(signals[0])];

static const void * pc_of(const ucontext_t * u) {
#if defined(__x86_64__)
    return (const void *) (uintptr_t) u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *) (uintptr_t) u->uc_mcontext.pc;
#else
    (void) u;
    return NULL;
#endif
}

#if defined(__x86_64__)
// Registers in the order of their numbers in an instruction.
static const int registers[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

// A div or idiv (F7 /6, /7) of 32 or 64 bits by a zero: quotient 0, the dividend is the remainder.
static bool divided_by_zero(ucontext_t * u) {
    greg_t *        g    = u->uc_mcontext.gregs;
    const uint8_t * p    = (const uint8_t *) (uintptr_t) g[REG_RIP];
    const uint8_t   rex  = (*p & 0xf0) == 0x40 ? *p++ : 0;
    const bool      wide = rex & 8;
    if (*p++ != 0xf7) {
        return false;
    }
    const uint8_t modrm = *p++;
    const int     mod = modrm >> 6, rm = modrm & 7;
    uint64_t      value;
    if ((modrm >> 3 & 7) < 6) {
        return false;
    }
    if (mod == 3) {
        value = (uint64_t) g[registers[rm | (rex & 1) << 3]];
    } else {
        uint64_t at = 0;
        bool     relative = false;
        if (rm == 4) {
            const uint8_t sib   = *p++;
            const int     index = (sib >> 3 & 7) | (rex & 2) << 2;
            const int     base  = (sib & 7) | (rex & 1) << 3;
            at += index == 4 ? 0 : (uint64_t) g[registers[index]] << (sib >> 6);
            if ((sib & 7) == 5 && mod == 0) {
                int32_t d;
                memcpy(&d, p, 4);
                p += 4;
                at += (uint64_t) (int64_t) d;
            } else {
                at += (uint64_t) g[registers[base]];
            }
        } else if (rm == 5 && mod == 0) {
            relative = true;
        } else {
            at = (uint64_t) g[registers[rm | (rex & 1) << 3]];
        }
        if (mod == 1) {
            at += (uint64_t) (int64_t) (int8_t) *p++;
        } else if (mod == 2 || relative) {
            int32_t d;
            memcpy(&d, p, 4);
            p += 4;
            at += (uint64_t) (int64_t) d + (relative ? (uint64_t) (uintptr_t) p : 0);
        }
        value = 0;
        memcpy(&value, (const void *) (uintptr_t) at, wide ? 8 : 4);
    }
    if (wide ? value != 0 : (uint32_t) value != 0) {
        return false;
    }
    g[REG_RDX] = wide ? g[REG_RAX] : (greg_t) (uint32_t) g[REG_RAX];
    g[REG_RAX] = 0;
    g[REG_RIP] = (greg_t) (uintptr_t) p;
    return true;
}
#endif

static void on_signal(int sig, siginfo_t * info, void * context) {
    static volatile sig_atomic_t dying;
    ucontext_t * u = context;
#if defined(__x86_64__)
    if (sig == SIGFPE && info->si_code == FPE_INTDIV && divided_by_zero(u)) {
        return;
    }
#endif
    if (!dying) {
        dying = 1;
        const struct sim_ctx *     c = sim_me();
        const struct sim_session * s = c->session;
        const char *               op = s && s->op ? s->op : "";
        char where[160], line[512];
        sim_where(pc_of(u), where, sizeof(where));
        snprintf(line, sizeof(line), "{\"fatal\": \"%s\", \"op\": \"%s\", \"thread\": \"%s\", \"where\": \"%s\", \"addr\": \"0x%zx\"}",
                 strsignal(sig), op, c->name, where, sig == SIGABRT ? 0 : (size_t) info->si_addr);
        sim_report_line(line);
        if (s) {
            sim_log("%s in %s, thread %s, at %s, address %p", strsignal(sig), *op ? op : "the DSP", c->name, where,
                    sig == SIGABRT ? NULL : info->si_addr);
        }
    }
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (signals[i] == sig) {
            sigaction(sig, &before[i], NULL);
        }
    }
    if (sig == SIGABRT || info->si_code <= 0) {
        raise(sig);
    }
}

// So that the end of a stack can be reported. The caller frees it when the thread ends.
void * sim_signal_stack(void) {
    const stack_t own = { .ss_sp = malloc(65536), .ss_size = 65536 };
    if (own.ss_sp) {
        sigaltstack(&own, NULL);
    }
    return own.ss_sp;
}

__attribute__((constructor(106))) static void fatal_init(void) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_signal;
    action.sa_flags     = SA_SIGINFO | SA_ONSTACK;
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        sigaction(signals[i], &action, &before[i]);
    }
}
