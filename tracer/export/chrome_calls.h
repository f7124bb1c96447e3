// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_EXPORT_CHROME_CALLS_H
#define TRACER_EXPORT_CHROME_CALLS_H

#include "tracer/analysis/selection.h"
#include "tracer/export/sink/sink.h"
#include "tracer/names/names.h"

// Events of exact calls into the array that is open. False: no memory; that the sink failed it says itself.
bool export_chrome_calls(const struct selection *selection, const struct names *names, struct sink *sink,
                         bool *has_before);

#endif
