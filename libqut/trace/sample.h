// SPDX-License-Identifier: Apache-2.0
// A sample's second half: what comes after the walk.
#ifndef QUT_TRACE_SAMPLE_H
#define QUT_TRACE_SAMPLE_H

#include <stdbool.h>

#include <qut/trace.h>

#pragma GCC visibility push(hidden)

// What the calling thread's walk gave, which has just ended: qut_backtrace's or qut_backtrace_context's (then
// is_interrupted). Frames with numbers below flag_count have flags (enum qut_frame_flag), others are plain callers.
// Returns enum qut_stored. Signal-safe.
int qut_trace_store_walk(const uintptr_t *pcs, size_t count, const uint8_t *flags, size_t flag_count,
                         const struct qut_end *end, bool is_interrupted, const struct qut_event *event);

#pragma GCC visibility pop

#endif
