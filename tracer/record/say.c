// SPDX-License-Identifier: Apache-2.0
// What the caller of a recording is told while it goes on.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock_inline.h"
#include "tracer/record/inside.h"

void recorder_say(const struct recorder *recorder, const char *subject, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (!recorder->options->say)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    recorder->options->say(recorder->options->context, subject && *subject ? subject : NULL, text);
}

void recorder_show(const struct recorder *recorder, size_t done, size_t all)
{
    if (!recorder->options->status)
        return;
    struct record_status status = {.elapsed_ns = base_clock_now_ns() - recorder->start_ns,
                                   .counts = recorder->counts_of_finished,
                                   .processes = recorder->process_count,
                                   .processes_now = recorder->live_count,
                                   .file_bytes = recorder->bytes_of_finished,
                                   .is_stopped = recorder->is_stopped,
                                   .has_ended = recorder->command.fd < 0,
                                   .done = done,
                                   .all = all};
    for (struct process *process = recorder->processes; process && !all; process = process->next) {
        struct record_counts now;
        if (process->finished_fd < 0 || !record_process_counts_now(process, &now))
            continue;
        record_counts_add(&status.counts, &now);
        status.threads_now += now.threads_live;
        status.file_bytes += atomic_load_explicit(&process->file_bytes, memory_order_relaxed);
    }
    recorder->options->status(recorder->options->context, &status);
}
