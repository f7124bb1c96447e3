// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/notes_write.h"

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

int collect_file_notes_write(struct trace_file *file, const struct trace_note *notes, size_t count,
                             struct base_error *error)
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
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for %zu notes", count);
    uint32_t head[2] = {kept, 0};
    memcpy(contents, head, sizeof head);
    uint8_t *at = contents + HEAD_BYTES, *texts = at + kept * sizeof(struct qut_trace_file_note);
    for (uint32_t i = 0; i < kept; i++, at += sizeof(struct qut_trace_file_note)) {
        struct qut_trace_file_note note = {
            .value = notes[i].value, .name_bytes = bytes_of(notes[i].name), .text_bytes = bytes_of(notes[i].text)};
        memcpy(at, &note, sizeof note);
        texts = put_text(put_text(texts, notes[i].name), notes[i].text);
    }
    int status = collect_trace_file_block(file, QUT_TRACE_FILE_NOTES, contents, bytes, 0, error);
    free(contents);
    return status;
}
