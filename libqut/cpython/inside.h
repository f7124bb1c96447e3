// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_CPYTHON_INSIDE_H
#define QUT_CPYTHON_INSIDE_H

#include <string.h>

#include "libqut/cpython/cpython.h"

// A word of a block that was read.
static inline uint64_t cpython_word(const uint8_t *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static inline int32_t cpython_half(const uint8_t *bytes, size_t offset)
{
    int32_t half;
    memcpy(&half, bytes + offset, sizeof half);
    return half;
}

// What pointers of the interpreter are: aligned, and not the first page.
static inline bool cpython_is_pointer(uint64_t address)
{
    return address >= 4096 && address % 8 == 0;
}

// ---- threads.c

// Fills all of *thread but its tid; the second reads the state for it. False: it cannot be read.
void cpython_state_of(const struct cpython_layout *layout, uint64_t state, const uint8_t bytes[CPYTHON_STATE_BYTES],
                      struct cpython_thread *thread);
bool cpython_read_state(const struct cpython_layout *layout, const struct elf_art_memory *memory, uint64_t state,
                        uint8_t bytes[CPYTHON_STATE_BYTES], struct cpython_thread *thread);
// What the C library has as the thread's id; 0: not known.
int32_t cpython_thread_of_descriptor(const struct elf_art_memory *memory, uint64_t descriptor);

#endif
