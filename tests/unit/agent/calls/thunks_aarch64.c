// SPDX-License-Identifier: Apache-2.0
// Instructions are read, and thunks made, by the planner's own parts.
#include <string.h>

#include "formats/qut_rule.h"
#include "tests/unit/agent/calls/thunks_inside.h"
#include "tracer/calls/inside.h"
#include "tracer/calls/thunk.h"

enum { INSTRUCTION_BYTES = 4 };

static enum qut_plan_move move_of(const struct calls_instruction *in)
{
    switch ((enum calls_flow)in->flow) {
    case CALLS_FLOW_JUMP: return QUT_MOVE_JUMP;
    case CALLS_FLOW_CONDITION: return QUT_MOVE_CONDITION;
    default: return in->is_nop ? QUT_MOVE_SKIP : in->has_address ? QUT_MOVE_ADDRESS : QUT_MOVE_COPY;
    }
}

static bool read_at(const uint8_t *at, struct calls_instruction *in)
{
    return calls_decoder_aarch64.read((struct base_bytes){at, INSTRUCTION_BYTES}, (uintptr_t)at, in);
}

// As tracer/calls/shape.c does it.
static bool plan(const uint8_t *entry, struct qut_plan_function *function)
{
    struct calls_instruction in;
    *function = (struct qut_plan_function){.entry_vaddr = (uintptr_t)entry,
                                           .kind = QUT_PLAN_JUMP,
                                           .patch_bytes = INSTRUCTION_BYTES,
                                           .moved_bytes = INSTRUCTION_BYTES,
                                           .code_bytes = INSTRUCTION_BYTES,
                                           .instruction_count = 1};
    if (!read_at(entry, &in))
        return false;
    if (in.is_landing_mark) {
        function->patch_at = INSTRUCTION_BYTES;
        function->flags = in.signs;
    }
    entry += function->patch_at;
    if (!read_at(entry, &in) || !in.is_movable)
        return false;
    function->instructions[0] = (struct qut_plan_instruction){INSTRUCTION_BYTES, (uint8_t)move_of(&in), 0, 0};
    function->flags |= in.flow == CALLS_FLOW_JUMP || in.flow == CALLS_FLOW_STOP ? QUT_PLAN_ENDS : 0;
    memcpy(function->code, entry, INSTRUCTION_BYTES);
    return true;
}

static bool divert(void (*traced)(void), uint32_t id, bool is_counted, bool needs_nops)
{
    struct qut_plan_function function;
    struct calls_thunk thunk;
    struct calls_patch patch;
    uint8_t *at = thunks_next();
    if (!plan((const uint8_t *)(uintptr_t)traced, &function) ||
        (needs_nops && function.instructions[0].move != QUT_MOVE_SKIP))
        return false;
    const struct calls_thunk_place place = {.thunk_address = (uintptr_t)at,
                                            .block_address = thunks_block(),
                                            .function_id = id,
                                            .is_counted = is_counted,
                                            .architecture = QUT_ARCH_AARCH64};
    if (!calls_thunk_make(&function, &place, &thunk) || !calls_patch_make(&function, &place, &patch))
        return false;
    memcpy(at, thunk.bytes, thunk.size_bytes);
    thunks_used(at + thunk.size_bytes);
    return thunks_exchange((uint8_t *)(uintptr_t)patch.pieces[0].address, patch.pieces[0].bytes,
                           patch.pieces[0].size_bytes);
}

bool thunks_trace(void (*function)(void), uint32_t id)
{
    return divert(function, id, false, true);
}

bool thunks_trace_moved(void (*function)(void), uint32_t id)
{
    return divert(function, id, false, false);
}

bool thunks_count(void (*function)(void), uint32_t cell, bool by_stub)
{
    (void)by_stub; // there is no other way
    return divert(function, cell, true, true);
}
