// SPDX-License-Identifier: Apache-2.0
// Thunks of A64. One instruction of four bytes is exchanged for a branch, which reaches 128 MiB. x16 and x17 are free
// at a function's entry, since linkers' veneers may use them; memory below sp is not: a signal handler's frame is put
// there.
#include <string.h>

#include "formats/qut_calls.h"
#include "formats/qut_calls_a64.h"
#include "tracer/calls/inside.h"

enum {
    INSTRUCTION_BYTES = 4,
    X16 = 16,
    ZR = 31,
};
#define PACIASP 0xd503233fu
#define PACIBSP 0xd503237fu
#define AUTIASP 0xd50323bfu
#define AUTIBSP 0xd50323ffu

struct writer {
    const struct qut_plan_function *function;
    const struct calls_thunk_place *place;
    struct calls_thunk *thunk;
    bool failed; // too far, or not what the plan says
};

static uint64_t here(const struct writer *w)
{
    return w->place->thunk_address + w->thunk->size_bytes;
}

static void put(struct writer *w, uint32_t word)
{
    if (w->thunk->size_bytes + INSTRUCTION_BYTES > QUT_CALLS_THUNK_BYTES_MAX) {
        w->failed = true;
        return;
    }
    for (unsigned i = 0; i < INSTRUCTION_BYTES; i++)
        w->thunk->bytes[w->thunk->size_bytes++] = (uint8_t)(word >> i * 8);
}

static uint32_t word_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void put_branch(struct writer *w, uint64_t to)
{
    uint32_t word;
    if (!qut_calls_a64_branch(here(w), to, &word))
        w->failed = true;
    put(w, word);
}

// adrp
static void put_page(struct writer *w, unsigned reg, uint64_t address)
{
    uint32_t word;
    if (!qut_calls_a64_page(here(w), reg, address, &word))
        w->failed = true;
    put(w, word);
}

static void put_add(struct writer *w, unsigned reg, uint64_t number)
{
    put(w, 0x91000000u | (uint32_t)(number & 0xfff) << 10 | reg << 5 | reg);
}

