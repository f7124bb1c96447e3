// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/clean.h"

#include <stdio.h>
#include <string.h>

#include "tracer/export/utf8.h"

static bool is_plain(uint8_t byte, char taken)
{
    return byte >= 0x20 && byte < 0x7f && (char)byte != taken;
}

void clean_text(struct sink *sink, const char *text, char taken, char instead)
{
    if (!*text)
        text = "[no name]";
    while (*text) {
        size_t plain = 0;
        while (is_plain((uint8_t)text[plain], taken))
            plain++;
        sink_bytes(sink, text, plain);
        text += plain;
        if (!*text)
            break;
        size_t length = utf8_sequence(text);
        if (length > 1)
            sink_bytes(sink, text, length);
        else if (length == 1)
            sink_bytes(sink, *text == taken || taken == ' ' ? &instead : " ", 1);
        else
            sink_text(sink, UTF8_REPLACEMENT);
        text += length ? length : 1;
    }
}

const char *clean_thread_name(const struct trace_thread *thread, char text[CLEAN_THREAD_NAME_BYTES])
{
    if (thread->name[0])
        snprintf(text, CLEAN_THREAD_NAME_BYTES, "%.*s", (int)sizeof thread->name, thread->name);
    else
        snprintf(text, CLEAN_THREAD_NAME_BYTES, "thread %u", thread->tid);
    return text;
}

const char *clean_process_name(const struct trace *trace, const struct trace_thread *thread,
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
