// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "libqut/os/os.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif

#ifdef SYS_mmap2
enum { MMAP = SYS_mmap2 };
#else
enum { MMAP = SYS_mmap };
#endif
enum { JOIN_PAGES = 25 }; // MADV_COLLAPSE, since Linux 6.1
enum { CLOEXEC_AND_SEALABLE = 1 | 2, SEAL_SHRINK_AND_GROW = 2 | 4 };

static int open_without_name(void)
{
    long fd = syscall(SYS_memfd_create, "qut-trace", (unsigned)CLOEXEC_AND_SEALABLE);
    return fd < 0 ? os_failed(SYS_memfd_create) : (int)fd;
}

// On a disk's file system, writing to a page for the first time after it was written back takes up to 20 ms.
static bool is_in_memory(int fd)
{
    struct statfs status;
    if (fstatfs(fd, &status) != 0)
        return false;
    unsigned long type = (unsigned long)status.f_type & 0xffffffff;
    return type == 0x01021994 /* tmpfs */ || type == 0x858458f6 /* ramfs */;
}

static int open_with_name(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    if (is_in_memory(fd))
        return fd;
    close(fd);
    unlink(path);
    return -EMEDIUMTYPE;
}

// Where there is less, the kernel does not say so, but ends processes, others' first: such memory is no process's own.
static bool has_room(size_t size_bytes)
{
    struct sysinfo system;
    return sysinfo(&system) != 0 || size_bytes <= (uint64_t)system.totalram * system.mem_unit / 2;
}

// A process that makes a file larger than that is sent SIGXFSZ, which ends processes: memory files count as well.
static bool is_permitted(size_t size_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || size_bytes <= limit.rlim_cur;
}

static bool counts_promises(void)
{
    char mode = '2';
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    bool is_strict = read(fd, &mode, 1) != 1 || mode == '2';
    close(fd);
    return is_strict;
}

int os_share_pages(const char *path, size_t size_bytes, bool on_demand, void **pages)
{
    if (!has_room(size_bytes))
        return -ENOMEM;
    if (!is_permitted(size_bytes))
        return -EFBIG;
    int fd = path ? open_with_name(path) : open_without_name();
    if (fd < 0)
        return fd;
    bool at_once = !on_demand || path || counts_promises();
    // Populating a mapping does not say that there is no room; it is the first writer there that is killed.
    int result = ftruncate(fd, (off_t)size_bytes) != 0 ? os_failed(SYS_ftruncate) : 0;
    int error = result == 0 && at_once ? posix_fallocate(fd, 0, (off_t)size_bytes) : 0;
    if (error != 0)
        result = os_failed_with(SYS_fallocate, error);
    if (result == 0) {
        if (!path)
            fcntl(fd, F_ADD_SEALS, SEAL_SHRINK_AND_GROW); // of named files only memfd's can be sealed
        *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at_once ? MAP_POPULATE : 0), fd, 0);
        result = *pages == MAP_FAILED ? os_failed(MMAP) : 0;
    }
    if (result == 0)
        return fd;
    close(fd);
    if (path)
        unlink(path);
    return result;
}

void os_unshare_pages(int fd, void *pages, size_t size_bytes)
{
    munmap(pages, size_bytes);
    if (fd >= 0)
        close(fd);
}

void os_join_pages(void *pages, size_t size_bytes)
{
    const uintptr_t page_bytes = os_page_bytes(), begin = (uintptr_t)pages + page_bytes - 1,
                    end = (uintptr_t)pages + size_bytes;
    const uintptr_t first = begin - begin % page_bytes, last = end - end % page_bytes;
    int saved_errno = errno;
    if (last > first)
        madvise((void *)first, last - first, JOIN_PAGES);
    errno = saved_errno;
}

size_t os_page_bytes(void)
{
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void os_read_clocks(uint64_t *monotonic_ns, uint64_t *realtime_ns, uint64_t *boottime_ns)
{
    *monotonic_ns = read_clock(CLOCK_MONOTONIC);
    *realtime_ns = read_clock(CLOCK_REALTIME);
    *boottime_ns = read_clock(CLOCK_BOOTTIME);
}

void os_random(void *bytes, size_t size)
{
    static uint32_t call_count;
    // Where the system has none to give: what differs between calls, processes and boots.
    uint64_t unique[2] = {read_clock(CLOCK_REALTIME),
                          (uint64_t)getpid() << 32 | __atomic_add_fetch(&call_count, 1, __ATOMIC_RELAXED)};
    memset(bytes, 0, size);
    if (syscall(SYS_getrandom, bytes, size, 1u /* GRND_NONBLOCK */) != (long)size)
        memcpy(bytes, unique, size < sizeof unique ? size : sizeof unique);
}
