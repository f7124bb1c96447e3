// SPDX-License-Identifier: Apache-2.0
// Where bundles and their tables are on disk.
#ifndef QUTC_CLI_BUNDLE_FILES_H
#define QUTC_CLI_BUNDLE_FILES_H

#include "base/vector.h"
#include "qutc/bundle.h"

struct cli_paths {
    BASE_VECTOR(char *);
};

// A file as it is; of a directory its *.qut files, by name. Returns an enum cli_status, errors reported.
int cli_paths_add(struct cli_paths *paths, const char *path);
void cli_paths_free(struct cli_paths *paths);

struct cli_bundle_file {
    uint8_t *bytes; // free()
    struct qutc_bundle bundle;
};

int cli_bundle_read(const char *path, struct cli_bundle_file *file, struct base_error *error);

#endif
