// SPDX-License-Identifier: Apache-2.0
// The trace's nodes as a tree of functions: nodes below the same frame that are at different places of the same
// function become one frame, inlined functions become frames of their own.
#ifndef TRACER_REPORT_FUNCTION_TREE_H
#define TRACER_REPORT_FUNCTION_TREE_H

#include "tracer/names/names.h"
#include "tracer/trace/trace_data.h"

enum report_frame_flag {
    REPORT_FRAME_INLINED = 1,
    REPORT_FRAME_GUESSED = 2, // it, or what is inside of it, rests on a guess
    REPORT_FRAME_UNKNOWN = 4, // the function's name is not known
};

struct report_frame {
    uint32_t parent;              // smaller than its own index; 0: the root, which is frame 0
    uint32_t function;            // id of its name
    uint32_t line_low, line_high; // of the places in the source that were seen; 0: not known
    uint8_t class_;               // enum qut_trace_class
    uint8_t flags;                // enum report_frame_flag
};

struct report_frames {
    struct report_frame *frames;
    size_t count;
    uint32_t *of_node;      // the innermost frame of each node of the trace
    uint32_t *line_of_node; // where in its function's source that frame is; 0: not known
};

// Returns 0, or -1: no memory.
int report_frames_make(struct report_frames *frames, const struct trace *trace, const struct names *names);
void report_frames_free(struct report_frames *frames);

#endif
