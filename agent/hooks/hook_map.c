// SPDX-License-Identifier: Apache-2.0
// Memory that a program takes from the kernel itself. What malloc takes inside libc is not seen here.
#include <stdarg.h>
#include <stdint.h>

#include "agent/hooks/hook_map.h"
#include "agent/inside.h"
#include "agent/real.h"

__attribute__((noinline)) void agent_take_memory(uint32_t kind, const void *address, size_t size, uint32_t frames)
{
    const struct qut_extra extras[] = {{.key = QUT_EXTRA_SIZE, .value = size},
                                       {.key = QUT_EXTRA_ADDRESS, .value = (uintptr_t)address}};
    struct qut_event event = {
        .kind = kind, .flags = QUT_EVENT_ON_CPU, .extras = extras, .extra_count = 2, .skip_frames = 1 + frames};
    qut_sync_take(&event);
}

static inline __attribute__((always_inline)) void happens(uint32_t kind, const void *address, size_t size)
{
    if (!agent_enter(AGENT_SYNC_MAP))
        return;
    if (qut_sync_hit(QUT_TOTAL_NONE, 0))
        agent_take_memory(kind, address, size, 0);
    agent_leave();
}

EXPORTED void *mmap(void *wanted, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *pages = agent_real()->mmap(wanted, size, protection, flags, fd, offset);
    if (pages != MAP_FAILED)
        happens(QUT_SAMPLE_ALLOCATE, pages, size);
    return pages;
}

EXPORTED void *mmap64(void *wanted, size_t size, int protection, int flags, int fd, off64_t offset)
{
    void *pages = agent_real()->mmap64(wanted, size, protection, flags, fd, offset);
    if (pages != MAP_FAILED)
        happens(QUT_SAMPLE_ALLOCATE, pages, size);
    return pages;
}

EXPORTED int munmap(void *pages, size_t size)
{
    int result = agent_real()->munmap(pages, size);
    if (result == 0)
        happens(QUT_SAMPLE_FREE, pages, size);
    return result;
}

EXPORTED void *mremap(void *pages, size_t size, size_t new_size, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    void *moved = agent_real()->mremap(pages, size, new_size, flags, wanted);
    if (moved != MAP_FAILED && new_size > size)
        happens(QUT_SAMPLE_ALLOCATE, moved, new_size - size);
    return moved;
}

EXPORTED int brk(void *end)
{
    int result = agent_real()->brk(end);
    if (result == 0)
        happens(QUT_SAMPLE_ALLOCATE, end, 0);
    return result;
}

EXPORTED void *sbrk(intptr_t more)
{
    void *before = agent_real()->sbrk(more);
    if (before != (void *)-1 && more > 0)
        happens(QUT_SAMPLE_ALLOCATE, before, (size_t)more);
    return before;
}
