#undef assert
#ifdef NDEBUG
#define assert(x) ((void) 0)
#else
void sim_assert(const char * text, const char * file, int line) __attribute__((noreturn));
#define assert(x) ((x) ? (void) 0 : sim_assert(#x, __FILE__, __LINE__))
#endif
#define static_assert _Static_assert
