// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tests/unit/agent/calls/thunks_inside.h"

enum { NOPS = THUNKS_NOPS };

// Written at `bytes`, executed at `at`.
struct code {
    uint8_t *bytes;
    uint64_t at;
};

static void put(struct code *code, const void *bytes, size_t size)
{
    memcpy(code->bytes, bytes, size);
    code->bytes += size;
    code->at += size;
}

static void put_word(struct code *code, const char *bytes, size_t size, uint32_t word)
{
    put(code, bytes, size);
    put(code, &word, sizeof word);
}
#define PUT_WORD(CODE, BYTES, WORD) put_word(CODE, BYTES, sizeof(BYTES) - 1, WORD)

static void put_jump(struct code *code, uint64_t to)
{
    PUT_WORD(code, "\xe9", (uint32_t)(to - (code->at + 5)));
}

static void put_handover(struct code *code, uint32_t id, uint64_t moved, uint64_t cell)
{
    PUT_WORD(code, "\xc7\x44\x24\xf0", id);
    PUT_WORD(code, "\xc7\x44\x24\xd8", (uint32_t)moved);
    PUT_WORD(code, "\xc7\x44\x24\xdc", (uint32_t)(moved >> 32));
    PUT_WORD(code, "\xff\x25", (uint32_t)(cell - (code->at + 6)));
}

size_t thunks_make(uint8_t bytes[THUNKS_BYTES], uint64_t at, uint64_t block_at, uint64_t function, uint32_t id)
{
    struct code code = {bytes, at};
    put_handover(&code, id, at + 30, block_at + QUT_CALLS_BLOCK_ENTER_AT);
    put_jump(&code, function + NOPS);
    return (size_t)(code.at - at);
}

void thunks_jump(uint8_t bytes[NOPS], uint64_t at, uint64_t to)
{
    struct code code = {bytes, at};
    put_jump(&code, to);
}

static bool has_nops(const uint8_t *at)
{
    static const uint8_t nops[NOPS] = {0x90, 0x90, 0x90, 0x90, 0x90}, long_nop[] = {0x0f, 0x1f, 0x44};
    return memcmp(at, nops, NOPS) == 0 || memcmp(at, long_nop, sizeof long_nop) == 0;
}

static bool divert(uint8_t *at, const uint8_t *thunk)
{
    uint8_t jump[NOPS];
    thunks_jump(jump, (uintptr_t)at, (uintptr_t)thunk);
    return thunks_exchange(at, jump, NOPS);
}

static uint8_t *behind_landing_pad(void (*function)(void))
{
    uint8_t *at = (uint8_t *)(uintptr_t)function;
    return memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0 ? at + 4 : at;
}

bool thunks_trace(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function), *thunk = thunks_next();
    if (!has_nops(at))
        return false;
    thunks_used(thunk + thunks_make(thunk, (uintptr_t)thunk, thunks_block(), (uintptr_t)at, id));
    return divert(at, thunk);
}

bool thunks_trace_moved(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function), *thunk = thunks_next();
    struct code code = {thunk, (uintptr_t)thunk};
    put_handover(&code, id, code.at + 30, thunks_block() + QUT_CALLS_BLOCK_ENTER_AT);
    put(&code, at, NOPS);
    put_jump(&code, (uintptr_t)at + NOPS);
    thunks_used(code.bytes);
    return divert(at, thunk);
}

bool thunks_count(void (*function)(void), uint32_t cell, bool by_stub)
{
    uint8_t *at = behind_landing_pad(function), *thunk = thunks_next();
    struct code code = {thunk, (uintptr_t)thunk};
    uint64_t moved = code.at + 5 + 30;
    if (!has_nops(at))
        return false;
    put(&code, "\x48\x89\x44\x24\xe8", 5);
    if (!by_stub) {
        PUT_WORD(&code, "\x64\x48\x8b\x04\x25", (uint32_t)thunks_header()->own_tls_offset);
        put(&code, "\x48\x8b\x40\x20\x48\x85\xc0", 7);
        put(&code, "\x74\x11", 2); // over the next 7 + 5 + 5 bytes
        PUT_WORD(&code, "\x48\xff\x80", cell * 8);
        put(&code, "\x48\x8b\x44\x24\xe8", 5);
        moved = code.at;
        put_jump(&code, (uintptr_t)at + NOPS);
    }
    put_handover(&code, cell, moved, thunks_block() + QUT_CALLS_BLOCK_COUNT_AT);
    if (by_stub)
        put_jump(&code, (uintptr_t)at + NOPS);
    thunks_used(code.bytes);
    return divert(at, thunk);
}
