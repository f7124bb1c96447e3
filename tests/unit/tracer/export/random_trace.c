// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/export/random_trace.h"

static uint64_t random_state;
static unsigned pick(unsigned count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % count;
}

void random_trace(struct trace *trace, unsigned seed)
{
    struct build_trace build;
    random_state = seed;
    build_begin(&build, trace);
    trace->pid = RANDOM_PID;
    trace->command = "random";
    trace->start_ns = 1;
    trace->end_ns = 10000;
    struct trace_module program = {.path = "/opt/app/golden", .start = 0x1000, .code_bytes = 0x10000};
    build_module(&build, &program);
    uint32_t nodes[64] = {0};
    for (unsigned i = 1; i < 64; i++)
        nodes[i] = build_node(&build, nodes[pick(i)], QUT_TRACE_CLASS_CODE, pick(2), 0, 0x1200 + 0x100 * pick(4));
    uint64_t now = 0;
    for (unsigned i = 0; i < 300; i++) {
        if (i % 100 == 0) { // the third has the first one's number
            build_thread(&build, RANDOM_PID + i % 200, "one", 0, UINT64_MAX);
            now = 100;
        }
        now += pick(3) * pick(10);
        switch (pick(8)) {
        case 0: build_mark(&build, pick(4), now, pick(3), "mark"); break;
        case 1: build_gap(&build, TRACE_GAP_LOST, now, now + pick(20), 1); break;
        default:
            build_sample(&build, (struct trace_sample){.first_ns = now,
                                                       .last_ns = now + pick(2) * pick(30),
                                                       .node = nodes[pick(64)],
                                                       .count = 2,
                                                       .metrics = TRACE_NONE,
                                                       .level = (uint8_t)pick(QUT_TRACE_LEVELS)});
            if (pick(4) == 0)
                build_extra(&build, QUT_TRACE_EXTRA_DURATION_NS, pick(2) ? pick(30) : 1u << 30);
            if (pick(8) == 0)
                build_extra(&build, QUT_TRACE_EXTRA_BEGIN_NODE, pick(100));
            if (pick(6) == 0)
                build_extra(&build, QUT_TRACE_EXTRA_FLOW, pick(5));
        }
    }
    build_end(&build);
}
