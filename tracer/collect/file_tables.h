// SPDX-License-Identifier: Apache-2.0
// What of a segment's tables is not in the file yet.
#ifndef TRACER_COLLECT_FILE_TABLES_H
#define TRACER_COLLECT_FILE_TABLES_H

#include "tracer/collect/code_names.h"
#include "tracer/collect/file_write.h"
#include "tracer/trace/segment_view.h"

// As the file has them.
struct file_tables {
    struct trace_file *file;
    const struct trace_segment_view *view;
    void *room;                    // of all tables
    char *texts;                   // while places in code are written
    struct code_names *code_names; // told of each raw pc that comes into the file
    struct qut_trace_module *modules;
    uint8_t *strings;
    uint64_t *raw, *nodes;
    struct qut_trace_file_thread *threads; // by slot; uid 0: not there
    uint32_t module_count;
    uint32_t string_bytes;
    uint64_t raw_count, node_count, thread_count;
    uint8_t *scratch; // of QUT_TRACE_FILE_BLOCK_BYTES_MAX
    uint32_t *indices;
    uint64_t *words;
};

int collect_file_tables_begin(struct file_tables *tables, struct trace_file *file,
                              const struct trace_segment_view *view, struct code_names *code_names,
                              struct base_error *error);
// Modules, strings, raw pcs, nodes: whatever a chunk may refer to that was complete before.
int collect_file_tables_write(struct file_tables *tables, struct base_error *error);
// Names of code as modules, behind all those of the segment: once, when nothing follows in it. As many as have room;
// *left: those that have none.
int collect_file_tables_write_code_names(struct file_tables *tables, uint64_t *left, struct base_error *error);
// Behind them, likewise: what is known of places in that code. *left grows.
int collect_file_tables_write_code_places(struct file_tables *tables, uint64_t *left, struct base_error *error);
// Threads, as given; and the header and the counters, as they are now or as given.
int collect_file_tables_write_threads(struct file_tables *tables, const struct qut_trace_file_thread *threads,
                                      size_t count, struct base_error *error);
int collect_file_tables_write_segment(struct file_tables *tables, const struct qut_trace_header *header,
                                      const struct qut_trace_counters *counters, struct base_error *error);
void collect_file_tables_free(struct file_tables *tables);

#endif
