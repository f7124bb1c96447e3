// SPDX-License-Identifier: Apache-2.0
// The .qtrace file, version 5: what a collector took out of a segment (formats/qut_trace.h), in the order in which it
// did, or settled. Pure data; specification: formats/qut_trace_file.md.
//
//   file = part, part, ...      one for each process
//   part = header | block, block, ... | the last block: a TRAILER
//
// Little-endian. Each block has checksums of its own and is found again by its magic: a spoiled one loses itself only.
#ifndef QUT_FORMATS_QUT_TRACE_FILE_H
#define QUT_FORMATS_QUT_TRACE_FILE_H

#include "formats/qut_trace.h"

#define QUT_TRACE_FILE_MAGIC       "QUTTrac\x01"
#define QUT_TRACE_FILE_BLOCK_MAGIC 0x6b6c4251u // "QBlk"

enum {
    QUT_TRACE_FILE_VERSION = 5,        // of a part with samples. 2: all of its segment's versions are 1
    QUT_TRACE_FILE_VERSION_CALLS = 4,  // of a part of calls, which readers of version 2 refuse by that. 3: does not
                                       // tell tail calls
    QUT_TRACE_FILE_VERSION_OLDEST = 1, // that is read: it has no TREE, THREAD_PLANES, CHUNK_PLANES, supersedes_bytes
    QUT_TRACE_FILE_BLOCK_BYTES_MAX = 4 << 20, // unpacked; larger contents become several blocks
    QUT_TRACE_FILE_BLOCK_CHUNKS_MAX = 64,     // so many chunks a spoiled byte may cost
    QUT_TRACE_FILE_PLANES_CHUNKS_MAX = 512,   // in a block of CHUNK_PLANES
    QUT_TRACE_FILE_TREE_NODES_MAX = 1 << 18,  // in one block
};

struct qut_trace_file_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t pid;
    uint8_t identity[16]; // the segment's
    uint64_t begin_ns;    // CLOCK_MONOTONIC: when the collector began
    // This part says again what so many bytes before it say, and counts instead of them as soon as it has a trailer
    // that agrees with its size; before that it counts for nothing. 0: it takes no other's place.
    uint64_t supersedes_bytes;
    uint64_t zero;
    uint64_t checksum; // qut_table_checksum of what stands before
};
static_assert(sizeof(struct qut_trace_file_header) == 64, "shared");

enum qut_trace_file_type {
    QUT_TRACE_FILE_SEGMENT = 1, // struct qut_trace_header, as it was then, and struct qut_trace_counters
    QUT_TRACE_FILE_THREADS,     // struct qut_trace_file_thread, ... of slots that changed
    QUT_TRACE_FILE_MODULES,     // first index u32, zero u32, struct qut_trace_module, ...
    QUT_TRACE_FILE_STRINGS,     // offset in the section u32, zero u32, bytes
    QUT_TRACE_FILE_RAW,         // columns: see the specification
    QUT_TRACE_FILE_NODES,       // likewise
    QUT_TRACE_FILE_CHUNKS,      // likewise
    QUT_TRACE_FILE_TRAILER,     // struct qut_trace_file_trailer
    QUT_TRACE_FILE_NOTES,       // count u32, zero u32, struct qut_trace_file_note, ..., names and texts
    // Of settled parts; see the specification.
    QUT_TRACE_FILE_TREE,          // struct qut_trace_file_tree, ...: nodes, each behind its parent
    QUT_TRACE_FILE_THREAD_PLANES, // THREADS, in planes
    QUT_TRACE_FILE_CHUNK_PLANES,  // struct qut_trace_file_planes, ...: chunks with nodes of the tree
    // Of parts of calls; see the specification.
    QUT_TRACE_FILE_CALLS,          // struct qut_trace_file_calls; the last one counts
    QUT_TRACE_FILE_CALL_MODULES,   // struct qut_trace_file_call_module and its path, ...
    QUT_TRACE_FILE_CALL_FUNCTIONS, // struct qut_trace_file_call_function and its name, ...
    QUT_TRACE_FILE_CALL_THREADS,   // struct qut_trace_file_call_thread, ...
    QUT_TRACE_FILE_CALL_CLOCKS,    // struct qut_trace_file_call_clock, ...
    QUT_TRACE_FILE_CALL_LOSSES,    // struct qut_trace_file_call_loss, ...
    QUT_TRACE_FILE_CALL_COUNTS,    // struct qut_trace_file_call_count, ...
    QUT_TRACE_FILE_CALL_EVENTS,    // struct qut_trace_file_call_events, and streams
    QUT_TRACE_FILE_TYPE_END,
};

