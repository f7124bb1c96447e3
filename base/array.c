// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Most arrays are made as large as they can become, and filled to a third: of a few huge pages the last would be in
// vain.
enum { HUGE_PAGE = 2 << 20, MAPPED_MIN = 3 * HUGE_PAGE };

static bool is_mapped(size_t bytes)
{
    return bytes >= MAPPED_MIN;
}

// Linux places mappings of whole huge pages where huge pages can be.
static size_t mapped_bytes(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

static void *map(size_t bytes)
{
    void *array =
        mmap(NULL, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return array != MAP_FAILED ? array : NULL;
}

static void *map_huge(size_t bytes)
{
    void *array = map(bytes);
    if (array)
        madvise(array, mapped_bytes(bytes), MADV_HUGEPAGE); // a wish: where the kernel has none, small pages do
    return array;
}

void *base_array_sparse(size_t bytes)
{
    return is_mapped(bytes) ? map(bytes) : calloc(1, bytes);
}

void *base_array_resize(void *array, size_t old_bytes, size_t new_bytes)
{
    if (!is_mapped(old_bytes) && !is_mapped(new_bytes))
        return realloc(array, new_bytes);
    if (is_mapped(old_bytes) && is_mapped(new_bytes)) {
        void *moved = mremap(array, mapped_bytes(old_bytes), mapped_bytes(new_bytes), MREMAP_MAYMOVE);
        if (moved == MAP_FAILED)
            return NULL;
        madvise(moved, mapped_bytes(new_bytes), MADV_HUGEPAGE);
        return moved;
    }
    void *fresh = is_mapped(new_bytes) ? map_huge(new_bytes) : malloc(new_bytes);
    if (!fresh)
        return NULL;
    size_t kept = old_bytes < new_bytes ? old_bytes : new_bytes;
    if (kept)
        memcpy(fresh, array, kept);
    base_array_free(array, old_bytes);
    return fresh;
}

void base_array_free(void *array, size_t bytes)
{
    if (is_mapped(bytes))
        munmap(array, mapped_bytes(bytes));
    else
        free(array);
}

void *base_array_malloc(size_t bytes)
{
    if (!is_mapped(bytes))
        return malloc(bytes);
    void *memory = NULL;
    if (posix_memalign(&memory, HUGE_PAGE, bytes) != 0)
        return NULL;
    madvise(memory, bytes & ~(size_t)4095, MADV_HUGEPAGE);
    return memory;
}
