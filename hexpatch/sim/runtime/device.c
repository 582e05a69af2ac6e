// The device model and the checks, from the environment.
#include "sim.h"

#include <stdlib.h>
#include <string.h>

SIM_API struct sim_device sim_device = {
    .name = "v73", .arch = 73, .threads = 4, .vtcm = 4u << 20,
    .hmx = true, .hmx_fp16 = false, .hmx_clock = true,
    .hz = 1497600000, .vmem = 3102130176, .sessions = 1, .cores = 1,
};

SIM_API uint32_t sim_checks;
SIM_API uint32_t sim_modes;

static void set(const char * key, const char * value) {
    const uint64_t n = strtoull(value, NULL, 0);
    if (!strcmp(key, "name")) {
        snprintf(sim_device.name, sizeof(sim_device.name), "%s", value);
    } else if (!strcmp(key, "arch")) {
        sim_device.arch = (int) n;
    } else if (!strcmp(key, "threads")) {
        sim_device.threads = (int) n;
    } else if (!strcmp(key, "vtcm")) {
        sim_device.vtcm = (uint32_t) n;
    } else if (!strcmp(key, "hmx")) {
        sim_device.hmx = n != 0;
    } else if (!strcmp(key, "hmx_fp16")) {
        sim_device.hmx_fp16 = n != 0;
    } else if (!strcmp(key, "hmx_clock")) {
        sim_device.hmx_clock = n != 0;
    } else if (!strcmp(key, "hz")) {
        sim_device.hz = n;
    } else if (!strcmp(key, "vmem")) {
        sim_device.vmem = n;
    } else if (!strcmp(key, "sessions")) {
        sim_device.sessions = (int) n;
    } else if (!strcmp(key, "cores")) {
        sim_device.cores = (int) n;
    } else {
        sim_log("HEXPATCH_SIM_DEVICE: unknown key %s", key);
    }
}

static void check(const char * word) {
    static const char * const switches[] = {
#define X(name, sw, text) sw,
        SIM_FAULTS(X)
#undef X
    };
    const bool all   = !strcmp(word, "all");
    bool       known = all;
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        if (all || !strcmp(word, switches[i])) {
            sim_checks |= 1u << i;
            known = true;
        }
    }
    if (all || !strcmp(word, "lazy")) {
        sim_modes |= SIM_MODE_lazy;
        known = true;
    }
    if (all || !strcmp(word, "poison")) {
        sim_modes |= SIM_MODE_poison;
        known = true;
    }
    if (!strcmp(word, "nan0")) {
        sim_modes |= SIM_MODE_nan0;
        known = true;
    }
    if (!known) {
        sim_log("HEXPATCH_SIM_CHECKS: unknown word %s", word);
    }
}

// Calls f for every comma-separated word of an environment variable.
static void words(const char * variable, void (*f)(char * word)) {
    const char * value = getenv(variable);
    char *       copy  = value ? strdup(value) : NULL;
    char *       rest  = copy;
    for (char * word; (word = strsep(&rest, ",")) != NULL;) {
        if (*word) {
            f(word);
        }
    }
    free(copy);
}

static void set_word(char * word) {
    char * eq = strchr(word, '=');
    if (eq) {
        *eq = 0;
    }
    set(word, eq ? eq + 1 : "1");
}

static void check_word(char * word) {
    check(word);
}

__attribute__((constructor(101))) static void device_init(void) {
    words("HEXPATCH_SIM_DEVICE", set_word);
    words("HEXPATCH_SIM_CHECKS", check_word);
    const int most = SIM_MAX_SESSIONS;
    if (sim_device.cores < 1 || sim_device.cores > 4) {
        sim_device.cores = 1;
    }
    if (sim_device.sessions < 1 || sim_device.sessions * sim_device.cores > most) {
        sim_device.sessions = most / sim_device.cores;
    }
}
