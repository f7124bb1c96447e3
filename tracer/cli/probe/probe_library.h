// SPDX-License-Identifier: Apache-2.0
// The scripts that come with us: probes/NAME.qp.
#ifndef TRACER_CLI_PROBE_PROBE_LIBRARY_H
#define TRACER_CLI_PROBE_PROBE_LIBRARY_H

#include <stddef.h>

struct probe_library_script {
    const char *name, *text;
    size_t length;
};
extern const struct probe_library_script probe_library_scripts[]; // by name; the last one has none. embed.py

const struct probe_library_script *cli_probe_library_find(const char *name); // NULL: there is none
// Names, and what each answers, on standard output. An exit status.
int cli_probe_library_list(void);

// The name of one that is spelt nearly so; NULL: none is.
const char *cli_probe_library_nearest(const char *name);

#endif
