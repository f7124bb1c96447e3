// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"

// No page is smaller. What a call could read of a page that is only partly there is not documented, so no request
// crosses from one to the next.
enum { PAGE_BYTES = 4096 };

static _Atomic bool read_by_memfd; // process_vm_readv was refused once

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t rest_of_page(uintptr_t address)
{
    return PAGE_BYTES - (size_t)(address & (PAGE_BYTES - 1));
}

// A file of its own for each call: nothing is shared with other threads, with a handler, or with a child after fork.
// System calls without libc's cancellation points: those take more stack.
__attribute__((noinline)) static size_t read_through_memfd(uintptr_t address, uint8_t *bytes, size_t size)
{
    int saved_errno = errno;
    size_t done = 0;
    long fd = syscall(SYS_memfd_create, "qut", 1u /* MFD_CLOEXEC */);
    while (fd >= 0 && done < size && address + done >= address) {
        size_t part = min_size(size - done, rest_of_page(address + done));
        if (syscall(SYS_write, fd, address + done, part) != (long)part)
            break;
        done += part;
    }
    // Memory is there at once: none of it comes later.
    if (done && (syscall(SYS_lseek, fd, 0l, SEEK_SET) != 0 || syscall(SYS_read, fd, bytes, done) != (long)done))
        done = 0;
    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = saved_errno;
    return done;
}

// By the thread's id, not the process's: when the first thread of a process has ended, the process's id no longer leads
// to its memory.
// What is left to read is kept in what the kernel is given: walks have little stack.
__attribute__((noinline)) static size_t read_by_call(uintptr_t address, uint8_t *bytes, size_t size)
{
    int saved_errno = errno;
    struct iovec from = {(void *)address, 0}, to = {bytes, 0};
    size_t left = size;
    bool is_refused = false;
    while (left && (uintptr_t)from.iov_base >= address) {
        from.iov_len = to.iov_len = min_size(left, rest_of_page((uintptr_t)from.iov_base));
        long got = syscall(SYS_process_vm_readv, syscall(SYS_gettid), &to, 1ul, &from, 1ul, 0ul);
        if (got <= 0) {
            is_refused = got < 0 && (errno == ENOSYS || errno == EPERM);
            break;
        }
        from.iov_base = (char *)from.iov_base + got;
        to.iov_base = (char *)to.iov_base + got;
        left -= (size_t)got;
    }
    errno = saved_errno;
    if (is_refused) {
        atomic_store_explicit(&read_by_memfd, true, memory_order_relaxed);
        left -= read_through_memfd((uintptr_t)from.iov_base, (uint8_t *)to.iov_base, left);
    }
    return size - left;
}

// Each way is a function of its own, which is jumped to: walks have little stack.
size_t os_read_self(uintptr_t address, void *bytes, size_t size)
{
    return atomic_load_explicit(&read_by_memfd, memory_order_relaxed) ? read_through_memfd(address, bytes, size)
                                                                      : read_by_call(address, bytes, size);
}

static_assert(sizeof(struct os_part) == sizeof(struct iovec) &&
                  offsetof(struct os_part, address) == offsetof(struct iovec, iov_base) &&
                  offsetof(struct os_part, size) == offsetof(struct iovec, iov_len),
              "parts are what the kernel takes");

__attribute__((noinline)) static size_t read_one_by_one(const struct os_part *parts, unsigned count, uint8_t *bytes)
{
    size_t done = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t got = os_read_self(parts[i].address, bytes + done, parts[i].size);
        done += got;
        if (got < parts[i].size)
            break;
    }
    return done;
}

// Parts may cross pages: only those that are read whole count, so it is not asked what a call reads of the others.
__attribute__((noinline)) static size_t read_at_once(const struct os_part *parts, unsigned count, uint8_t *bytes)
{
    int saved_errno = errno;
    struct iovec to = {bytes, 0};
    for (unsigned i = 0; i < count; i++)
        to.iov_len += parts[i].size;
    long got = syscall(SYS_process_vm_readv, syscall(SYS_gettid), &to, 1ul, parts, (unsigned long)count, 0ul);
    bool is_refused = got < 0 && (errno == ENOSYS || errno == EPERM);
    errno = saved_errno;
    if (is_refused)
        return read_one_by_one(parts, count, bytes);
    return got < 0 ? 0 : (size_t)got;
}

// Callers have little stack: this adds none of its own.
size_t os_read_parts(const struct os_part *parts, unsigned count, void *bytes)
{
    if (!atomic_load_explicit(&read_by_memfd, memory_order_relaxed))
        return read_at_once(parts, count, bytes);
    return count == 1 ? read_through_memfd(parts->address, bytes, parts->size) : read_one_by_one(parts, count, bytes);
}

// Nobody is woken and nobody is moved: what is left is the comparison.
bool os_is_word(uintptr_t address, uint32_t value)
{
    int saved_errno = errno;
    bool is = syscall(SYS_futex, address, FUTEX_CMP_REQUEUE_PRIVATE, 0ul, 0ul, address, (unsigned long)value) == 0;
    errno = saved_errno;
    return is;
}

size_t os_copy_self(uintptr_t address, void *bytes, size_t size)
{
    int saved_errno = errno;
    size_t done = 0;
    if (!atomic_load_explicit(&read_by_memfd, memory_order_relaxed))
        done = os_read_process((pid_t)syscall(SYS_gettid), -1, address, bytes, size);
    errno = saved_errno;
    // Forbidden, or nothing more is there: the careful way finds out which.
    return done + os_read_self(address + done, (uint8_t *)bytes + done, size - done);
}

void os_set_read_by_memfd(bool by_memfd)
{
    atomic_store_explicit(&read_by_memfd, by_memfd, memory_order_relaxed);
}

void *os_pages(size_t size, bool touch)
{
    void *pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : 0), -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void os_free_pages(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

void os_touch_pages(void *pages, size_t size)
{
    enum { POPULATE_WRITE = 23 }; // MADV_POPULATE_WRITE: Linux 5.14
    madvise(pages, size, POPULATE_WRITE);
}

void *os_reserve(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void *os_wiped_page(void)
{
    enum { WIPE_ON_FORK = 18 }; // MADV_WIPEONFORK: Linux 4.14
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = os_pages(size, true);
    if (page)
        madvise(page, size, WIPE_ON_FORK);
    return page;
}

bool os_replace_pages(void *pages, size_t size)
{
    return mmap(pages, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
}
