// SPDX-License-Identifier: Apache-2.0
#include "tracer/probing/track.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/trace.h>

#include "base/clock_inline.h"
#include "libqut/arch/native.h"

enum { LARGE_BYTES = 128 << 20, SMALL_BYTES = 16 << 20, THREADS = 4, NODE_BITS = 4, EARLY_MAX = 10000 };

// ---- open

static int make_segment(struct track *track, struct base_error *error)
{
    struct segment_options options = {.segment_bytes = LARGE_BYTES,
                                      .thread_count = THREADS,
                                      .node_bits = NODE_BITS,
                                      .on_demand = true,
                                      .mode = QUT_TRACE_STREAM,
                                      .pid = (uint32_t)getpid(),
                                      .arch = (uint8_t)arch_native_arch.id,
                                      .word_bytes = sizeof(uintptr_t),
                                      .command = "qut probe"};
    int result = segment_create(&track->segment, &options);
    if (result != 0) {
        options.segment_bytes = SMALL_BYTES;
        result = segment_create(&track->segment, &options);
    }
    if (result != 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for values: %s", strerror(-result));
    track->thread = segment_thread_begin(&track->segment, (uint32_t)getpid(), "values", base_clock_now_ns());
    return 0;
}

static void *collect_in_thread(void *context)
{
    struct track *track = context;
    if (collect(&track->collected, &track->result, &track->error) == 0)
        track->error = (struct base_error){.reason = 0};
    return NULL;
}

// Signals are for the recorder.
static int start_collector(struct track *track, struct base_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int failed = pthread_create(&track->collector, NULL, collect_in_thread, track);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? base_fail(error, BASE_ERR_IO, "", 0, "pthread_create: %s", strerror(failed)) : 0;
}

int probing_track_open(struct track *track, const struct probe_script *script, int file_fd, struct base_error *error)
{
    track->maps = calloc(script->maps.count + 1, sizeof *track->maps);
    if (!track->maps || make_segment(track, error) != 0) {
        close(file_fd);
        return track->maps ? -1 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for values");
    }
    // That of the segment is closed with it, before the last of it is collected.
    const int segment_fd = fcntl(track->segment.fd, F_DUPFD_CLOEXEC, 0);
    track->collected = (struct collect_options){
        .segment_fd = segment_fd, .file_fd = file_fd, .follow = true, .live = true, .stop_fd = -1, .process_fd = -1};
    const int status = segment_fd < 0 ? base_fail(error, BASE_ERR_IO, "", 0, "no descriptor: %s", strerror(errno))
                                      : start_collector(track, error);
    if (status == 0) {
        atomic_store_explicit(&track->is_open, true, memory_order_release);
        return 0;
    }
    segment_close(&track->segment);
    close(file_fd);
    if (segment_fd >= 0)
        close(segment_fd);
    return -1;
}

bool probing_track_is_open(struct track *track)
{
    return atomic_load_explicit(&track->is_open, memory_order_acquire) && !track->is_closed;
}

// ---- marks

static bool put(struct track *track, uint64_t time_ns, uint32_t kind, uint64_t id, uint32_t name)
{
    struct qut_trace_writer *writer = track->thread && name ? segment_begin(track->thread, 0, 0, 0) : NULL;
    if (!writer)
        return false;
    const int stored = segment_mark(&track->segment, track->thread, writer, time_ns, kind, id, name);
    segment_end_of(track->thread);
    return stored != QUT_STORED_NOT;
}

uint32_t probing_track_name(struct track *track, const char *text)
{
    return segment_string(&track->segment, text, strlen(text));
}

void probing_track_count(struct track *track, uint64_t time_ns, uint32_t name, int64_t value)
{
    track->lost_values += !put(track, time_ns, QUT_TRACE_MARK_COUNTER, (uint64_t)value, name);
}

static void write_line(struct track *track, const char *text)
{
    const uint64_t now_ns = base_clock_now_ns(), number = track->lines++;
    if (!track->lost_name)
        track->lost_name = probing_track_name(track, "printf: lines without room");
    track->lost_lines += !put(track, now_ns, QUT_TRACE_MARK_INSTANT, number, probing_track_name(track, text));
}

void probing_track_lost(struct track *track)
{
    if (track->lost_lines == track->told_lines || !track->lost_name)
        return;
    track->told_lines = track->lost_lines;
    probing_track_count(track, base_clock_now_ns(), track->lost_name, (int64_t)track->lost_lines);
}

void probing_track_early(struct track *track)
{
    for (size_t i = 0; i < track->early.count; i++) {
        write_line(track, track->early.items[i]);
        free(track->early.items[i]);
    }
    base_vector_free(&track->early.vector);
}

// As one line, without its end.
static char *line_of(const char *text, size_t length)
{
    while (length && text[length - 1] == '\n')
        length--;
    char *line = strndup(text, length);
    for (char *at = line; line && *at; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    return line;
}

void probing_track_line(struct track *track, const char *text, size_t length)
{
    char *line = line_of(text, length);
    if (!line || (!*line && length)) {
        track->is_short |= !line;
    } else if (probing_track_is_open(track)) {
        probing_track_early(track);
        write_line(track, line);
    } else {
        char **place = track->early.count < EARLY_MAX ? BASE_ADD(&track->early) : NULL;
        if (place) {
            *place = line;
            return;
        }
        track->lost_lines++;
    }
    free(line);
}

// ---- the end

struct probing_track_result probing_track_close(struct track *track, const struct probe_script *script)
{
    struct probing_track_result result = {.is_short = track->is_short};
    if (!probing_track_is_open(track)) // nothing was recorded
        return result;
    probing_track_early(track);
    if (track->thread)
        segment_thread_end(&track->segment, track->thread, base_clock_now_ns());
    track->is_closed = true;
    segment_close(&track->segment);
    pthread_join(track->collector, NULL);
    close(track->collected.segment_fd);
    const int failed = close(track->collected.file_fd) == 0 ? 0 : errno;
    for (size_t i = 0; i < script->maps.count; i++) {
        result.counters += track->maps[i].count;
        result.other_keys += track->maps[i].others.value;
    }
    result.is_made = !track->error.reason;
    result.lines = track->lines;
    result.lost_lines = track->lost_lines;
    result.lost_values = track->lost_values;
    result.failure = track->error.reason ? track->error : track->result.first_failure;
    if (!result.failure.reason && failed)
        base_fail(&result.failure, BASE_ERR_IO, "", 0, "%s", strerror(failed));
    return result;
}

void probing_track_free(struct track *track, const struct probe_script *script)
{
    for (size_t i = 0; track->maps && i < script->maps.count; i++) {
        for (size_t key = 0; key < track->maps[i].count; key++)
            free(track->maps[i].items[key].key);
        base_vector_free(&track->maps[i].vector);
    }
    for (size_t i = 0; i < track->early.count; i++)
        free(track->early.items[i]);
    base_vector_free(&track->early.vector);
    free(track->maps);
}
