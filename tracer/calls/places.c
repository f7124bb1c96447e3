// SPDX-License-Identifier: Apache-2.0
// Places within functions: the instructions there make room for a jump, as those at an entry do.
#include "tracer/calls/places.h"

#include <string.h>

#include "tracer/calls/inside.h"

const char *calls_place_refusal_text(enum calls_place_refusal refusal)
{
    switch (refusal) {
    case CALLS_PLACE_OK: return "";
    case CALLS_PLACE_NO_CODE: return "no function is there";
    case CALLS_PLACE_NO_INSTRUCTION: return "no instruction begins there";
    case CALLS_PLACE_NO_ROOM: return "jumps lead into the bytes that a jump would need, or a call would return to them";
    case CALLS_PLACE_UNMOVABLE: return "the instruction there cannot be executed elsewhere";
    }
    return "";
}

// Whether the instructions of the region, one behind the other, have one that begins there.
static bool begins_instruction(const struct calls_work *work, const struct calls_region *region, uint64_t vaddr)
{
    const struct base_bytes code = input_image_some(work->image, region->start, region->end - region->start);
    uint64_t at = region->start;
    while (at < vaddr && at - region->start < code.size) {
        struct calls_instruction in;
        const size_t done = (size_t)(at - region->start);
        if (!work->decoder->read((struct base_bytes){code.data + done, code.size - done}, at, &in))
            return false;
        at += in.length;
    }
    return at == vaddr;
}

static void look(struct calls_work *work, struct calls_place *place)
{
    const struct calls_region *region = calls_region_at(work, place->vaddr);
    place->refusal = CALLS_PLACE_NO_CODE;
    if (!region || place->vaddr < region->start || place->vaddr >= region->end)
        return;
    place->refusal = CALLS_PLACE_NO_INSTRUCTION;
    if (!begins_instruction(work, region, place->vaddr))
        return;
    struct calls_region rest = *region;
    rest.start = place->vaddr;
    place->function =
        (struct qut_plan_function){.entry_vaddr = place->vaddr, .size_bytes = (uint32_t)(rest.end - rest.start)};
    calls_shape(work, &rest, &place->function);
    const bool is_jump = place->function.kind == QUT_PLAN_JUMP || place->function.kind == QUT_PLAN_NOPS;
    place->refusal = is_jump ? CALLS_PLACE_OK
                     : place->function.refusal == QUT_PLAN_UNDECODED || place->function.refusal == QUT_PLAN_UNMOVABLE
                         ? CALLS_PLACE_UNMOVABLE
                         : CALLS_PLACE_NO_ROOM;
}

static int look_at_all(struct calls_work *work, void *context)
{
    const struct calls_places *places = context;
    for (size_t i = 0; i < places->count; i++)
        look(work, &places->items[i]);
    return 0;
}

int calls_places_find(const char *path, const struct calls_places *places, struct base_error *error)
{
    return calls_look(path, NULL, look_at_all, (void *)(uintptr_t)places, error);
}
