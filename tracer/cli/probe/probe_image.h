// SPDX-License-Identifier: Apache-2.0
// A script's programs, for who runs them without this tool (<qut/own_probes.h>).
#ifndef TRACER_CLI_PROBE_PROBE_IMAGE_H
#define TRACER_CLI_PROBE_PROBE_IMAGE_H

#include "tracer/probe/script.h"

// Writes the image, and says on standard output what has which number. An exit status.
int cli_probe_image_write(const struct probe_script *script, const char *path);

#endif
