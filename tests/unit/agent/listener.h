// SPDX-License-Identifier: Apache-2.0
// Runs a program with the agent and is its recorder: takes the segments, gives no tables. What the program wrote to
// stdout and stderr, and what it stored, is there afterwards.
#ifndef TESTS_UNIT_AGENT_LISTENER_H
#define TESTS_UNIT_AGENT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/qut_agent.h"
#include "tracer/trace/trace_data.h"

enum { LISTENER_PROCESSES_MAX = 1024 };

struct listener_process {
    struct agent_channel_hello hello;
    int segment_fd;
};

struct listener_run {
    int status; // of waitpid
    char *output;
    size_t output_bytes;
    struct listener_process processes[LISTENER_PROCESSES_MAX];
    size_t process_count;
    struct agent_channel_counts counts; // their sum
    size_t count_packets, left_packets, table_questions, malformed;
    size_t never_begun; // children of fork that ended without a word before
};

// Called before a hello is answered, if it is set.
extern void (*listener_before_answer)(pid_t pid);
// Calls can be traced, or cannot: what the tracer does then. The connection and the memory's descriptor are closed when
// it is back. Not set: such packets are malformed.
extern void (*listener_calls)(int fd, const struct agent_channel_calls *calls, int memory_fd);
// The recorder is gone as soon as it has answered its first hello.
extern bool listener_leaves;
// What tests begin with: ticks at 1 kHz, everything at sync points watched.
void listener_settings(struct agent_settings *settings);
// `settings` NULL: without the agent. Not `answers`: the recorder is not there.
void listener_run(const struct agent_settings *settings, const char *const *arguments, bool answers,
                  struct listener_run *run);
void listener_free(struct listener_run *run);
// The trace of a process, in the order in which they said hello.
void listener_trace(const struct listener_run *run, size_t process, struct trace *trace);

#endif
