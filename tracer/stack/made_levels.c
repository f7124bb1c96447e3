// SPDX-License-Identifier: Apache-2.0
// What a virtual machine says of its frames is kept: recursion, and other threads, ask for one place again and again.
#include <stdlib.h>
#include <string.h>

#include "tracer/stack/stack_modules.h"

enum { LEVELS_MAX = 64 };

static bool is_of(const struct stack_made *made, const struct qut_frame *frame)
{
    return made->frame.pc == frame->pc && made->frame.lookup_pc == frame->lookup_pc &&
           made->frame.flags == frame->flags && made->frame.code_id == frame->code_id;
}

static const struct stack_made *ask(struct stack_modules *modules, const struct qut_frame *frame, uint64_t hash)
{
    struct stack_made made = {.frame = *frame};
    struct qut_made_level *levels = malloc(LEVELS_MAX * sizeof *levels);
    if (levels)
        made.count = qut_target_made_levels(modules->target, frame, levels, LEVELS_MAX, sizeof *levels);
    if (made.count && made.count <= LEVELS_MAX) {
        struct qut_made_level *fitting = realloc(levels, made.count * sizeof *levels);
        made.levels = fitting ? fitting : levels;
    } else {
        made.count = 0;
        free(levels);
    }
    if (!levels || !BASE_RESERVE(&modules->made, 1) ||
        !base_hash_add(&modules->made_index, hash, (uint32_t)modules->made.count)) {
        free(made.levels);
        modules->no_memory = true;
        return NULL;
    }
    struct stack_made *added = BASE_ADD(&modules->made);
    *added = made;
    return added;
}

const struct stack_made *stack_made_at(struct stack_modules *modules, const struct qut_frame *frame)
{
    if (!(frame->flags & (QUT_FRAME_JIT | QUT_FRAME_DEX)))
        return NULL;
    uint64_t hash = base_hash_word(base_hash_word(0, frame->lookup_pc), frame->flags);
    for (uint32_t step = 0, i; (i = base_hash_next(&modules->made_index, hash, &step)) != BASE_HASH_NONE;)
        if (is_of(&modules->made.items[i], frame))
            return &modules->made.items[i];
    return ask(modules, frame, hash);
}

void stack_made_free(struct stack_modules *modules)
{
    for (size_t i = 0; i < modules->made.count; i++)
        free(modules->made.items[i].levels);
    base_vector_free(&modules->made.vector);
    base_hash_free(&modules->made_index);
}
