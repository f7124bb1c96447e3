// SPDX-License-Identifier: Apache-2.0
// What is missing in a trace, in words: every view of it begins with that.
#ifndef TRACER_EXPORT_LOSSES_H
#define TRACER_EXPORT_LOSSES_H

#include <stdbool.h>
#include <stddef.h>

#include "tracer/trace/trace_data.h"

// Calls `say` with one line of text, without newline, for each loss: nothing where all is there. The first one sums up.
void export_losses_say(const struct trace *trace, void (*say)(void *context, const char *text), void *context);

// "1234 of 5678 samples are missing" into text. False: none is, and text is empty.
bool export_losses_summary(const struct trace *trace, char *text, size_t size);

// Of one thread: lost, or no longer there.
uint64_t export_losses_of_thread(const struct trace *trace, const struct trace_thread *thread);

#endif
