// SPDX-License-Identifier: Apache-2.0
// What a segment or a file holds, copied: sizes are checked, contents are not. Between the two readers (snapshot.c,
// file_read.c) and what makes a trace of it (build.c).
#ifndef TRACER_TRACE_RAW_TRACE_H
#define TRACER_TRACE_RAW_TRACE_H

#include "formats/qut_trace_file.h"
#include "tracer/call_events/events.h"
#include "tracer/trace/trace_data.h"
#include "tracer/trace/trace_memory.h"

struct image_chunk {
    uint8_t *bytes; // struct qut_trace_chunk, and used_bytes of records
    uint32_t used_bytes;
    uint32_t slot;
    bool is_open; // used_bytes is the writer's; there is no checksum
    // Of a segment's sealed chunk: where it stands, and what the directory says of it.
    uint32_t index;
    uint64_t word;
};

// What of a segment is wanted, if not all: tracer/trace/newer.
struct image_part;
struct decoder;
struct chunk_place;
struct image_part {
    // Of a chunk, before it is copied.
    bool (*leaves_out)(const struct image_part *part, uint32_t uid, uint32_t level, uint64_t seq);
    // Around a chunk's decoding; *samples: how many it gave, then how many of these stay. False: no memory.
    bool (*begin_chunk)(struct image_part *part, struct decoder *decoder, const struct chunk_place *place);
    bool (*end_chunk)(struct image_part *part, struct decoder *decoder, const struct chunk_place *place,
                      uint64_t *samples);
};

struct image {
    struct trace_memory *memory;
    struct image_part *part; // NULL: all
    uint64_t file_bytes;
    struct qut_trace_header header;
    struct qut_trace_counters counters;
    struct trace_vector threads; // struct qut_trace_file_thread; state NONE: its slot was given to another one
    struct qut_trace_module *modules;
    size_t module_count;
    uint8_t *strings;
    size_t string_bytes;
    uint64_t *raw; // by index; 0: free
    size_t raw_capacity;
    uint64_t *nodes; // words by id; 0: free
    size_t node_capacity;
    struct trace_vector node_ids; // uint32_t: those in use, of a segment, whose table is mostly empty; none: not known
    struct trace_vector chunks;   // struct image_chunk
    struct trace_vector notes;    // struct trace_note
    struct trace_vector damages;  // char *: the first DAMAGES_MAX
    uint64_t damaged_chunks, damaged_blocks;
    uint64_t damaged_samples_least; // as far as damaged blocks say
    // Samples that are neither in `chunks` nor damaged, because newer ones took their place. Where the two differ it
    // was a moving target, or a collector had some of them before.
    uint64_t overwritten_least, overwritten_most;
    uint8_t end;               // enum qut_trace_file_end; 0: not known
    bool is_notes_only;        // of a file: it is of no process
    struct call_events *calls; // of a part of calls; whoever takes the image over frees it. NULL: it is another one
    bool is_complete;          // closed, and all is here
    bool is_truncated;         // its end is not here
    bool may_miss_chunks;      // a collector took some out of this segment
    bool no_memory;            // for words that say what is damaged, or why a stack ends
};

enum { DAMAGES_MAX = 32 };
// A damage that many processes may have at once.
#define TRACE_DIED_TEXT "the process ended without closing its trace; all that it had stored is here"

// Notes it in words. Returns false, so that `return trace_image_damage(...)` reads well.
bool trace_image_damage(struct image *image, const char *format, ...) __attribute__((format(printf, 2, 3)));

// snapshot.c, file_read.c. Fill an image whose memory is there.
struct trace_segment_view;
int trace_image_of_segment(struct image *image, const struct trace_segment_view *view, struct base_error *error);
// Header, counters and threads only.
int trace_image_of_states(struct image *image, const struct trace_segment_view *view, struct base_error *error);
uint64_t trace_image_samples(const struct image *image); // that were stored or merged, by the writers' states
// Without memory nothing more is read with *room.
struct file_room;
int trace_image_of_file(struct image *image, struct file_room *room, const uint8_t *bytes, size_t size,
                        struct base_error *error);

// Empty; its vectors know their memory.
struct image trace_image_new(struct trace_memory *memory);

// read.c. Of bytes in memory, aligned to 64: tests, fuzzing.
int trace_read_bytes(uint8_t *bytes, size_t size, const char *name, struct trace *trace, struct base_error *error);

// read_parts.c. Of a .qtrace file; *trace stands in trace->memory.
int trace_read_file_bytes(const uint8_t *bytes, size_t size, struct trace *trace, struct base_error *error);

// chunks.c. Chunks that are sound, each once, in the order in which their writers filled them.
struct chunk_place {
    uint32_t uid;
    uint8_t level;
    uint64_t seq;
    const struct image_chunk *chunk;
};
struct chunk_list {
    struct chunk_place *places; // by uid, level and seq
    size_t count;
};
int trace_order_chunks(struct image *image, struct chunk_list *list, struct base_error *error);

// build.c. *trace stands in image->memory then.
int trace_build(struct image *image, struct trace *trace, struct base_error *error);

// added_nodes.c. A trace without samples, of processes that have calls alone; and of a trace with calls: nodes for
// their functions, its threads for theirs. False: there is no memory.
bool trace_of_calls(struct trace *trace, struct call_events *const *calls, size_t count);
bool trace_add_call_nodes(struct trace *trace);
bool trace_find_call_threads(const struct trace *trace);

// Of a whole trace: its unticked_node, where there are such threads. False: there is no memory.
bool trace_add_unticked(struct trace *trace);

#endif