enum qut_trace_file_codec {
    QUT_TRACE_FILE_PLAIN = 0,
    QUT_TRACE_FILE_ZSTD = 1,        // one frame that states its size
    QUT_TRACE_FILE_ZSTD_FRAMES = 2, // several, one behind the other: what is unlike packs better apart
};

struct qut_trace_file_block {
    uint32_t magic;
    uint8_t type;  // enum qut_trace_file_type
    uint8_t codec; // enum qut_trace_file_codec
    uint16_t zero;
    uint32_t index; // of the file's blocks: 0, 1, ...
    uint32_t packed_bytes;
    uint32_t unpacked_bytes;
    uint32_t sample_count;      // of CHUNKS: in them, so that it is known what a spoiled block cost; else 0
    uint64_t contents_checksum; // qut_table_checksum of the packed bytes, which follow
    uint64_t checksum;          // of what stands before in this header
};
static_assert(sizeof(struct qut_trace_file_block) == 40, "shared");

struct qut_trace_file_writer {
    struct qut_trace_counts counts;
    qut_trace_u64 totals[QUT_TRACE_TOTAL_COUNT];
    struct qut_trace_commit commit; // the one that held; `chunk` is 0 where the directory did not agree
    qut_trace_u64 overwritten;      // commit.overwritten, and what it was just taking
    uint32_t version;
    uint32_t under_way; // how many hits may have been
};
static_assert(sizeof(struct qut_trace_file_writer) == 576, "shared");

// A thread's slot as it was at some moment. A later one of the same uid takes its place.
struct qut_trace_file_thread {
    uint32_t slot;
    uint32_t state; // enum qut_trace_thread_state
    uint32_t uid;
    uint32_t tid;
    uint32_t depth; // appends under way
    uint32_t zero;
    qut_trace_u64 start_ns, end_ns;
    char name[QUT_TRACE_NAME_BYTES];
    struct qut_trace_file_writer writers[QUT_TRACE_LEVELS];
};
static_assert(sizeof(struct qut_trace_file_thread) == 56 + 3 * 576, "shared");

// Of each chunk in a block of them, in a column before the chunks' own headers.
struct qut_trace_file_chunk {
    uint32_t used_bytes; // of records
    uint32_t is_open; // 1: it was not sealed; checksum, used_bytes and what else sealing writes are not in its header
    uint32_t slot;
    uint32_t record_count;
};
static_assert(sizeof(struct qut_trace_file_chunk) == 16, "shared");

// What a block of type TREE begins with.
struct qut_trace_file_tree {
    uint32_t first; // id of its first node; the others' follow
    uint32_t count;
    uint32_t code_count;  // different codes
    uint32_t chain_count; // ancestors of the first node's that stand before the block, without the root
};
static_assert(sizeof(struct qut_trace_file_tree) == 16, "shared");

