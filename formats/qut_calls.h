// SPDX-License-Identifier: Apache-2.0
// Calls of traced functions, version 4: the memory that a traced process and its tracer share, the events in it, and
// what a thunk hands to the stub. Pure data; specification: formats/qut_calls.md.
//
//   header | directory: one entry a ring | rings of events | cells of counts: one table a ring
//
// Everything is little-endian and found by offsets. Words that one side writes while the other reads are 4 or 8 bytes
// and aligned.
#ifndef QUT_FORMATS_QUT_CALLS_H
#define QUT_FORMATS_QUT_CALLS_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_calls_thunk.h"

#define QUT_CALLS_MAGIC "QUTCall\x01"

// 8 bytes aligned to 8 on every machine, 32-bit x86 included.
typedef uint64_t __attribute__((aligned(8))) qut_calls_u64;

enum {
    QUT_CALLS_VERSION = 4,
    QUT_CALLS_ID_BITS = 19,
    QUT_CALLS_ID_MAX = (1 << QUT_CALLS_ID_BITS) - 1,
    QUT_CALLS_HEADER_BYTES = 4096,
    QUT_CALLS_RINGS_MAX = 4096,
    QUT_CALLS_RING_BYTES_MIN = 4096,
    QUT_CALLS_RING_BYTES_MAX = 1 << 28,
    QUT_CALLS_CELLS_MAX = 1 << QUT_CALLS_ID_BITS,
    // Free events that a writer leaves in a full ring: a handler may interrupt it after it has looked, and so on.
    QUT_CALLS_SPARE_EVENTS = 128,
};

// ---- where return addresses are kept, and what a thunk hands over

enum {
    QUT_CALLS_X86_64_SHADOW_LOG2 = 46, // the return address of `slot` is kept at slot - 2^46,
    QUT_CALLS_X86_64_WORDS_LOG2 = 45,  // the event of its exit at slot - 2^45
    QUT_CALLS_X86_64_ADDRESS_LOG2 = 47,
    // Addresses may have 39, 42, 47 or 48 bits there: a stack of 39 bits has room below it for no more.
    QUT_CALLS_AARCH64_SHADOW_LOG2 = 38,
    QUT_CALLS_AARCH64_WORDS_LOG2 = 37,
    QUT_CALLS_AARCH64_ADDRESS_LOG2 = 48,
    QUT_CALLS_SLOT_LOG2 = 3,
    QUT_CALLS_SLOT_BITS = 46,    // of an address that an event has
    QUT_CALLS_GRANULE_LOG2 = 24, // the shadow is mapped in pieces of this size, for the stacks that are met

    // x86-64. From rsp, in a thunk as it jumps to a stub.
    QUT_CALLS_THUNK_ID_AT = -16,        // u32: the function's id; count stub: its cell
    QUT_CALLS_THUNK_MOVED_LOW_AT = -40, // u32, u32: where the moved prologue begins
    QUT_CALLS_THUNK_MOVED_HIGH_AT = -36,
    // x86-64, of a place within a function. What lies below rsp there is live: so rsp is lowered by as much first, and
    // these are from there.
    QUT_CALLS_PLACE_BYTES = 256,
    QUT_CALLS_PLACE_ID_AT = 0,   // u32
    QUT_CALLS_PLACE_BACK_AT = 8, // u64: where the thunk goes on
    // aarch64. From x17, which is where the moved instruction begins.
    QUT_CALLS_THUNK_X17_ID_AT = -4, // u32
    // In a block of thunks.
    QUT_CALLS_BLOCK_ENTER_AT = 0,  // u64: address of the enter stub
    QUT_CALLS_BLOCK_COUNT_AT = 8,  // u64: address of the count stub
    QUT_CALLS_BLOCK_PLACE_AT = 56, // u64: address of the stub of places; 0: there is none
    QUT_CALLS_BLOCK_CODE_AT = 64,  // thunks begin here, and at multiples of QUT_CALLS_THUNK_ALIGNMENT
    // In what the thread's own pointer (own_tls_offset) points to.
    QUT_CALLS_OWN_COUNTS_AT = 32, // u64: address of the thread's table of counts; 0: it has none
    QUT_CALLS_TRAP_BYTE = 0xcc,   // int3
};

// A function that is entered by a trap. Tables of them, ascending, lie in blocks of thunks behind those.
struct qut_calls_trap {
    uint64_t address; // of the byte
    uint64_t thunk;   // 0: it is none any more
    uint8_t original; // the byte as it was
    uint8_t zero[7];
};
static_assert(sizeof(struct qut_calls_trap) == 24, "shared");

