// SPDX-License-Identifier: Apache-2.0
// One process that is recorded: its segment, and the thread that takes it to a file as long as the process lives.
#ifndef TRACER_RECORD_RECORDED_PROCESS_H
#define TRACER_RECORD_RECORDED_PROCESS_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "formats/qut_agent.h"
#include "tracer/collect/collect.h"
#include "tracer/collect/made_code.h"
#include "tracer/record/loop.h"
#include "tracer/record/writer_counts.h"

enum { PROCESS_NOTES_MAX = 24 };

enum process_end {
    PROCESS_RUNS,
    PROCESS_DIED,     // it is gone
    PROCESS_REPLACED, // by exec: the same pid began again
    PROCESS_LEFT,     // the recording ended before it did
};

struct process {
    struct process *next;
    struct agent_channel_hello hello;
    uint32_t pid;
    struct loop_source watched; // its pidfd; context: the process
    bool is_first;              // its file is FILE itself
    bool is_live;               // as in struct collect_options
    bool is_noted, is_joined;   // what it came to is in the result; its thread is gone
    char part_path[PATH_MAX + 64];
    char command[64]; // its name, for people
    void *owner;

    // Between the loop's thread and the collector's.
    pthread_t thread;
    int end_fd, stop_fd; // eventfd: it has ended; the recording has
    int finished_fd;     // eventfd, the loop's: the collector is done
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum process_end end;              // under the mutex, like the next three
    bool has_added, is_closed;         // the agent has told its counts, in `added`; behind the end of its trace
    struct agent_channel_counts added; // zero before
    _Atomic bool is_finished;          // what follows may be read then
    _Atomic uint64_t file_bytes;       // so far
    struct trace_segment_view view;    // as long as the collector runs
    int segment_fd, file_fd;           // the collector's
    struct record_counts counts;       // at the end
    uint64_t untaken;                  // samples of a finished process that are not in the file
    struct collect_result result;
    int status; // of collect(); -1: `error` says why
    struct base_error error;
    struct made_code made_code; // the collector's
    struct trace_note notes[PROCESS_NOTES_MAX];
};

// Takes both descriptors over where it returns 0. `finished_fd` is told when the collector is done.
int record_process_begin(struct process *process, int segment_fd, int file_fd, int finished_fd,
                         struct base_error *error);
// Says that nothing more will come, and why; the first time counts.
void record_process_tell_end(struct process *process, enum process_end end);
void record_process_add(struct process *process, const struct agent_channel_counts *counts);
// As it is now; false: it is finished, see process->counts.
bool record_process_counts_now(struct process *process, struct record_counts *counts);
// When it is finished, lets go of all but *process itself, once: as soon as the collector's thread has ended, which it
// does soon.
void record_process_try_join(struct process *process);
// The same at the end of the recording. True: the thread still gives back its memory, for which nobody waits: *process
// stays as long as the calling process does.
bool record_process_leave(struct process *process);

#endif
