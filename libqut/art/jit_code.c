// SPDX-License-Identifier: Apache-2.0
// From a pc to the method whose code it lies in.
#include "libqut/art/jit_code.h"

#include <string.h>

#include "libqut/art/varints.h"

enum {
    ALIGNMENT = 16, // of code, and of chunks
    SEARCH_BYTES_MAX = 1 << 18,
    CHUNK_BYTES_MIN = 32, // so much more a chunk can have that nothing would fit behind
    FRAME_BYTES_MAX = 1 << 20,
    INFO_BYTES = 32,
    INFO_VALUES = 6,
    INFO_FRAME = 1,
    INFO_FLAGS_MAX = 7,
};

// Of a chunk's size: it is in use, and so is the one before.
#define CHUNK_BEFORE_IN_USE ((uint64_t)1)
#define CHUNK_IN_USE        ((uint64_t)2)
#define CHUNK_FLAGS         ((uint64_t)7)
#define CODE_TO_BE_LEFT     ((uint32_t)1 << 31) // of the code's size: the method is to be deoptimized

bool art_jit_knows(const struct arch *arch)
{
    return art_jit_arch(arch) != NULL;
}

bool art_jit_is_cache_name(const char *path, size_t path_bytes)
{
    static const char *const names[] = {"jit-cache", "jit-code-cache", "data-code-cache", "jit-zygote-cache"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (memmem(path, path_bytes, names[i], strlen(names[i])))
            return true;
    return false;
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

bool art_jit_is_space(const struct elf_art_memory *memory, uint64_t code_start)
{
    // A chunk of its own, and the least address that the space has.
    enum { HEAD_AT = 8, LEAST_AT = 40, BYTES = 48, SPACE_BYTES_MIN = 0x200, SPACE_BYTES_MAX = 0x800 };
    uint8_t bytes[BYTES], next[sizeof(uint64_t)];
    if (!elf_art_read(memory, code_start, bytes, sizeof bytes))
        return false;
    uint64_t head = word_at(bytes + HEAD_AT), size = head & ~CHUNK_FLAGS;
    return (head & CHUNK_FLAGS) == (CHUNK_IN_USE | CHUNK_BEFORE_IN_USE) && size >= SPACE_BYTES_MIN &&
           size <= SPACE_BYTES_MAX && word_at(bytes + LEAST_AT) == code_start &&
           elf_art_read(memory, code_start + size + HEAD_AT, next, sizeof next) && word_at(next) & CHUNK_BEFORE_IN_USE;
}

// Whether a chunk in use has the size that this code needs: its header and a word of the next chunk with it.
static bool is_chunk_of(uint64_t head, uint32_t code_bytes)
{
    uint64_t size = head & ~CHUNK_FLAGS;
    uint64_t needed = ((uint64_t)code_bytes + ALIGNMENT + sizeof head + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    return head & CHUNK_IN_USE && code_bytes && size >= needed && size - needed <= CHUNK_BYTES_MIN - ALIGNMENT;
}

static bool read_info(const struct art_jit_cache *cache, const struct elf_art_memory *memory,
                      struct art_jit_method *method)
{
    const struct art_jit_arch *jit = art_jit_arch(memory->arch);
    uint8_t bytes[INFO_BYTES];
    uint32_t values[INFO_VALUES], word_bytes = memory->arch->word_bytes;
    if (method->info_address < cache->data_start || method->info_address >= cache->code_start)
        return false;
    size_t left = (size_t)(cache->code_start - method->info_address);
    size_t count = memory->read(memory->context, method->info_address, bytes, left < INFO_BYTES ? left : INFO_BYTES);
    if (!art_read_varints(bytes, count, true, values, INFO_VALUES) || values[0] > INFO_FLAGS_MAX ||
        values[INFO_FRAME] > FRAME_BYTES_MAX / ALIGNMENT)
        return false;
    uint32_t core_mask = values[INFO_FRAME + 1], fp_mask = values[INFO_FRAME + 2], ra_bit = 1u << jit->ra_number;
    method->frame_bytes = values[INFO_FRAME] * ALIGNMENT;
    method->core_mask = core_mask;
    if (core_mask & ~jit->may_save_core || fp_mask & ~jit->may_save_fp)
        return false;
    // Stubs of @CriticalNative methods count nothing as saved.
    if (method->frame_bytes == 0)
        return core_mask == 0 || core_mask == ra_bit;
    uint32_t saved = (uint32_t)__builtin_popcount(core_mask) + (uint32_t)__builtin_popcount(fp_mask);
    return core_mask & ra_bit && method->frame_bytes >= (saved + 1) * word_bytes; // ArtMethod* below them
}

// `before` holds what lies before the code at `start`, up to it. False: no method begins there.
static bool read_method(const struct art_jit_cache *cache, const struct elf_art_memory *memory, uint64_t start,
                        const uint8_t *before, struct art_jit_method *method)
{
    uint64_t head = word_at(before), header = word_at(before + ART_JIT_CHUNK_AT - ART_JIT_HEADER_AT), next;
    uint32_t code_bytes = (uint32_t)(header >> 32) & ~CODE_TO_BE_LEFT;
    if (!is_chunk_of(head, code_bytes) || code_bytes > cache->code_end - start)
        return false;
    uint64_t next_at = start - ART_JIT_CHUNK_AT + (head & ~CHUNK_FLAGS);
    if (next_at > cache->code_end - sizeof next || !elf_art_read(memory, next_at, &next, sizeof next) ||
        !(next & CHUNK_BEFORE_IN_USE))
        return false;
    *method =
        (struct art_jit_method){.start = start, .code_bytes = code_bytes, .info_address = start - (uint32_t)header};
    return read_info(cache, memory, method);
}

bool art_jit_method_at(const struct art_jit_cache *cache, const struct elf_art_memory *memory,
                       struct art_jit_scratch *scratch, uint64_t address, struct art_jit_method *method)
{
    uint8_t *window = scratch->window;
    uint64_t start = address & ~(uint64_t)(ALIGNMENT - 1);
    if (!art_jit_cache_has(cache, address) || !art_jit_knows(memory->arch))
        return false;
    while (start >= cache->code_start + ART_JIT_CHUNK_AT && address - start < SEARCH_BYTES_MAX) {
        uint64_t above = start - cache->code_start;
        size_t size = above < sizeof scratch->window ? (size_t)above : sizeof scratch->window;
        if (!elf_art_read(memory, start - size, window, size))
            return false;
        const uint8_t *end = window + size;
        for (; end - window >= ART_JIT_CHUNK_AT; end -= ALIGNMENT, start -= ALIGNMENT)
            if (read_method(cache, memory, start, end - ART_JIT_CHUNK_AT, method))
                return address - start < method->code_bytes;
    }
    return false;
}

bool art_jit_frame_rule(const struct art_jit_cache *cache, const struct elf_art_memory *memory,
                        struct art_jit_scratch *scratch, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule)
{
    struct art_jit_method method;
    struct art_jit_frame frame;
    if (!art_jit_method_at(cache, memory, scratch, arch_lookup_pc(pc, kind), &method) ||
        !art_jit_frame_at(memory, scratch, &method, pc, kind, &frame))
        return false;
    art_jit_set_rule(memory->arch, &frame, rule);
    return true;
}
