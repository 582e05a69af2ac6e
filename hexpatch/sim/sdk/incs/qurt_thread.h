// QuRT threads. Every thread gets a 1 MiB stack in low memory: native frames are larger than
// Hexagon's. The stack that was asked for is remembered and never used.
#ifndef QURT_THREAD_H
#define QURT_THREAD_H

#include <string.h>

#include "qurt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QURT_THREAD_ATTR_NAME_MAXLEN  16
#define QURT_THREAD_ATTR_PRIORITY_DEFAULT 254

typedef unsigned int qurt_thread_t;  // 0 is no thread

typedef struct {
    char           name[QURT_THREAD_ATTR_NAME_MAXLEN];
    unsigned short priority;
    void *         stack_addr;
    size_t         stack_size;
} qurt_thread_attr_t;

static inline void qurt_thread_attr_init(qurt_thread_attr_t * attr) {
    memset(attr, 0, sizeof(*attr));
    attr->priority = QURT_THREAD_ATTR_PRIORITY_DEFAULT;
}

static inline void qurt_thread_attr_set_name(qurt_thread_attr_t * attr, const char * name) {
    strncpy(attr->name, name, sizeof(attr->name) - 1);
}

static inline void qurt_thread_attr_set_priority(qurt_thread_attr_t * attr, unsigned short priority) {
    attr->priority = priority;
}

static inline void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t * attr, void * stack_addr) {
    attr->stack_addr = stack_addr;
}

static inline void qurt_thread_attr_set_stack_size(qurt_thread_attr_t * attr, unsigned int stack_size) {
    attr->stack_size = stack_size;
}

int           qurt_thread_create(qurt_thread_t * thread_id, qurt_thread_attr_t * attr,
                                 void (*entrypoint)(void *), void * arg);
int           qurt_thread_join(unsigned int tid, int * status);
void          qurt_thread_exit(int status);
qurt_thread_t qurt_thread_get_id(void);
int           qurt_thread_get_priority(qurt_thread_t thread_id);
int           qurt_thread_set_priority(qurt_thread_t thread_id, unsigned short priority);

#ifdef __cplusplus
}
#endif

#endif
