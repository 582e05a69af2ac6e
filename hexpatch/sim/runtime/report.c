// HEXPATCH_SIM_REPORT: one JSON object per line, written whole, after every op and at exit.
#define _GNU_SOURCE
#include "sim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char * const counters[] = {
#define X(name, what) #name,
    SIM_COUNTERS(X)
#undef X
};

static int   report_fd = -1;
static pid_t owner;

// The deepest stack of every thread name.
struct depth {
    char   name[16];
    size_t asked, used;
};

static struct depth    depths[64];
static int             n_depths;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sim_log(const char * format, ...) {
    char    text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "hexsim: %s\n", text);
}

void sim_report_line(const char * json) {
    if (report_fd < 0) {
        return;
    }
    const size_t n    = strlen(json);
    char *       line = malloc(n + 2);
    if (line) {
        memcpy(line, json, n);
        line[n]     = '\n';
        line[n + 1] = 0;
        if (write(report_fd, line, n + 1) != (ssize_t) (n + 1)) {
            sim_log("can't write the report");
        }
        free(line);
    }
}

static void put_counts(FILE * f, const uint64_t n[SIM_N_COUNTERS]) {
    const char * comma = "";
    for (int i = 0; i < SIM_N_COUNTERS; i++) {
        if (n[i]) {
            fprintf(f, "%s\"%s\": %llu", comma, counters[i], (unsigned long long) n[i]);
            comma = ", ";
        }
    }
}

void sim_report_op(const char * op, int status, const uint64_t n[SIM_N_COUNTERS], const uint64_t faults[SIM_N_FAULTS]) {
    if (report_fd < 0) {
        return;
    }
    char * text = NULL;
    size_t size = 0;
    FILE * f    = open_memstream(&text, &size);
    if (!f) {
        return;
    }
    fprintf(f, "{\"op\": \"%s\", \"status\": %d, \"n\": {", op, status);
    put_counts(f, n);
    fprintf(f, "}, \"faults\": {");
    const char * comma = "";
    for (int i = 0; i < SIM_N_FAULTS; i++) {
        if (faults[i]) {
            fprintf(f, "%s\"%s\": %llu", comma, sim_fault_name((enum sim_fault) i), (unsigned long long) faults[i]);
            comma = ", ";
        }
    }
    fprintf(f, "}}");
    fclose(f);
    sim_report_line(text);
    free(text);
}

void sim_report_stack(const struct sim_ctx * c) {
    if (!c->stack_used || !c->stack_asked) {
        return;
    }
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < n_depths && strcmp(depths[i].name, c->name)) {
        i++;
    }
    if (i < 64) {
        if (i == n_depths) {
            n_depths++;
            memcpy(depths[i].name, c->name, sizeof(depths[i].name));
        }
        depths[i].asked = c->stack_asked;
        if (c->stack_used > depths[i].used) {
            depths[i].used = c->stack_used;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void note_stack(struct sim_ctx * c, void * arg) {
    (void) arg;
    sim_report_stack(c);
}

static void total(void) {
    uint64_t n[SIM_N_COUNTERS];
    char *   text = NULL;
    size_t   size = 0;
    FILE *   f    = open_memstream(&text, &size);
    if (!f) {
        return;
    }
    for (int i = 0; i < sim_n_sessions; i++) {
        sim_each_thread(&sim_sessions[i], note_stack, NULL);
    }
    sim_total_counts(n);
    fprintf(f, "{\"total\": {");
    put_counts(f, n);
    fprintf(f, "}, \"faults\": [");
    sim_faults_json(f);
    fprintf(f, "], \"stacks\": [");
    for (int i = 0; i < n_depths; i++) {
        fprintf(f, "%s{\"thread\": \"%s\", \"asked\": %zu, \"used\": %zu}", i ? ", " : "", depths[i].name,
                depths[i].asked, depths[i].used);
    }
    fprintf(f, "], \"device\": \"%s\"}", sim_device.name);
    fclose(f);
    sim_report_line(text);
    free(text);
}

// The host unloads this library in a static destructor, before the last counts are in; its threads
// may still run then. So it stays.
__attribute__((constructor(105))) static void report_init(void) {
    Dl_info info;
    if (dladdr((void *) report_init, &info) && info.dli_fname) {
        (void) dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
    }
    owner = getpid();
    const char * path = getenv("HEXPATCH_SIM_REPORT");
    if (path && *path) {
        report_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (report_fd < 0) {
            sim_log("can't open %s", path);
        }
    }
}

__attribute__((destructor)) static void report_exit(void) {
    if (getpid() != owner) {
        return;
    }
    if (report_fd >= 0) {
        total();
    } else {
        sim_faults_text();
    }
}
