// SPDX-License-Identifier: Apache-2.0
// The trace segment, version 2: what a process's samples are kept in while it runs, one mapping of fixed size, shared
// with its readers. Pure data; specification: formats/qut_trace.md. Files on disk: formats/qut_trace_file.h.
//
//   header | counters | threads | modules | strings | raw pcs | nodes | free list | directory | chunks
//
// Everything is little-endian and found by offsets. Words that one side writes while another reads are 4 or 8 bytes and
// aligned; which side may write which, and in what order, is said in the specification.
#ifndef QUT_FORMATS_QUT_TRACE_H
#define QUT_FORMATS_QUT_TRACE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_trace_record.h"

#define QUT_TRACE_MAGIC "QUTSegm\x01"

enum {
    QUT_TRACE_VERSION = 2,
    QUT_TRACE_VERSION_OLDEST = 1, // that is read: its records have no QUT_TRACE_TAG_TOLD
    QUT_TRACE_LEVELS = 3,      // appends of one thread that interrupt each other; deeper ones are refused and counted
    QUT_TRACE_TIME_SHIFT = 10, // a unit of time is 1,024 ns: 16 ms take two bytes
    QUT_TRACE_CHUNK_BYTES = 4096,
    QUT_TRACE_RECENT_COUNT = 256, // nodes that a record can name with one byte
    QUT_TRACE_NODE_BITS_MAX = 24,
    QUT_TRACE_RAW_BITS_MAX = 24,
    QUT_TRACE_NAME_BYTES = 16, // of a thread, with its NUL, as the kernel keeps it
    QUT_TRACE_BUILD_ID_BYTES = 64,
    QUT_TRACE_METRIC_COUNT = 8,
    QUT_TRACE_TOTAL_COUNT = 16,
    QUT_TRACE_EXTRAS_MAX = 16,        // of one record
    QUT_TRACE_RECORD_BYTES_MAX = 512, // none is longer
    QUT_TRACE_OWN_KIND_FIRST = 64,    // kinds from here on are named by their users
    QUT_TRACE_OWN_KIND_COUNT = 64,
    QUT_TRACE_MODULES_MAX = 1 << 20,
    QUT_TRACE_THREADS_MAX = 1 << 16,
    QUT_TRACE_CHUNKS_MAX = 1 << 22,
    QUT_TRACE_STRING_BYTES_MAX = 65535, // of one string
};

// 8 bytes aligned to 8 on every machine, 32-bit x86 included.
typedef uint64_t __attribute__((aligned(8))) qut_trace_u64;

// ---- header

enum qut_trace_mode {
    QUT_TRACE_OVERWRITE = 0, // the oldest samples make room for new ones
    QUT_TRACE_STREAM = 1,    // new ones are lost, and counted, until a collector has made room
};

enum qut_trace_state {
    QUT_TRACE_RUNNING = 1,
    QUT_TRACE_CLOSED = 2, // all chunks were sealed, but those of appends that never came to their end
};

struct qut_trace_section {
    uint64_t offset_bytes; // from the header; a multiple of 64
    uint64_t size_bytes;
};

struct qut_trace_header {
    uint8_t magic[8];
    uint32_t version;
    uint8_t arch;       // enum arch (formats/qut_table.h)
    uint8_t word_bytes; // 4 or 8
    uint8_t mode;       // enum qut_trace_mode
    uint8_t time_shift; // a unit of time is 2^time_shift ns
    uint64_t segment_bytes;
    uint32_t pid;
    uint32_t parent_pid;   // whose segment this one continues after a fork; 0: none
    uint8_t identity[16];  // random: no two segments have the same
    uint64_t start_ns;     // CLOCK_MONOTONIC: all times of the trace are of this clock
    uint64_t realtime_ns;  // CLOCK_REALTIME and
    uint64_t boottime_ns;  // CLOCK_BOOTTIME at start_ns
    uint32_t metric_mask;  // 1 << enum qut_trace_metric: those that are measured at all
    uint32_t flags;        // enum qut_trace_header_flag
    uint64_t merge_gap_ns; // equal samples further apart were not merged
    // In elements; nodes and raw pcs are powers of two.
    uint32_t thread_capacity;
    uint32_t module_capacity;
    uint32_t raw_capacity;
    uint32_t node_capacity;
    uint32_t chunk_count;
    uint32_t ring_capacity;       // chunks that one thread may have at level 0
    uint32_t outer_ring_capacity; // ... at each level above
    uint32_t thread_stride_bytes;
    struct qut_trace_section counters, threads, modules, strings, string_index, raw, nodes, free_list, directory,
        chunks;

