// SPDX-License-Identifier: Apache-2.0
// Tables of `qut info` that need names: where time went, what threads waited for, for whom.
#ifndef TRACER_INFO_TABLES_H
#define TRACER_INFO_TABLES_H

#include "cli/json.h"
#include "tracer/names/names.h"
#include "tracer/trace_options.h"

// Whether the options ask for any.
bool info_tables_wanted(const struct trace_options *options);

// Members of the object that is open. -1: no memory.
int info_tables_json(const struct trace_options *options, const struct trace *trace, const struct names *names,
                     struct cli_json *json);
int info_tables_text(const struct trace_options *options, const struct trace *trace, const struct names *names,
                     FILE *output);

#endif
