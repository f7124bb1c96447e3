// SPDX-License-Identifier: Apache-2.0
// Thunks are made by the planner's own parts.
#include <string.h>

#include "formats/qut_rule.h"
#include "tests/unit/agent/calls/thunks_inside.h"
#include "tracer/calls/thunk.h"

enum { NOPS = THUNKS_NOPS, CALL = 0xe8, LANDING_PAD_BYTES = 4, TLS_UNREACHABLE_LOG2 = 40 };

// Of what tests begin functions with: push by one byte, mov %rsp, %rbp, else an instruction that fills the rest.
static uint8_t length_of(const uint8_t *at, unsigned rest)
{
    static const uint8_t keep_sp[] = {0x48, 0x89, 0xe5};
    if ((*at & 0xf8) == 0x50)
        return 1;
    return memcmp(at, keep_sp, sizeof keep_sp) == 0 ? (uint8_t)sizeof keep_sp : (uint8_t)rest;
}

// Of a function whose first five bytes are to be moved.
static struct qut_plan_function plan(uint64_t address, const uint8_t bytes[NOPS], enum qut_plan_move move)
{
    struct qut_plan_function function = {
        .entry_vaddr = address, .kind = QUT_PLAN_JUMP, .patch_bytes = NOPS, .moved_bytes = NOPS, .code_bytes = NOPS};
    for (unsigned at = 0; at < NOPS;) {
        const uint8_t length = move == QUT_MOVE_COPY ? length_of(bytes + at, NOPS - at) : (uint8_t)NOPS;
        function.instructions[function.instruction_count++] =
            (struct qut_plan_instruction){length, (uint8_t)move, 1, 0};
        at += length;
    }
    memcpy(function.code, bytes, NOPS);
    return function;
}

size_t thunks_make(uint8_t bytes[QUT_CALLS_THUNK_BYTES_MAX], uint64_t at, uint64_t block_at, uint64_t function,
                   uint32_t id)
{
    static const uint8_t nops[NOPS];
    const struct qut_plan_function planned = plan(function, nops, QUT_MOVE_SKIP);
    const struct calls_thunk_place place = {
        .thunk_address = at, .block_address = block_at, .function_id = id, .architecture = QUT_ARCH_X86_64};
    struct calls_thunk thunk;
    if (!calls_thunk_make(&planned, &place, &thunk))
        return 0;
    memcpy(bytes, thunk.bytes, thunk.size_bytes);
    return thunk.size_bytes;
}

void thunks_jump(uint8_t bytes[NOPS], uint64_t at, uint64_t to)
{
    const uint32_t distance = (uint32_t)(to - (at + NOPS));
    bytes[0] = 0xe9;
    memcpy(bytes + 1, &distance, sizeof distance);
}

static bool has_nops(const uint8_t *at)
{
    static const uint8_t nops[NOPS] = {0x90, 0x90, 0x90, 0x90, 0x90}, long_nop[] = {0x0f, 0x1f, 0x44};
    return memcmp(at, nops, NOPS) == 0 || memcmp(at, long_nop, sizeof long_nop) == 0;
}

static uint8_t *behind_landing_pad(void (*function)(void))
{
    uint8_t *at = (uint8_t *)(uintptr_t)function;
    return memcmp(at, "\xf3\x0f\x1e\xfa", LANDING_PAD_BYTES) == 0 ? at + LANDING_PAD_BYTES : at;
}

// NULL: none can be made.
static uint8_t *add_thunk(uint8_t *at, enum qut_plan_move move, struct calls_thunk_place place)
{
    const struct qut_plan_function planned = plan((uintptr_t)at, at, move);
    uint8_t *next = thunks_next();
    struct calls_thunk thunk;
    place.thunk_address = (uintptr_t)next;
    place.block_address = thunks_block();
    place.architecture = QUT_ARCH_X86_64;
    if (!calls_thunk_make(&planned, &place, &thunk))
        return NULL;
    memcpy(next, thunk.bytes, thunk.size_bytes);
    thunks_used(next + thunk.size_bytes);
    return next;
}

static bool divert(uint8_t *at, enum qut_plan_move move, struct calls_thunk_place place)
{
    uint8_t jump[NOPS];
    const uint8_t *thunk = add_thunk(at, move, place);
    if (!thunk)
        return false;
    thunks_jump(jump, (uintptr_t)at, (uintptr_t)thunk);
    return thunks_exchange(at, jump, NOPS);
}

bool thunks_trace(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function);
    return has_nops(at) && divert(at, QUT_MOVE_SKIP, (struct calls_thunk_place){.function_id = id});
}

bool thunks_trace_moved(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function);
    return divert(at, *at == CALL ? QUT_MOVE_CALL : QUT_MOVE_COPY, (struct calls_thunk_place){.function_id = id});
}

bool thunks_place(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function);
    const struct calls_thunk_place place = {.function_id = id, .is_place = true};
    return divert(at, *at == CALL ? QUT_MOVE_CALL : QUT_MOVE_COPY, place);
}

// By the stub: as where the thread's own pointer is too far away.
bool thunks_count(void (*function)(void), uint32_t cell, bool by_stub)
{
    uint8_t *at = behind_landing_pad(function);
    const struct calls_thunk_place place = {.function_id = cell,
                                            .is_counted = true,
                                            .own_tls_offset = by_stub ? INT64_C(1) << TLS_UNREACHABLE_LOG2
                                                                      : thunks_header()->own_tls_offset};
    return has_nops(at) && divert(at, QUT_MOVE_SKIP, place);
}

bool thunks_thin(void (*function)(void), uint32_t id, uint32_t thinned_id, uint32_t log2)
{
    uint8_t *at = behind_landing_pad(function);
    const uint8_t *enter =
        has_nops(at) ? add_thunk(at, QUT_MOVE_SKIP, (struct calls_thunk_place){.function_id = id}) : NULL;
    const struct calls_thunk_place place = {.function_id = id,
                                            .thinned_id = thinned_id,
                                            .thinning_log2 = log2,
                                            .enter_thunk = (uintptr_t)enter,
                                            .own_tls_offset = thunks_header()->own_tls_offset};
    return enter && divert(at, QUT_MOVE_SKIP, place);
}
