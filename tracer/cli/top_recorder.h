// SPDX-License-Identifier: Apache-2.0
// The recording that `qut top` looks at: `qut record` in a process of its own, which ends if we do.
#ifndef TRACER_CLI_TOP_RECORDER_H
#define TRACER_CLI_TOP_RECORDER_H

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

#include "tracer/cli/top_options.h"

struct top_recorder {
    const struct top_options *options;
    char directory[PATH_MAX - 16]; // "": the file is kept, and is options->path
    char path[PATH_MAX];
    int output_fd; // of the command and the recorder, what both say
    pid_t pid;     // 0: it has ended
    int status;    // then: its exit status, as a shell has it
};

// CLI_GO_ON; or an exit status, when it has been said why. `mask`: of signals, for the recorder.
int cli_top_recorder_begin(struct top_recorder *recorder, const struct top_options *options, const sigset_t *mask);
// Whether it has ended; `waits`: not before it has.
bool cli_top_recorder_has_ended(struct top_recorder *recorder, bool waits);
// What is not kept does not grow without bound.
void cli_top_recorder_trim(struct top_recorder *recorder);
// Says on stderr what the recorder and the command said last, where that is in no file of the user's.
void cli_top_recorder_say_output(const struct top_recorder *recorder);
void cli_top_recorder_end(struct top_recorder *recorder);

#endif
