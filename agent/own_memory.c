// SPDX-License-Identifier: Apache-2.0
#include "agent/own_memory.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/inside.h"

// Small blocks, of 2^order bytes with their head, are cut from one reservation and kept in lists when they are freed;
// large ones are mappings of their own. What finds no place in either comes from libc.
enum {
    HEAD_BYTES = 16,
    ORDER_FIRST = 5,
    ORDER_LAST = 15,
    RESERVED_BYTES = 64 << 20,
    LARGE_MAX = 512,
};

struct block {
    size_t order;
    union {
        struct block *next; // while it is free
        _Alignas(HEAD_BYTES) unsigned char bytes[1];
    };
};

struct large {
    unsigned char *bytes; // NULL: free
    size_t size;
};

static unsigned char *reserved;
static size_t reserved_used;
static struct block *free_blocks[ORDER_LAST + 1];
static struct large large_blocks[LARGE_MAX];

// ---- the lock: its value is the process that holds it. A child after fork may find its parent's, held by a thread
// that the child does not have; what is below is sound between any two of its steps.
static _Atomic int lock;

static void take_lock(void)
{
    int own = (int)getpid(), found = 0;
    while (!atomic_compare_exchange_weak_explicit(&lock, &found, own, memory_order_acquire, memory_order_relaxed)) {
        if (found == own)
            found = 0;
        if (found == 0)
            sched_yield();
    }
}

static void give_lock(void)
{
    atomic_store_explicit(&lock, 0, memory_order_release);
}

// ----

void *__real_malloc(size_t size);
void *__real_realloc(void *bytes, size_t size);
void __real_free(void *bytes);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *bytes, size_t size);
void __wrap_free(void *bytes);
char *__wrap_strdup(const char *text);

static void *map(size_t size)
{
    int saved_errno = errno;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved_errno;
    return pages == MAP_FAILED ? NULL : pages;
}

static bool is_small(const void *bytes)
{
    return reserved && (uintptr_t)bytes - (uintptr_t)reserved < RESERVED_BYTES;
}

static struct block *block_of(void *bytes)
{
    return (struct block *)(void *)((unsigned char *)bytes - HEAD_BYTES);
}

static void *take_small(size_t size)
{
    size_t order = ORDER_FIRST;
    while (((size_t)1 << order) - HEAD_BYTES < size)
        order++;
    struct block *block = free_blocks[order];
    if (block) {
        free_blocks[order] = block->next;
        return block->bytes;
    }
    if (!reserved)
        reserved = map(RESERVED_BYTES);
    if (!reserved || RESERVED_BYTES - reserved_used < (size_t)1 << order)
        return NULL;
    block = (struct block *)(void *)(reserved + reserved_used);
    reserved_used += (size_t)1 << order;
    block->order = order;
    return block->bytes;
}

static struct large *find_large(const void *bytes)
{
    for (size_t i = 0; i < LARGE_MAX; i++)
        if (large_blocks[i].bytes == bytes)
            return &large_blocks[i];
    return NULL;
}

static void *take_large(size_t size)
{
    struct large *place = find_large(NULL);
    void *pages = place ? map(size) : NULL;
    if (!pages)
        return NULL;
    place->size = size;
    place->bytes = pages;
    return pages;
}

void *__wrap_malloc(size_t size)
{
    take_lock();
    void *bytes = size <= ((size_t)1 << ORDER_LAST) - HEAD_BYTES ? take_small(size) : take_large(size);
    give_lock();
    return bytes ? bytes : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t all;
    if (__builtin_mul_overflow(count, size, &all))
        return NULL;
    void *bytes = __wrap_malloc(all);
    return bytes ? memset(bytes, 0, all) : NULL;
}

void __wrap_free(void *bytes)
{
    if (!bytes)
        return;
    take_lock();
    struct large *large = NULL;
    bool small = is_small(bytes);
    if (small) {
        struct block *block = block_of(bytes);
        block->next = free_blocks[block->order];
        free_blocks[block->order] = block;
    } else if ((large = find_large(bytes))) {
        size_t size = large->size;
        large->bytes = NULL;
        int saved_errno = errno;
        munmap(bytes, size);
        errno = saved_errno;
    }
    give_lock();
    if (!small && !large)
        __real_free(bytes);
}

void *__wrap_realloc(void *bytes, size_t size)
{
    if (!bytes)
        return __wrap_malloc(size);
    take_lock();
    const struct large *large = is_small(bytes) ? NULL : find_large(bytes);
    size_t old = is_small(bytes) ? ((size_t)1 << block_of(bytes)->order) - HEAD_BYTES : large ? large->size : 0;
    give_lock();
    if (old == 0)
        return __real_realloc(bytes, size);
    void *moved = __wrap_malloc(size);
    if (moved) {
        memcpy(moved, bytes, old < size ? old : size);
        __wrap_free(bytes);
    }
    return moved;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void agent_memory_end(void)
{
    for (size_t i = 0; i < LARGE_MAX; i++)
        if (large_blocks[i].bytes)
            munmap(large_blocks[i].bytes, large_blocks[i].size);
    memset(large_blocks, 0, sizeof large_blocks);
    memset(free_blocks, 0, sizeof free_blocks);
    if (reserved)
        munmap(reserved, RESERVED_BYTES);
    reserved = NULL;
    reserved_used = 0;
}
