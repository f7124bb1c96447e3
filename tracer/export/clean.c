// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/clean.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8_inline.h"

void export_clean_text(struct sink *sink, const char *text, char taken, char instead)
{
    if (!*text)
        text = "[no name]";
    for (;; text++) {
        size_t plain = base_utf8_plain(text, (const char[]){taken, '\0'});
        sink_bytes(sink, text, plain);
        text += plain;
        if (!*text)
            return;
        if ((uint8_t)*text >= 0x80) {
            size_t length = base_utf8_sequence(text);
            sink_text(sink, UTF8_REPLACEMENT);
            text += length ? length - 1 : 0;
        } else
            sink_bytes(sink, *text == taken || taken == ' ' ? &instead : " ", 1);
    }
}

const char *export_clean_thread_name(const struct trace_thread *thread, char text[CLEAN_THREAD_NAME_BYTES])
{
    if (thread->name[0])
        snprintf(text, CLEAN_THREAD_NAME_BYTES, "%.*s", (int)sizeof thread->name, thread->name);
    else
        snprintf(text, CLEAN_THREAD_NAME_BYTES, "thread %u", thread->tid);
    return text;
}

const char *export_clean_process_name(const struct trace *trace, const struct trace_thread *thread,
                                      char text[CLEAN_PROCESS_NAME_BYTES])
{
    const char *command = trace_command_of(trace, thread);
    size_t length = strcspn(command, " "), start = length;
    while (start > 0 && command[start - 1] != '/')
        start--;
    if (start < length)
        snprintf(text, CLEAN_PROCESS_NAME_BYTES, "%.*s", (int)(length - start), command + start);
    else
        snprintf(text, CLEAN_PROCESS_NAME_BYTES, "process %u", trace_pid_of(trace, thread));
    return text;
}