// Records are taken apart: numbers of one meaning stand together, their first bytes in the LOW stream, others in HIGH.
enum qut_trace_file_stream {
    QUT_TRACE_FILE_STREAM_REST = 0, // each record without what the others have
    QUT_TRACE_FILE_STREAM_NODE_LOW, // distance from the node before, zigzag
    QUT_TRACE_FILE_STREAM_NODE_HIGH,
    QUT_TRACE_FILE_STREAM_TIME_LOW,
    QUT_TRACE_FILE_STREAM_TIME_HIGH,
    QUT_TRACE_FILE_STREAM_CPU_LOW,
    QUT_TRACE_FILE_STREAM_CPU_HIGH,
    QUT_TRACE_FILE_STREAM_COUNT,
};

// What a block of type CHUNK_PLANES begins with.
struct qut_trace_file_planes {
    uint32_t count; // of chunks
    uint32_t stream_bytes[QUT_TRACE_FILE_STREAM_COUNT];
};
static_assert(sizeof(struct qut_trace_file_planes) == 32, "shared");

// What the collector knows and the segment does not: a named number, or a named text. A later note of the same name
// takes the place of an earlier one.
struct qut_trace_file_note {
    uint64_t value;
    uint32_t name_bytes; // with its NUL
    uint32_t text_bytes; // with its NUL; 0: it is a number
};
static_assert(sizeof(struct qut_trace_file_note) == 16, "shared");

enum {
    QUT_TRACE_FILE_NOTES_MAX = 1024,      // in one part
    QUT_TRACE_FILE_NOTE_BYTES_MAX = 8192, // of a name, of a text
};

// ---- parts of calls: exact entries and exits of functions (qut trace)

enum {
    QUT_TRACE_FILE_CALL_ID_BITS = 20,
    QUT_TRACE_FILE_CALL_MODULES_MAX = 1 << 13,
    QUT_TRACE_FILE_CALL_THREADS_MAX = 1 << 16,
    QUT_TRACE_FILE_CALL_EVENTS_MAX = 1 << 16, // in a block
    QUT_TRACE_FILE_CALL_OPEN_MAX = 1024, // calls that a block's code knows to be open; those further out are forgotten
};

// What the part is of. Sums are as far as they were known when the block was written.
struct qut_trace_file_calls {
    uint32_t pid;
    uint32_t arch;             // enum qut_arch_id
    uint64_t begin_ns, end_ns; // CLOCK_MONOTONIC
    uint64_t enters, exits;    // events in the part
    uint64_t lost_enters, lost_exits;
    uint64_t misaligned; // entries that were not traced: their stack was not what the ABI says
    uint32_t flags;      // enum qut_trace_file_calls_flag
    uint32_t zero;
};
static_assert(sizeof(struct qut_trace_file_calls) == 72, "shared");

enum qut_trace_file_calls_flag {
    QUT_TRACE_FILE_CALLS_TAILS = 1, // entries that a jump led to have a kind of their own
};

// Numbered from 0 on, in the order in which they stand in the part.
struct qut_trace_file_call_module {
    uint64_t bias; // address in memory less virtual address in the file
    uint32_t path_bytes;
    uint32_t build_id_bytes;
    uint8_t build_id[QUT_TRACE_BUILD_ID_BYTES];
};
static_assert(sizeof(struct qut_trace_file_call_module) == 80, "shared");

enum qut_trace_file_call_flag {
    QUT_TRACE_FILE_CALL_COUNTED = 1, // it has, or had for a time, a count of its entries in place of events
    QUT_TRACE_FILE_CALL_THINNED = 2, // ... of most of its entries: one of several has events
};

struct qut_trace_file_call_function {
    uint64_t vaddr; // of its entry, in its module's file
    uint64_t size;  // 0: not known
    uint32_t id;    // of its events; below 2^20
    uint32_t module;
    uint32_t flags;      // enum qut_trace_file_call_flag
    uint32_t name_bytes; // of its symbol, as it is in the file; 0: it has none
};
static_assert(sizeof(struct qut_trace_file_call_function) == 32, "shared");

