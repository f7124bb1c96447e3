// SPDX-License-Identifier: Apache-2.0
// A file's traces, read one after the other: of all but the one that is read only what it adds to the whole is kept.
#include <inttypes.h>
#include <stdio.h>

#include "tracer/trace/file_blocks.h"
#include "tracer/trace/file_parts.h"
#include "tracer/trace/merge.h"
#include "tracer/trace/raw_trace.h"

struct parts_reader {
    struct trace first; // the only one so far; nodes NULL: there is none
    struct merger merger;
    bool is_merging;
    struct file_room room;
    struct trace_memory *own_memory;
    struct trace_vector own_notes; // of the whole recording, and of parts of calls
    struct trace_vector calls;     // struct call_events *; the trace's in the end
    struct trace_vector damages;   // char *, of parts of calls
    uint64_t damaged_blocks;
    bool misses_calls;
    uint64_t bad_count; // parts of which nothing could be made
    struct base_error first_error;
    char first_bad[256];
};

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
}

static bool copy_notes(struct parts_reader *reader, const struct image *image)
{
    const struct trace_note *notes = image->notes.items;
    for (size_t i = 0; i < image->notes.count; i++) {
        struct trace_note *place = trace_vector_add(&reader->own_notes);
        if (!place)
            return false;
        *place = (struct trace_note){.value = notes[i].value};
        place->name = trace_memory_text(reader->own_memory, "%s", notes[i].name);
        place->text = notes[i].text ? trace_memory_text(reader->own_memory, "%s", notes[i].text) : NULL;
        if (!place->name || (notes[i].text && !place->text))
            return false;
    }
    return true;
}

// Takes a part that was read, or frees it.
static int take_part(struct parts_reader *reader, struct trace *part, struct base_error *error)
{
    if (!reader->first.nodes && !reader->is_merging) {
        reader->first = *part;
        return 0;
    }
    if (!reader->is_merging) {
        reader->is_merging = trace_merge_begin(&reader->merger);
        int status = reader->is_merging ? trace_merge_add(&reader->merger, &reader->first, error) : no_memory(error);
        trace_free(&reader->first);
        if (status != 0) {
            trace_free(part);
            return -1;
        }
    }
    int status = trace_merge_add(&reader->merger, part, error);
    trace_free(part);
    return status;
}

static void note_bad(struct parts_reader *reader, size_t offset, const struct base_error *why)
{
    char text[160];
    if (!reader->bad_count++) {
        reader->first_error = *why;
        snprintf(reader->first_bad, sizeof reader->first_bad, "the trace at 0x%zx cannot be read: %s", offset,
                 base_error_text(why, text, sizeof text));
    }
}

static bool take_calls(struct parts_reader *reader, struct image *image)
{
    struct call_events **place = trace_vector_add(&reader->calls);
    if (!place)
        return false;
    struct call_events *calls = *place = image->calls;
    image->calls = NULL;
    const struct trace_note *notes = image->notes.items;
    for (size_t i = 0; i < image->notes.count; i++)
        if (notes[i].text && strcmp(notes[i].name, "command") == 0 &&
            !(calls->command = (const char *)call_events_keep(calls, notes[i].text, strlen(notes[i].text))))
            return false;
    char *const *damages = image->damages.items;
    for (size_t i = 0; i < image->damages.count; i++) {
        char **text = trace_vector_add(&reader->damages);
        if (!text || !(*text = trace_memory_text(reader->own_memory, "%s", damages[i])))
            return false;
    }
    reader->damaged_blocks += image->damaged_blocks;
    reader->misses_calls |= !image->is_complete || image->damaged_blocks || image->is_truncated;
    return call_events_settle(calls) && copy_notes(reader, image);
}

// -1: no memory. A part that is spoiled leaves the others.
static int read_part(struct parts_reader *reader, const uint8_t *bytes, size_t offset, size_t size,
                     struct base_error *error)
{
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return no_memory(error);
    struct image image = trace_image_new(memory);
    struct trace part = {0};
    struct base_error why = {0};
    int status = trace_image_of_file(&image, &reader->room, bytes + offset, size, &why);
    const bool has_samples = status == 0 && !image.is_notes_only && !image.calls;
    if (has_samples)
        status = trace_build(&image, &part, &why);
    if (has_samples && status == 0) {
        part.memory = memory;
        return take_part(reader, &part, error);
    }
    if (status != 0)
        note_bad(reader, offset, &why);
    else if (image.calls ? !take_calls(reader, &image) : !copy_notes(reader, &image))
        status = no_memory(&why);
    call_events_free(image.calls);
    trace_memory_free(memory);
    if (status == 0 || why.reason != BASE_ERR_NO_MEMORY)
        return 0;
    *error = why;
    return -1;
}

static bool add_damage(struct trace *trace, const char *text, const char *more)
{
    char **damages = trace_memory_take(trace->memory, trace->damage_count + 1, sizeof *damages);
    char *copy = trace_memory_text(trace->memory, "%s%s", text, more);
    if (!damages || !copy)
        return false;
    for (size_t i = 0; i < trace->damage_count; i++)
        damages[i] = trace->damages[i];
    damages[trace->damage_count++] = copy;
    trace->damages = damages;
    return true;
}

