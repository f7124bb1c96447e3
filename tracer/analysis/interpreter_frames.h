// SPDX-License-Identifier: Apache-2.0
// An interpreter stands before each function that it runs, and what the function does itself is done by it:
//
//   f (Python), _PyEval_EvalFrameDefault      -> f (Python)
//   f (Java), Interpreter, String.hashCode    -> f (Java), String.hashCode
//
// Without its frames the function has its own time.
#ifndef TRACER_ANALYSIS_INTERPRETER_FRAMES_H
#define TRACER_ANALYSIS_INTERPRETER_FRAMES_H

#include "tracer/trace/trace_data.h"

// The function that the node's code runs, if that is an interpreter; else the node itself.
uint32_t analysis_run_node(const struct trace *trace, uint32_t node);

// Hangs nodes of `nodes`, a copy of trace->nodes, from others, so that no stack goes through an interpreter's frame
// that stands before its function. Indices stay what they are.
void analysis_interpreters_leave_out(const struct trace *trace, struct trace_node *nodes);

#endif
