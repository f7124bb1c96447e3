// SPDX-License-Identifier: Apache-2.0
// What `qut upload` is told.
#ifndef TRACER_CLI_UPLOAD_OPTIONS_H
#define TRACER_CLI_UPLOAD_OPTIONS_H

#include "tracer/upload/upload.h"

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
};

// CLI_GO_ON, or an exit status.
int upload_options_parse(struct upload_options *options, int argc, char **argv);

#endif
