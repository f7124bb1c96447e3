// SPDX-License-Identifier: Apache-2.0
// A struct trace made by hand, thread by thread. Samples, marks and gaps belong to the last thread that was begun, and
// come in the order of their time. Aborts where memory lacks.
#ifndef TESTS_SUPPORT_GOLDEN_BUILD_H
#define TESTS_SUPPORT_GOLDEN_BUILD_H

#include "tracer/trace/trace_data.h"

struct build_trace {
    struct trace *trace;
    // Room in each array of the trace.
    size_t module_room, node_room, thread_room, sample_room, extra_room, metrics_room, mark_room, gap_room;
};

void build_begin(struct build_trace *build, struct trace *trace);

uint32_t build_module(struct build_trace *build, const struct trace_module *module);
// Returns the node's index. kind_bits: QUT_TRACE_NODE_...
uint32_t build_node(struct build_trace *build, uint32_t parent, enum qut_trace_class class_, unsigned kind_bits,
                    uint32_t module, uint64_t pc);
uint32_t build_label(struct build_trace *build, uint32_t parent, const char *name);
uint32_t build_end_node(struct build_trace *build, uint32_t code, const char *why);

struct trace_thread *build_thread(struct build_trace *build, uint32_t tid, const char *name, uint64_t start_ns,
                                  uint64_t end_ns);
// count, kind, flags and times as in *sample; its extras and metrics come afterwards.
struct trace_sample *build_sample(struct build_trace *build, struct trace_sample sample);
void build_extra(struct build_trace *build, uint32_t key, uint64_t value); // of the last sample
void build_metrics(struct build_trace *build, const uint64_t values[QUT_TRACE_METRIC_COUNT]);
void build_mark(struct build_trace *build, uint32_t kind, uint64_t time_ns, uint64_t id, const char *name);
void build_gap(struct build_trace *build, uint32_t reason, uint64_t from_ns, uint64_t to_ns, uint64_t lost);

// Fills the sums of the threads and of the trace, so that it balances.
void build_end(struct build_trace *build);
void build_free(struct trace *trace);

#endif