enum qut_calls_granule { // one byte for 2^24 bytes of addresses, at granules_address of the process
    QUT_CALLS_GRANULE_UNKNOWN = 0,
    QUT_CALLS_GRANULE_MAPPED = 1,
    QUT_CALLS_GRANULE_REFUSED = 2, // calls on stacks there are not traced, but counted
    QUT_CALLS_GRANULE_BEGUN = 3,   // some thread is mapping it
};

// ---- header

enum qut_calls_state {
    QUT_CALLS_READY = 1,
    QUT_CALLS_ENDED = 2, // told by the process at its end; one that is killed does not tell
};

struct qut_calls_header {
    uint8_t magic[8];
    uint32_t version;
    uint8_t arch; // enum qut_arch_id (formats/qut_rule.h)
    uint8_t zero[3];
    uint64_t total_bytes; // of this memory
    uint32_t pid;
    uint32_t ring_count;
    uint32_t granule_shift; // QUT_CALLS_GRANULE_LOG2
    uint32_t cell_count;    // of each ring's table of counts
    uint64_t ring_bytes;    // of each ring; a power of two
    uint64_t directory_offset_bytes, rings_offset_bytes, counts_offset_bytes;
    uint64_t shadow_distance;
    // Addresses in the process.
    uint64_t mapped_address;   // of this header
    uint64_t granules_address; // of addresses as long as those of the machine; enum qut_calls_granule
    uint64_t enter_stub, count_stub;
    uint64_t exit_return;          // what a slot holds instead of its return address
    uint64_t stub_begin, stub_end; // all of the stub: enter, exit, count
    uint64_t exit_begin, exit_end; // from exit_return on: a thread here has left its function, and not told yet
    int64_t own_tls_offset;        // from the thread pointer (fs) to the thread's own pointer
    uint64_t words_distance;       // the exit's event of `slot` is kept at slot - words_distance
    uint64_t place_stub;           // of places within functions; 0: there is none

    // ---- written while it runs, by any thread, atomically
    alignas(64) uint32_t state;            // enum qut_calls_state
    uint32_t rings_used;                   // entries of the directory up to here were in use at some time
    qut_calls_u64 lost_enters, lost_exits; // of threads that have no ring: all are taken
    qut_calls_u64 passed_misaligned;       // calls that were not traced: their slot is no multiple of 8
    qut_calls_u64 passed_no_shadow;        // ... there is no shadow for their stack
    qut_calls_u64 uncounted;               // of threads that have no ring, in functions that are only counted
    uint32_t
        full_wait_us;    // written by the tracer: how long a thread waits for room in its ring before an event is lost
    uint32_t waits;      // how often one has begun to
    uint32_t must_stay;  // by the tracer: code of ours is in use, so the agent and the blocks are not to be unmapped
    uint32_t parent_pid; // of a child of fork whose parent is traced: of that, as `pid`; else 0
};
static_assert(sizeof(struct qut_calls_header) == 256, "shared");
static_assert(offsetof(struct qut_calls_header, total_bytes) == 16, "shared");
static_assert(offsetof(struct qut_calls_header, ring_bytes) == 40, "shared");
static_assert(offsetof(struct qut_calls_header, shadow_distance) == 72, "shared");
static_assert(offsetof(struct qut_calls_header, enter_stub) == 96, "shared");
static_assert(offsetof(struct qut_calls_header, own_tls_offset) == 152, "shared");
static_assert(offsetof(struct qut_calls_header, words_distance) == 160, "shared");
static_assert(offsetof(struct qut_calls_header, place_stub) == 168, "shared");
static_assert(offsetof(struct qut_calls_header, state) == 192, "shared");
static_assert(offsetof(struct qut_calls_header, full_wait_us) == 240, "shared");
static_assert(offsetof(struct qut_calls_header, parent_pid) == 252, "shared");
static_assert(sizeof(struct qut_calls_header) <= QUT_CALLS_HEADER_BYTES, "with room behind it");

// ---- directory

enum qut_calls_ring_state {
    QUT_CALLS_RING_FREE = 0,
    QUT_CALLS_RING_TAKEN = 1, // by the process: FREE → TAKEN, TAKEN → ENDED
    QUT_CALLS_RING_ENDED = 2, // its thread is gone; the tracer reads what is left, and makes it FREE again
};

struct qut_calls_ring {
    uint32_t state; // enum qut_calls_ring_state
    uint32_t tid;
    uint32_t generation; // how often it was taken
    uint32_t zero;
    // Since it was taken; in the writer's order only, never both counted and in the ring.
    qut_calls_u64 lost_enters, lost_exits;
    qut_calls_u64 unused[4];
    alignas(64) qut_calls_u64 tail_events; // read by the tracer, who alone writes it
    qut_calls_u64 unused_tracer[7];
};
static_assert(sizeof(struct qut_calls_ring) == 128, "shared");
static_assert(offsetof(struct qut_calls_ring, lost_enters) == 16, "shared");
static_assert(offsetof(struct qut_calls_ring, tail_events) == 64, "shared");

