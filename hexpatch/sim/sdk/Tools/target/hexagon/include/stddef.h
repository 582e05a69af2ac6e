// As clang's, but NULL is 0 as in Hexagon's C library: upstream gives it to integers.
#include_next <stddef.h>
#undef NULL
#define NULL 0
