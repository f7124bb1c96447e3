// SPDX-License-Identifier: Apache-2.0
// Exact calls as a test tells them, written by the writer and read by the reader: one process, 2 ticks a nanosecond.
#ifndef TESTS_UNIT_TRACER_CALL_TIMES_STORY_H
#define TESTS_UNIT_TRACER_CALL_TIMES_STORY_H

#include "tracer/collect/calls_write.h"
#include "tracer/trace/trace_data.h"

enum { STORY_BEGIN_NS = 1000000, STORY_FUNCTIONS = 26, STORY_PID = 4000 };
#define STORY_STACK UINT64_C(0x7ffff0000008) // slots are this less so many times 16

struct story {
    int fd;
    struct collect_calls *calls;
    uint64_t ns;      // of the last event, since the beginning
    uint32_t threads; // so far
};

// Functions 'a' to 'z' with the ids 1 to 26, of a module "/story/program" without a file, at 16 bytes each.
void story_begin(struct story *story, int fd);
uint32_t story_thread(struct story *story, const char *name); // tids from STORY_PID on
void story_thread_ends(struct story *story, uint32_t thread);
// Entry and exit at a depth of the thread's stack; each takes the time `step_ns` since the event before.
void story_enter(struct story *story, uint32_t thread, char function, uint64_t depth, uint64_t step_ns);
void story_exit(struct story *story, uint32_t thread, char function, uint64_t depth, uint64_t step_ns);
// By a jump out of the function that is there.
void story_jump(struct story *story, uint32_t thread, char function, uint64_t slot, uint64_t ns);
void story_event(struct story *story, uint32_t thread, char function, uint64_t slot, bool is_exit, uint64_t ns);
void story_lost(struct story *story, uint32_t thread, uint64_t enters, uint64_t exits);
// Writes the end. The file's descriptor is the caller's.
void story_end(struct story *story);

// Of "a1 b2 >c2 /c2 /a1": entries, jumps and exits of functions at depths, 10 ns each; '|' changes to the next thread of
// `threads` (0: nothing is told of it before), '!' loses one entry and one exit there, '.' ends the thread.
void story_tell(struct story *story, const uint32_t *threads, uint32_t thread_count, const char *text);

// A file in memory; and what trace_read makes of it.
int story_file(void);
struct trace story_read(int fd);

#endif
