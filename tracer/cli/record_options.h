// SPDX-License-Identifier: Apache-2.0
// What `qut record` is told.
#ifndef TRACER_CLI_RECORD_OPTIONS_H
#define TRACER_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/qut_agent.h"
#include "tracer/elsewhere/elsewhere.h"
#include "tracer/traced/traced.h"

#define RECORD_FILE "qut.qtrace" // where to, unless -o says it; and what is read where no FILE is given

// Servers that are asked for tables of files that are not at hand.
struct record_servers {
    const char *urls[ELSEWHERE_URLS_MAX];
    size_t url_count;
    const char *key;
    bool is_unsigned;
};

struct calls_options;
struct output;
struct record_command_options {
    const char *path;
    char **command; // of the operands, with a NULL at the end; NULL: -p
    int pid, tid;   // 0: not said
    bool inject, quiet, wait_for_all, no_cache, live;
    bool wants_calls;            // --sync says some
    const char *cache_directory; // NULL: the platform's
    const char *json_path;       // the summary, as JSON; NULL: not wanted
    FILE *json;                  // opened by the command
    uint64_t duration_ns;
    const struct traced_options *calls;                  // of `qut trace`; NULL: none are traced
    void (*begun)(void *context, struct output *output); // as struct record_options has it
    void *begun_context;
    const struct calls_options *asked; // which say where functions' names are looked for; NULL as above
    struct agent_settings settings;    // all that the command line decides
    struct record_servers servers;
    struct elsewhere *elsewhere; // opened by the command; NULL: no server is asked
};

// CLI_GO_ON, or an exit status.
int cli_record_options_parse(struct record_command_options *options, int argc, char **argv);

#endif
