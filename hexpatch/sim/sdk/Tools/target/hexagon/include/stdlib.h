#ifndef SIM_STDLIB_H
#define SIM_STDLIB_H

#include <stddef.h>

void *             malloc(size_t size);
void *             calloc(size_t n, size_t size);
void *             realloc(void * p, size_t size);
void *             memalign(size_t alignment, size_t size);
void *             aligned_alloc(size_t alignment, size_t size);
int                posix_memalign(void ** p, size_t alignment, size_t size);
void               free(void * p);
void               abort(void) __attribute__((noreturn));
void               exit(int status) __attribute__((noreturn));
int                abs(int x);
long               labs(long x);
long long          llabs(long long x);
int                atoi(const char * s);
long               strtol(const char * restrict s, char ** restrict end, int base);
unsigned long      strtoul(const char * restrict s, char ** restrict end, int base);
long long          strtoll(const char * restrict s, char ** restrict end, int base);
unsigned long long strtoull(const char * restrict s, char ** restrict end, int base);
double             strtod(const char * restrict s, char ** restrict end);
float              strtof(const char * restrict s, char ** restrict end);
char *             getenv(const char * name);
int                rand(void);
void               srand(unsigned seed);
void               qsort(void * base, size_t n, size_t size, int (*compare)(const void *, const void *));

#endif
