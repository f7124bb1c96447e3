// SPDX-License-Identifier: Apache-2.0
// Calls as a part of a .qtrace file has them (formats/qut_trace_file.md, parts of calls): tables of what was traced,
// and the events of each thread, which stay packed and are decoded again by whoever goes through them. What is in a
// struct call_events was checked when it was read: going through it cannot fail.
#ifndef TRACER_CALL_EVENTS_EVENTS_H
#define TRACER_CALL_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor_inline.h"
#include "base/hash_index.h"
#include "base/vector.h"
#include "formats/qut_trace_file.h"

enum { CALL_EVENTS_NONE = UINT32_MAX };

struct call_event {
    uint64_t ticks;
    uint64_t slot;     // where the call's return address stands
    uint32_t function; // the id; of what a reader gives: index in functions
    bool is_exit;
    bool is_tail;    // an entry to which a jump led out of the call at its slot; where that is told
    bool after_loss; // of what a reader gives: its thread's events right before it are not here
};

struct call_events_module {
    uint64_t bias; // address in memory less virtual address in the file
    const char *path;
    uint32_t build_id_bytes;
    uint8_t build_id[QUT_TRACE_BUILD_ID_BYTES];
};

struct call_events_function {
    uint64_t vaddr, size; // in its module's file; size 0: not known
    const char *name;     // of its symbol, as it is in the file; "": it has none
    uint32_t id;
    uint32_t module;  // CALL_EVENTS_NONE: the part does not say what it is
    uint32_t flags;   // enum qut_trace_file_call_flag
    uint32_t node;    // of the trace that has the part: where its name is asked for; 0: none
    uint64_t counted; // entries that made no events
    uint64_t enters, exits;
};

struct call_events_block {
    uint64_t first_event; // of the thread's
    uint64_t first_ticks;
    uint32_t count;
    const uint8_t *streams[QUT_TRACE_FILE_CALL_STREAM_COUNT];
    uint32_t stream_bytes[QUT_TRACE_FILE_CALL_STREAM_COUNT];
};

struct call_events_thread {
    uint32_t tid;
    uint32_t thread;           // index in the trace's threads; CALL_EVENTS_NONE: that has no such
    uint64_t start_ns, end_ns; // UINT64_MAX: it lived at the end
    char name[QUT_TRACE_NAME_BYTES];
    uint64_t enters, exits, lost_enters, lost_exits;
    uint64_t first_ticks, last_ticks; // of its events
    bool is_damaged;                  // blocks of its events are missing
    bool ends_in_loss;                // events behind the last one had no room
    struct {
        BASE_VECTOR(struct call_events_block);
    } blocks;
};

// One process's.
struct call_events {
    struct qut_trace_file_calls told; // the last CALLS
    bool has_told;
    uint32_t recording;  // of a trace that was put together: whose it is
    const char *command; // "": not known
    struct {
        BASE_VECTOR(struct call_events_module);
    } modules;
    struct {
        BASE_VECTOR(struct call_events_function);
    } functions;
    struct {
        BASE_VECTOR(struct call_events_thread);
    } threads; // by index
    struct {
        BASE_VECTOR(struct qut_trace_file_call_clock);
    } clocks;
    struct {
        BASE_VECTOR(struct qut_trace_file_call_loss);
    } losses; // by thread and place
    uint64_t enters, exits, lost_enters, lost_exits, counted;
    uint64_t event_bytes; // of its blocks, unpacked
    struct base_hash_index by_id;
    struct {
        BASE_VECTOR(void *);
    } kept; // what names and streams stand in
};

// ---- reading a part

struct call_events *call_events_new(void); // NULL: no memory
void call_events_free(struct call_events *calls);
// Adds what a block of one of the types CALLS ... CALL_EVENTS has. False: it is malformed, and what was read till then
// is in (of events: none); or there is no memory, *no_memory.
bool call_events_take(struct call_events *calls, unsigned type, struct base_bytes contents, bool *no_memory);
// After the last block: sorts, and gives functions and threads that were not told an entry. False: no memory.
bool call_events_settle(struct call_events *calls);
// A copy that lives as long as the part, with a NUL behind it; NULL: no memory.
uint8_t *call_events_keep(struct call_events *calls, const void *bytes, size_t size);

// ---- what is in it

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t call_events_ns(const struct call_events *calls, uint64_t ticks);

// Of a function that is thinned: for how many of its calls each recorded one stands, rounded; UINT64_MAX: none is
// recorded. 0: it is not thinned.
uint64_t call_events_one_of(const struct call_events_function *function);

// The index of an id; CALL_EVENTS_NONE: there is none.
uint32_t call_events_find(const struct call_events *calls, uint32_t id);

// Goes through a thread's events in the order in which it wrote them. call_events_end it, also halfway.
struct call_events_reader;
struct call_events_reader *call_events_begin(const struct call_events *calls, uint32_t thread); // NULL: no memory
bool call_events_next(struct call_events_reader *reader, struct call_event *event);             // false: no more
void call_events_end(struct call_events_reader *reader);

#endif
