// SPDX-License-Identifier: Apache-2.0
// V8 in a target: where it is, and which functions a thread's frames are in.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/target/v8_inside.h"

enum { MET = 256, MET_BITS = 8, NO_POSITION = -1 };

// ---- where it is

struct exports {
    struct target_machine *machine;
    const struct target_image *image;
};

static uint64_t find_export(void *context, const char *name)
{
    const struct exports *exports = context;
    uint64_t size_bytes;
    return target_machine_export(exports->machine, exports->image, name, &size_bytes);
}

static void search(struct qut_target *target, struct target_machine *machine, struct target_v8 *v8)
{
    struct target_image *image = NULL;
    for (size_t i = 0; i < target->range_count && !image; i++)
        if (target->ranges[i].image->exports[TARGET_EXPORT_V8])
            image = target->ranges[i].image;
    uint64_t found = image ? image->exports[TARGET_EXPORT_V8] : 0;
    if (found == v8->found)
        return;
    v8->found = found;
    v8->image = image;
    v8->is_known = false;
    if (!found)
        return;
    struct exports exports = {machine, image};
    const struct v8_symbols symbols = {find_export, &exports};
    v8->is_known = v8_layout_read(&symbols, &machine->memory, &v8->layout, &v8->missing);
}

bool target_v8_look(struct qut_target *target)
{
    struct target_machine *machine = target_machine(target);
    if (!machine)
        return false;
    if (!target->v8)
        target->v8 = calloc(1, sizeof *target->v8);
    if (!target->v8)
        return false;
    target_machine_search(machine);
    search(target, machine, target->v8);
    return target->v8->is_known;
}

void target_free_v8(struct qut_target *target)
{
    if (!target->v8)
        return;
    target_v8_free_functions(target->v8);
    free(target->v8);
    target->v8 = NULL;
}

// ---- one thread

struct target_v8_stack *target_v8_stack_new(void)
{
    struct target_v8_stack *stack = calloc(1, sizeof *stack);
    if (stack)
        stack->places = calloc(TARGET_V8_PLACES_MAX, sizeof *stack->places);
    if (stack && stack->places)
        return stack;
    free(stack);
    return NULL;
}

void target_v8_stack_free(struct target_v8_stack *stack)
{
    if (!stack)
        return;
    free(stack->places);
    free(stack);
}

struct target_v8_stack *target_v8_stack_copy(const struct target_v8_stack *stack)
{
    struct target_v8_stack *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *stack;
    copy->places = malloc((stack->count + 1) * sizeof *copy->places);
    if (!copy->places) {
        free(copy);
        return NULL;
    }
    memcpy(copy->places, stack->places, stack->count * sizeof *copy->places);
    return copy;
}

// Recursion meets the same functions, at the same bytecode, again and again.
struct taking {
    struct target_v8 *v8;
    const struct elf_art_memory *memory;
    struct target_v8_stack *stack;
    struct {
        uint64_t address;
        uint32_t number;
    } functions[MET];
    struct {
        uint64_t bytecodes;
        uint32_t offset;
        int32_t position;
    } positions[MET];
};

static unsigned slot_of(uint64_t value)
{
    return (unsigned)((value >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MET_BITS));
}

static uint32_t number_of(struct taking *taking, uint64_t address)
{
    struct v8_function function;
    unsigned slot = slot_of(address);
    if (taking->functions[slot].address != address) {
        taking->functions[slot].address = address;
        taking->functions[slot].number = v8_read_function(&taking->v8->layout, taking->memory, address, &function)
                                             ? target_v8_intern(taking->v8, &function)
                                             : 0;
    }
    return taking->functions[slot].number;
}

