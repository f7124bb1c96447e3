// SPDX-License-Identifier: Apache-2.0
// Windows of what a host's processes sampled: each time what is new in all their segments, as requests in a spool. What
// was taken of whom is remembered beside the spool's account, so that a process that ends at any instant, and begins
// again, takes nothing twice and says what it lost. No function prints; all may block and allocate. Threads: one at a
// time.
#ifndef TRACER_MONITOR_MONITOR_H
#define TRACER_MONITOR_MONITOR_H

#include <sys/types.h>

#include "formats/qut_agent.h"
#include "tracer/upload/upload.h"

// What happens in a process after which somebody wants to know what was before: a mark of that name (QUT_MARK_INSTANT
// or QUT_MARK_BEGIN); or, with slow_ns, work from QUT_MARK_BEGIN with that name to QUT_MARK_END with the same id that
// takes so long, or goes on for so long.
struct monitor_trigger {
    const char *name;
    uint64_t slow_ns;
};

struct monitor_options {
    char *const *folders; // in which segments are
    size_t folder_count;
    bool processes; // and in processes, as memory without a name
    const char *spool_folder;
    struct upload_wanted wanted; // of otlp or pprof; `window` is not looked at
    struct names_options names;  // where names are wanted; else no_files
    double cpu_share_most;       // of one core, that the monitor itself uses; 0: any
    double bytes_per_day_most;   // to the spool; 0: any
    // wanted.window_share_percent: so many of windows, drawn by lot, are taken; of the others nothing goes to the spool
    const struct monitor_trigger *triggers;
    size_t trigger_count;
    void (*say)(void *context, const char *name, const char *text);
    void *context;
};

struct monitor_triggered {
    uint64_t count;   // how often, since the last look
    size_t trigger;   // the first of them
    uint32_t pid;     // in this process, as it calls itself
    uint64_t took_ns; // of work: so far
};

// Samples, of all that this spool ever had:
//
//   told = in_windows + left_out + overwritten + unreadable + cut_off
struct monitor_balance {
    uint64_t windows;     // in which there was something
    uint64_t processes;   // segments that are there
    uint64_t ended;       // that were, and were taken to their end
    uint64_t vanished;    // whose file went before that: what they had then is not known
    uint64_t told;        // that processes stored, as far as it was seen
    uint64_t in_windows;  // in requests that the spool took
    uint64_t left_out;    // of other kinds than the one that is sent, of windows that are not taken, or the agent's own
    uint64_t overwritten; // newer ones took their place
    uint64_t unreadable;  // of segments that are damaged
    uint64_t cut_off;     // of requests that had not reached the spool when the collector ended
    uint64_t lost;        // by processes, before they were stored: not in `told`
    // Processes that have an agent, or began programs that cannot have one, and are left alone (enum agent_left).
    uint64_t left[AGENT_LEFT_COUNT];
    uint16_t failed_call, failed_error; // of the last AGENT_LEFT_FAILED; 0: not known
};

// NULL, *error filled: what was remembered cannot be read, or there is no memory.
struct monitor *monitor_open(const struct monitor_options *options, struct upload_spool *spool,
                             struct base_error *error);
void monitor_close(struct monitor *monitor);
// One window: what is new goes to the spool. -1, *error filled: it waits in the segments for the next one.
int monitor_window(struct monitor *monitor, struct base_error *error);
// After a window was taken, and perhaps sent: what both took since the last time is compared with the budgets. Above
// one of them the rate halves, once; far below both, for some windows, it doubles again, up to what it was. Programs
// that have an agent are told of it through their folders. Returns how often it is halved: a window should last so much
// longer as well.
unsigned monitor_keep_budget(struct monitor *monitor);
// What the segments keep now, with all times: a .qtrace file of each that has samples, as a request of UPLOAD_FILE in
// another spool. *taken: how many. -1, *error filled: that spool cannot take one.
int monitor_rings(struct monitor *monitor, struct upload_spool *rings, uint64_t *taken, struct base_error *error);
// Whether something of options.triggers has happened since the last look, or since the monitor began; of segments
// without a name, in those that a window has found. -1, *error filled: no memory.
int monitor_look(struct monitor *monitor, struct monitor_triggered *triggered, struct base_error *error);
void monitor_balance(const struct monitor *monitor, struct monitor_balance *balance);

// ---- processes that have the agent, and a folder for it

enum monitor_preloaded {
    MONITOR_SAMPLES,    // it has a segment there
    MONITOR_NO_SEGMENT, // the agent is in it; it had no tick yet, or is left alone
    MONITOR_NO_AGENT,   // the agent is not in it: it is static, has other rights, or could not load it
    MONITOR_INJECTED,   // it has a segment there, of an agent that monitor_inject has put into it
    MONITOR_PRELOADED_COUNT,
};

struct monitor_process {
    uint32_t pid;
    enum monitor_preloaded state;
    const char *folder, *command; // as long as `each` has them
};

struct monitor_listed {
    uint64_t of[MONITOR_PRELOADED_COUNT];
    uint64_t hidden; // processes whose environment may not be read
};

// Of these folders, or of any. -1, *error filled: there is no /proc.
int monitor_list(char *const *folders, size_t count, void (*each)(void *context, const struct monitor_process *process),
                 void *context, struct monitor_listed *listed, struct base_error *error);

// ---- processes that run already

struct monitor_flight {
    const char *agent_path; // absolute
    const char *folder;     // absolute, without symbolic links; of monitor_eject: NULL is any
    const char *settings;   // what stands behind it in $QUT_AGENT, "p=10000000;b=1048576", or ""
};

struct monitor_flight_figures {
    uint64_t stopped_ns; // so long one thread stood still
    uint64_t tables_made, tables_failed;
    char no_tables[160]; // why none were made; "": they were, or were there
    char cache[4096];    // where they are looked for; "": nowhere
};

// Puts the agent into it, which records into the folder as one that was preloaded does, but for children, and stays
// when we end. Makes the tables that are missing, where it may. -1, *error filled: the process is as it was.
int monitor_inject(pid_t pid, const struct monitor_flight *flight, struct monitor_flight_figures *figures,
                   struct base_error *error);
// Takes it out again: its segment is closed, and stays for the next window. -1, *error filled.
int monitor_eject(pid_t pid, const struct monitor_flight *flight, struct base_error *error);

#endif
