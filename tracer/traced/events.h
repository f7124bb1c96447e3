// SPDX-License-Identifier: Apache-2.0
// Takes the events of a traced process out of its rings, and to the file.
#ifndef TRACER_TRACED_EVENTS_H
#define TRACER_TRACED_EVENTS_H

#include "tracer/traced/inside.h"

// 0; -1: no memory.
int traced_rings_begin(struct traced_process *process, struct base_error *error);
// One look at all rings: what is there is written. Returns how full the fullest one was, in percent of what it holds;
// -1: the file cannot be written, *error.
int traced_drain(struct traced_process *process, struct base_error *error);
// The last look, when nobody writes any more: holes are passed, what filters kept back is told.
int traced_drain_last(struct traced_process *process, struct base_error *error);
// Calls that ran from before the begin to behind the end, in threads that made no events.
int traced_running_rest(struct traced_process *process, struct base_error *error);
// Sums of the cells of functions that are only counted, by cell.
uint64_t traced_cell(const struct traced_process *process, uint32_t cell);
void traced_rings_end(struct traced_process *process);

#endif