// ---- events

struct qut_calls_event {
    qut_calls_u64 time_ticks; // of the time stamp counter; aarch64: of cntvct_el0
    qut_calls_u64 word;       // written last; 0: nothing is there yet
};
static_assert(sizeof(struct qut_calls_event) == 16, "shared");

enum {
    // Of an entry: its slot held exit_return already. Of an exit: of a call that such an entry has begun.
    QUT_CALLS_EVENT_TAIL = 1 << QUT_CALLS_ID_BITS,
    QUT_CALLS_EVENT_EXIT = 1 << (QUT_CALLS_ID_BITS + 1),
};

// `slot`: the address of the return address (aarch64: sp at the entry), a multiple of 8. Its bits from 46 on are not
// stored. On x86-64 they are always 01.
static inline uint64_t qut_calls_word(uint64_t slot, bool is_exit, uint32_t id)
{
    return (slot >> QUT_CALLS_SLOT_LOG2) << (QUT_CALLS_ID_BITS + 2) | (is_exit ? (uint64_t)QUT_CALLS_EVENT_EXIT : 0) |
           (id & QUT_CALLS_ID_MAX);
}

static inline uint32_t qut_calls_word_id(uint64_t word)
{
    return (uint32_t)(word & QUT_CALLS_ID_MAX);
}

static inline bool qut_calls_word_is_exit(uint64_t word)
{
    return (word & QUT_CALLS_EVENT_EXIT) != 0;
}

// An entry that a jump led to, out of the traced call at the same slot, which is over by that. Else that one was
// unwound.
static inline bool qut_calls_word_is_tail(uint64_t word)
{
    return (word & (QUT_CALLS_EVENT_EXIT | QUT_CALLS_EVENT_TAIL)) == QUT_CALLS_EVENT_TAIL;
}

static inline uint64_t qut_calls_word_slot(uint64_t word)
{
    return (word >> (QUT_CALLS_ID_BITS + 2)) << QUT_CALLS_SLOT_LOG2 | (uint64_t)1 << QUT_CALLS_SLOT_BITS;
}

// What is kept at slot - words_distance while the call runs: the exit's event as it will be written, which may have
// QUT_CALLS_EVENT_TAIL as well.
static inline uint64_t qut_calls_exit_word(uint64_t slot, uint32_t id)
{
    return qut_calls_word(slot, true, id);
}

// ---- what a tracer does

// Whether the memory of `size` bytes at `header` is of this version, and all that the header names lies in it. Looks at
// a copy: the process may change it at any time.
static inline bool qut_calls_header_is_sound(const struct qut_calls_header *header, uint64_t size)
{
    const uint64_t rings = header->ring_count, ring_bytes = header->ring_bytes;
    for (unsigned i = 0; i < sizeof header->magic; i++)
        if (header->magic[i] != (uint8_t)QUT_CALLS_MAGIC[i])
            return false;
    if (header->version != QUT_CALLS_VERSION || header->total_bytes > size || rings == 0 || rings > QUT_CALLS_RINGS_MAX)
        return false;
    if (ring_bytes < QUT_CALLS_RING_BYTES_MIN || ring_bytes > QUT_CALLS_RING_BYTES_MAX ||
        (ring_bytes & (ring_bytes - 1)))
        return false;
    if (header->cell_count > QUT_CALLS_CELLS_MAX || header->granule_shift != QUT_CALLS_GRANULE_LOG2)
        return false;
    const uint64_t begins[] = {header->directory_offset_bytes, header->rings_offset_bytes, header->counts_offset_bytes};
    const uint64_t sizes[] = {rings * sizeof(struct qut_calls_ring), rings * ring_bytes,
                              rings * header->cell_count * 8};
    for (unsigned i = 0; i < 3; i++)
        if (begins[i] % 64 != 0 || begins[i] < sizeof *header || begins[i] > header->total_bytes ||
            sizes[i] > header->total_bytes - begins[i])
            return false;
    return true;
}

// Takes an event out of its place in a ring; false: it is not there yet. Whoever has taken some adds their number to
// tail_events (release), not before.
static inline bool qut_calls_event_take(struct qut_calls_event *place, struct qut_calls_event *event)
{
    event->word = __atomic_load_n(&place->word, __ATOMIC_ACQUIRE);
    if (event->word == 0)
        return false;
    event->time_ticks = __atomic_load_n(&place->time_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&place->word, 0, __ATOMIC_RELAXED);
    return true;
}

#endif
