// SPDX-License-Identifier: Apache-2.0
// Files of many hosts and runs, put together: one clock, each process named with where it is from, and no recording
// twice.
#include "tracer/trace/together/inside.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 200, COMMAND_BYTES = 4096 };

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
}

// ---- one clock

static void shift_all(struct trace *trace, uint64_t by_ns)
{
    together_shift(&trace->start_ns, by_ns);
    together_shift(&trace->end_ns, by_ns);
    for (size_t i = 0; i < trace->process_count; i++) {
        together_shift(&trace->processes[i].start_ns, by_ns);
        together_shift(&trace->processes[i].end_ns, by_ns);
    }
    for (size_t i = 0; i < trace->thread_count; i++) {
        together_shift(&trace->threads[i].start_ns, by_ns);
        together_shift(&trace->threads[i].end_ns, by_ns);
    }
    for (size_t i = 0; i < trace->sample_count; i++) {
        together_shift(&trace->samples[i].first_ns, by_ns);
        together_shift(&trace->samples[i].last_ns, by_ns);
    }
    for (size_t i = 0; i < trace->mark_count; i++)
        together_shift(&trace->marks[i].time_ns, by_ns);
    for (size_t i = 0; i < trace->gap_count; i++) {
        together_shift(&trace->gaps[i].from_ns, by_ns);
        together_shift(&trace->gaps[i].to_ns, by_ns);
    }
    for (size_t i = 0; i < trace->module_count; i++) {
        together_shift(&trace->modules[i].load_ns, by_ns);
        together_shift(&trace->modules[i].unload_ns, by_ns);
    }
}

// By wrapping: a clock that was set to before the machine's start is one, too. A recording that does not know the date
// begins when the first one did.
static uint64_t clock_difference(const struct merger *merger, const struct trace *recording)
{
    const struct trace_recording *first = merger->recordings.items;
    const uint64_t began_ns = recording->realtime_ns         ? recording->realtime_ns
                              : merger->recordings.count > 0 ? first->start_ns
                                                             : recording->start_ns;
    return began_ns - recording->start_ns;
}

// ---- names

// One word without a slash: it stands behind the name of a program.
static void add_word(char name[NAME_BYTES], const char *word)
{
    size_t at = strlen(name);
    if (!word || !*word)
        return;
    if (at && at + 1 < NAME_BYTES)
        name[at++] = ',';
    for (; *word && at + 1 < NAME_BYTES; word++)
        name[at++] = *word == '/' ? ':' : (unsigned char)*word <= ' ' ? '_' : *word;
    name[at] = '\0';
}

static void name_of_file(char name[NAME_BYTES], const char *path)
{
    static const char own[] = ".qtrace";
    const char *base = strrchr(path, '/');
    add_word(name, base && base[1] ? base + 1 : path);
    const size_t length = strlen(name);
    if (length > sizeof own - 1 && strcmp(name + length - (sizeof own - 1), own) == 0)
        name[length - (sizeof own - 1)] = '\0';
}

static const char *keep_name(struct merger *merger, const struct trace_recording *told)
{
    char name[NAME_BYTES] = "";
    add_word(name, told->host);
    add_word(name, told->service);
    add_word(name, told->version);
    if (!*name)
        name_of_file(name, told->path);
    return trace_merge_text(merger, name);
}

// "/usr/bin/redis-server@web1 *:6379"
static bool name_processes(struct merger *merger, struct trace *recording, uint32_t index, const char *name)
{
    for (size_t i = 0; i < recording->process_count; i++) {
        struct trace_process *process = &recording->processes[i];
        const char *command = process->command ? process->command : "";
        const size_t program = strcspn(command, " ");
        char text[COMMAND_BYTES];
        if (program)
            snprintf(text, sizeof text, "%.*s@%s%s", (int)(program < sizeof text / 2 ? program : sizeof text / 2),
                     command, name, command + program);
        else
            snprintf(text, sizeof text, "process-%u@%s", (unsigned)process->pid, name);
        process->recording = index;
        process->command = trace_merge_text(merger, text);
        if (!process->command)
            return false;
    }
    return true;
}

// ---- recordings

static const struct trace_recording *find_same(const struct merger *merger, const struct trace *recording)
{
    static const uint8_t nobody[sizeof recording->identity];
    const struct trace_recording *recordings = merger->recordings.items;
    for (size_t i = 0; i < merger->recordings.count; i++)
        if (memcmp(recordings[i].identity, nobody, sizeof nobody) != 0 &&
            memcmp(recordings[i].identity, recording->identity, sizeof nobody) == 0 &&
            recordings[i].began_ns == recording->start_ns)
            return &recordings[i];
    return NULL;
}

static bool keep_text(struct merger *merger, const char **text)
{
    return !*text || (*text = trace_merge_text(merger, *text)) != NULL;
}

// NULL: no memory.
static struct trace_recording *add_recording(struct merger *merger, const struct trace *from,
                                             const struct trace_recording *told)
{
    struct trace_recording *recording = trace_vector_add(&merger->recordings);
    if (!recording)
        return NULL;
    *recording = (struct trace_recording){.path = told->path,
                                          .host = told->host,
                                          .service = told->service,
                                          .version = told->version,
                                          .name = keep_name(merger, told),
                                          .began_ns = from->start_ns,
                                          .hits = from->counts.hits,
                                          .present_samples = from->present_samples,
                                          .process_count = from->process_count,
                                          .is_complete = from->is_complete,
                                          .has_unticked = from->unticked_node != 0};
    memcpy(recording->identity, from->identity, sizeof recording->identity);
    const bool is_kept = recording->name && keep_text(merger, &recording->path) &&
                         keep_text(merger, &recording->host) && keep_text(merger, &recording->service) &&
                         keep_text(merger, &recording->version);
    return is_kept ? recording : NULL;
}

int together_add(struct merger *merger, struct trace *recording, const struct trace_recording *told,
                 struct base_error *error)
{
    const struct trace_recording *same = find_same(merger, recording);
    if (same)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "it is of the same recording as %s", same->path);
    const uint64_t by_ns = clock_difference(merger, recording);
    const uint32_t index = (uint32_t)merger->recordings.count;
    const size_t first_thread = merger->threads.count;
    struct trace_recording *added = add_recording(merger, recording, told);
    if (!added || !name_processes(merger, recording, index, added->name))
        return no_memory(error);
    shift_all(recording, by_ns);
    added->start_ns = recording->start_ns;
    added->end_ns = recording->end_ns;
    merger->is_of_recordings = true;
    merger->damage_of = added->name;
    merger->trace.file_bytes += recording->file_bytes;
    if (trace_merge_add(merger, recording, error) != 0)
        return -1;
    return together_calls_add(merger, recording, &(struct together_calls){index, by_ns, first_thread})
               ? 0
               : no_memory(error);
}

int together_end(struct merger *merger, struct trace *trace, struct base_error *error)
{
    if (trace_merge_end(merger, trace, error) != 0)
        return -1;
    together_calls_end(merger, trace);
    const size_t count = merger->recordings.count;
    char *name = trace_memory_text(merger->memory, "%zu recording%s", count, count == 1 ? "" : "s");
    trace->recordings = merger->recordings.items;
    trace->recording_count = count;
    trace->path = name;
    if (count > 1)
        trace->command = name;
    return name ? 0 : no_memory(error);
}
