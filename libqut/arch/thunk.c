// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/thunk.h"

#include <string.h>

enum {
    WAY_BYTES = 30,        // three stores and a jump
    KEEP_BYTES = 5,        // mov rax, -24(rsp)
    COUNTED_AT = 35,       // where the copy begins in a thunk that counts
    NONE_DISTANCE_AT = 22, // the byte of the jump to what stands behind the copy, which counts from the byte behind it
};

static bool is_at(const uint8_t *bytes, unsigned at, const void *wanted, size_t size)
{
    return memcmp(bytes + at, wanted, size) == 0;
}

// Three stores, of the function's id and of where the copy is, and a jump by way of a word.
static bool is_way(const uint8_t *bytes, unsigned at, uint64_t moved)
{
    uint32_t low, high;
    memcpy(&low, bytes + at + 12, sizeof low);
    memcpy(&high, bytes + at + 20, sizeof high);
    return is_at(bytes, at, "\xc7\x44\x24\xf0", 4) && is_at(bytes, at + 8, "\xc7\x44\x24\xd8", 4) &&
           is_at(bytes, at + 16, "\xc7\x44\x24\xdc", 4) && is_at(bytes, at + 24, "\xff\x25", 2) &&
           ((uint64_t)high << 32 | low) == moved;
}

bool arch_thunk_head(const struct arch *arch, const uint8_t bytes[ARCH_THUNK_HEAD_BYTES], uint64_t start,
                     struct arch_thunk *thunk)
{
    *thunk = (struct arch_thunk){.start = start, .end = start + ARCH_THUNK_BYTES_MAX};
    if (!arch->has_call_thunks)
        return false;
    thunk->moved = start + WAY_BYTES;
    if (is_way(bytes, 0, thunk->moved))
        return true;
    thunk->moved = start + COUNTED_AT;
    if (!is_at(bytes, 0, "\x48\x89\x44\x24\xe8", KEEP_BYTES))
        return false;
    if (is_way(bytes, KEEP_BYTES, thunk->moved))
        return true;
    // mov fs:OWN, rax; mov 32(rax), rax; test; je behind the copy; incq CELL(rax); mov -24(rsp), rax
    if (!is_at(bytes, 5, "\x64\x48\x8b\x04\x25", 5) || !is_at(bytes, 14, "\x48\x8b\x40\x20\x48\x85\xc0\x74", 8) ||
        !is_at(bytes, 23, "\x48\xff\x80", 3) || !is_at(bytes, 30, "\x48\x8b\x44\x24\xe8", 5))
        return false;
    thunk->moved_end = start + NONE_DISTANCE_AT + 1 + bytes[NONE_DISTANCE_AT];
    return true;
}

bool arch_thunk_jumps(const uint8_t *bytes, uint64_t address, uint64_t *target)
{
    int32_t distance;
    memcpy(&distance, bytes + 1, sizeof distance);
    *target = address + ARCH_THUNK_JUMP_BYTES + (uint64_t)(int64_t)distance;
    return bytes[0] == 0xe9;
}