    // ---- from here on written while the trace runs
    char command[256];          // how the process is called; ends with NUL, cut off where it is longer
    alignas(64) uint32_t state; // enum qut_trace_state
    uint32_t module_count;      // entries up to here are complete
    uint32_t thread_count;      // slots up to here were in use at some time
    uint32_t thread_uid_next;   // uid of the next thread; the first is 1
    uint32_t string_used_bytes; // reserved so far
    uint32_t kind_names[QUT_TRACE_OWN_KIND_COUNT]; // string ids; 0: not in use
    uint32_t zero;
    qut_trace_u64 closed_ns;                  // with CLOSED: when
    alignas(64) qut_trace_u64 free_head;      // tag << 32 | (index of the first free chunk + 1), or 0
    alignas(64) qut_trace_u64 chunk_seq_next; // the first chunk gets 1
};
static_assert(sizeof(struct qut_trace_header) == 1024, "shared");

enum qut_trace_header_flag {
    QUT_TRACE_HAS_CPU_TIME = 1, // samples carry the processor time of their thread
};

// ---- accounting: for each thread and level, and once more for what has no thread
//
//   hits = stored + merged + throttled + sum(lost) + being written (0 or 1 for each thread and level)

enum qut_trace_lost {
    QUT_TRACE_LOST_NESTED = 0, // interrupted more appends of its thread than there are levels
    QUT_TRACE_LOST_POOL,       // there was no chunk to be had
    QUT_TRACE_LOST_THREADS,    // its thread has no slot
    QUT_TRACE_LOST_FORK,       // between a fork and the end of its handlers
    QUT_TRACE_LOST_BAD,        // what was to be stored was malformed (too many extras, an unknown node)
    QUT_TRACE_LOST_JUMPED,     // a signal handler interrupted it and jumped out of it
    QUT_TRACE_LOST_COUNT = 8,  // places
};

// Stored all the same, with less in them: not part of the identity.
enum qut_trace_cut {
    QUT_TRACE_CUT_TREE = 0, // the tree of frames was full: the node is the deepest on the root's side that it has
    QUT_TRACE_CUT_RAW,      // the table of raw pcs was full: the same
    QUT_TRACE_CUT_DEPTH,    // the stack was deeper than there was room
    QUT_TRACE_CUT_WALK,     // the walk ended before the stack did
    QUT_TRACE_CUT_COUNT = 8,
};

struct qut_trace_counts {
    qut_trace_u64 hits, throttled;
    qut_trace_u64 lost[QUT_TRACE_LOST_COUNT];
    qut_trace_u64 cut[QUT_TRACE_CUT_COUNT];
    qut_trace_u64 marks;      // marks are no hits: hits count samples. All that were made
    qut_trace_u64 lost_marks; // of these
    qut_trace_u64 passed;     // hits that were throttled, beside those in `hits` and `throttled`
    qut_trace_u64 zero[3];
};
static_assert(sizeof(struct qut_trace_counts) == 192, "shared");

// Sums over hits, also of those that were throttled or lost.
enum qut_trace_total {
    QUT_TRACE_TOTAL_ALLOCATIONS = 0,
    QUT_TRACE_TOTAL_ALLOCATED_BYTES,
    QUT_TRACE_TOTAL_FREES,
    QUT_TRACE_TOTAL_FREED_BYTES,
    QUT_TRACE_TOTAL_LOCK_WAITS,
    QUT_TRACE_TOTAL_LOCK_WAIT_NS,
    QUT_TRACE_TOTAL_BLOCKED_CALLS,
    QUT_TRACE_TOTAL_BLOCKED_NS,
    QUT_TRACE_TOTAL_OWN_FIRST = 8, // free for any use
};

