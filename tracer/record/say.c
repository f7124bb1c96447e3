// SPDX-License-Identifier: Apache-2.0
// What the caller of a recording is told while it goes on.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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

// ---- tables

// What somebody waits for now.
struct tables_now {
    uint64_t done, left; // left: 0 where nobody waits; else with what is made ahead
    char name[64];       // of a file whose table is being made, without its folder
};

static void count(const struct tables_job *job, struct tables_now *now, bool *is_waited_for)
{
    now->left += !job->looks;
    *is_waited_for |= job->client_fd >= 0;
}

static struct tables_now tables_now(struct tables *tables)
{
    struct tables_now now = {0};
    bool is_waited_for = false;
    pthread_mutex_lock(&tables->mutex);
    now.done = tables->made + tables->made_ahead;
    for (const struct tables_job *job = tables->first; job; job = job->next)
        count(job, &now, &is_waited_for);
    for (const struct tables_job *job = tables->ahead; job; job = job->next)
        count(job, &now, &is_waited_for);
    for (unsigned i = 0; i < TABLES_WORKERS; i++) {
        const struct tables_job *job = tables->doing[i];
        if (job)
            count(job, &now, &is_waited_for);
        if (job && !job->looks) {
            const char *slash = strrchr(job->asked.path, '/');
            snprintf(now.name, sizeof now.name, "%.*s", (int)sizeof now.name - 1, slash ? slash + 1 : job->asked.path);
        }
    }
    pthread_mutex_unlock(&tables->mutex);
    return is_waited_for ? now : (struct tables_now){0};
}

void recorder_show(struct recorder *recorder, size_t done, size_t all)
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
    struct tables_now waited_for = {0};
    if (!all && recorder->has_tables)
        waited_for = tables_now(&recorder->tables);
    status.tables_done = waited_for.done;
    status.tables_left = waited_for.left;
    status.table = waited_for.name;
    for (struct process *process = recorder->processes; process && !all; process = process->next) {
        struct record_counts now;
        if (process->is_noted || !record_process_counts_now(process, &now))
            continue;
        record_counts_add(&status.counts, &now);
        status.threads_now += now.threads_live;
        status.file_bytes += atomic_load_explicit(&process->file_bytes, memory_order_relaxed);
    }
    recorder->options->status(recorder->options->context, &status);
}

void recorder_tell_waits(struct recorder *recorder, uint64_t now_ns)
{
    enum { PATIENCE_NS = 1000000000 };
    if (!recorder->options->tells_waits || recorder->has_told_waits || !recorder->has_tables)
        return;
    const struct tables_now tables = tables_now(&recorder->tables);
    recorder->has_told_waits = recorder->process_count != 0;
    if (!tables.left || recorder->has_told_waits)
        return;
    if (!recorder->waits_since_ns)
        recorder->waits_since_ns = now_ns;
    if (now_ns - recorder->waits_since_ns < PATIENCE_NS)
        return;
    recorder->has_told_waits = true;
    recorder_say(recorder, NULL, "nothing is recorded yet: tables are being made, %llu of %llu are there; now %s",
                 (unsigned long long)tables.done, (unsigned long long)(tables.done + tables.left),
                 *tables.name ? tables.name : "the next");
}
