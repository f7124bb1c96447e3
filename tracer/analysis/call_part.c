// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/call_part.h"

#include <stdlib.h>

#include "base/hash_index.h"

static bool are_all(const struct selection *selection)
{
    return selection->trace.thread_count == selection->whole->thread_count;
}

bool analysis_call_part_make(struct analysis_call_part *to, const struct selection *selection,
                             const struct call_events *calls)
{
    const struct trace *trace = &selection->trace;
    struct base_hash_index by_uid = {0};
    bool has_memory = true;
    *to = (struct analysis_call_part){.threads = calloc(calls->threads.count + 1, sizeof *to->threads)};
    for (size_t i = 0; i < trace->thread_count && has_memory; i++)
        has_memory = base_hash_add(&by_uid, base_hash_word(0, trace->threads[i].uid), (uint32_t)i);
    for (size_t i = 0; to->threads && has_memory && i < calls->threads.count; i++) {
        const uint32_t thread = calls->threads.items[i].thread;
        to->threads[i] = are_all(selection);
        if (thread == CALL_EVENTS_NONE || to->threads[i])
            continue;
        const uint32_t uid = selection->whole->threads[thread].uid;
        uint32_t found;
        for (uint32_t step = 0; (found = base_hash_next(&by_uid, base_hash_word(0, uid), &step)) != BASE_HASH_NONE;)
            to->threads[i] |= trace->threads[found].uid == uid;
    }
    base_hash_free(&by_uid);
    // A part of the time, or all of it, and what was a little before the first or behind the last sample.
    const bool from_begin = selection->start_ns <= selection->whole->start_ns;
    const bool to_end = selection->end_ns >= selection->whole->end_ns;
    to->part = (struct call_times_part){.from_ns = from_begin ? 0 : selection->start_ns,
                                        .to_ns = to_end ? UINT64_MAX : selection->end_ns,
                                        .threads = to->threads};
    if (to->threads && has_memory)
        return true;
    analysis_call_part_free(to);
    return false;
}

void analysis_call_part_free(struct analysis_call_part *part)
{
    free(part->threads);
    *part = (struct analysis_call_part){0};
}
