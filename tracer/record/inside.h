// SPDX-License-Identifier: Apache-2.0
// What the parts of one recording share. All but the collectors' and compilers' threads run in the loop's.
#ifndef TRACER_RECORD_INSIDE_H
#define TRACER_RECORD_INSIDE_H

#include <signal.h>

#include "qutc/include/qutc/provide.h"
#include "tracer/record/agent_tables.h"
#include "tracer/record/injector.h"
#include "tracer/record/record.h"
#include "tracer/record/recorded_process.h"
#include "tracer/record/server.h"
#include "tracer/record/traced_calls.h"

struct recorder {
    const struct record_options *options;
    struct record_result *result;
    struct loop loop;
    struct server server;
    struct tables tables;
    struct output output;
    char preload[2 * PATH_MAX], settings[AGENT_SETTINGS_BYTES], link[PATH_MAX];
    sigset_t mask_before;
    struct loop_source signals, finished, command;
    pid_t command_pid;
    bool is_told_by_signal; // of the command's end: command.fd is an event of ours
    struct injector injector;
    int rescue_fd; // of who does the work of end, should we be killed; -1: nobody
    struct qutc_provide_options provide;
    bool has_tables;
    bool has_told_waits; // or there is nothing to be told any more
    uint64_t waits_since_ns;
    uint64_t start_ns, stop_ns; // stop_ns 0: there is no time at which it ends

    struct process *processes, *last; // all that said hello, in that order
    uint64_t process_count, live_count;
    struct traced_call_part *traced; // the last one first
    uint64_t traced_count;           // that are not finished
    uint64_t kept_most;              // of those that are, until it is looked which are needed
    bool is_stopping_calls;          // children of fork still come, and end at once
    struct left left;                // those that will not
    struct record_counts counts_of_finished;
    uint64_t bytes_of_finished;
    bool is_stopping, is_stopped; // no more samples are taken
    bool is_left;                 // and nothing is waited for
};

// processes.c
const char *recorder_hello(void *context, const struct agent_channel_hello *hello, struct server_peer *peer,
                           int segment_fd);
void recorder_add(void *context, const struct agent_channel_counts *counts, const struct server_peer *peer);
void recorder_left(void *context, const struct agent_channel_left *left, const struct server_peer *peer);
void recorder_reap(struct recorder *recorder); // collectors that are done
void recorder_look_for_ends(struct recorder *recorder);
// No more samples: what is there is finished, what lives goes on without us.
void recorder_stop(struct recorder *recorder);
// Waits for all collectors, puts the parts together, sums up.
void recorder_finish(struct recorder *recorder);
// Children of fork that live and told of themselves, and that the agent can leave. malloc's, or NULL.
pid_t *recorder_forked(const struct recorder *recorder, size_t *count);
void recorder_say(const struct recorder *recorder, const char *subject, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void recorder_show(struct recorder *recorder, size_t done, size_t all);
// Once, where nothing is recorded for more than a second since tables are being made.
void recorder_tell_waits(struct recorder *recorder, uint64_t now_ns);

#endif
