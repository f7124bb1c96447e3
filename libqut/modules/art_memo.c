// SPDX-License-Identifier: Apache-2.0
#include "libqut/modules/art_memo.h"

#include <stdatomic.h>
#include <string.h>

#include "libqut/os/os.h"

enum { ENTRIES_LOG2 = 10, INFO_WORDS = 3, PROOF_WORDS = 4 + INFO_WORDS };

// What has to be as it was.
struct proof {
    uint32_t words[PROOF_WORDS];
};

struct memory {
    uint32_t pc[2]; // low, high
    uint32_t from_start, info_distance;
    int32_t cfa_bytes;
    uint32_t saved, core_mask;
    struct proof proof;
};
enum { MEMORY_WORDS = sizeof(struct memory) / sizeof(uint32_t) };
union as_words {
    struct memory memory;
    uint32_t words[MEMORY_WORDS];
};

// Read and written as words, by any thread at any time: `turn` is odd while one writes, and changes when it has.
struct entry {
    _Atomic uint32_t turn;
    _Atomic uint32_t words[MEMORY_WORDS];
};
static struct entry entries[1 << ENTRIES_LOG2];

static struct entry *entry_of(uintptr_t pc)
{
    return &entries[(pc * 0x9e3779b97f4a7c15u) >> (64 - ENTRIES_LOG2)];
}

// Aligned words: the chunk's size, the header, what CodeInfo begins with, and the end of the call.
static uintptr_t info_word(uintptr_t info)
{
    return info & ~(uintptr_t)3;
}

static uintptr_t call_word(uintptr_t pc)
{
    return (pc - sizeof(uint32_t)) & ~(uintptr_t)3;
}

static bool read_proof(uintptr_t pc, uintptr_t start, uintptr_t info, struct proof *proof)
{
    const struct os_part parts[] = {{start - ART_JIT_CHUNK_AT, 4},
                                    {start - ART_JIT_HEADER_AT, 8},
                                    {info_word(info), INFO_WORDS * 4},
                                    {call_word(pc), 4}};
    return os_read_parts(parts, sizeof parts / sizeof *parts, proof->words) == sizeof proof->words;
}

// Word by word: that takes less time than to read them, and no lock of the kernel's.
static bool holds(uintptr_t pc, uintptr_t start, uintptr_t info, const struct proof *proof)
{
    const uint32_t *word = proof->words;
    if (!os_is_word(start - ART_JIT_CHUNK_AT, *word++) || !os_is_word(start - ART_JIT_HEADER_AT, *word++) ||
        !os_is_word(start - ART_JIT_HEADER_AT + 4, *word++))
        return false;
    for (unsigned i = 0; i < INFO_WORDS; i++)
        if (!os_is_word(info_word(info) + i * 4, *word++))
            return false;
    return os_is_word(call_word(pc), *word);
}

bool modules_art_recall(uintptr_t pc, struct art_jit_frame *frame)
{
    struct entry *entry = entry_of(pc);
    union as_words copy;
    uint32_t turn = atomic_load_explicit(&entry->turn, memory_order_acquire);
    for (unsigned i = 0; i < MEMORY_WORDS; i++)
        copy.words[i] = atomic_load_explicit(&entry->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (turn == 0 || turn & 1 || atomic_load_explicit(&entry->turn, memory_order_relaxed) != turn)
        return false;
    const struct memory *memory = &copy.memory;
    if (memory->pc[0] != (uint32_t)pc || memory->pc[1] != (uint32_t)((uint64_t)pc >> 32))
        return false;
    uintptr_t start = pc - memory->from_start;
    if (!holds(pc, start, start - memory->info_distance, &memory->proof))
        return false;
    *frame = (struct art_jit_frame){memory->cfa_bytes, memory->saved, memory->core_mask};
    return true;
}

void modules_art_remember(uintptr_t pc, const struct art_jit_method *method, const struct art_jit_frame *frame)
{
    struct entry *entry = entry_of(pc);
    uintptr_t start = (uintptr_t)method->start, info = (uintptr_t)method->info_address;
    union as_words copy;
    copy.memory = (struct memory){.pc = {(uint32_t)pc, (uint32_t)((uint64_t)pc >> 32)},
                                  .from_start = (uint32_t)(pc - start),
                                  .info_distance = (uint32_t)(start - info),
                                  .cfa_bytes = frame->cfa_bytes,
                                  .saved = frame->saved,
                                  .core_mask = frame->core_mask};
    uint32_t turn = atomic_load_explicit(&entry->turn, memory_order_relaxed);
    if (!read_proof(pc, start, info, &copy.memory.proof) || turn & 1 ||
        !atomic_compare_exchange_strong_explicit(&entry->turn, &turn, turn + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_release);
    for (unsigned i = 0; i < MEMORY_WORDS; i++)
        atomic_store_explicit(&entry->words[i], copy.words[i], memory_order_relaxed);
    atomic_store_explicit(&entry->turn, turn + 2, memory_order_release);
}