static bool add_bad(struct parts_reader *reader, struct trace *trace)
{
    trace->damaged_blocks += reader->bad_count;
    trace->is_complete = false;
    return add_damage(trace, reader->first_bad, reader->bad_count > 1 ? "; and others behind it" : "");
}

static bool add_calls(struct parts_reader *reader, struct trace *trace)
{
    char *const *damages = reader->damages.items;
    trace->calls = trace_memory_take(trace->memory, reader->calls.count, sizeof *trace->calls);
    if (!trace->calls)
        return false;
    memcpy(trace->calls, reader->calls.items, reader->calls.count * sizeof *trace->calls);
    trace->calls_count = reader->calls.count; // which frees them from now on
    reader->calls.count = 0;
    trace->damaged_blocks += reader->damaged_blocks;
    trace->is_complete = trace->is_complete && !reader->misses_calls;
    for (size_t i = 0; i < reader->damages.count; i++)
        if (!add_damage(trace, damages[i], ""))
            return false;
    return trace_add_call_nodes(trace) && trace_find_call_threads(trace);
}

static bool add_own_notes(struct parts_reader *reader, struct trace *trace)
{
    size_t count = reader->own_notes.count;
    struct trace_note *notes = trace_memory_take(trace->memory, trace->note_count + count, sizeof *notes);
    if (!notes)
        return false;
    for (size_t i = 0; i < trace->note_count; i++)
        notes[i] = trace->notes[i];
    const struct trace_note *own = reader->own_notes.items;
    for (size_t i = 0; i < count; i++) {
        struct trace_note *note = &notes[trace->note_count++];
        *note = (struct trace_note){.value = own[i].value};
        note->name = trace_memory_text(trace->memory, "%s", own[i].name);
        note->text = own[i].text ? trace_memory_text(trace->memory, "%s", own[i].text) : NULL;
        if (!note->name || (own[i].text && !note->text))
            return false;
    }
    trace->notes = notes;
    return true;
}

static int end_reader(struct parts_reader *reader, size_t size, struct trace *trace, struct base_error *error)
{
    if (reader->is_merging) {
        if (trace_merge_end(&reader->merger, trace, error) != 0) {
            trace_memory_free(reader->merger.memory);
            reader->is_merging = false;
            return -1;
        }
    } else if (reader->first.nodes) {
        *trace = reader->first;
        reader->first = (struct trace){0};
    } else if (reader->calls.count) {
        if (!trace_of_calls(trace, reader->calls.items, reader->calls.count))
            return no_memory(error);
    } else {
        *error = reader->first_error;
        return reader->bad_count ? -1 : base_fail(error, BASE_ERR_MALFORMED, "", 0, "it has notes only, and no trace");
    }
    trace->file_bytes = size;
    if ((reader->bad_count && !add_bad(reader, trace)) || (reader->own_notes.count && !add_own_notes(reader, trace)) ||
        (reader->calls.count && !add_calls(reader, trace)) || !trace_add_unticked(trace)) {
        trace_free(trace);
        return no_memory(error);
    }
    return 0;
}

static int read_all(struct parts_reader *reader, const uint8_t *bytes, size_t size, struct trace *trace,
                    struct base_error *error)
{
    struct trace_vector found = trace_vector(reader->own_memory, sizeof(struct file_part));
    if (!trace_parts_find(&found, bytes, size))
        return no_memory(error);
    const struct file_part *parts = found.items;
    int status = 0;
    for (size_t i = 0; i < found.count && status == 0; i++)
        status = read_part(reader, bytes, parts[i].offset, parts[i].size, error);
    if (status == 0)
        return end_reader(reader, size, trace, error);
    trace_free(&reader->first);
    if (reader->is_merging)
        trace_memory_free(reader->merger.memory);
    return -1;
}

int trace_read_file_bytes(const uint8_t *bytes, size_t size, struct trace *trace, struct base_error *error)
{
    struct base_error unwanted = {0};
    struct parts_reader reader = {.own_memory = trace_memory_new()};
    if (!error)
        error = &unwanted;
    if (!reader.own_memory)
        return no_memory(error);
    reader.own_notes = trace_vector(reader.own_memory, sizeof(struct trace_note));
    reader.calls = trace_vector(reader.own_memory, sizeof(struct call_events *));
    reader.damages = trace_vector(reader.own_memory, sizeof(char *));
    int status = trace_file_room_make(&reader.room) ? read_all(&reader, bytes, size, trace, error) : no_memory(error);
    trace_file_room_free(&reader.room);
    trace_merge_free(&reader.merger);
    struct call_events **calls = reader.calls.items;
    for (size_t i = 0; i < reader.calls.count; i++) // that are not the trace's
        call_events_free(calls[i]);
    trace_memory_free(reader.own_memory);
    return status;
}