static int32_t position_of(struct taking *taking, const struct v8_frame *frame)
{
    unsigned slot = slot_of(frame->bytecodes ^ (uint64_t)frame->offset << 20);
    if (taking->positions[slot].bytecodes != frame->bytecodes || taking->positions[slot].offset != frame->offset) {
        taking->positions[slot].bytecodes = frame->bytecodes;
        taking->positions[slot].offset = frame->offset;
        taking->positions[slot].position =
            v8_position_at(&taking->v8->layout, taking->memory, frame->bytecodes, frame->offset);
    }
    return taking->positions[slot].position;
}

static void take_one(struct taking *taking, uint64_t frame_pointer, const uint8_t bytes[V8_FRAME_BYTES])
{
    struct target_v8_stack *stack = taking->stack;
    struct v8_frame frame;
    if (stack->count == TARGET_V8_PLACES_MAX || !v8_frame_of(&taking->v8->layout, bytes, &frame))
        return;
    uint32_t number = number_of(taking, frame.function);
    if (number)
        stack->places[stack->count++] =
            (struct target_v8_place){.frame_pointer = frame_pointer,
                                     .function = number,
                                     .position = frame.bytecodes ? position_of(taking, &frame) : NO_POSITION};
}

static struct target_v8 *begin(struct qut_target *target, struct target_v8_stack *stack, struct taking *taking)
{
    stack->count = stack->named = 0;
    if (!target->v8 || !target->v8->is_known || !target->machine)
        return NULL;
    taking->v8 = target->v8;
    taking->memory = &target->machine->memory;
    taking->stack = stack;
    memset(taking->functions, 0, sizeof taking->functions);
    memset(taking->positions, 0, sizeof taking->positions);
    return target->v8;
}

// The machine maps its builtins a second time, near the code that it makes: V8 12 on.
static bool is_its_image(const struct target_v8 *v8, const struct target_image *image)
{
    return image == v8->image ||
           (image->build_id_size && image->build_id_size == v8->image->build_id_size &&
            memcmp(image->build_id, v8->image->build_id, image->build_id_size) == 0) ||
           (image->inode && image->inode == v8->image->inode && image->device == v8->image->device);
}

// Made by the machine: in no image, or in its own where that has no rules.
static bool is_its_code(const struct qut_target *target, uint64_t pc, bool *is_made)
{
    const struct target_code_range *ranges = target->ranges;
    size_t low = 0, high = target->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == target->range_count || ranges[low].start > pc)
        return false;
    const struct target_image *image = ranges[low].image;
    *is_made = !image->is_elf;
    return *is_made || (is_its_image(target->v8, image) && image->table_state == TARGET_TABLE_READY &&
                        !target_has_row(&image->stored.table, pc - image->load_bias));
}

// Where a frame's pointer is, if it stands: the next frame is its caller's. 0: it has none.
static uint64_t pointer_of(const struct qut_frame *frames, size_t count, size_t index)
{
    enum { LINK_BYTES = 16, LEAST_BYTES = 16 };
    if (index + 1 >= count)
        return 0;
    uint64_t pointer = frames[index + 1].sp - LINK_BYTES;
    // What lies below sp is left from before.
    return pointer >= frames[index].sp + LEAST_BYTES && pointer < frames[index + 1].sp ? pointer : 0;
}

void target_v8_take_frames(struct qut_target *target, const struct qut_frame *frames, size_t count,
                           struct target_v8_stack *stack)
{
    struct taking taking;
    bool is_made;
    if (!begin(target, stack, &taking))
        return;
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t pointer = pointer_of(frames, count, i);
        uint8_t bytes[V8_FRAME_BYTES];
        if (pointer && is_its_code(target, frames[i].lookup_pc, &is_made) &&
            elf_art_read(taking.memory, pointer - sizeof bytes, bytes, sizeof bytes))
            take_one(&taking, pointer, bytes);
    }
}

