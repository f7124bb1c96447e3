// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __ANDROID__
#include <android/api-level.h>
#endif

#include "libqut/os/os.h"

bool os_light_fence_is_full = true; // until it is known that it need not be

#ifndef OS_FENCES_ARE_FULL
static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

// The filter of Android's system calls, for apps since 8.0, lets this one pass since 10 only, where ART began to use
// it. What it does not let pass raises SIGSYS.
static bool may_call(void)
{
#ifdef __ANDROID__
    return android_get_device_api_level() >= 29;
#else
    return true;
#endif
}

bool os_fences_init(void)
{
    if (!may_call())
        return false;
    int saved_errno = errno;
    // qemu-user answers ENOSYS.
    bool has_heavy =
        membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
    if (has_heavy)
        __atomic_store_n(&os_light_fence_is_full, false, __ATOMIC_RELAXED);
    errno = saved_errno;
    return has_heavy;
}

void os_fence_heavy(void)
{
    int saved_errno = errno;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&os_light_fence_is_full, __ATOMIC_RELAXED) &&
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
        (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0 ||
         membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)) {
        // Forbidden since the start, by a seccomp filter that came later. From now on the light fence is a full one;
        // what was stored behind one that was not has long left its store buffer after this sleep.
        __atomic_store_n(&os_light_fence_is_full, true, __ATOMIC_SEQ_CST);
        nanosleep(&(struct timespec){0, 20 * 1000 * 1000}, NULL);
    }
    errno = saved_errno;
}
#else
uint32_t os_fence_word;

bool os_fences_init(void)
{
    return false;
}

void os_fence_heavy(void)
{
    os_fence_light();
}
#endif