// Of threads whose slot was given to another one.
struct qut_trace_retired {
    struct qut_trace_counts counts;
    qut_trace_u64 stored, merged, overwritten;
    qut_trace_u64 totals[QUT_TRACE_TOTAL_COUNT];
    uint32_t uid; // of the last of them: while its slot is TAKEN, what stands in the slot was added here already
    uint32_t zero;
};
static_assert(sizeof(struct qut_trace_retired) == 352, "shared");

// The section `counters`: one of these.
struct qut_trace_counters {
    struct qut_trace_counts unowned; // of hits that have no slot: added to with single atomic instructions
    uint32_t retired_version;        // retired[retired_version & 1] holds
    uint32_t zero0;
    qut_trace_u64 overwritten_chunks;
    qut_trace_u64 collected_chunks;      // that a collector has taken out
    qut_trace_u64 node_count, raw_count; // entries in use, about
    qut_trace_u64 collector_ns;          // CLOCK_MONOTONIC of its last look; 0: none has looked; ~0: it has let go
    qut_trace_u64 zero1[2];
    struct qut_trace_retired retired[2];
    qut_trace_u64 unowned_totals[QUT_TRACE_TOTAL_COUNT]; // of threads that have no slot
};
static_assert(sizeof(struct qut_trace_counters) == 1088, "shared");

// ---- threads

enum qut_trace_thread_state {
    QUT_TRACE_THREAD_NONE = 0,
    QUT_TRACE_THREAD_TAKEN = 1, // being filled
    QUT_TRACE_THREAD_LIVE = 2,
    QUT_TRACE_THREAD_ENDED = 3,
};

// Metrics are counters of the thread, that only grow.
enum qut_trace_metric {
    QUT_TRACE_METRIC_MINOR_FAULTS = 0,
    QUT_TRACE_METRIC_MAJOR_FAULTS,
    QUT_TRACE_METRIC_VOLUNTARY_SWITCHES,
    QUT_TRACE_METRIC_INVOLUNTARY_SWITCHES,
    QUT_TRACE_METRIC_ALLOCATIONS,
    QUT_TRACE_METRIC_ALLOCATED_BYTES,
    QUT_TRACE_METRIC_OWN_FIRST, // free for any use
};

// The record that is still open: samples that are equal to it are merged into it, in place.
struct qut_trace_run {
    qut_trace_u64 first_time, last_time; // units
    qut_trace_u64 cpu_time;              // units, at the last sample
    qut_trace_u64 metrics[QUT_TRACE_METRIC_COUNT];
    uint32_t node;
    uint32_t count; // of samples; 0: there is no open record
    uint16_t kind;
    uint16_t flags; // enum qut_trace_sample_flag
    uint32_t zero;
};
static_assert(sizeof(struct qut_trace_run) == 104, "shared");

// All that an append changes together. There are two; `version` says which of them holds, and is written last.
struct qut_trace_commit {
    qut_trace_u64 stored, merged; // of this writer, since the thread's beginning: the open record's samples are in them
    qut_trace_u64 overwritten;    // samples of the chunks that it took from others or from itself, to write over them
    uint32_t chunk;               // index + 1; 0: none
    uint32_t used_bytes;          // of its records
    uint32_t record_count;
    uint32_t chunk_samples; // in the chunk's records, without the open one's
    // Of the last record: what the next one counts from.
    qut_trace_u64 time, cpu_time; // units
    qut_trace_u64 metrics[QUT_TRACE_METRIC_COUNT];
    qut_trace_u64 cpu_step; // units of processor time that one of its samples took
    uint32_t kind;          // with its flags: kind | flags << 8
    uint32_t chunk_seq;     // low bits of the chunk's
    struct qut_trace_run run;
};
static_assert(sizeof(struct qut_trace_commit) == 240, "shared");