// adr, adrp: of what, and then the same from here.
static void move_address(struct writer *w, uint32_t word, uint64_t from)
{
    const unsigned reg = word & 31;
    const int64_t number = qut_calls_a64_signed((uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 21);
    const bool is_page = word >> 31;
    const uint64_t target = is_page ? (from & ~(uint64_t)4095) + ((uint64_t)number << 12) : from + (uint64_t)number;
    put_page(w, reg, target);
    if (!is_page && reg != ZR)
        put_add(w, reg, target);
}

// A load from a constant's place becomes one through a register: of vectors x16, else the one that is loaded.
static void move_literal(struct writer *w, uint32_t word, uint64_t from)
{
    static const uint32_t of_general[4] = {0xb9400000u /* w */, 0xf9400000u /* x */, 0xb9800000u /* ldrsw */, 0};
    static const uint32_t of_vectors[4] = {0xbd400000u /* s */, 0xfd400000u /* d */, 0x3dc00000u /* q */, 0};
    const unsigned reg = word & 31, size = word >> 30;
    const bool is_vector = word >> 26 & 1;
    const uint64_t target = from + (uint64_t)qut_calls_a64_signed(word >> 5 & 0x7ffff, 19) * INSTRUCTION_BYTES;
    const uint32_t load = is_vector ? of_vectors[size] : of_general[size];
    const unsigned by = is_vector || reg == ZR ? (unsigned)X16 : reg;
    if (load == 0) { // prefetches; there are no others
        w->failed |= is_vector;
        put(w, QUT_CALLS_A64_NOP);
        return;
    }
    put_page(w, by, target);
    put_add(w, by, target);
    put(w, load | by << 5 | reg);
}

// The condition leads over a branch to what follows, to one that goes as far as the target may be.
static void move_condition(struct writer *w, uint32_t word, uint64_t from)
{
    enum { OVER = 2 };
    const bool tests_bit = (word & 0x7e000000) == 0x36000000;
    const unsigned bits = tests_bit ? 14 : 19;
    const uint32_t field = (((uint32_t)1 << bits) - 1) << 5;
    const uint64_t target = from + (uint64_t)qut_calls_a64_signed(word >> 5, bits) * INSTRUCTION_BYTES;
    if ((word & 0xff000010) != 0x54000000 && (word & 0x7c000000) != 0x34000000)
        w->failed = true;
    put(w, (word & ~field) | OVER << 5);
    put_branch(w, from + INSTRUCTION_BYTES);
    put_branch(w, target);
}

static void move(struct writer *w, uint32_t word, uint64_t from)
{
    switch ((enum qut_plan_move)w->function->instructions[0].move) {
    case QUT_MOVE_COPY: put(w, word); break;
    case QUT_MOVE_SKIP: break;
    case QUT_MOVE_ADDRESS:
        if ((word & 0x1f000000) == 0x10000000)
            move_address(w, word, from);
        else if ((word & 0x3b000000) == 0x18000000)
            move_literal(w, word, from);
        else
            w->failed = true;
        break;
    case QUT_MOVE_JUMP: // also b.al, b.nv
        put_branch(w, (word & 0xff000000) == 0x54000000
                          ? from + (uint64_t)qut_calls_a64_signed(word >> 5, 19) * INSTRUCTION_BYTES
                          : from + (uint64_t)qut_calls_a64_signed(word, 26) * INSTRUCTION_BYTES);
        break;
    case QUT_MOVE_CONDITION: move_condition(w, word, from); break;
    default: w->failed = true; break;
    }
}

static void put_copy(struct writer *w)
{
    const struct qut_plan_function *function = w->function;
    const uint64_t from = function->entry_vaddr + function->patch_at + w->place->load_bias;
    if (function->flags & (QUT_PLAN_SIGNED_A | QUT_PLAN_SIGNED_B))
        put(w, function->flags & QUT_PLAN_SIGNED_A ? PACIASP : PACIBSP);
    w->thunk->boundaries[0] = (struct calls_boundary){0, w->thunk->size_bytes};
    move(w, word_at(function->code), from);
    w->thunk->boundary_count = 1;
    if (function->flags & QUT_PLAN_ENDS)
        return;
    // A condition has its branch to what follows in its middle.
    const bool has_branch = function->instructions[0].move == QUT_MOVE_CONDITION;
    const unsigned behind =
        has_branch ? w->thunk->boundaries[0].to + (unsigned)INSTRUCTION_BYTES : w->thunk->size_bytes;
    w->thunk->boundaries[w->thunk->boundary_count++] = (struct calls_boundary){INSTRUCTION_BYTES, (uint8_t)behind};
    if (!has_branch)
        put_branch(w, from + INSTRUCTION_BYTES);
}

// Both kinds of thunks say which function it is, and go by way of a word of the block. What is only counted is counted
// by the stub: an addition that no handler can come into takes more registers than are free.
bool calls_thunk_aarch64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                         struct calls_thunk *thunk)
{
    uint32_t lead[QUT_CALLS_A64_LEAD_WORDS];
    struct writer w = {function, place, thunk, function->instruction_count != 1 || place->thinned_id};
    const uint64_t cell =
        place->block_address + (place->is_counted ? QUT_CALLS_BLOCK_COUNT_AT : QUT_CALLS_BLOCK_ENTER_AT);
    if (function->flags & (QUT_PLAN_SIGNED_A | QUT_PLAN_SIGNED_B))
        put(&w, function->flags & QUT_PLAN_SIGNED_A ? AUTIASP : AUTIBSP);
    w.failed |= !qut_calls_a64_lead(here(&w), cell, place->function_id, lead);
    for (unsigned i = 0; i < QUT_CALLS_A64_LEAD_WORDS; i++)
        put(&w, lead[i]);
    thunk->moved_at = thunk->size_bytes;
    put_copy(&w);
    thunk->moved_end = thunk->size_bytes;
    return !w.failed;
}

bool calls_patch_aarch64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                         struct calls_patch *patch)
{
    struct calls_patch_piece *piece = &patch->pieces[0];
    uint32_t word;
    *piece = (struct calls_patch_piece){.address = function->entry_vaddr + function->patch_at + place->load_bias,
                                        .size_bytes = INSTRUCTION_BYTES};
    const bool is_near = qut_calls_a64_branch(piece->address, place->thunk_address, &word);
    for (unsigned i = 0; i < INSTRUCTION_BYTES; i++)
        piece->bytes[i] = (uint8_t)(word >> i * 8);
    memcpy(piece->original, function->code, INSTRUCTION_BYTES);
    return is_near && function->patch_bytes == INSTRUCTION_BYTES;
}
