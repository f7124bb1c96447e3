// SPDX-License-Identifier: Apache-2.0
// The open trace as another process sees it: through its descriptor, by the format alone.
#ifndef TESTS_SUPPORT_FEED_VIEW_H
#define TESTS_SUPPORT_FEED_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_trace.h"

struct view {
    uint8_t *bytes;
    size_t size;
    const struct qut_trace_header *header;
    const struct qut_trace_counters *counters;
    const struct qut_trace_module *modules;
    const uint64_t *nodes, *raw;
};

struct view_frame {
    uintptr_t pc;
    unsigned class, bits;
    uint32_t node;
    uint64_t code;
    const struct qut_trace_module *module; // CODE, SIGNAL
};

bool view_open(struct view *view); // of qut_trace_fd()
bool view_open_fd(struct view *view, int fd);
void view_close(struct view *view);

const struct qut_trace_thread *view_thread_at(const struct view *view, uint32_t slot);
// The latest slot of that thread, or NULL.
const struct qut_trace_thread *view_thread(const struct view *view, uint32_t tid);
const struct qut_trace_thread *view_self(const struct view *view);
const struct qut_trace_commit *view_commit(const struct qut_trace_thread *thread, unsigned level);
// Of the sample that came last, which is still open; 0: none is.
uint32_t view_last_node(const struct qut_trace_thread *thread, unsigned level);

// The frames of a node, innermost first; at most max. Returns how many.
size_t view_stack(const struct view *view, uint32_t node, struct view_frame *frames, size_t max);
const char *view_string(const struct view *view, uint32_t string);

// The balance of what qut_trace_get_counts says; 0: it is exact.
int64_t view_imbalance(void);

#endif
