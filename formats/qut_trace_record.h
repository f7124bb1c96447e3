// SPDX-License-Identifier: Apache-2.0
// The records in a trace's chunks (formats/qut_trace.md): how they are encoded, and what their numbers mean. Pure data.
#ifndef QUT_FORMATS_QUT_TRACE_RECORD_H
#define QUT_FORMATS_QUT_TRACE_RECORD_H

#include <stdint.h>

// Numbers are unsigned LEB128, signed ones zigzag before
//
//   tag u8
//   RUN   [KIND: kind u8, flags u8] node time [COUNT: count - 2, duration] [cpu] [METRICS: mask u8, delta...]
//         [TOLD: told] [EXTRAS: n u8, (key u8, value)...]
//   MARK  mark kind u8, time, id, string id
//
//   node      RECENT: u8, an index in the table of recent nodes. Else the id, which then is put at its index
//             qut_trace_recent_index(id). The table is empty when a chunk begins
//   time      units from the last record's end to this one's first sample; from there to its last is `duration`
//   kind      and flags: where they are not those of the run before
//   cpu       with HAS_CPU_TIME: zigzag(growth - step * count), in units of processor time since the run before, whose
//             growth / count is the step; the first one's of a chunk is 0. Ticks of processor time take one byte so
//   metrics   for each bit in the mask, from the lowest: how much it grew since the record before that said so. Metrics
//             that are not in the mask did not grow
//   told      QUT_TRACE_EXTRA_CPU_NS where it is whole units: zigzag(units - growth), of the cpu above. What the kernel
//             did for a thread since the tick before mostly is all that it used since then: one byte, where the extra
//             takes five
enum qut_trace_tag {
    QUT_TRACE_TAG_RUN = 0,
    QUT_TRACE_TAG_MARK = 1,
    QUT_TRACE_TAG_TYPE_MASK = 3,
    // of a run
    QUT_TRACE_TAG_RECENT = 4,
    QUT_TRACE_TAG_KIND = 8,
    QUT_TRACE_TAG_COUNT = 16,
    QUT_TRACE_TAG_METRICS = 32,
    QUT_TRACE_TAG_EXTRAS = 64,
    QUT_TRACE_TAG_TOLD = 128, // with HAS_CPU_TIME; not before version 2
};

static inline uint32_t qut_trace_recent_index(uint32_t node)
{
    return (node * 0x9e3779b1u) >> 24;
}

enum qut_trace_sample_flag {
    QUT_TRACE_SAMPLE_CUT = 1,     // frames are missing: `node` is not the innermost one, or hangs from an END
    QUT_TRACE_SAMPLE_ON_CPU = 2,  // its thread was running
    QUT_TRACE_SAMPLE_OFF_CPU = 4, // its thread was blocked
    QUT_TRACE_SAMPLE_BEGINS = 8,  // the beginning of an interval; its end is a sample with a duration
};

// Why a sample was taken.
enum qut_trace_kind {
    QUT_TRACE_KIND_OTHER = 0,
    QUT_TRACE_KIND_CPU,  // so much processor time went by
    QUT_TRACE_KIND_WALL, // so much time went by
    QUT_TRACE_KIND_ALLOCATE,
    QUT_TRACE_KIND_FREE,
    QUT_TRACE_KIND_LOCK,   // waited for a lock
    QUT_TRACE_KIND_UNLOCK, // gave one to a waiter
    QUT_TRACE_KIND_WAIT,   // waited on a condition
    QUT_TRACE_KIND_WAKE,   // woke a waiter
    QUT_TRACE_KIND_READ,
    QUT_TRACE_KIND_WRITE,
    QUT_TRACE_KIND_POLL,
    QUT_TRACE_KIND_SLEEP,
    QUT_TRACE_KIND_CALL, // any other blocking call
    QUT_TRACE_KIND_THREAD_START,
    QUT_TRACE_KIND_THREAD_END,
    QUT_TRACE_KIND_LOAD, // loaded a module
    QUT_TRACE_KIND_UNLOAD,
    QUT_TRACE_KIND_FAULT,
    QUT_TRACE_KIND_COUNT,
};

// What else a sample carries.
enum qut_trace_extra_key {
    QUT_TRACE_EXTRA_DURATION_NS = 1, // the sample is the end of an interval that began so much before
    QUT_TRACE_EXTRA_LOCK,            // address or identity of a lock
    QUT_TRACE_EXTRA_OWNER_TID,       // its holder
    QUT_TRACE_EXTRA_WAKER_TID,       // the thread that gave it
    QUT_TRACE_EXTRA_WAKEE_TID,
    QUT_TRACE_EXTRA_FLOW, // the same number in a cause and its effect: release and end of waiting
    QUT_TRACE_EXTRA_SIZE, // bytes
    QUT_TRACE_EXTRA_ADDRESS,
    QUT_TRACE_EXTRA_FD,
    QUT_TRACE_EXTRA_RESULT,     // zigzag
    QUT_TRACE_EXTRA_BEGIN_NODE, // the stack at the interval's beginning, where it is another one
    QUT_TRACE_EXTRA_EARLIER_NS, // the sample's time is so much before the one it stands at
    QUT_TRACE_EXTRA_WEIGHT,     // so many hits this sample stands for
    QUT_TRACE_EXTRA_CPU_NS,     // of processor time this sample stands for so much, whatever others of its thread lie
                                // within: those that follow stand for so much less
    QUT_TRACE_EXTRA_OWN_FIRST = 64,
};

enum qut_trace_mark_kind {
    QUT_TRACE_MARK_INSTANT = 0,
    QUT_TRACE_MARK_BEGIN =
        1, // a message or request: until its end, or the next mark that cuts, this thread works on it
    QUT_TRACE_MARK_END = 2,
    QUT_TRACE_MARK_COUNTER = 3, // `id`, as int64_t, is the value of the counter with that name
};

#endif
