// FARF(LEVEL, format, ...): a level prints when FARF_<LEVEL> is 1 at compile time and
// HEXPATCH_SIM_FARF is set at run time.
#ifndef HAP_FARF_H
#define HAP_FARF_H

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FARF_LOW
#define FARF_LOW 0
#endif
#ifndef FARF_MEDIUM
#define FARF_MEDIUM 0
#endif
#ifndef FARF_HIGH
#define FARF_HIGH 0
#endif
#ifndef FARF_ERROR
#define FARF_ERROR 1
#endif
#ifndef FARF_FATAL
#define FARF_FATAL 1
#endif
#ifndef FARF_ALWAYS
#define FARF_ALWAYS 1
#endif

// No format attribute: upstream's formats are right for a 32-bit Hexagon, not for this machine.
void HAP_sim_farf(const char * level, const char * file, int line, const char * format, ...);

#define FARF(level, ...)                                             \
    do {                                                             \
        if (FARF_##level) {                                          \
            HAP_sim_farf(#level, __FILE__, __LINE__, __VA_ARGS__);   \
        }                                                            \
    } while (0)

int HAP_setFARFRuntimeLoggingParams(unsigned int mask, const char * files[], unsigned short num_files);

#ifdef __cplusplus
}
#endif

#endif
