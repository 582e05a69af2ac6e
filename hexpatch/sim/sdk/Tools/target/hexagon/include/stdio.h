#ifndef SIM_STDIO_H
#define SIM_STDIO_H

#include <stdarg.h>
#include <stddef.h>

typedef struct sim_file FILE;
extern FILE *           stdout;
extern FILE *           stderr;

int    printf(const char * restrict format, ...);
int    fprintf(FILE * restrict f, const char * restrict format, ...);
int    snprintf(char * restrict s, size_t n, const char * restrict format, ...);
int    sprintf(char * restrict s, const char * restrict format, ...);
int    vsnprintf(char * restrict s, size_t n, const char * restrict format, va_list args);
int    puts(const char * s);
int    fflush(FILE * f);
FILE * fopen(const char * restrict path, const char * restrict mode);
int    fclose(FILE * f);

#endif
