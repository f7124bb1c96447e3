// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libqut/os/os.h"

_Atomic uint32_t os_last_failure;

int os_failed_with(long number, int error)
{
    // Relaxed: words for people, and of the thread that tells them.
    atomic_store_explicit(&os_last_failure, (uint32_t)number << 16 | (uint32_t)(error & 0xffff), memory_order_relaxed);
    return -error;
}

// A process of which glibc finds futex denied is ended by it, at the first thread that has to wait.
int os_may_have_threads(void)
{
    uint32_t word = 0;
    if (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0)
        return os_failed(SYS_futex);
    return syscall(SYS_gettid) < 0 ? os_failed(SYS_gettid) : 0;
}

int os_failed(long number)
{
    return os_failed_with(number, errno);
}
