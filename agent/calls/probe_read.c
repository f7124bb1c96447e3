// SPDX-License-Identifier: Apache-2.0
// What programs of probes read of the program's, by the kernel.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "agent/calls/inside.h"

enum { PAGE_BYTES = 4096 };

// The kernel reads, and bears any address: up to the first page that is not there.
static uint64_t read_memory(uint8_t *to, uint64_t bytes, uint64_t address)
{
    const uint64_t first = PAGE_BYTES - address % PAGE_BYTES < bytes ? PAGE_BYTES - address % PAGE_BYTES : bytes;
    const struct iovec here = {to, bytes};
    const struct iovec there[2] = {{(void *)address, first}, {(void *)(address + first), bytes - first}};
    const long got = calls_system(SYS_process_vm_readv, (long)calls_process_id(), (long)&here, 1, (long)there,
                                  first < bytes ? 2 : 1, 0);
    return got > 0 ? (uint64_t)got : 0;
}

static void clear(uint8_t *bytes, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        ((volatile uint8_t *)bytes)[i] = 0;
}

// Programs find whole words written.
static uint64_t whole_words(uint64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

uint64_t calls_read_number(uint8_t *to, uint64_t bytes, uint64_t address)
{
    const bool is_whole = read_memory(to, bytes, address) == bytes;
    clear(to, is_whole ? bytes : 0, whole_words(bytes));
    return is_whole;
}

uint64_t calls_read_text(uint8_t *to, uint64_t bytes, uint64_t address)
{
    const uint64_t got = read_memory(to, bytes, address);
    uint64_t length = 0;
    while (length < got && length + 1 < bytes && to[length])
        length++;
    clear(to, length, whole_words(bytes));
    return length;
}

// What the thread's descriptor is, as the kernel names it.
uint64_t calls_read_path(uint8_t *to, uint64_t bytes, uint32_t descriptor)
{
    enum { DIGITS_MAX = 10 };
    static const char folder[] = "/proc/thread-self/fd/";
    char name[sizeof folder + DIGITS_MAX];
    uint32_t at = sizeof name - 1;
    name[at] = 0;
    do
        name[--at] = (char)('0' + descriptor % 10);
    while (descriptor /= 10);
    for (uint32_t i = sizeof folder - 1; i-- > 0;)
        name[--at] = folder[i];
    const long got = calls_system(SYS_readlinkat, AT_FDCWD, (long)(name + at), (long)to, (long)bytes, 0, 0);
    const uint64_t length = got <= 0 ? 0 : (uint64_t)got < bytes ? (uint64_t)got : bytes - 1;
    clear(to, length, whole_words(bytes));
    return length;
}
