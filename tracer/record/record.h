// SPDX-License-Identifier: Apache-2.0
// `qut record`, without its command line: starts a command with the agent in it, serves what agents ask, takes each
// process's samples to one file, and ends when the command has ended or it is told to.
#ifndef TRACER_RECORD_RECORD_H
#define TRACER_RECORD_RECORD_H

#include <stdbool.h>
#include <sys/types.h>

#include <qut/compiler.h>

#include "formats/qut_agent.h"
#include "tracer/record/command_file.h"
#include "tracer/record/left_alone.h"
#include "tracer/record/output.h"
#include "tracer/record/writer_counts.h"
#include "tracer/traced/traced.h"

struct record_status { // for people, while it goes on
    uint64_t elapsed_ns;
    struct record_counts counts;
    uint64_t processes, processes_now, threads_now;
    uint64_t file_bytes;
    bool is_stopped;  // the recording is over, the command is not
    bool has_ended;   // the command has, others go on
    size_t done, all; // all > 0: files that are put together at the end
    // That processes wait for: tables_left > 0.
    uint64_t tables_done, tables_left;
    const char *table; // the name of a file whose table is being made; "": it is not known
};

struct record_options {
    const char *path; // of the file
    // What is recorded: a command, or
    char *const *command;
    const struct program *program;
    pid_t pid; // a process that runs: the agent is injected
    const char *agent_path;
    struct agent_settings settings;     // all but token, socket, preload, which are set here
    uint64_t duration_ns;               // 0: no bound
    bool wait_for_all;                  // also for processes that outlive the command
    bool live;                          // as in struct collect_options
    const struct traced_options *calls; // which are traced; NULL: none
    // The first process is recorded: for who puts one more trace behind those of the processes when all is over. In the
    // thread that runs the recording. NULL: nobody does.
    void (*begun)(void *context, struct output *output);
    void *begun_context;
    qut_compile_fn take; // as struct qutc_provide_options has it, for tables that agents ask for
    void *take_context;
    bool tells_waits; // by `say`: that nothing is recorded for more than a second, since tables are being made
    // Something to tell people: `subject` may be NULL.
    void (*say)(void *context, const char *subject, const char *text);
    void (*status)(void *context, const struct record_status *status); // NULL: not wanted; at most 5 in a second
    void *context;
};

struct record_result {
    int command_status; // exit status as a shell has it; -1: none has ended
    int left_by;        // signal that ended the recording before the command had ended; 0: none did
    uint64_t elapsed_ns, own_cpu_ns, command_cpu_ns;
    struct record_counts counts;
    uint64_t processes;                 // one that replaced itself by exec counts once
    uint64_t processes_without_samples; // of them: forked, ended without a sample, and not in the file
    uint64_t processes_left;            // that went on when the recording ended
    uint64_t processes_failed;          // whose samples are not, or not all, in the file
    bool is_short_of_descriptors;       // a reason for that
    struct left_counts left;            // that the agent is not in
    uint16_t left_call, left_error;     // of the first in which it failed: record_left_call has the words; 0: not known
    uint64_t processes_unticked;        // that could have no ticks
    uint64_t processes_untold;          // that ended without telling what became of their ticks
    char unticked[96];                  // of the first of these: why
    struct agent_channel_counts ticks;  // sums of those that told
    uint64_t packets_refused, tables_refused;
    uint64_t agents_strange;    // of another version: their processes are not in it
    bool is_agent_left;         // it could not be taken out of the process
    uint64_t inject_stopped_ns; // the longest that one thread of the process stood still for it
    uint64_t file_bytes;
    uint64_t failed_writes;
    char first_failure[256]; // of writing, in words; "": none
    char kept_as[PATH_MAX];  // the file that was there before; "": none
    bool is_kept;            // there is a file
    struct traced_result calls;
};

// 0: *result is filled. -1: nothing was started, *error says why, and *status has an exit status for it (126, 127, or
// 2). Signals: SIGINT, SIGTERM, SIGHUP and SIGQUIT end the recording, the file is finished all the same.
int record_run(const struct record_options *options, struct record_result *result, int *status,
               struct base_error *error);

// Where the agent is: $QUT_AGENT_PATH, beside this program in a build directory, or where it was installed.
int record_find_agent(char path[PATH_MAX], struct base_error *error);
// Whether what is recorded may become another user, who may not read the agent where it is (in a home of 0700).
bool record_agent_needs_copy(const char *path);
// Where the agent's own path does not do: a link to it in the recorder's directory, where its name cannot stand in
// LD_PRELOAD; with `is_for_all` a copy of it. "": it does.
int record_agent_hand_over(const char *path, const char *directory, bool is_for_all, char *link, size_t size,
                           struct base_error *error);

// How often threads were sampled, for each second of their processor time; what the kernel did for them counts as
// sampled where samples of its own tick stand for it.
struct record_rate {
    double asked_hz, reached_hz; // 0: there were no ticks
};
static inline struct record_rate record_rate(uint64_t period_ns, const struct agent_channel_counts *ticks)
{
    double asked_hz = period_ns && ticks->asked ? 1e9 / (double)period_ns : 0;
    double share = ticks->asked ? (double)(ticks->taken + ticks->kernel) / (double)ticks->asked : 0;
    return (struct record_rate){asked_hz, asked_hz * share};
}

#endif
