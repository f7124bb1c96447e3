// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/interpreter_frames.h"

// Walks put a function behind the frame of its interpreter, and nothing else there. JavaScript's are the exception:
// such a function has code of its own, which calls, or is built in.
static bool is_interpreter(const struct trace *trace, uint32_t node)
{
    const struct trace_node *frame = &trace->nodes[node], *function = &trace->nodes[frame->parent];
    bool is_code = frame->class_ == QUT_TRACE_CLASS_CODE || frame->class_ == QUT_TRACE_CLASS_RAW ||
                   frame->class_ == QUT_TRACE_CLASS_JIT;
    return node && is_code && function->class_ == QUT_TRACE_CLASS_DEX &&
           function->pc >> QUT_TRACE_NUMBER_SHIFT != QUT_TRACE_NUMBER_SCRIPT;
}

uint32_t analysis_run_node(const struct trace *trace, uint32_t node)
{
    return is_interpreter(trace, node) ? trace->nodes[node].parent : node;
}

void analysis_interpreters_leave_out(const struct trace *trace, struct trace_node *nodes)
{
    for (uint32_t node = 1; node < trace->node_count; node++) { // parents come before their children
        uint32_t parent = nodes[node].parent;
        nodes[node].parent = parent = is_interpreter(trace, parent) ? nodes[parent].parent : parent;
        nodes[node].depth = nodes[parent].depth < UINT16_MAX ? nodes[parent].depth + 1 : UINT16_MAX;
    }
}
