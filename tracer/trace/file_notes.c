// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_notes.h"

#include <string.h>

// A text with its NUL and no other; NULL: it is none. `bytes` 0: "".
static const char *take_text(struct base_cursor *cursor, uint32_t bytes)
{
    struct base_bytes text = base_read_bytes(cursor, bytes);
    if (cursor->failed || bytes > QUT_TRACE_FILE_NOTE_BYTES_MAX || memchr(text.data, 0, bytes) != text.data + bytes - 1)
        return NULL;
    return (const char *)text.data;
}

static struct trace_note *place_of(struct trace_vector *to, const char *name)
{
    struct trace_note *notes = to->items;
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(notes[i].name, name) == 0)
            return &notes[i];
    return to->count < QUT_TRACE_FILE_NOTES_MAX ? trace_vector_add(to) : NULL;
}

static char *copy_text(struct trace_memory *memory, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = trace_memory_take(memory, bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

bool trace_file_notes_read(struct base_bytes contents, struct trace_vector *to, bool *no_memory)
{
    struct base_cursor cursor = base_cursor(contents);
    uint32_t count = base_read_u32(&cursor);
    base_read_u32(&cursor);
    if (count > QUT_TRACE_FILE_NOTES_MAX)
        return false;
    struct base_bytes table = base_read_bytes(&cursor, count * sizeof(struct qut_trace_file_note));
    for (uint32_t i = 0; i < count && !cursor.failed; i++) {
        struct qut_trace_file_note note;
        memcpy(&note, table.data + i * sizeof note, sizeof note);
        const char *name = note.name_bytes ? take_text(&cursor, note.name_bytes) : NULL;
        const char *text = note.text_bytes ? take_text(&cursor, note.text_bytes) : NULL;
        if (!name || (note.text_bytes && !text))
            return false;
        struct trace_note *place = place_of(to, name);
        if (!place && !to->failed)
            return false; // too many
        char *own_name = copy_text(to->memory, name), *own_text = text ? copy_text(to->memory, text) : NULL;
        if (!place || !own_name || (text && !own_text)) {
            *no_memory = true;
            return false;
        }
        *place = (struct trace_note){.name = own_name, .text = own_text, .value = note.value};
    }
    return !cursor.failed && base_cursor_left(&cursor) == 0;
}
