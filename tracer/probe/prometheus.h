// SPDX-License-Identifier: Apache-2.0
// Maps as Prometheus reads them: its text format, version 0.0.4. Allocates; blocks as the stream does.
#ifndef TRACER_PROBE_PROMETHEUS_H
#define TRACER_PROBE_PROMETHEUS_H

#include <stdio.h>

#include "tracer/probe/show.h"

// One document of all maps: @name is the metric qut_probe_name, each part of its key a label. -1: no memory.
int probe_show_prometheus(FILE *out, const struct probe_script *script, const struct bytecode_maps *maps,
                          struct probe_stacks *stacks);

#endif
