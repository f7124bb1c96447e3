// SPDX-License-Identifier: Apache-2.0
#include "tracer/info/printer.h"

#include <inttypes.h>

#include "cli/diagnostics.h"
#include "tracer/export/clean.h"
#include "tracer/names/short_name.h"

enum { STACK_SHOWN = 4, STACK_NAME_COLUMNS = 60 };

const char *info_stack_text(const struct printer *printer, uint32_t node, char text[INFO_STACK_BYTES])
{
    size_t used = 0;
    unsigned shown = 0;
    text[0] = 0;
    for (; node && node != TRACE_NONE; node = printer->trace->nodes[node].parent)
        for (size_t i = 0; i < names_count(printer->names, node); i++) {
            const char *function = names_at(printer->names, node, i)->function;
            if (shown++ == STACK_SHOWN) {
                snprintf(text + used, INFO_STACK_BYTES - used, " < ...");
                return text;
            }
            char name[4 * STACK_NAME_COLUMNS + 8];
            int length = snprintf(text + used, INFO_STACK_BYTES - used, "%s%s", used ? " < " : "",
                                  names_shorten(function, STACK_NAME_COLUMNS, name, sizeof name));
            used += length > 0 ? (size_t)length : 0;
            if (used >= INFO_STACK_BYTES - 8)
                return text;
        }
    return text;
}

const char *info_thread_text(const struct trace *trace, uint32_t index, char text[INFO_THREAD_BYTES])
{
    char name[CLEAN_THREAD_NAME_BYTES], process[CLEAN_PROCESS_NAME_BYTES];
    if (index == TRACE_NONE)
        return "?";
    const struct trace_thread *thread = &trace->threads[index];
    bool has_many = trace->process_count > 1;
    snprintf(text, INFO_THREAD_BYTES, "%s%s%s (%" PRIu32 ")",
             has_many ? export_clean_process_name(trace, thread, process) : "", has_many ? "/" : "",
             export_clean_thread_name(thread, name), thread->tid);
    return text;
}

void info_print_end(const struct printer *printer, const char *text)
{
    cli_print_name(printer->output, text);
    fputc('\n', printer->output);
}
