// SPDX-License-Identifier: Apache-2.0
// A thread's functions of JavaScript among the frames of its walk. The thread reads its own heap, in the middle of
// whatever it does there, a collection included: so each object has to be what it should be when it is read, and
// nothing is read that the kernel has not looked at first.
#include <string.h>

#include "libqut/javascript/inside.h"
#include "libqut/modules/own_memory.h"
#include "libqut/os/task.h"

struct functions_rooms javascript_rooms = {.room_bytes = sizeof(struct javascript_room)};
static_assert(offsetof(struct javascript_room, room) == 0, "taken by its first part");

void javascript_after_fork(void)
{
    functions_rooms_after_fork(&javascript_rooms);
    functions_table_after_fork(&javascript_functions);
}

// ---- frames

// Its own code has rules nowhere, and what it made is in no module: their callers are guesses.
static bool has_guess(const struct walk_noted_walk *notes, size_t count)
{
    size_t noted_count = notes->noted_count < count ? notes->noted_count : count;
    for (size_t i = 1; i < noted_count; i++)
        if (notes->flags[i] & QUT_FRAME_GUESSED)
            return true;
    return false;
}

// Code that V8 made, in no module; or its own, which is in its module, or in a part of it that is mapped a second time.
static bool is_its_code(const struct javascript_known *known, const struct modules *modules, uint64_t pc, bool *is_made)
{
    const struct module *module = modules_at(modules, (uintptr_t)pc);
    *is_made = !module;
    return !module || memcmp(module->canary, known->canary, sizeof known->canary) == 0;
}

// The thread's own stack needs no kernel.
static void read_frames(struct elf_art_piece *pieces, size_t count)
{
    bool is_own = true;
    for (size_t i = 0; i < count; i++)
        is_own = is_own && walk_has_on_own_stack((uintptr_t)pieces[i].address, V8_FRAME_BYTES);
    if (!is_own) {
        elf_art_read_pieces(&modules_own_memory, pieces, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = pieces[i].bytes;
        for (size_t at = 0; at < V8_FRAME_BYTES; at += sizeof(uintptr_t)) {
            uintptr_t word = os_load((uintptr_t)pieces[i].address + at);
            memcpy(bytes + at, &word, sizeof word);
        }
        pieces[i].got = V8_FRAME_BYTES;
    }
}

static void take_places(const struct javascript_known *known, struct javascript_room *room,
                        const struct modules *modules, size_t count)
{
    struct v8_known *seen = &room->known;
    bool is_made;
    room->place_count = 0;
    for (size_t first = 0; first + 1 < count;) {
        size_t asked = 0, i = first;
        for (; i + 1 < count && asked < V8_ASKED_MAX; i++) {
            uint64_t pointer = v8_frame_pointer(room->native[i].sp, room->native[i + 1].sp);
            if (!pointer || !(room->native[i + 1].flags & QUT_FRAME_GUESSED) ||
                !is_its_code(known, modules, room->native[i].lookup_pc, &is_made))
                continue;
            seen->pieces[asked] = (struct elf_art_piece){
                .address = pointer - V8_FRAME_BYTES, .bytes = room->frame_bytes[asked], .size = V8_FRAME_BYTES};
            room->pointers[asked++] = pointer;
        }
        first = i;
        read_frames(seen->pieces, asked);
        for (size_t j = 0; j < asked; j++) {
            if (room->place_count == V8_PLACES_MAX || seen->pieces[j].got != V8_FRAME_BYTES ||
                !v8_frame_of(&known->layout, room->frame_bytes[j], &seen->frames[room->place_count]))
                continue;
            room->places[room->place_count++] = (struct v8_place){.frame_pointer = room->pointers[j], .position = -1};
        }
    }
}

static uint32_t number(void *context, const struct v8_function *function)
{
    (void)context;
    return javascript_number_of(function);
}

// ---- both

// As from outside (libqut/script/merge.c): made code becomes its function; behind the machine's own the function is a
// frame more; and what a frame holds proves its pointer, so its caller is no guess.
static void put_frame(const struct javascript_known *known, const struct javascript_room *room, size_t count,
                      size_t index, uint32_t mark, bool *proves_caller, struct functions_putting *putting)
{
    const struct qut_frame *frame = &room->native[index];
    uint32_t flags = *proves_caller ? frame->flags & ~(uint32_t)QUT_FRAME_GUESSED : frame->flags;
    bool is_made = false, is_interrupted = frame->flags & QUT_FRAME_INTERRUPTED;
    uint64_t pointer = index + 1 < count ? v8_frame_pointer(frame->sp, room->native[index + 1].sp) : 0;
    const struct v8_place *place = pointer ? v8_place_at(room->places, room->place_count, pointer) : NULL;
    if (place && (!is_its_code(known, putting->notes->modules, frame->lookup_pc, &is_made) ||
                  (is_made && is_interrupted && v8_is_near_edge(&modules_own_memory, frame->lookup_pc))))
        place = NULL;
    *proves_caller = place && (is_made || !is_interrupted);
    bool has_function = place && place->function;
    if (!has_function || !is_made)
        functions_put(putting, frame->lookup_pc, flags);
    if (!has_function)
        return;
    functions_meet(&javascript_functions, place->function, mark);
    functions_put(putting, V8_NUMBER_BASE | (uint64_t)place->function << V8_LINE_BITS,
                  QUT_FRAME_DEX | (is_made ? flags & (QUT_FRAME_GUESSED | QUT_FRAME_INTERRUPTED) : 0u));
}

static size_t merge_in(const struct javascript_known *known, const struct javascript_room *room,
                       struct walk_noted_walk *notes, size_t count, uint32_t mark)
{
    struct functions_putting putting = {.notes = notes};
    bool proves_caller = false;
    for (size_t i = 0; i < count; i++)
        put_frame(known, room, count, i, mark, &proves_caller, &putting);
    return functions_put_all(&putting);
}

size_t javascript_merge(struct walk_noted_walk *notes, size_t count, bool is_interrupted, uint32_t mark)
{
    const struct javascript_known *known = atomic_load_explicit(&javascript_known, memory_order_seq_cst);
    if (!known || count < 2 || count > WALK_NOTED_MAX || !notes->modules || !notes->sps || !has_guess(notes, count))
        return 0;
    struct javascript_room *room = functions_room_take(&javascript_rooms, os_thread_id());
    if (!room)
        return 0;
    const struct v8_numbers numbers = {.number = number};
    walk_note_places(notes, count, is_interrupted, room->native);
    for (size_t i = 0; i < count; i++) // the machine's are left by the slow way, which has noted their stack pointers
        room->native[i].sp = i < notes->noted_count ? notes->sps[i] : 0;
    take_places(known, room, notes->modules, count);
    room->place_count =
        v8_know(&room->known, &known->layout, &modules_own_memory, &numbers, false, room->places, room->place_count);
    size_t merged = room->place_count ? merge_in(known, room, notes, count, mark) : 0;
    functions_room_give(&room->room);
    return merged;
}
