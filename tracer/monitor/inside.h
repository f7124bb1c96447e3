// SPDX-License-Identifier: Apache-2.0
// What the folder's files share.
#ifndef TRACER_MONITOR_INSIDE_H
#define TRACER_MONITOR_INSIDE_H

#include "tracer/monitor/monitor.h"
#include "tracer/trace/merge.h"
#include "tracer/trace/newer/newer.h"

// ---- state.c: what is remembered from one window to the next

struct monitor_segment {
    uint8_t identity[16];
    uint64_t told, lost; // by the store's counters
    uint64_t taken;      // samples that were read
    bool is_ended;       // read to its end: its file may go
    bool is_damaged;
    bool is_there; // in this window; not written
    struct newer_seen seen;
};

struct monitor_request {
    char id[UPLOAD_ID_CHARS];
    uint64_t samples;
};

struct monitor_state {
    struct monitor_balance sums; // of segments that are gone; in_windows, left_out, cut_off, windows: of all
    uint64_t from_ns;            // CLOCK_MONOTONIC: where the next window begins
    BASE_VECTOR(struct monitor_segment);
    struct {
        BASE_VECTOR(struct monitor_request);
    } requests; // of the window that is under way
};

void monitor_state_free(struct monitor_state *state);
bool monitor_state_copy(struct monitor_state *to, const struct monitor_state *from); // without requests
struct monitor_segment *monitor_state_find(struct monitor_state *state, const uint8_t identity[16]);
// Entries whose file is not there any more become part of the sums. `is_all`: every folder could be looked through.
void monitor_state_fold(struct monitor_state *state, bool is_all);
void monitor_state_add_up(const struct monitor_state *state, struct monitor_balance *balance);
// On the disk under its name when that returns; but for the folder's entry.
int monitor_state_write(const struct monitor_state *state, const char *path, struct base_error *error);
// 1: there is none.
int monitor_state_read(struct monitor_state *state, const char *path, struct base_error *error);

// ---- rate.c

void monitor_rate_begin(struct monitor *monitor); // as an earlier monitor left it

// ---- segments.c, notes.c, window.c

struct monitor_rate {
    unsigned halvings, calm;       // calm: judgements in a row that were far below
    uint64_t at_ns, cpu_ns, bytes; // as of the last judgement
};

// triggers.c: a segment in which marks are looked at.
struct monitor_open_work { // of a thread, since a QUT_MARK_BEGIN
    uint32_t uid;
    uint64_t id, begin_ns;
    size_t trigger;
    bool is_told; // it was slow already
};
struct monitor_marked_thread {
    uint32_t uid;
    uint64_t seen_ns; // its last mark that was looked at
};
struct monitor_marked {
    uint8_t identity[16];
    bool is_there;
    uint64_t marks; // that were made, at the last look
    struct newer_seen seen;
    struct {
        BASE_VECTOR(struct monitor_marked_thread);
    } threads;
    struct {
        BASE_VECTOR(struct monitor_open_work);
    } works;
};
void monitor_marks_free(struct monitor *monitor);

// processes.c: a segment that has no name.
struct monitor_held {
    int fd;
    uint32_t pid; // where it was found
    uint64_t inode, device;
    bool is_written; // some process has it open for writing, as far as it was seen
};

struct monitor {
    struct monitor_options options;
    struct monitor_rate rate;
    struct upload_spool *spool;
    int folder;             // descriptor of the spool's
    char *path, *next_path; // what is remembered, and what takes its place
    bool is_open;           // it has not yet, and must
    struct monitor_state state;
    struct {
        BASE_VECTOR(struct monitor_held);
    } held;
    struct {
        BASE_VECTOR(struct monitor_marked);
    } marked;
    uint64_t begin_ns; // marks from before are nobody's concern
};

struct monitor_window {
    struct monitor *monitor;
    struct monitor_state next;
    uint64_t from_ns, to_ns, realtime_ns; // CLOCK_MONOTONIC; CLOCK_REALTIME at from_ns
    struct merger merger;                 // of otlp
    bool has_parts;
    uint64_t samples; // that were read
    struct {
        BASE_VECTOR(struct upload_request); // their bodies are ours
    } bodies;
    struct {
        BASE_VECTOR(char *);
    } ended;             // paths of files that may go
    bool is_all;         // no folder or segment failed
    bool is_passed_over; // not of the share of windows that is taken
    bool is_changed;     // there is something to be remembered
};

// All segments, each part as monitor_window_add has it.
int monitor_segments(struct monitor_window *window, struct base_error *error);
// One. `is_left`: nobody writes to it any more, and did not before this was called. *is_ended: it was read to its end.
int monitor_segment_take(struct monitor_window *window, int fd, const char *name, bool is_left, bool *is_ended,
                         struct base_error *error);
void monitor_say_error(const struct monitor_window *window, const char *name, const struct base_error *error);
bool monitor_segment_is_ring(int fd);
// rings.c: all of them, as far as they were found. What `each` returns ends it, unless 0.
typedef int monitor_each_segment(void *context, int fd, const char *name, struct base_error *error);
int monitor_each_ring(struct monitor_window *window, monitor_each_segment *each, void *context,
                      struct base_error *error);
// More segments without a name, to be held.
int monitor_processes_find(struct monitor_window *window, struct base_error *error);
int monitor_processes(struct monitor_window *window, struct base_error *error);
// After a window was taken: of those that nobody writes to, or of all.
void monitor_processes_let_go(struct monitor *monitor, bool of_all);
// flight.c: the segment that an agent in this process has mapped, by its path; malloc's. NULL: none.
char *monitor_flight_segment(uint32_t pid, bool *has_agent);
bool monitor_is_injected(uint32_t pid);
bool monitor_note_is(const char *name);
void monitor_note_take(struct monitor_window *window, int folder, const char *name);
// A part of one process. It may be freed afterwards.
int monitor_window_add(struct monitor_window *window, const struct trace *part, struct base_error *error);

#endif
