// SPDX-License-Identifier: Apache-2.0
// Keys and records part by part, as all of those show them that show any.
#ifndef TRACER_PROBE_PARTS_H
#define TRACER_PROBE_PARTS_H

#include "tracer/probe/show.h"

enum { PROBE_PART_TEXT_MAX = QUT_PROBE_READ_BYTES_MAX };

// The part's words: those of the last one stand first, or of the first one, as the parts say.
const uint64_t *probe_part_at(const struct probe_parts *parts, const uint64_t *words, uint32_t index);

// With "?" where there are characters that a terminal would obey.
struct probe_part_text {
    char bytes[PROBE_PART_TEXT_MAX + 1];
};
struct probe_part_text probe_part_text(const uint64_t *words, uint32_t count);

struct probe_stack_name {
    char text[32];
};
struct probe_stack_name probe_stack_name(uint64_t number);
// 0: they are not known.
size_t probe_stack_frames(struct probe_stacks *stacks, uint64_t number, const char *const **frames);

#endif
