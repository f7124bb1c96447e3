// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/arena.h"

#include <string.h>

// struct malloc_state of glibc 2.27 and later, 64 bits:
//
//     mutex, flags, have_fastchunks       12 bytes, and 4 of padding
//     fastbins                            10 words
//     top, last_remainder                 2 words: 96, 104
//     bins                                254 words: 112. Bin i, of 1 ... 127, is the pair at 96 + 16 i, and is what an
//                                         empty one points to, less 16
//     binmap                              4 × 4 bytes
//     next                                a word: 2160. The arenas are a ring
enum {
    BINS_OFFSET = 112,
    BIN_COUNT = 127,
    BIN_BYTES = 16,
    NEXT_OFFSET = 2160,
    EMPTY_BINS_LEAST = 32,
    ARENAS_MAX = 4096,
    STATIC_TLS_BYTES = 4096, // below the thread pointer; libc's is among the first
    WORD_BYTES = 8,
};

static bool is_writable(const struct inject_program *program, uint64_t address)
{
    const struct target_map *map = target_maps_find(&program->target->maps, address);
    return map && map->writable;
}

// Mostly empty bins point to themselves; others are lists that lead back to them.
static bool is_arena(const struct inject_program *program, uint64_t address, uint64_t *next)
{
    uint64_t bins[2 * BIN_COUNT];
    unsigned empty = 0;
    if (!inject_read(program, address + BINS_OFFSET, bins, sizeof bins) ||
        !inject_read(program, address + NEXT_OFFSET, next, sizeof *next))
        return false;
    for (unsigned i = 0; i < BIN_COUNT; i++) {
        uint64_t own = address + BINS_OFFSET + BIN_BYTES * (uint64_t)i - BIN_BYTES;
        bool is_empty = bins[2 * i] == own && bins[2 * i + 1] == own;
        if (!is_empty && (bins[2 * i] == own || bins[2 * i + 1] == own || !is_writable(program, bins[2 * i])))
            return false;
        empty += is_empty;
    }
    return empty >= EMPTY_BINS_LEAST && is_writable(program, *next);
}

// The one of the ring that is libc's own variable.
static bool find_main_arena(const struct inject_program *program, uint64_t any, uint64_t *main_arena)
{
    uint64_t at = any, next;
    *main_arena = 0;
    for (unsigned step = 0; step < ARENAS_MAX; step++, at = next) {
        if (!is_arena(program, at, &next))
            return false;
        const struct target_map *map = target_maps_find(&program->target->maps, at);
        if (map->image == program->libc)
            *main_arena = at;
        if (next == any)
            return *main_arena != 0;
    }
    return false;
}

// The nearest to the thread pointer: below a thread's own words its stack may begin, on which calls have left others.
bool inject_arena_find(const struct inject_program *program, uint64_t thread_pointer, uint64_t *offset, uint64_t *arena)
{
    uint64_t words[STATIC_TLS_BYTES / WORD_BYTES];
    if (!inject_read(program, thread_pointer - sizeof words, words, sizeof words))
        return false;
    for (size_t i = sizeof words / sizeof *words; i-- > 0;) {
        uint64_t any = words[i], next;
        if (any % WORD_BYTES != 0 || !is_writable(program, any) || !is_arena(program, any, &next) ||
            !find_main_arena(program, any, arena))
            continue;
        *offset = i * WORD_BYTES - sizeof words;
        return true;
    }
    return false;
}
