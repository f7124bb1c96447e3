// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_OS_SECOND_POINTER_H
#define QUT_OS_SECOND_POINTER_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

// What x86-64 has a second register for, beside that for thread-local variables: where gs points. 0: nowhere, or there
// is none. A system call. Signal-safe.
uintptr_t os_second_pointer(void);

#pragma GCC visibility pop

#endif
