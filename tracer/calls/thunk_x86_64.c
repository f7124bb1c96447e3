// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "formats/qut_calls.h"
#include "tracer/calls/inside.h"

enum { SHORT_JUMP_BYTES = 2, RAX_KEPT_AT = -24 };

struct writer {
    const struct qut_plan_function *function;
    const struct calls_thunk_place *place;
    struct calls_thunk *thunk;
    bool failed; // too far
};

static uint64_t here(const struct writer *w)
{
    return w->place->thunk_address + w->thunk->size_bytes;
}

static void put(struct writer *w, const void *bytes, size_t size)
{
    if (size > (size_t)QUT_CALLS_THUNK_BYTES_MAX - w->thunk->size_bytes) {
        w->failed = true;
        return;
    }
    memcpy(w->thunk->bytes + w->thunk->size_bytes, bytes, size);
    w->thunk->size_bytes = (uint8_t)(w->thunk->size_bytes + size);
}

static void put_byte(struct writer *w, uint8_t byte)
{
    put(w, &byte, 1);
}

static void put_u32(struct writer *w, uint32_t value)
{
    put(w, &value, 4);
}

// Whether *distance, from the end of an instruction, fits the 32 bits that it has.
static bool reaches(uint64_t from, uint64_t to, int32_t *distance)
{
    *distance = (int32_t)(uint32_t)(to - from);
    return (uint64_t)(int64_t)*distance == to - from;
}

static void put_distance(struct writer *w, uint64_t target, unsigned bytes_behind)
{
    int32_t distance;
    if (!reaches(here(w) + 4 + bytes_behind, target, &distance))
        w->failed = true;
    put_u32(w, (uint32_t)distance);
}

static void put_jump(struct writer *w, uint64_t target)
{
    put_byte(w, 0xe9);
    put_distance(w, target, 0);
}

// movl $value, offset(%rsp)
static void put_store(struct writer *w, int8_t offset, uint32_t value)
{
    put(w, (uint8_t[]){0xc7, 0x44, 0x24, (uint8_t)offset}, 4);
    put_u32(w, value);
}

static int32_t s32_at(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, 4);
    return value;
}

// Where an instruction that counts from its end goes.
static uint64_t target_of(const struct qut_plan_instruction *i, const uint8_t *bytes, uint64_t end)
{
    int64_t distance = i->length - i->operand_at == 1 ? (int8_t)bytes[i->operand_at] : s32_at(bytes + i->operand_at);
    return end + (uint64_t)distance;
}

// The original return address: what unwinders look up is then the function, not its copy. push sign-extends.
static void put_return_address(struct writer *w, uint64_t address)
{
    put_byte(w, 0x68);
    put_u32(w, (uint32_t)address);
    put_store(w, 4, (uint32_t)(address >> 32));
}

// ... by register or memory: FF /2 becomes FF /4, which jumps.
static void move_call_by(struct writer *w, const struct qut_plan_instruction *i, const uint8_t *bytes, uint64_t end)
{
    put_return_address(w, end);
    put(w, bytes, i->operand_at);
    put_byte(w, (uint8_t)((bytes[i->operand_at] & ~0x38u) | 4u << 3));
    if (i->move == QUT_MOVE_CALL_BY_ADDRESS)
        put_distance(w, end + (uint64_t)(int64_t)s32_at(bytes + i->operand_at + 1), 0);
    else
        put(w, bytes + i->operand_at + 1, (size_t)i->length - i->operand_at - 1);
}

