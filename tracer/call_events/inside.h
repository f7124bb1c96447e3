// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_CALL_EVENTS_INSIDE_H
#define TRACER_CALL_EVENTS_INSIDE_H

#include "tracer/call_events/events.h"

// tables.c. The thread of an index, which is added with those before it where it is not there; NULL: no memory.
struct call_events_thread *call_events_thread_at(struct call_events *calls, uint32_t index);
// The index of an id's function, which is added; CALL_EVENTS_NONE: no memory.
uint32_t call_events_need(struct call_events *calls, uint32_t id);

// decode.c. As call_events_take, of CALL_EVENTS.
bool call_events_take_events(struct call_events *calls, struct base_bytes contents, bool *no_memory);

#endif
