// SPDX-License-Identifier: Apache-2.0
// Columns of exact calls: see pack.h.
#ifndef TRACER_REPORT_CALL_COLUMNS_H
#define TRACER_REPORT_CALL_COLUMNS_H

#include "tracer/names/names.h"
#include "tracer/report/columns.h"

// -1: no memory.
int report_columns_of_calls(struct columns *columns, const struct selection *selection, const struct names *names);

#endif
