// SPDX-License-Identifier: Apache-2.0
// Threads of this process, as the kernel knows them.
#ifndef QUT_OS_TASK_H
#define QUT_OS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { OS_NAME_BYTES = 16 };

uint32_t os_thread_id(void);     // signal-safe
uint64_t os_thread_cpu_ns(void); // CLOCK_THREAD_CPUTIME_ID of the calling thread. Signal-safe
// Whether a thread has ended. Another one may have its number by now.
bool os_thread_is_gone(uint32_t tid);
// Whether a thread has left the kernel, or gone to sleep in it, since its processor time was `before_ns`: one that
// waits for a processor has not.
bool os_thread_went_on(uint32_t tid, uint64_t before_ns);
// Between these two no handler runs in the calling thread. Signal-safe.
uint64_t os_block_signals(void); // what was blocked before
void os_restore_signals(uint64_t blocked);
// What the calling thread is called, without a file. Signal-safe.
bool os_own_thread_name(char name[OS_NAME_BYTES]);
// Every thread of this process, with a number that a later one with the same tid has not. 0 or -errno.
int os_each_task(void (*each)(void *context, uint32_t tid, uint64_t identity), void *context);
// What a thread is called, and its NUL. False: it is not known.
bool os_thread_name(uint32_t tid, char name[OS_NAME_BYTES]);
// How this process was called: its arguments with blanks between; cut off where it is longer.
void os_command(char *command, size_t size);

#pragma GCC visibility pop

#endif
