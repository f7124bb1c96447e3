// SPDX-License-Identifier: Apache-2.0
// A second reader of segments, written from formats/qut_trace.h alone: it shares no code with the store or with the
// tracer's reader, so that agreeing means something. Needs libc only. Nothing that it reads is trusted: segments come
// from processes that were killed, or are stopped in the middle of an append.
#ifndef TESTS_PROOF_STORE_DECODER_H
#define TESTS_PROOF_STORE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_trace.h"

struct decoder {
    const uint8_t *bytes;
    size_t size;
    struct qut_trace_header header; // a copy, checked
    uint32_t fault_count;           // what is not as the format says; the first of them:
    char fault[256];
};

struct decoded_extra {
    uint8_t key;
    uint64_t value;
};

struct decoded_record {
    uint32_t thread_uid, tid;
    uint8_t level;
    bool is_mark;
    bool is_open; // the run that is still open
    uint64_t chunk_seq;
    uint64_t first_time, last_time; // units; of a mark both are its time
    // Of samples.
    uint32_t node, count;
    uint16_t kind, flags;
    uint64_t cpu_time;
    uint64_t metrics[QUT_TRACE_METRIC_COUNT];
    uint32_t extra_count;
    struct decoded_extra extras[QUT_TRACE_EXTRAS_MAX];
    // Of marks.
    uint32_t mark_kind, string;
    uint64_t id;
};
typedef void (*decoded_fn)(void *context, const struct decoded_record *record);

// Of one writer, or summed over all and those that are gone.
struct decoded_balance {
    uint64_t hits, stored, merged, throttled, lost, marks, lost_marks, cut;
    uint64_t under_way; // hits - (stored + merged + throttled + lost)
};

struct decoded_totals {
    struct decoded_balance sum;
    uint64_t lost[QUT_TRACE_LOST_COUNT];
    uint64_t totals[QUT_TRACE_TOTAL_COUNT];
    uint64_t in_chunks; // samples in sealed and open chunks
    uint64_t in_runs;   // in open runs
    uint64_t overwritten;
    uint64_t marks_seen;
    uint64_t collected; // samples, as the caller said
    uint32_t free_chunks, begun_chunks, open_chunks, sealed_chunks, damaged_chunks;
    uint32_t threads, live_threads;
    uint32_t node_count;
};

// False: not a segment, or sections that lie outside of it; `fault` says which.
bool decoder_open(struct decoder *decoder, const void *bytes, size_t size);

// Everything, chunk by chunk in no order; returns false if anything was not as the format says, or the balance is not
// exact. `collected`: samples of chunks that were taken out before.
bool decoder_all(struct decoder *decoder, uint64_t collected, decoded_fn visit, void *context,
                 struct decoded_totals *totals);

// All of a segment in a file; nothing of it stays mapped. False: `decoder` says what is wrong.
bool decoder_file(const char *path, struct decoder *decoder, decoded_fn visit, void *context,
                  struct decoded_totals *totals);

// One sealed chunk of QUT_TRACE_CHUNK_BYTES, here or copied from somewhere. Returns its samples, or -1: damaged.
int64_t decoder_chunk(struct decoder *decoder, const uint8_t *chunk, decoded_fn visit, void *context);

struct decoded_frame {
    uint64_t code; // as the class says; for RAW, JIT and DEX the address itself
    uint8_t class_;
    bool is_exact, is_guessed;
};

// The frames of a node, innermost first; returns how many there are (at most max are written), or -1: no such node.
int decoder_stack(struct decoder *decoder, uint32_t node, struct decoded_frame *frames, int max);

// Returns false if there is no such string.
bool decoder_string(const struct decoder *decoder, uint32_t id, char *text, size_t size);

const struct qut_trace_thread *decoder_thread(const struct decoder *decoder, uint32_t slot);

void decoder_fault(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

// decoder_records.c: `used_bytes` of records behind the header. *end is what came out of them.
struct decoded_end {
    uint64_t samples, time, cpu_time, cpu_step, marks;
    uint64_t metrics[QUT_TRACE_METRIC_COUNT];
    uint32_t records, kind;
};
bool decoder_records(struct decoder *decoder, const struct qut_trace_chunk *header, const uint8_t *records,
                     uint32_t used_bytes, decoded_fn visit, void *context, struct decoded_end *end);

#endif