static void move(struct writer *w, const struct qut_plan_instruction *i, const uint8_t *bytes, uint64_t end)
{
    switch ((enum qut_plan_move)i->move) {
    case QUT_MOVE_COPY: put(w, bytes, i->length); break;
    case QUT_MOVE_SKIP: break;
    case QUT_MOVE_ADDRESS:
        put(w, bytes, i->operand_at);
        put_distance(w, end + (uint64_t)(int64_t)s32_at(bytes + i->operand_at), i->length - i->operand_at - 4u);
        put(w, bytes + i->operand_at + 4, i->length - i->operand_at - 4u);
        break;
    case QUT_MOVE_JUMP: put_jump(w, target_of(i, bytes, end)); break;
    case QUT_MOVE_CONDITION:
        // 7x d8 or [prefix] 0f 8x d32: the condition is in the byte before the distance.
        put(w, (uint8_t[]){0x0f, (uint8_t)(0x80 | (bytes[i->operand_at - 1] & 0x0f))}, 2);
        put_distance(w, target_of(i, bytes, end), 0);
        break;
    case QUT_MOVE_LOOP: // over a jump to what follows, to a jump to the target
        put(w, bytes, i->operand_at);
        put(w, (uint8_t[]){SHORT_JUMP_BYTES, 0xeb, CALLS_JUMP_BYTES}, 3);
        put_jump(w, target_of(i, bytes, end));
        break;
    case QUT_MOVE_CALL:
        put_return_address(w, end);
        put_jump(w, target_of(i, bytes, end));
        break;
    case QUT_MOVE_CALL_BY:
    case QUT_MOVE_CALL_BY_ADDRESS: move_call_by(w, i, bytes, end); break;
    case QUT_MOVE_END: w->failed = true; break;
    }
}

static bool pushes(const struct qut_plan_instruction *i)
{
    return i->move == QUT_MOVE_CALL || i->move == QUT_MOVE_CALL_BY || i->move == QUT_MOVE_CALL_BY_ADDRESS;
}

static void put_instructions(struct writer *w)
{
    const struct qut_plan_function *function = w->function;
    uint64_t start = function->entry_vaddr + function->patch_at + w->place->load_bias;
    uint8_t from = 0;
    for (unsigned i = 0; i < function->instruction_count; i++) {
        const struct qut_plan_instruction *instruction = &function->instructions[i];
        w->thunk->boundaries[i] = (struct calls_boundary){from, w->thunk->size_bytes};
        if (pushes(instruction))
            w->thunk->pushes |= (uint8_t)(1u << i);
        move(w, instruction, function->code + from, start + from + instruction->length);
        from = (uint8_t)(from + instruction->length);
    }
    w->thunk->boundary_count = function->instruction_count;
    if (function->flags & QUT_PLAN_ENDS)
        return; // what stands behind it is another function
    w->thunk->boundaries[w->thunk->boundary_count++] = (struct calls_boundary){from, w->thunk->size_bytes};
    put_jump(w, start + from);
}

static void put_copy(struct writer *w)
{
    put_instructions(w);
    w->thunk->moved_end = w->thunk->size_bytes;
}

// A branch whose target comes later: where its distance is.
static unsigned put_branch_if_equal(struct writer *w)
{
    put(w, (uint8_t[]){0x0f, 0x84, 0, 0, 0, 0}, 6);
    return w->thunk->size_bytes;
}

static void branch_is_to_here(struct writer *w, unsigned behind)
{
    const uint32_t distance = w->thunk->size_bytes - behind;
    memcpy(w->thunk->bytes + behind - sizeof distance, &distance, sizeof distance);
}

// To a stub. Below the return address nothing is live at an entry: the stub reads these by their places there. moved_at
// 0: the copy is what follows.
static void put_way_to(struct writer *w, unsigned cell_at, unsigned moved_at)
{
    enum { JUMP_BY_BYTES = 6 };
    unsigned copy_at = moved_at ? moved_at : w->thunk->size_bytes + 3u * CALLS_STORE_BYTES + JUMP_BY_BYTES;
    uint64_t moved = w->place->thunk_address + copy_at;
    put_store(w, QUT_CALLS_THUNK_ID_AT, w->place->function_id);
    put_store(w, QUT_CALLS_THUNK_MOVED_LOW_AT, (uint32_t)moved);
    put_store(w, QUT_CALLS_THUNK_MOVED_HIGH_AT, (uint32_t)(moved >> 32));
    put(w, (uint8_t[]){0xff, 0x25}, 2);
    put_distance(w, w->place->block_address + cell_at, 0);
}

