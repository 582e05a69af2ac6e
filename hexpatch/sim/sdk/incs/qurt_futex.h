#ifndef QURT_FUTEX_H
#define QURT_FUTEX_H

#ifdef __cplusplus
extern "C" {
#endif

// Sleep while *lock == val; wake at most n sleepers.
int qurt_futex_wait(void * lock, int val);
int qurt_futex_wake(void * lock, int n_to_wake);

#ifdef __cplusplus
}
#endif

#endif
