// SPDX-License-Identifier: Apache-2.0
// V8 in a target: where it is, and which functions a thread's frames are in.
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"

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

static void search(struct qut_target *target, struct target_machine *machine, struct script_machine *v8)
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

static void free_machine(struct qut_target *target)
{
    if (!target->v8)
        return;
    script_free_functions(target->v8);
    free(target->v8->known);
    free(target->v8);
    target->v8 = NULL;
}

bool script_look(struct qut_target *target)
{
    struct target_machine *machine = target_machine(target);
    if (!machine)
        return false;
    if (!target->v8)
        target->v8 = calloc(1, sizeof *target->v8);
    target->free_v8 = free_machine;
    if (!target->v8)
        return false;
    target_machine_search(machine);
    search(target, machine, target->v8);
    return target->v8->is_known;
}

// ---- one thread

struct script_stack *script_stack_new(void)
{
    struct script_stack *stack = calloc(1, sizeof *stack);
    if (stack)
        stack->places = calloc(V8_PLACES_MAX, sizeof *stack->places);
    if (stack && stack->places)
        return stack;
    free(stack);
    return NULL;
}

void script_stack_free(struct script_stack *stack)
{
    if (!stack)
        return;
    free(stack->places);
    free(stack);
}

struct script_stack *script_stack_copy(const struct script_stack *stack)
{
    struct script_stack *copy = calloc(1, sizeof *copy);
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
