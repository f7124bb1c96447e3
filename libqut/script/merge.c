// SPDX-License-Identifier: Apache-2.0
// Functions of JavaScript -> the frames of a walk. What such a frame holds also proves that its pointer is where the
// walk took it to be: so its caller is no guess.
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"

static const struct v8_place *place_of(const struct qut_target *target, const struct script_stack *stack,
                                       const struct qut_frame *frames, size_t count, size_t index, bool *is_made)
{
    *is_made = false;
    uint64_t pointer = index + 1 < count ? v8_frame_pointer(frames[index].sp, frames[index + 1].sp) : 0;
    const struct v8_place *place = pointer ? v8_place_at(stack->places, stack->count, pointer) : NULL;
    if (!place || !script_is_its_code(target, frames[index].lookup_pc, is_made))
        return NULL;
    bool is_interrupted = frames[index].flags & QUT_FRAME_INTERRUPTED;
    return *is_made && is_interrupted && v8_is_near_edge(&target->machine->memory, frames[index].lookup_pc) ? NULL
                                                                                                            : place;
}

// Behind a call the frame says where it is. An interrupted one does so of the call before.
static uint64_t lookup_of(const struct v8_place *place, const struct qut_frame *frame)
{
    uint32_t line = frame->flags & QUT_FRAME_INTERRUPTED ? 0 : place->line;
    return V8_NUMBER_BASE | (uint64_t)place->function << V8_LINE_BITS | line;
}

// Interrupted code of the machine itself may keep no frame: what is there then is its caller's.
static bool proves_caller(const struct v8_place *place, const struct qut_frame *frame, bool is_made)
{
    return place && (is_made || !(frame->flags & QUT_FRAME_INTERRUPTED));
}

static uint32_t first_guess(const struct qut_frame *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (frames[i].flags & QUT_FRAME_GUESSED)
            return (uint32_t)i;
    return QUT_NO_GUESS;
}

// From the outermost frame on, so that each is moved once.
size_t script_merge(struct qut_target *target, struct script_stack *stack, struct qut_frame *frames, size_t count,
                    size_t max, struct qut_end *end)
{
    struct qut_frame *native = stack->count ? malloc((count + 1) * sizeof *native) : NULL;
    size_t more = 0;
    bool is_made;
    stack->named = 0;
    if (!native || !target->v8 || !target->machine) {
        free(native);
        return count;
    }
    memcpy(native, frames, count * sizeof *native);
    for (size_t i = 0; i < count; i++) {
        const struct v8_place *place = place_of(target, stack, frames, count, i, &is_made);
        more += place && place->function && !is_made;
        if (proves_caller(place, &frames[i], is_made))
            native[i + 1].flags &= ~(uint32_t)QUT_FRAME_GUESSED;
    }
    size_t whole = count + more, to = whole;
    for (size_t i = count; i-- > 0;) {
        const struct v8_place *place = place_of(target, stack, native, count, i, &is_made);
        struct qut_frame frame = native[i];
        bool has_function = place && place->function;
        stack->named += has_function;
        if (has_function && !is_made) {
            const struct qut_frame function = {.pc = frame.pc,
                                               .lookup_pc = lookup_of(place, &frame),
                                               .sp = native[i + 1].sp,
                                               .flags = QUT_FRAME_SCRIPT};
            if (--to < max)
                frames[to] = function;
        } else if (has_function) {
            frame.lookup_pc = lookup_of(place, &frame);
            frame.flags |= QUT_FRAME_SCRIPT;
        }
        if (--to < max)
            frames[to] = frame;
    }
    free(native);
    whole = whole < max ? whole : max;
    end->guessed_frame = first_guess(frames, whole);
    if (count + more > max) {
        end->reason = QUT_END_LIMIT;
        end->pc = frames[max - 1].pc;
    }
    return whole;
}