void target_v8_take_copy(struct qut_target *target, const uint8_t *bytes, size_t size, uint64_t address,
                         struct target_v8_stack *stack)
{
    struct taking taking;
    if (!begin(target, stack, &taking))
        return;
    size_t first = V8_FRAME_BYTES + (size_t)(-address & 7);
    for (size_t at = first; at + 16 <= size; at += 8)
        if (v8_may_be_frame(&taking.v8->layout, bytes + at, address + at, address + size))
            take_one(&taking, address + at, bytes + at - V8_FRAME_BYTES);
}

void target_v8_name(struct qut_target *target, struct target_v8_stack *stack)
{
    struct target_v8 *v8 = target->v8;
    for (size_t i = 0; v8 && i < stack->count; i++) {
        struct target_v8_place *place = &stack->places[i];
        struct target_v8_function *function = v8->functions[place->function - 1];
        place->line = target_v8_line_of(target, function->script, place->position);
        if (function->is_finished)
            continue;
        char name[48];
        uint32_t line = target_v8_line_of(target, function->script, function->start);
        if (line)
            snprintf(name, sizeof name, "(anonymous:%u)", (unsigned)line);
        else
            strcpy(name, "(anonymous)");
        function->name = strdup(name);
        function->is_finished = true;
    }
}

// ---- the walk

static const struct target_v8_place *place_at(const struct target_v8_stack *stack, uint64_t frame_pointer)
{
    size_t low = 0, high = stack->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stack->places[middle].frame_pointer < frame_pointer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stack->count && stack->places[low].frame_pointer == frame_pointer ? &stack->places[low] : NULL;
}

static const struct target_v8_place *place_of(const struct qut_target *target, const struct target_v8_stack *stack,
                                              const struct qut_frame *frames, size_t count, size_t index, bool *is_made)
{
    uint64_t pointer = pointer_of(frames, count, index);
    const struct target_v8_place *place = pointer ? place_at(stack, pointer) : NULL;
    return place && is_its_code(target, frames[index].lookup_pc, is_made) ? place : NULL;
}

// Behind a call the frame says where it is. An interrupted one does so of the call before.
static uint64_t lookup_of(const struct target_v8_place *place, const struct qut_frame *frame)
{
    uint32_t line = frame->flags & QUT_FRAME_INTERRUPTED ? 0 : place->line;
    return TARGET_V8_BASE | (uint64_t)place->function << TARGET_V8_LINE_BITS | line;
}

// From the outermost frame on, so that each is moved once.
size_t target_v8_merge(struct qut_target *target, struct target_v8_stack *stack, struct qut_frame *frames, size_t count,
                       size_t max, struct qut_end *end)
{
    size_t more = 0;
    bool is_made;
    stack->named = 0;
    if (!target->v8 || stack->count == 0)
        return count;
    for (size_t i = 0; i < count; i++)
        if (place_of(target, stack, frames, count, i, &is_made))
            more += !is_made;
    size_t whole = count + more, to = whole;
    struct qut_frame *old = malloc((count + 1) * sizeof *old);
    if (!old)
        return count;
    memcpy(old, frames, count * sizeof *old);
    for (size_t i = count; i-- > 0;) {
        const struct target_v8_place *place = place_of(target, stack, old, count, i, &is_made);
        struct qut_frame frame = old[i];
        if (place && !is_made) {
            struct qut_frame function = {
                .pc = frame.pc, .lookup_pc = lookup_of(place, &frame), .sp = old[i + 1].sp, .flags = QUT_FRAME_SCRIPT};
            if (--to < max)
                frames[to] = function;
        } else if (place) {
            frame.lookup_pc = lookup_of(place, &frame);
            frame.flags |= QUT_FRAME_SCRIPT;
        }
        if (--to < max)
            frames[to] = frame;
        stack->named += place != NULL;
        if (i == end->guessed_frame)
            end->guessed_frame = (uint32_t)to;
    }
    free(old);
    if (whole <= max)
        return whole;
    end->reason = QUT_END_LIMIT;
    end->pc = frames[max - 1].pc;
    return max;
}
