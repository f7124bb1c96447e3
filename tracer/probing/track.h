// SPDX-License-Identifier: Apache-2.0
// What a script counts and prints, for a trace: maps are counters, lines of printf are instants, in a segment of the
// tool's own that is collected into a file. One thread at a time but for `open`. Allocates, blocks.
#ifndef TRACER_PROBING_TRACK_H
#define TRACER_PROBING_TRACK_H

#include <pthread.h>

#include "libqut/segment/segment.h"
#include "tracer/collect/collect.h"
#include "tracer/probe/show.h"
#include "tracer/probing/probing.h"

struct track_key { // that has a counter
    uint64_t *key;
    uint32_t name, mean_name; // strings of the segment; mean_name 0: it has one value
    int64_t value, mean;      // as it was written last
    bool is_there;            // in the map, now
};

struct track_aside { // what a map leaves out; no counter as long as that is nothing
    uint32_t name;
    uint64_t value; // as it was written last
};

struct track_map {
    BASE_VECTOR(struct track_key); // by key
    struct track_aside others;     // keys without a counter
    struct track_aside lost;       // updates that had no room in the map
};

struct track {
    uint64_t every_ns; // 0: no values are wanted
    uint64_t due_ns;
    struct segment segment;
    struct qut_trace_thread *thread;
    struct track_map *maps;
    struct {
        BASE_VECTOR(char *);
    } early; // lines that came before it was open
    uint64_t lines, lost_lines, lost_values;
    uint64_t told_lines; // of lost_lines, as it was written last
    uint32_t lost_name;
    bool is_short; // of memory: not all values are there
    _Atomic bool is_open;
    bool is_closed;
    // The thread that collects.
    pthread_t collector;
    struct collect_options collected;
    struct collect_result result;
    struct base_error error;
};

// The segment, and a thread that takes it to file_fd, which is the track's from now on. -1: *error.
int probing_track_open(struct track *track, const struct probe_script *script, int file_fd, struct base_error *error);
bool probing_track_is_open(struct track *track);
// Lines that came before it was open, which it is now.
void probing_track_early(struct track *track);
// A line of printf's; kept until it is open.
void probing_track_line(struct track *track, const char *text, size_t length);
// How many lines had no room, where more have none by now.
void probing_track_lost(struct track *track);
uint32_t probing_track_name(struct track *track, const char *text);
void probing_track_count(struct track *track, uint64_t time_ns, uint32_t name, int64_t value);
// All is in the segment: the file is finished.
struct probing_track_result probing_track_close(struct track *track, const struct probe_script *script);
void probing_track_free(struct track *track, const struct probe_script *script);

// Values that have changed; at the end, all. Stacks whose frames nobody has yet come later, at the end by their
// numbers. (track_values.c)
void probing_track_values(struct track *track, const struct probe_script *script, const struct bytecode_maps *maps,
                          struct probe_stacks *stacks, bool is_end);

#endif
