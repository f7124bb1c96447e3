// SPDX-License-Identifier: Apache-2.0
// The agent's hooks and its locks in a test's own process: the program's calls of libc go through them as if they had
// been preloaded, into a trace that is read back at the end.
#ifndef TESTS_UNIT_AGENT_WAITS_WORLD_H
#define TESTS_UNIT_AGENT_WAITS_WORLD_H

#include "agent/inside.h"
#include "tracer/trace/trace_data.h"

// Everything in `sync` (enum agent_sync) is watched from now on. least_ns: waits of that length are always stored.
// interval_ns 1: all are. trigger: enum qut_trigger, at 1 kHz; QUT_TRIGGER_NONE: no ticks.
void world_open(uint32_t sync, uint64_t least_ns, uint64_t interval_ns, uint32_t trigger);
// 0, or -errno of why that trigger cannot be had here.
int world_has_trigger(uint32_t trigger);
// Without us again, until the next world_open; does nothing where there is no world. The trace is the caller's. NULL:
// the caller does not want it.
void world_close(struct trace *trace);

// In a thread whose end the hooks should see.
void world_thread_begins(void);

// Until that thread (of any process) sleeps in the kernel.
void world_wait_until_asleep(uint32_t tid);

const struct trace_thread *world_thread(const struct trace *trace, uint32_t tid);
// The thread's sample of that kind number `index` (from 0), of those with a duration (ends) or without (points, but for
// beginnings). NULL: it has no such.
const struct trace_sample *world_sample(const struct trace *trace, uint32_t tid, uint32_t kind, bool is_end,
                                        size_t index);
size_t world_count(const struct trace *trace, uint32_t tid, uint32_t kind, bool is_end);
// Of an extra; 0: there is none.
uint64_t world_extra(const struct trace *trace, const struct trace_sample *sample, uint32_t key);
// Whether the stack of a sample has a frame in that function, of at most so many bytes.
bool world_is_in(const struct trace *trace, const struct trace_sample *sample, const void *function, size_t bytes);
// The innermost frame's name, by dladdr: of exported functions.
const char *world_innermost(const struct trace *trace, const struct trace_sample *sample);

#endif
