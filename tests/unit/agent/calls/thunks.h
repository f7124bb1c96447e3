// SPDX-License-Identifier: Apache-2.0
// A small tracer of one's own process: exchanges the first bytes of functions that begin with nops, and reads the
// rings.
#ifndef TESTS_UNIT_AGENT_CALLS_THUNKS_H
#define TESTS_UNIT_AGENT_CALLS_THUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

// A function that can be traced: five bytes of nops come first.
#define TRACED __attribute__((noinline, patchable_function_entry(5)))

// 0 or -errno of calls_begin.
int thunks_begin(uint64_t ring_bytes, uint32_t ring_count);
// The memory of another process, for what follows about rings.
void thunks_look_at(struct qut_calls_header *memory);
struct qut_calls_header *thunks_header(void);
struct qut_calls_ring *thunks_ring(uint32_t index);
uint64_t thunks_counted(uint32_t cell); // in all tables

// Whether the function began with nops. `id`: 1 to THUNKS_ID_MAX.
enum { THUNKS_ID_MAX = 63 };
bool thunks_trace(void (*function)(void), uint32_t id);
// The same of a function whose first five bytes are whole instructions, which can stand anywhere, or a call; on
// aarch64, of one that begins with any instruction that can be moved.
bool thunks_trace_moved(void (*function)(void), uint32_t id);
// x86-64: the same, by way of the stub of places within functions, which makes no events.
bool thunks_place(void (*function)(void), uint32_t id);
bool thunks_count(void (*function)(void), uint32_t cell, bool by_stub);
// x86-64: all calls are counted by the cell `id`, and about one of 2^log2 makes events of `thinned_id`.
bool thunks_thin(void (*function)(void), uint32_t id, uint32_t thinned_id, uint32_t log2);
void thunks_undo(void);
#define THUNKS_TRACE(FUNCTION, ID) thunks_trace((void (*)(void))(FUNCTION), ID)

// What was in the rings since thunks_begin, by id.
struct thunks_sums {
    uint64_t enters[THUNKS_ID_MAX + 1], exits[THUNKS_ID_MAX + 1];
    uint64_t events;
    uint64_t tails[THUNKS_ID_MAX + 1]; // of enters
    uint64_t unpaired;                 // exits that are not of the last call that is open at their slot
    uint64_t backwards;                // enters before which time stood later, on the same ring
    uint64_t open;                     // calls that were not left, nor closed by another event
    uint64_t bad_ids;
};
// Reads the rings empty, and frees those that have ended.
void thunks_drain(void);
const struct thunks_sums *thunks_sums(void);

// x86-64: the bytes alone, for another process: of a thunk for a function that begins with nops, and of a jump.
enum { THUNKS_NOPS = 5 };
size_t thunks_make(uint8_t bytes[QUT_CALLS_THUNK_BYTES_MAX], uint64_t at, uint64_t block_at, uint64_t function,
                   uint32_t id);
void thunks_jump(uint8_t bytes[THUNKS_NOPS], uint64_t at, uint64_t to);

#ifdef __cplusplus
}
#endif

#endif
