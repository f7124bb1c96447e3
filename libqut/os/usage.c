// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

// What the system call fills in, whatever the width of libc's times.
enum { MINOR_FAULTS = 8, MAJOR_FAULTS = 9, VOLUNTARY = 16, INVOLUNTARY = 17, USAGE_WORDS = 18 };

bool os_thread_usage(struct os_usage *usage)
{
    long words[USAGE_WORDS];
    int saved_errno = errno;
    bool is_known = syscall(SYS_getrusage, RUSAGE_THREAD, words) == 0;
    errno = saved_errno;
    if (!is_known)
        return false;
    *usage = (struct os_usage){
        .minor_faults = (unsigned long)words[MINOR_FAULTS],
        .major_faults = (unsigned long)words[MAJOR_FAULTS],
        .voluntary_switches = (unsigned long)words[VOLUNTARY],
        .involuntary_switches = (unsigned long)words[INVOLUNTARY],
    };
    return true;
}

uint64_t os_coarse_step_ns(void)
{
    struct timespec step = {0, 0};
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0)
        return 0;
    return (uint64_t)step.tv_sec * 1000000000u + (uint64_t)step.tv_nsec;
}

bool os_clock_is(const char *name)
{
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char text[64];
    size_t length = strlen(name);
    int saved_errno = errno, fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? 0 : syscall(SYS_read, fd, text, sizeof text);
    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = saved_errno;
    return length && size == (long)length + 1 && !memcmp(text, name, length) && text[length] == '\n';
}

bool os_kernel_is_from(unsigned major, unsigned minor)
{
    struct utsname system;
    if (uname(&system) != 0)
        return false;
    unsigned numbers[2] = {0, 0};
    const char *at = system.release;
    for (int i = 0; i < 2; i++, at += *at == '.')
        for (; *at >= '0' && *at <= '9'; at++)
            numbers[i] = numbers[i] * 10 + (unsigned)(*at - '0');
    return numbers[0] > major || (numbers[0] == major && numbers[1] >= minor);
}
