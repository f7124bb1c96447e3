// SPDX-License-Identifier: Apache-2.0
// Mappings of files that others may cut short while they are read: touching a page that is gone would be death by
// SIGBUS. Here a page of zeros takes its place, and the guard remembers. Other SIGBUS go where they went before.
#ifndef TRACER_TRACE_MAPPING_GUARD_H
#define TRACER_TRACE_MAPPING_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct guard;

// Before the mapping is touched. NULL: there are too many at once. Any thread.
struct guard *trace_guard_begin(void *mapping, size_t size);
// Whether a page was gone: what was read so far may be zeros.
bool trace_guard_was_hit(const struct guard *guard);
void trace_guard_end(struct guard *guard); // NULL: nothing

#endif
