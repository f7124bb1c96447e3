// SPDX-License-Identifier: Apache-2.0
// Frames of JavaScript of a thread that stands still, by their frame pointers.
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"

// The machine maps its builtins a second time, near the code that it makes: V8 12 on.
static bool is_its_image(const struct script_machine *v8, const struct target_image *image)
{
    return image == v8->image ||
           (image->build_id_size && image->build_id_size == v8->image->build_id_size &&
            memcmp(image->build_id, v8->image->build_id, image->build_id_size) == 0) ||
           (image->inode && image->inode == v8->image->inode && image->device == v8->image->device);
}

// Made by the machine: in no image, or in its own where that has no rules.
bool script_is_its_code(const struct qut_target *target, uint64_t pc, bool *is_made)
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

static uint32_t number(void *context, const struct v8_function *function)
{
    return script_intern(context, function);
}

static void know(struct qut_target *target, struct v8_known *known, struct script_stack *stack)
{
    const struct v8_numbers numbers = {number, target->v8};
    stack->count =
        v8_know(known, &target->v8->layout, &target->machine->memory, &numbers, true, stack->places, stack->count);
}

static struct v8_known *begin(struct qut_target *target, struct script_stack *stack)
{
    stack->count = stack->named = 0;
    struct script_machine *v8 = target->v8;
    if (!v8 || !v8->is_known || !target->machine)
        return NULL;
    if (!v8->known)
        v8->known = calloc(1, sizeof *v8->known);
    return v8->known;
}

static void add(struct qut_target *target, struct v8_known *known, struct script_stack *stack, uint64_t frame_pointer,
                const uint8_t bytes[V8_FRAME_BYTES])
{
    if (stack->count == V8_PLACES_MAX)
        return;
    struct v8_frame *frame = &known->frames[stack->count];
    if (!v8_frame_of(&target->v8->layout, bytes, frame))
        return;
    stack->places[stack->count++] = (struct v8_place){.frame_pointer = frame_pointer, .position = -1};
}

static void take_frames(struct qut_target *target, const struct qut_frame *frames, size_t count,
                        struct script_stack *stack)
{
    struct v8_known *known = begin(target, stack);
    bool is_made;
    for (size_t i = 0; known && i + 1 < count; i++) {
        uint64_t pointer = v8_frame_pointer(frames[i].sp, frames[i + 1].sp);
        uint8_t bytes[V8_FRAME_BYTES];
        if (pointer && script_is_its_code(target, frames[i].lookup_pc, &is_made) &&
            elf_art_read(&target->machine->memory, pointer - sizeof bytes, bytes, sizeof bytes))
            add(target, known, stack, pointer, bytes);
    }
    if (known)
        know(target, known, stack);
}

void script_take_thread(struct qut_target *target, size_t index, const struct qut_frame *frames, size_t count,
                        struct script_stack *stack)
{
    stack->count = stack->named = 0;
    if (index >= target->thread_count)
        return;
    struct qut_target_thread *thread = &target->threads[index];
    take_frames(target, frames, count, stack);
    // One that woke meanwhile has other frames there by now.
    if (thread->state != TARGET_REGISTERS_READ && target->kind->still_asleep &&
        !target->kind->still_asleep(target, thread))
        stack->count = 0;
}

void script_take_copy(struct qut_target *target, const uint8_t *bytes, size_t size, uint64_t address,
                      struct script_stack *stack)
{
    struct v8_known *known = begin(target, stack);
    size_t first = V8_FRAME_BYTES + (size_t)(-address & 7);
    for (size_t at = first; known && at + 16 <= size; at += 8)
        if (v8_may_be_frame(&target->v8->layout, bytes + at, address + at, address + size))
            add(target, known, stack, address + at, bytes + at - V8_FRAME_BYTES);
    if (known)
        know(target, known, stack);
}