// A writer: one thread at one level.
struct qut_trace_writer {
    struct qut_trace_counts counts;
    qut_trace_u64 totals[QUT_TRACE_TOTAL_COUNT];
    uint32_t version;    // commits[version & 1] holds
    uint32_t ring_first; // its sealed chunks, oldest first, are ring[ring_first % capacity], ...
    uint32_t ring_count;
    // While it gets a chunk (index + 1). As long as the directory says that this writer has it OPEN, and `commits` do
    // not name it, its samples from before are neither anywhere nor in `overwritten`.
    uint32_t taking;
    uint32_t taking_samples;
    // The writer's own.
    uint32_t level;
    uint32_t under_way; // a hit, which was jumped out of if another one begins
    uint32_t sealing;   // the chunk in `commits` may be sealed already
    uint32_t twins; // of the copy that does not hold. 1: it differs in the open record's last sample and in `merged`
                    // only; 2: it has the same `merged` and `overwritten`
    uint32_t still; // so many copies in a row, at most 2, have the same metrics, in the open record too
    uint32_t zero[14];
    struct qut_trace_commit commits[2];
    uint32_t recent[QUT_TRACE_RECENT_COUNT]; // node for each byte, as the reader of the open chunk has it; 0: none
};
static_assert(sizeof(struct qut_trace_writer) == 1920, "shared");

struct qut_trace_thread {
    uint32_t state; // enum qut_trace_thread_state
    uint32_t uid;
    uint32_t tid;
    uint32_t zero0;                 // before: appends under way, about. So many of entry_sp are not 0
    qut_trace_u64 start_ns, end_ns; // when it was first and last seen here; end 0: it lives
    char name[QUT_TRACE_NAME_BYTES];
    qut_trace_u64 entry_sp[QUT_TRACE_LEVELS]; // its own: stack pointer of each append under way; 0: none
    uint8_t zero[56];
    struct qut_trace_writer writers[QUT_TRACE_LEVELS];
    // and behind it, up to the stride, its own: uint32_t rings[ring_capacity + 2 * outer_ring_capacity]: the index of a
    // sealed chunk of its, and above 22 bits the low ones of the chunk's seq
};
static_assert(sizeof(struct qut_trace_thread) == 128 + 3 * 1920, "shared");

// ---- modules: one entry for each time that one was loaded

enum qut_trace_module_flag {
    QUT_TRACE_MODULE_MANAGED = 1, // compiled Java code
    QUT_TRACE_MODULE_JIT = 2,     // not a file: code made at run time; path is the function's name. code_base is 0
    QUT_TRACE_MODULE_FILE = 4,    // a mapped file that is no loaded module (dex): for raw pcs. code_base is 0
    QUT_TRACE_MODULE_VDSO = 8,
    QUT_TRACE_MODULE_LINES = 16, // with JIT: path is "function\nsource file", and what counts from start is the line
};

struct qut_trace_module {
    uint64_t code_base;   // its first byte of code in code space; the same for each time the same module was loaded
    uint64_t code_bytes;  // from its first to behind its last
    uint64_t start;       // address of that first byte
    uint64_t start_vaddr; // virtual address in the file (with FILE: offset in the file) of that first byte
    qut_trace_u64 load_ns, unload_ns; // unload 0: it is there
    uint32_t path;                    // string id
    uint32_t flags;
    uint32_t build_id_bytes;
    uint32_t levels; // string id. With JIT, of one place in code (code_bytes 1): functions and lines there; 0: not told
    uint8_t build_id[QUT_TRACE_BUILD_ID_BYTES];
};
static_assert(sizeof(struct qut_trace_module) == 128, "shared");

// ---- strings: each is its length (2 bytes), its bytes and a NUL, padded to 4. Its id is its offset in the section
// / 4. Id 0 is the empty string. string_index: 2^n words of id + 1 for finding one again; 0: free.

// ---- nodes: 8 bytes each. A node's id is its index; node 0 is the root, whose word stays 0
//
//   parent (24) | code (35) | kind (5)
//
// A word that is not 0 never changes. A parent is written before its children.
enum {
    QUT_TRACE_KIND_BITS = 5,
    QUT_TRACE_CODE_BITS = 35,
    QUT_TRACE_PARENT_SHIFT = QUT_TRACE_KIND_BITS + QUT_TRACE_CODE_BITS,
};

