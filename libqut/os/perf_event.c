// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libqut/os/os.h"
#include "libqut/os/shared_memory.h"
#include "libqut/os/tick_signal.h"

// Each time it fires, a record of nothing but its header is written.
enum { RECORD_BYTES = sizeof(struct perf_event_header) };
// <fcntl.h> has these only where GNU's are asked for.
enum { SET_SIGNAL = 10, SET_OWNER_EX = 15, OWNER_IS_THREAD = 0 };
struct owner {
    int type, id;
};

static long control(int fd, int command, uintptr_t argument)
{
#ifdef SYS_fcntl64
    return syscall(SYS_fcntl64, fd, command, argument);
#else
    return syscall(SYS_fcntl, fd, command, argument);
#endif
}

// syscall(2) takes longs: the upper half of an int on the stack was seen to be anything (an offset of 0x7ffd00000000).
static void *map(int fd, size_t size)
{
#ifdef SYS_mmap2
    long pages = syscall(SYS_mmap2, NULL, size, (long)PROT_READ, (long)MAP_SHARED, (long)fd, 0L);
#else
    long pages = syscall(SYS_mmap, NULL, size, (long)PROT_READ, (long)MAP_SHARED, (long)fd, 0L);
#endif
    return pages == -1 ? NULL : (void *)pages;
}

static int open_event(enum os_event_kind kind, uint32_t tid, uint64_t period, int signal_number, int32_t mark)
{
    struct perf_event_attr attributes = {
        .size = PERF_ATTR_SIZE_VER5, // of Linux 4.1: later kernels take it, too
        .type = PERF_TYPE_SOFTWARE,
        .config = kind == OS_EVENT_CLOCK ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = period,
        .wakeup_events = signal_number != SIGTRAP,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    if (signal_number == SIGTRAP) {
#ifdef PERF_ATTR_SIZE_VER7
        attributes.size = PERF_ATTR_SIZE_VER7;
        attributes.sigtrap = 1;
        attributes.remove_on_exec = 1; // it is not to be had without
        attributes.sig_data = (__u64)mark;
#else
        (void)mark;
        return -EINVAL;
#endif
    }
    long fd = syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? os_failed(SYS_perf_event_open) : (int)fd;
}

// -1: there is no number from that on. The old one is closed.
static int move(int fd, int32_t at_least)
{
    long moved = control(fd, F_DUPFD_CLOEXEC, (uintptr_t)at_least);
    syscall(SYS_close, fd);
    return (int)moved;
}

// Above what the program is likely to look at; and it keeps three quarters of what it may have.
static int32_t high_number(void)
{
    enum { HIGH = 16384 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return HIGH;
    rlim_t high = limit.rlim_cur - limit.rlim_cur / 4;
    return high < HIGH ? (int32_t)high : HIGH;
}

// The page that describes the event, and one for its records: read-only, so the kernel overwrites the oldest ones.
// Where so much must not be locked, the former alone.
static void map_event(struct os_event *event)
{
    size_t page_bytes = os_page_bytes();
    for (size_t count = 2; count > 0 && !event->pages; count--) {
        event->pages = map(event->fd, count * page_bytes);
        event->page_bytes = count * page_bytes;
        event->counts = count == 2;
    }
}

// 0 or -errno.
static int send_to(const struct os_event *event, uint32_t tid, int signal_number)
{
    struct owner owner = {OWNER_IS_THREAD, (int)tid};
    if (control(event->fd, SET_OWNER_EX, (uintptr_t)&owner) != 0 ||
        control(event->fd, SET_SIGNAL, (uintptr_t)signal_number) != 0 || control(event->fd, F_SETFL, O_ASYNC) != 0)
        return -errno;
    return 0;
}

int os_event_open(struct os_event *event, enum os_event_kind kind, uint32_t tid, uint64_t period, int signal_number,
                  int32_t other_mark, const void *cookie)
{
    int saved_errno = errno;
    bool traps = signal_number == SIGTRAP;
    int32_t mark = os_trap_mark(cookie, kind == OS_EVENT_FAULTS);
    *event = (struct os_event){.fd = -1, .mark = -1};
    int result = open_event(kind, tid, period, signal_number, mark);
    if (result >= 0) {
        event->fd = result;
        result = 0;
        map_event(event);
        if (!event->pages)
            event->fd = move(event->fd, high_number());
        if (!traps && event->fd >= 0 && event->fd == other_mark)
            event->fd = move(event->fd, other_mark + 1);
        result = event->fd < 0 ? -EMFILE : traps ? 0 : send_to(event, tid, signal_number);
        if (result == 0)
            event->mark = traps ? mark : event->fd;
        else
            os_event_close(event);
    }
    errno = saved_errno;
    return result;
}

int os_event_try(enum os_event_kind kind, uint32_t tid, int signal_number)
{
    enum { SECOND_NS = 1000000000 };
    int saved_errno = errno;
    struct os_event event = {.fd = open_event(kind, tid, SECOND_NS, signal_number, 0)};
    int result = event.fd < 0 ? event.fd : signal_number == SIGTRAP ? 0 : send_to(&event, tid, signal_number);
    if (result == 0)
        result = os_event_enable(&event);
    if (event.fd >= 0)
        os_event_close(&event);
    errno = saved_errno;
    return result;
}

int os_event_enable(struct os_event *event)
{
    int saved_errno = errno;
    int result = syscall(SYS_ioctl, event->fd, PERF_EVENT_IOC_ENABLE, 0) == 0 ? 0 : os_failed(SYS_ioctl);
    if (event->pages) {
        syscall(SYS_close, event->fd);
        event->fd = -1;
    }
    errno = saved_errno;
    return result;
}

void os_event_close(struct os_event *event)
{
    int saved_errno = errno;
    if (event->fd >= 0)
        syscall(SYS_close, event->fd);
    if (event->pages)
        syscall(SYS_munmap, event->pages, event->page_bytes);
    event->fd = -1;
    event->pages = NULL;
    errno = saved_errno;
}

uint64_t os_event_fired(const struct os_event *event)
{
    if (!event->pages || !event->counts)
        return 0;
    const struct perf_event_mmap_page *page = event->pages;
    return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) / RECORD_BYTES;
}

uint64_t os_events_a_second(void)
{
    int saved_errno = errno;
    char text[24];
    uint64_t number = 0;
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/sys/kernel/perf_event_max_sample_rate", O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? 0 : syscall(SYS_read, fd, text, sizeof text);
    if (fd >= 0)
        syscall(SYS_close, fd);
    for (long i = 0; i < size && text[i] >= '0' && text[i] <= '9'; i++)
        number = 10 * number + (uint64_t)(text[i] - '0');
    errno = saved_errno;
    return number;
}