// The last one of an index counts.
struct qut_trace_file_call_thread {
    uint32_t index; // from 0 on
    uint32_t tid;
    uint64_t start_ns, end_ns; // CLOCK_MONOTONIC: when it was seen first; UINT64_MAX: it lives
    char name[QUT_TRACE_NAME_BYTES];
};
static_assert(sizeof(struct qut_trace_file_call_thread) == 40, "shared");

// The same moment by the clock of the events and by CLOCK_MONOTONIC. Both ascend.
struct qut_trace_file_call_clock {
    uint64_t ticks;
    uint64_t ns;
};
static_assert(sizeof(struct qut_trace_file_call_clock) == 16, "shared");

// Events that a thread had no room for, before its event number `before_event` (from 0 on).
struct qut_trace_file_call_loss {
    uint32_t thread;
    uint32_t zero;
    uint64_t before_event;
    uint64_t enters, exits;
};
static_assert(sizeof(struct qut_trace_file_call_loss) == 32, "shared");

// Entries of a function that made no events. The last one of an id counts.
struct qut_trace_file_call_count {
    uint32_t id;
    uint32_t zero;
    uint64_t count;
};
static_assert(sizeof(struct qut_trace_file_call_count) == 16, "shared");

enum qut_trace_file_call_stream {
    QUT_TRACE_FILE_CALL_KINDS = 0, // a byte for each event: enum qut_trace_file_call_kind
    QUT_TRACE_FILE_CALL_TIMES,     // LEB128: ticks since the event before
    QUT_TRACE_FILE_CALL_IDS,       // LEB128, of those that are no QUT_TRACE_FILE_CALL_EXIT_LAST
    QUT_TRACE_FILE_CALL_SLOTS,     // zigzag, likewise
    QUT_TRACE_FILE_CALL_STREAM_COUNT,
};

enum qut_trace_file_call_kind {
    QUT_TRACE_FILE_CALL_ENTER = 0,
    QUT_TRACE_FILE_CALL_EXIT_LAST, // of the call that was entered last and is open
    QUT_TRACE_FILE_CALL_EXIT,      // of another one
    QUT_TRACE_FILE_CALL_TAIL,      // an entry to which a jump led out of the call at its slot
    QUT_TRACE_FILE_CALL_KIND_COUNT,
    QUT_TRACE_FILE_CALL_EARLIER = 4, // added: the time is before the event before's, by so much
};

// What a block of type CALL_EVENTS begins with: events of one thread, in the order in which it wrote them.
struct qut_trace_file_call_events {
    uint32_t thread;
    uint32_t count;       // <= QUT_TRACE_FILE_CALL_EVENTS_MAX
    uint64_t first_event; // how many of the thread's are before
    uint64_t first_ticks;
    uint32_t stream_bytes[QUT_TRACE_FILE_CALL_STREAM_COUNT];
};
static_assert(sizeof(struct qut_trace_file_call_events) == 40, "shared");

enum qut_trace_file_end {
    QUT_TRACE_FILE_END_CLOSED = 1,  // the process closed its trace
    QUT_TRACE_FILE_END_DIED = 2,    // the process ended without that: all that it had stored is here
    QUT_TRACE_FILE_END_STOPPED = 3, // the collector was told to end, or took what there was
    QUT_TRACE_FILE_END_EXEC = 4,    // the process went on as another program; all that it had stored is here
};

struct qut_trace_file_trailer {
    uint32_t end;         // enum qut_trace_file_end
    uint32_t block_count; // before this one
    uint64_t file_bytes;  // up to and with this block
    uint64_t chunk_count, node_count, raw_count, module_count, thread_count, string_bytes;
    uint64_t failed_writes;  // times that the file could not be written
    uint64_t missed_chunks;  // sealed chunks that changed while they were copied: overwritten, or spoiled
    uint64_t end_ns;         // CLOCK_MONOTONIC
    uint64_t unpacked_bytes; // of all blocks
    uint64_t zero[4];
};
static_assert(sizeof(struct qut_trace_file_trailer) == 128, "shared");

#endif
