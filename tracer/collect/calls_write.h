// SPDX-License-Identifier: Apache-2.0
// Exact calls of a process into a .qtrace file, as they come: a part of calls (formats/qut_trace_file.md), behind what
// is in the file. Until collect_calls_end nothing else may be written there. All functions may allocate and write to
// the file; one thread at a time. Those that return int: 0, or -1 with *error filled.
//
// What was handed over and cannot be written (the disk is full) is lost and counted as such: the account stays exact,
// and a later write may do. So an error need not end a recording.
#ifndef TRACER_COLLECT_CALLS_WRITE_H
#define TRACER_COLLECT_CALLS_WRITE_H

#include "base/error.h"
#include "formats/qut_calls.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/trace_data.h"

struct collect_calls;

struct collect_calls_process {
    uint32_t pid;
    uint32_t arch;       // enum qut_arch_id
    uint64_t begin_ns;   // CLOCK_MONOTONIC, as all times in ns
    const char *command; // NULL: not known
};

struct collect_calls_module {
    const char *path;
    uint64_t bias; // address in memory less virtual address in the file
    const uint8_t *build_id;
    uint32_t build_id_bytes; // 0: it has none
};

struct collect_calls_function {
    uint32_t id;      // of its events
    uint32_t module;  // what collect_calls_module gave
    uint64_t vaddr;   // of its entry, in the module's file
    uint64_t size;    // 0: not known
    uint32_t flags;   // enum qut_trace_file_call_flag
    const char *name; // its symbol, mangled as it is in the file; NULL: it has none
};

struct collect_calls_sums {
    uint64_t enters, exits, lost_enters, lost_exits; // events written; lost
    uint64_t file_bytes;                             // of the part
};

// The file's descriptor stays the caller's. NULL, *error filled: it cannot be written, or no memory.
struct collect_calls *collect_calls_begin(int fd, const struct collect_calls_process *process,
                                          struct base_error *error);

// Numbered from 0 on. A module that was unloaded and comes again is another one.
int collect_calls_module(struct collect_calls *calls, const struct collect_calls_module *module, uint32_t *index,
                         struct base_error *error);
// At any time before the end; an id told again takes the new place.
int collect_calls_function(struct collect_calls *calls, const struct collect_calls_function *function,
                           struct base_error *error);
// The same moment by both clocks: one at the beginning, one at the end, some between. One that is not behind the last
// one is passed over.
int collect_calls_clock(struct collect_calls *calls, uint64_t ticks, uint64_t ns, struct base_error *error);

// A thread; each ring that is taken anew is a new one. Numbered from 0 on.
int collect_calls_thread(struct collect_calls *calls, uint32_t tid, const char *name, uint64_t start_ns,
                         uint32_t *index, struct base_error *error);
// Its name, if that changed (NULL: it did not), and its end (UINT64_MAX: it lives). What it has open ends with it.
int collect_calls_thread_is(struct collect_calls *calls, uint32_t thread, const char *name, uint64_t end_ns,
                            struct base_error *error);

// Events of a thread, in the order in which it wrote them, behind those before.
int collect_calls_events(struct collect_calls *calls, uint32_t thread, const struct qut_calls_event *events,
                         size_t count, struct base_error *error);
// Events that had no room in its ring, at this place between those told.
int collect_calls_lost(struct collect_calls *calls, uint32_t thread, uint64_t enters, uint64_t exits,
                       struct base_error *error);
// All entries of a function so far that made no events. May be told again, the last time counts.
int collect_calls_counted(struct collect_calls *calls, uint32_t id, uint64_t count, struct base_error *error);

// Writes what waits for more: a tracer that is killed has lost what came after. Say, once a second.
int collect_calls_flush(struct collect_calls *calls, struct base_error *error);

void collect_calls_sums(const struct collect_calls *calls, struct collect_calls_sums *sums);

// What else is to be said, as notes: numbers by names that begin with "calls-", such as "calls-refused-short". Writes
// all and frees `calls`, whatever it returns. misaligned: entries that were not traced for their stack. Between
// QUT_TRACE_FILE_END_*, DIED is one that was killed.
struct collect_calls_ending {
    enum qut_trace_file_end end;
    uint64_t end_ns;
    uint64_t misaligned;
    const struct trace_note *notes;
    size_t note_count;
};
int collect_calls_end(struct collect_calls *calls, const struct collect_calls_ending *ending, struct base_error *error);

#endif
