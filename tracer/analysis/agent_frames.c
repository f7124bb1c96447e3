// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/agent_frames.h"

#include <string.h>

#include "formats/qut_agent.h"

bool analysis_is_agent(const struct trace *trace, uint32_t node)
{
    uint32_t module = trace->nodes[node].module;
    if (!node || module == TRACE_NONE || !trace->modules[module].path)
        return false;
    const char *path = trace->modules[module].path, *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, AGENT_FILE) == 0;
}

uint32_t analysis_called_node(const struct trace *trace, uint32_t node)
{
    uint32_t called = node;
    for (; node && analysis_is_agent(trace, node); node = trace->nodes[node].parent)
        called = node;
    return called;
}

static uint32_t parent_of(const struct trace *trace, uint32_t node)
{
    uint32_t parent = trace->nodes[node].parent;
    if (!analysis_is_agent(trace, parent))
        return parent;
    if (trace->nodes[node].class_ == QUT_TRACE_CLASS_KERNEL)
        return analysis_called_node(trace, parent);
    return analysis_is_agent(trace, node) ? parent : trace->nodes[analysis_called_node(trace, parent)].parent;
}

void analysis_agent_leave_out(const struct trace *trace, struct trace_node *nodes)
{
    for (uint32_t node = 1; node < trace->node_count; node++) { // parents come before their children
        nodes[node].parent = parent_of(trace, node);
        uint16_t depth = nodes[nodes[node].parent].depth;
        nodes[node].depth = depth < UINT16_MAX ? depth + 1 : UINT16_MAX;
    }
}

bool analysis_is_own_place(const struct trace *trace, uint32_t at)
{
    const struct trace_node *node = &trace->nodes[at];
    uint32_t innermost = node->class_ == QUT_TRACE_CLASS_KERNEL ? node->parent : at;
    return trace_node_is_own(node) || analysis_is_agent(trace, innermost);
}

// A sync point's stack ends in the agent, too: but what it counts for is the call's.
bool analysis_is_own(const struct trace *trace, const struct trace_sample *sample)
{
    return trace_sample_is_tick(sample) && analysis_is_own_place(trace, sample->node);
}
