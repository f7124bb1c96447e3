// SPDX-License-Identifier: Apache-2.0
// The block that is mapped in the process, and the code in it.
#ifndef TRACER_INJECT_STUB_X86_64_H
#define TRACER_INJECT_STUB_X86_64_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/inject/hijack.h"

// Offsets in the block. The code is not writable, so that it guards the new thread's stack above it.
enum {
    STUB_CODE = 0,
    STUB_CODE_BYTES = 4096,
    STUB_STACK = 4096, // of the new thread
    STUB_STACK_BYTES = 256 << 10,
    STUB_CALL_STACK_TOP = 4096 + (320 << 10), // of the stopped one
    STUB_FRAME = STUB_CALL_STACK_TOP,         // what it goes back by
    STUB_FRAME_BYTES = 24 << 10,
    STUB_TALK = STUB_FRAME + STUB_FRAME_BYTES,
    STUB_PATH = STUB_TALK + 1024,
    STUB_SETTINGS = STUB_PATH + HIJACK_PATH_BYTES,
    STUB_TEXT = STUB_SETTINGS + HIJACK_SETTINGS_BYTES,
    STUB_SYMBOL = STUB_TEXT + HIJACK_TEXT_BYTES,
    STUB_OWNER = STUB_SYMBOL + HIJACK_TEXT_BYTES, // struct inject_owner: who had the agent loaded
    STUB_END = STUB_OWNER + 64,
};
static_assert((int)STUB_END <= (int)HIJACK_BLOCK_BYTES, "the block holds it all");

// The code knows these offsets as numbers.
struct stub_talk {
    uint32_t state;                        // 2: the new thread is done with the job
    int32_t created;                       // what pthread_create said; -1: nothing yet
    uint64_t function[INJECT_FUNCTIONS];   // 8 ... 72, as enum inject_function
    uint64_t stack, stack_bytes;           // 80, 88
    uint64_t entry;                        // 96
    uint64_t handle;                       // 104
    int32_t result;                        // 112
    uint32_t stage;                        // 116
    uint32_t tid;                          // 120
    uint32_t action;                       // 124
    uint64_t mask;                         // 128: of the new thread
    uint64_t arena_offset, arena;          // 136, 144
    uint64_t path, symbol, settings, text; // 152, 160, 168, 176
    uint32_t file_to_close, zero;          // 184: its number + 1; 0: none
    uint64_t thread;                       // 192
    uint64_t attributes[16];               // 200
};
static_assert(offsetof(struct stub_talk, function[INJECT_ERRNO]) == 72, "the code's numbers");
static_assert(offsetof(struct stub_talk, handle) == 104, "the code's numbers");
static_assert(offsetof(struct stub_talk, mask) == 128, "the code's numbers");
static_assert(offsetof(struct stub_talk, path) == 152, "the code's numbers");
static_assert(offsetof(struct stub_talk, attributes) == 200, "the code's numbers");
static_assert(sizeof(struct stub_talk) <= 1024, "there is room");

#pragma GCC visibility push(hidden)
extern const uint8_t inject_stub_code[], inject_stub_code_end[], inject_stub_create[], inject_stub_thread[],
    inject_stub_return[];
#pragma GCC visibility pop

#endif
