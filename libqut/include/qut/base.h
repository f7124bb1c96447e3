// SPDX-License-Identifier: Apache-2.0
// What every public header needs. The headers are C11 and C++11.
//
// Each function says in brackets what may be relied on:
//   signal-safe   may be called in a signal handler, at any instruction of the interrupted code
//   blocks        may wait for a lock, a file or another thread
//   allocates     may call malloc
//   threads       which calls may run at the same time
// errno is kept by every function that is signal-safe.
#ifndef QUT_BASE_H
#define QUT_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define QUT_DECLS_BEGIN extern "C" {
#define QUT_DECLS_END   }
#else
#define QUT_DECLS_BEGIN
#define QUT_DECLS_END
#endif

#define QUT_API __attribute__((visibility("default")))

#endif
