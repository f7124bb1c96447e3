// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libqut/os/timer.h"

uint32_t os_thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

uint64_t os_thread_cpu_ns(void)
{
    int saved_errno = errno;
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    errno = saved_errno;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool os_thread_is_gone(uint32_t tid)
{
    int saved_errno = errno;
    bool is_gone = syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) != 0 && errno == ESRCH;
    errno = saved_errno;
    return is_gone;
}

// The kernel's own sets, of 64 signals: libc's leave out those that it uses itself.
uint64_t os_block_signals(void)
{
    uint64_t all = UINT64_MAX, before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof before);
    return before;
}

void os_restore_signals(uint64_t blocked)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
}

bool os_own_thread_name(char name[OS_NAME_BYTES])
{
    int saved_errno = errno;
    bool is_known = syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) == 0;
    errno = saved_errno;
    return is_known;
}

// Of an entry's name: 0 where it is no number.
static uint32_t number_of(const char *name)
{
    uint32_t number = 0;
    for (; *name >= '0' && *name <= '9'; name++)
        number = number * 10 + (uint32_t)(*name - '0');
    return *name ? 0 : number;
}

// As the kernel gives them. The number of a thread's node is another one for each thread.
struct entry {
    uint64_t node, offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

int os_each_task(void (*each)(void *context, uint32_t tid, uint64_t identity), void *context)
{
    _Alignas(uint64_t) char entries[4096];
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0);
    if (fd < 0)
        return -errno;
    long got;
    while ((got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        const struct entry *entry;
        for (long at = 0; at < got; at += entry->size) {
            entry = (const struct entry *)(const void *)(entries + at);
            uint32_t tid = number_of(entry->name);
            if (tid)
                each(context, tid, entry->node);
        }
    }
    int result = got < 0 ? -errno : 0;
    syscall(SYS_close, fd);
    return result;
}

static size_t read_some(const char *path, char *bytes, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, bytes, size);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

bool os_thread_went_on(uint32_t tid, uint64_t before_ns)
{
    enum { WAY_OUT_NS = 50000 }; // more than it runs on its way out
    char path[48], text[256];
    uint64_t now_ns = os_cpu_ns_of(tid);
    if (now_ns == 0 || now_ns - before_ns > WAY_OUT_NS)
        return true;
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", (unsigned)tid);
    size_t size = read_some(path, text, sizeof text - 1);
    text[size] = 0;
    const char *state = strrchr(text, ')'); // the name may hold anything
    return !state || state[1] != ' ' || state[2] != 'R';
}

bool os_thread_name(uint32_t tid, char name[OS_NAME_BYTES])
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", (unsigned)tid);
    size_t size = read_some(path, name, OS_NAME_BYTES);
    if (size == 0)
        return false;
    name[size - 1] = 0; // in place of a line's end
    return true;
}

void os_command(char *command, size_t size)
{
    size_t got = read_some("/proc/self/cmdline", command, size - 1);
    while (got && command[got - 1] == 0)
        got--;
    for (size_t i = 0; i < got; i++)
        if (command[i] == 0)
            command[i] = ' ';
    command[got] = 0;
}
