// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_notes.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 2 * sizeof(uint32_t) };

// Of a text as it is written, with its NUL.
static uint32_t bytes_of(const char *text)
{
    return text ? (uint32_t)strnlen(text, QUT_TRACE_FILE_NOTE_BYTES_MAX - 1) + 1 : 0;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
    uint32_t bytes = bytes_of(text);
    if (!bytes)
        return at;
    memcpy(at, text, bytes - 1);
    at[bytes - 1] = 0;
    return at + bytes;
}

int file_notes_write(struct trace_file *file, const struct trace_note *notes, size_t count, struct qutc_error *error)
{
    if (count > QUT_TRACE_FILE_NOTES_MAX)
        count = QUT_TRACE_FILE_NOTES_MAX;
    size_t bytes = HEAD_BYTES, room = QUT_TRACE_FILE_BLOCK_BYTES_MAX;
    uint32_t kept = 0;
    for (; kept < count; kept++) {
        size_t more =
            sizeof(struct qut_trace_file_note) + (size_t)bytes_of(notes[kept].name) + bytes_of(notes[kept].text);
        if (more > room - bytes)
            break;
        bytes += more;
    }
    if (!kept)
        return 0;
    uint8_t *contents = malloc(bytes);
    if (!contents)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "no memory for %zu notes", count);
    uint32_t head[2] = {kept, 0};
    memcpy(contents, head, sizeof head);
    uint8_t *at = contents + HEAD_BYTES, *texts = at + kept * sizeof(struct qut_trace_file_note);
    for (uint32_t i = 0; i < kept; i++, at += sizeof(struct qut_trace_file_note)) {
        struct qut_trace_file_note note = {
            .value = notes[i].value, .name_bytes = bytes_of(notes[i].name), .text_bytes = bytes_of(notes[i].text)};
        memcpy(at, &note, sizeof note);
        texts = put_text(put_text(texts, notes[i].name), notes[i].text);
    }
    int status = trace_file_block(file, QUT_TRACE_FILE_NOTES, contents, bytes, 0, error);
    free(contents);
    return status;
}

// A text with its NUL and no other; NULL: it is none. `bytes` 0: "".
static const char *take_text(struct qutc_cursor *cursor, uint32_t bytes)
{
    struct qutc_bytes text = qutc_read_bytes(cursor, bytes);
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

bool file_notes_read(struct qutc_bytes contents, struct trace_vector *to, bool *no_memory)
{
    struct qutc_cursor cursor = qutc_cursor(contents);
    uint32_t count = qutc_read_u32(&cursor);
    qutc_read_u32(&cursor);
    if (count > QUT_TRACE_FILE_NOTES_MAX)
        return false;
    struct qutc_bytes table = qutc_read_bytes(&cursor, count * sizeof(struct qut_trace_file_note));
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
    return !cursor.failed && qutc_cursor_left(&cursor) == 0;
}