// What a node's code is.
enum qut_trace_class {
    QUT_TRACE_CLASS_CODE = 0, // an address in code space: code - code_base + start_vaddr of the module that has it
    QUT_TRACE_CLASS_SIGNAL,   // the same, of the frame that the kernel made for a signal
    QUT_TRACE_CLASS_RAW,      // the index in the table of raw pcs: an address in memory, in no module that was known
    QUT_TRACE_CLASS_JIT,      // the same: code that was made at run time
    QUT_TRACE_CLASS_DEX,      // the same: of bytecode
    QUT_TRACE_CLASS_LABEL,    // a string id: a frame that has a name and no address
    QUT_TRACE_CLASS_END,      // no frame: why what is outside of it is not known. Child of the root.
                              // 1 + reason (enum qut_end_reason) + refusal << 8
    QUT_TRACE_CLASS_KERNEL,   // no address: what the kernel did for the frame outside of it. enum qut_trace_kernel
    QUT_TRACE_CLASS_COUNT,
};
// A raw pc that is no address, but the number of a function and a line: what its upper bits are. Addresses have 57 bits
// at most.
enum { QUT_TRACE_NUMBER_SHIFT = 48, QUT_TRACE_NUMBER_PYTHON = 0x5059, QUT_TRACE_NUMBER_SCRIPT = 0x4a53 };
static inline bool qut_trace_is_number(uint64_t pc)
{
    const uint64_t whose = pc >> QUT_TRACE_NUMBER_SHIFT;
    return whose == QUT_TRACE_NUMBER_PYTHON || whose == QUT_TRACE_NUMBER_SCRIPT;
}
enum qut_trace_kernel {
    QUT_TRACE_KERNEL_OTHER = 0, // neither a call nor a fault that is known: an interrupt, say
    QUT_TRACE_KERNEL_FAULT,     // a page fault, as far as one can know: the thread had some in that time
    QUT_TRACE_KERNEL_CALL,      // a system call; which one is not known
    QUT_TRACE_KERNEL_OWN,       // not the kernel's nor the program's: handlers of ticks. Child of the root
    QUT_TRACE_KERNEL_CALLS = 16 // + its number, of the trace's architecture
};
// kind = class << 2 | these
enum {
    QUT_TRACE_NODE_EXACT = 1,   // where the frame was interrupted; else inside the call that it made
    QUT_TRACE_NODE_GUESSED = 2, // the frame rests on a guess
    QUT_TRACE_CLASS_SHIFT = 2,
};

// ---- directory: 8 bytes for each chunk
//
//   seq (40) | thread slot (16) | level (2) | state (2), from the highest bit on; the 4 bits between are 0
enum qut_trace_chunk_state {
    QUT_TRACE_CHUNK_FREE = 0,
    QUT_TRACE_CHUNK_OPEN = 1, // its writer adds to it
    QUT_TRACE_CHUNK_SEALED =
        2, // complete. The side that changes this word from SEALED, with a compare-and-swap, owns the chunk
};
enum {
    QUT_TRACE_CHUNK_STATE_BITS = 2,
    QUT_TRACE_CHUNK_LEVEL_SHIFT = 2,
    QUT_TRACE_CHUNK_SLOT_SHIFT = 8,
    QUT_TRACE_CHUNK_SEQ_SHIFT = 24,
};

#define QUT_TRACE_CHUNK_MAGIC 0x6b6e6843u // "Chnk"

struct qut_trace_chunk {
    uint32_t magic;
    uint32_t used_bytes; // of records; from here on to `checksum`: written when it is sealed
    uint32_t record_count;
    uint32_t sample_count;
    uint64_t end_time; // units, of its last record
    uint64_t lost_at_end;
    uint64_t checksum; // qut_table_checksum of the header, with 0 in its place, and of the records
    // Written when it is opened.
    uint64_t seq; // unique in the trace; later ones are larger
    uint32_t thread_uid;
    uint32_t tid;
    uint8_t level;
    uint8_t flags;      // enum qut_trace_header_flag: as the header's
    uint16_t base_kind; // kind | flags << 8
    uint32_t metric_mask;
    // What the first record counts from.
    uint64_t base_time, base_cpu_time; // units
    uint64_t base_metrics[QUT_TRACE_METRIC_COUNT];
    uint64_t lost_before;            // hits of this writer that were lost so far
    char name[QUT_TRACE_NAME_BYTES]; // of its thread: when it was opened, and again when it was sealed
    // and up to QUT_TRACE_CHUNK_BYTES: records
};
static_assert(sizeof(struct qut_trace_chunk) == 168, "shared");

#endif
