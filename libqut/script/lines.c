// SPDX-License-Identifier: Apache-2.0
// Lines of scripts, counted in their text while the process goes on: it counts if the script is there, with the same
// text at the same place, before and after.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"

enum { TEXT_BYTES_MAX = 64 << 20, PIECE_BYTES = 1 << 16, END_BYTES = 256 };

static void forget_lines(struct script_source *script)
{
    free(script->line_starts);
    script->line_starts = NULL;
    script->line_count = script->line_capacity = 0;
    script->is_read = false;
}

struct reading {
    struct script_source *script;
    bool has_failed;
};

static void note_line(void *context, uint32_t position)
{
    struct reading *reading = context;
    struct script_source *script = reading->script;
    if (script->line_count == script->line_capacity) {
        size_t wanted = script->line_capacity ? script->line_capacity * 2 : 256;
        uint32_t *more = realloc(script->line_starts, wanted * sizeof *more);
        reading->has_failed |= !more;
        if (!more)
            return;
        script->line_starts = more;
        script->line_capacity = wanted;
    }
    script->line_starts[script->line_count++] = position;
}

// Of the beginning and the end: what was moved has both.
static bool hash_ends(const struct elf_art_memory *memory, const struct v8_characters *text, uint64_t *hash)
{
    uint8_t bytes[END_BYTES];
    uint64_t size = (uint64_t)text->count * text->bytes_each, some = size < END_BYTES ? size : END_BYTES;
    uint64_t starts[] = {text->address, text->address + size - some};
    *hash = UINT64_C(0xcbf29ce484222325) ^ size ^ (uint64_t)text->bytes_each << 56;
    for (unsigned end = 0; end < 2; end++) {
        if (!elf_art_read(memory, starts[end], bytes, (size_t)some))
            return false;
        for (size_t i = 0; i < some; i++)
            *hash = (*hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return true;
}

static bool count_lines(const struct elf_art_memory *memory, const struct v8_characters *text,
                        struct script_source *script)
{
    struct reading reading = {script, false};
    struct v8_line_count lines = {0};
    uint8_t *bytes = malloc(PIECE_BYTES);
    uint64_t size = (uint64_t)text->count * text->bytes_each;
    forget_lines(script);
    for (uint64_t at = 0; bytes && at < size && !reading.has_failed; at += PIECE_BYTES) {
        size_t some = size - at < PIECE_BYTES ? (size_t)(size - at) : PIECE_BYTES;
        reading.has_failed |= !elf_art_read(memory, text->address + at, bytes, some);
        if (!reading.has_failed)
            v8_count_lines(&lines, bytes, some / text->bytes_each, text->bytes_each, note_line, &reading);
    }
    free(bytes);
    return bytes && !reading.has_failed;
}

// False: it is not there any more, or cannot be read.
static bool read_lines(const struct script_machine *v8, const struct elf_art_memory *memory,
                       struct script_source *script)
{
    struct v8_characters text, after;
    uint64_t hash, hash_after;
    if (!script->seen.source || !v8_holds_script(&v8->layout, memory, &script->seen) ||
        !v8_find_characters(&v8->layout, memory, script->seen.source, &text) ||
        (uint64_t)text.count * text.bytes_each > TEXT_BYTES_MAX || !hash_ends(memory, &text, &hash))
        return false;
    bool is_same = script->line_starts && script->text_hash == hash;
    if (!is_same && !count_lines(memory, &text, script))
        return false;
    script->text_hash = hash;
    // What was read while it was moved is no text of it.
    return v8_holds_script(&v8->layout, memory, &script->seen) &&
           v8_find_characters(&v8->layout, memory, script->seen.source, &after) && after.address == text.address &&
           after.count == text.count && hash_ends(memory, &after, &hash_after) && hash_after == hash;
}

uint32_t script_line_of(struct qut_target *target, uint32_t number, int32_t position)
{
    struct script_machine *v8 = target->v8;
    if (!number || number > v8->script_count || position < 0)
        return 0;
    struct script_source *script = v8->scripts[number - 1];
    if (!script->is_read && !script->is_unread) {
        script->is_read = read_lines(v8, &target->machine->memory, script);
        script->is_unread = !script->is_read;
        if (!script->is_read)
            forget_lines(script);
    }
    if (!script->is_read)
        return 0;
    size_t low = 0, high = script->line_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (script->line_starts[middle] <= (uint32_t)position)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t line = 1 + (uint64_t)low + (script->seen.first_line > 0 ? (uint64_t)script->seen.first_line : 0);
    return line < 1u << V8_LINE_BITS ? (uint32_t)line : 0;
}

void script_name(struct qut_target *target, struct script_stack *stack)
{
    struct script_machine *v8 = target->v8;
    for (size_t i = 0; v8 && i < stack->count; i++) {
        struct v8_place *place = &stack->places[i];
        if (!place->function)
            continue;
        struct script_function *function = v8->functions[place->function - 1];
        place->line = script_line_of(target, function->script, place->position);
        if (function->is_finished)
            continue;
        char name[48];
        uint32_t line = script_line_of(target, function->script, function->start);
        if (line)
            snprintf(name, sizeof name, "(anonymous:%u)", (unsigned)line);
        else
            strcpy(name, "(anonymous)");
        function->name = strdup(name);
        function->is_finished = true;
    }
}
