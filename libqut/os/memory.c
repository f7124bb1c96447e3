// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libqut/os/os.h"

// No page is smaller. What a call could read of a page that is only partly there is not documented, so no part of a
// request crosses from one to the next.
// Walks read a few words, at most over one page boundary, and have little stack.
enum { PAGE_BYTES = 4096, PARTS_MAX = 2 };

static _Atomic bool read_by_memfd; // process_vm_readv was refused once

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t rest_of_page(uintptr_t address)
{
    return PAGE_BYTES - (size_t)(address & (PAGE_BYTES - 1));
}

// As far as it gets with one call, or -errno. By the thread's id, not the process's: when the first thread of a process
// has ended, the process's id no longer leads to its memory.
static ssize_t read_some(uintptr_t address, uint8_t *bytes, size_t size)
{
    struct iovec parts[PARTS_MAX];
    size_t part_count = 0, total = 0;
    while (total < size && part_count < PARTS_MAX) {
        size_t part = min_size(size - total, rest_of_page(address + total));
        if (address + total < address)
            break; // the end of the address space
        parts[part_count++] = (struct iovec){(void *)(address + total), part};
        total += part;
    }
    struct iovec to = {bytes, total};
    long read = syscall(SYS_process_vm_readv, syscall(SYS_gettid), &to, 1ul, parts, part_count, 0ul);
    return read < 0 ? -errno : (ssize_t)read;
}

// A file of its own for each call: nothing is shared with other threads, with a handler, or with a child after fork.
__attribute__((noinline)) static size_t read_through_memfd(uintptr_t address, uint8_t *bytes, size_t size)
{
    int fd = (int)syscall(SYS_memfd_create, "qut", 1u /* MFD_CLOEXEC */);
    if (fd < 0)
        return 0;
    size_t done = 0;
    while (done < size) {
        size_t part = min_size(size - done, rest_of_page(address + done));
        if (address + done < address || write(fd, (const void *)(address + done), part) != (ssize_t)part)
            break;
        done += part;
    }
    size_t kept = 0;
    while (kept < done) {
        ssize_t got = pread(fd, bytes + kept, done - kept, (off_t)kept);
        if (got <= 0)
            break;
        kept += (size_t)got;
    }
    close(fd);
    return kept;
}

size_t qut_os_read_self(uintptr_t address, void *bytes, size_t size)
{
    int saved_errno = errno;
    size_t done = 0;
    bool by_memfd = atomic_load_explicit(&read_by_memfd, memory_order_relaxed);
    while (!by_memfd && done < size && address + done >= address) {
        ssize_t got = read_some(address + done, (uint8_t *)bytes + done, size - done);
        if (got == -ENOSYS || got == -EPERM) {
            atomic_store_explicit(&read_by_memfd, true, memory_order_relaxed);
            by_memfd = true;
        } else if (got <= 0) {
            break;
        } else {
            done += (size_t)got;
        }
    }
    if (by_memfd && address + done >= address)
        done += read_through_memfd(address + done, (uint8_t *)bytes + done, size - done);
    errno = saved_errno;
    return done;
}

void qut_os_set_read_by_memfd(bool by_memfd)
{
    atomic_store_explicit(&read_by_memfd, by_memfd, memory_order_relaxed);
}

void *qut_os_pages(size_t size, bool touch)
{
    void *pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : 0), -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void qut_os_free_pages(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}