static void put_entering(struct writer *w)
{
    put_way_to(w, QUT_CALLS_BLOCK_ENTER_AT, 0);
    w->thunk->moved_at = w->thunk->size_bytes;
    put_copy(w);
}

// At a place within a function everything is live: the flags, and what lies below the stack pointer. The way back ends
// here, since the stub has no room for an address to jump by once the stack pointer is as it was.
static void put_place(struct writer *w)
{
    enum { LEA_BYTES = 8, JUMP_BY_BYTES = 6 };
    const unsigned back_at = w->thunk->size_bytes + (unsigned)LEA_BYTES + 3u * CALLS_STORE_BYTES + JUMP_BY_BYTES;
    const uint64_t back = w->place->thunk_address + back_at;
    put(w, (uint8_t[]){0x48, 0x8d, 0xa4, 0x24}, 4); // lea -256(%rsp), %rsp
    put_u32(w, (uint32_t)-QUT_CALLS_PLACE_BYTES);
    put_store(w, QUT_CALLS_PLACE_ID_AT, w->place->function_id);
    put_store(w, QUT_CALLS_PLACE_BACK_AT, (uint32_t)back);
    put_store(w, QUT_CALLS_PLACE_BACK_AT + 4, (uint32_t)(back >> 32));
    put(w, (uint8_t[]){0xff, 0x25}, 2);
    put_distance(w, w->place->block_address + QUT_CALLS_BLOCK_PLACE_AT, 0);
    put(w, (uint8_t[]){0x48, 0x8d, 0xa4, 0x24}, 4); // lea 256(%rsp), %rsp
    put_u32(w, QUT_CALLS_PLACE_BYTES);
    w->thunk->moved_at = w->thunk->size_bytes;
    put_copy(w);
    w->thunk->pushes |= QUT_CALLS_ORIGIN_LOWERS;
}

static const uint8_t keep_rax[] = {0x48, 0x89, 0x44, 0x24, (uint8_t)RAX_KEPT_AT};
static const uint8_t take_rax[] = {0x48, 0x8b, 0x44, 0x24, (uint8_t)RAX_KEPT_AT};

static bool knows_thread(const struct writer *w)
{
    return w->place->own_tls_offset == (int32_t)w->place->own_tls_offset;
}

// To rax: the thread's table. Equal: it has none.
static void put_table(struct writer *w)
{
    put(w, (uint8_t[]){0x64, 0x48, 0x8b, 0x04, 0x25}, 5); // mov %fs:own, %rax
    put_u32(w, (uint32_t)w->place->own_tls_offset);
    put(w, (uint8_t[]){0x48, 0x8b, 0x40, QUT_CALLS_OWN_COUNTS_AT}, 4); // mov counts(%rax), %rax
    put(w, (uint8_t[]){0x48, 0x85, 0xc0}, 3);                          // test %rax, %rax
}

// Adds 1 to the thread's own cell; where the thread has no table yet, by way of the stub.
static void put_counting(struct writer *w)
{
    put(w, keep_rax, sizeof keep_rax);
    unsigned branch_at = w->thunk->size_bytes;
    if (knows_thread(w)) {
        put_table(w);
        put(w, (uint8_t[]){0x74, 0}, 2); // je none
        branch_at = w->thunk->size_bytes;
        put(w, (uint8_t[]){0x48, 0xff, 0x80}, 3); // incq 8*cell(%rax)
        put_u32(w, w->place->function_id * 8);
        put(w, take_rax, sizeof take_rax);
        w->thunk->moved_at = w->thunk->size_bytes;
        put_copy(w);
        w->thunk->bytes[branch_at - 1] = (uint8_t)(w->thunk->size_bytes - branch_at);
        put_way_to(w, QUT_CALLS_BLOCK_COUNT_AT, w->thunk->moved_at);
        return;
    }
    put_way_to(w, QUT_CALLS_BLOCK_COUNT_AT, 0);
    w->thunk->moved_at = w->thunk->size_bytes;
    put_copy(w);
}

