// SPDX-License-Identifier: Apache-2.0
#include "tests/support/exchange.h"

#include <stddef.h>
#include <sys/mman.h>

enum { CHUNK_LOG2 = 20, CHUNKS_MAX = 256, SLOT_BYTES_MAX = 4096 }; // how far from sp the next slot may be

// One thread only, and its handlers: mapping a chunk twice is harmless.
static volatile uintptr_t chunks[CHUNKS_MAX];

static bool prepare_chunk(uintptr_t chunk)
{
    size_t at = chunk % CHUNKS_MAX;
    if (chunks[at] == chunk)
        return true;
    uintptr_t start = (chunk << CHUNK_LOG2) - ((uintptr_t)1 << EXCHANGE_LOG2);
    if (chunk << CHUNK_LOG2 <= (uintptr_t)2 << (EXCHANGE_LOG2 - 1))
        return false;
    // No NOREPLACE: a chunk that lost its place in the list is mapped already, and its words count.
    size_t bytes = (size_t)1 << CHUNK_LOG2;
    void *got = mmap((void *)start, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED && madvise((void *)start, bytes, MADV_NORMAL) != 0)
        return false;
    if (got != MAP_FAILED && got != (void *)start) {
        munmap(got, bytes);
        return false;
    }
    chunks[at] = chunk;
    return true;
}

bool exchange_prepare(uintptr_t sp)
{
    return prepare_chunk((sp - SLOT_BYTES_MAX) >> CHUNK_LOG2) && prepare_chunk((sp + SLOT_BYTES_MAX) >> CHUNK_LOG2);
}
