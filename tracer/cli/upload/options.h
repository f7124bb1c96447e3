// SPDX-License-Identifier: Apache-2.0
// What `qut upload` and `qut monitor` are told: the same name means the same.
#ifndef TRACER_CLI_UPLOAD_OPTIONS_H
#define TRACER_CLI_UPLOAD_OPTIONS_H

#include "tracer/monitor/monitor.h"
#include "tracer/upload/upload.h"

enum { TRIGGERS_MAX = 16, FLIGHTS_MAX = 256 };

enum upload_command { UPLOAD_COMMAND = 1, MONITOR_COMMAND = 2 };

struct upload_options {
    char **files;
    int file_count;
    const char *spool; // NULL: a dry run
    uint64_t spool_bytes;
    bool has_target; // something is to be sent
    struct upload_target target;
    struct upload_wanted wanted;
    const char *debug_root;
    bool no_inlines, dry_run, quiet;
    // Of monitor; the files are folders of segments.
    unsigned window_s, duration_s; // duration 0: without an end
    bool once, processes, list;
    const char *rings; // NULL: none
    struct monitor_trigger triggers[TRIGGERS_MAX];
    size_t trigger_count;
    double cpu_percent_most, mb_day_most;        // 0: any
    int inject[FLIGHTS_MAX], eject[FLIGHTS_MAX]; // processes
    size_t inject_count, eject_count;
    const char *settings; // of what is injected, behind the first folder; NULL: none
    bool flies_only;      // nothing but that
};

// CLI_GO_ON, or an exit status.
int upload_options_parse(struct upload_options *options, enum upload_command command, int argc, char **argv);

// flight.c: what is to be injected, or taken out. An exit status; what became of each is said.
int upload_options_fly(const struct upload_options *options);

// sending.c
int upload_options_worse(int one, int other); // of two exit statuses
// Sets what signals do that are errors like others. False: this build cannot send, which is said, and what it can.
bool upload_options_can_send(const struct upload_options *options, const char *command, const char *instead);
// What waits goes to the target; what becomes of each is said. CLI_OK, also where it waits on; CLI_BAD.
int upload_options_send(const struct upload_options *options, struct upload_spool *spool);
void upload_options_show(const struct upload_balance *balance);

#endif