// Likewise; then, by what the cell has become, to the function or to the thunk that writes events, whose first
// instruction says the id. Not each 2^n-th: programs do things by turns, too. (A handler may come between and count:
// then one more is recorded, or one less.)
static void put_thinning(struct writer *w)
{
    put(w, keep_rax, sizeof keep_rax);
    put_table(w);
    const unsigned none = put_branch_if_equal(w);
    put(w, (uint8_t[]){0x48, 0xff, 0x80}, 3); // incq 8*cell(%rax)
    put_u32(w, w->place->function_id * 8);
    put(w, (uint8_t[]){0x48, 0x8b, 0x80}, 3); // mov 8*cell(%rax), %rax
    put_u32(w, w->place->function_id * 8);
    put(w, (uint8_t[]){0x69, 0xc0}, 2); // imul $multiplier, %eax, %eax
    put_u32(w, QUT_CALLS_THINNING_MULTIPLIER);
    put(w, (uint8_t[]){0x85, 0x05, 0, 0, 0, 0}, 6); // test %eax, mask(%rip)
    const unsigned behind_test = w->thunk->size_bytes;
    put(w, take_rax, sizeof take_rax);
    const unsigned entering = put_branch_if_equal(w);
    w->thunk->moved_at = w->thunk->size_bytes;
    put_copy(w);
    branch_is_to_here(w, entering);
    put_store(w, QUT_CALLS_THUNK_ID_AT, w->place->thinned_id);
    put_jump(w, w->place->enter_thunk + CALLS_STORE_BYTES);
    branch_is_to_here(w, none);
    put_way_to(w, QUT_CALLS_BLOCK_COUNT_AT, w->thunk->moved_at);
    while (w->thunk->size_bytes % sizeof(uint32_t) && !w->failed)
        put_byte(w, 0xcc); // never executed
    branch_is_to_here(w, behind_test);
    w->thunk->mask_at = w->thunk->size_bytes;
    put_u32(w, calls_thinning_mask(w->place->thinning_log2));
    w->failed |= !knows_thread(w);
}

bool calls_thunk_x86_64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                        struct calls_thunk *thunk)
{
    struct writer w = {function, place, thunk, false};
    if (place->is_place)
        put_place(&w);
    else if (place->thinned_id)
        put_thinning(&w);
    else if (place->is_counted)
        put_counting(&w);
    else
        put_entering(&w);
    return !w.failed;
}

static bool set_jump(struct calls_patch_piece *piece, uint64_t address, uint64_t target)
{
    int32_t distance;
    *piece = (struct calls_patch_piece){.address = address, .size_bytes = CALLS_JUMP_BYTES, .bytes = {0xe9}};
    bool is_near = reaches(address + CALLS_JUMP_BYTES, target, &distance);
    memcpy(piece->bytes + 1, &distance, 4);
    return is_near;
}

bool calls_patch_x86_64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                        struct calls_patch *patch)
{
    uint64_t address = function->entry_vaddr + function->patch_at + place->load_bias;
    uint64_t pad = function->pad_vaddr + place->load_bias;
    struct calls_patch_piece *first = &patch->pieces[0];
    if (function->kind == QUT_PLAN_NOPS || function->kind == QUT_PLAN_JUMP) {
        bool is_near = set_jump(first, address, place->thunk_address);
        memcpy(first->original, function->code, first->size_bytes);
        return is_near;
    }
    struct calls_patch_piece entry = {.address = address, .size_bytes = function->patch_bytes};
    memcpy(entry.original, function->code, entry.size_bytes <= SHORT_JUMP_BYTES ? entry.size_bytes : 0u);
    if (function->kind == QUT_PLAN_TRAP) {
        entry.bytes[0] = 0xcc;
        *first = entry;
        return true;
    }
    int64_t distance = (int64_t)(pad - (address + SHORT_JUMP_BYTES));
    memcpy(entry.bytes, (uint8_t[]){0xeb, (uint8_t)distance}, SHORT_JUMP_BYTES);
    bool is_near = set_jump(first, pad, place->thunk_address);
    memcpy(first->original, function->pad, CALLS_JUMP_BYTES);
    patch->pieces[patch->piece_count++] = entry;
    return is_near && distance >= INT8_MIN && distance <= INT8_MAX;
}
