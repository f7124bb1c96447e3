// SPDX-License-Identifier: Apache-2.0
// A trace of any size: each thread's stack wanders, most steps near its leaf, among functions of one module.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/golden/golden.h"

enum { FUNCTIONS = 5000, CHILDREN = 3, STEP_NS = 1000000, NODES_MAX = 400000 };

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

// One of a node's few children, which is made when it is wanted for the first time.
struct children {
    uint32_t of[CHILDREN];
};

static uint32_t child_of(struct build_trace *build, struct children *children, uint32_t parent, uint64_t *state)
{
    uint32_t choice = next_random(state) % 8;
    choice = choice < 5 ? 0 : choice < 7 ? 1 : 2;
    uint32_t *child = &children[parent].of[choice];
    if (!*child && build->trace->node_count < NODES_MAX)
        *child = build_node(build, parent, QUT_TRACE_CLASS_CODE, 0, 0,
                            0x1000 + 64 * (uint64_t)(next_random(state) % FUNCTIONS));
    return *child;
}

void golden_large(struct trace *trace, size_t samples, size_t threads, size_t depth)
{
    struct build_trace build;
    build_begin(&build, trace);
    static char path[] = "large.qtrace";
    trace->path = path;
    trace->arch = 1;
    trace->word_bytes = 8;
    trace->has_cpu_time = trace->is_complete = true;
    trace->pid = GOLDEN_PID;
    trace->command = "large";
    trace->start_ns = GOLDEN_START_NS;
    trace->boottime_ns = trace->realtime_ns = GOLDEN_START_NS;
    build_module(&build, &(struct trace_module){.code_base = 0x1000,
                                                .code_bytes = 64 * FUNCTIONS,
                                                .start = 0x555500001000,
                                                .start_vaddr = 0x1000,
                                                .load_ns = GOLDEN_START_NS,
                                                .unload_ns = UINT64_MAX,
                                                .path = "/opt/app/large"});
    struct children *children = calloc(NODES_MAX, sizeof *children);
    uint32_t *stack = calloc(depth + 1, sizeof *stack);
    if (!children || !stack)
        abort();
    uint64_t end_ns = GOLDEN_START_NS;
    for (size_t t = 0; t < threads; t++) {
        char name[QUT_TRACE_NAME_BYTES];
        snprintf(name, sizeof name, "worker %u", (unsigned)t % 1000000);
        build_thread(&build, GOLDEN_PID + (uint32_t)t, name, GOLDEN_START_NS, UINT64_MAX);
        uint64_t state = t + 1, now = GOLDEN_START_NS + 1000 * (uint64_t)t, cpu_ns = 0;
        size_t top = 0; // stack[0] is the root
        for (size_t i = 0; i < samples / threads; i++) {
            size_t pops = next_random(&state) % 4;
            if (next_random(&state) % 64 == 0)
                pops = next_random(&state) % (uint32_t)(top + 1);
            top -= pops < top ? pops : top;
            for (uint32_t pushes = next_random(&state) % 5; (pushes || !top) && top<depth; pushes -= pushes> 0) {
                uint32_t child = child_of(&build, children, stack[top], &state);
                if (!child)
                    break;
                stack[++top] = child;
            }
            uint32_t count = next_random(&state) % 4 ? 1 : 2;
            now += STEP_NS;
            cpu_ns += count * (uint64_t)STEP_NS;
            uint64_t last_ns = now + (count - 1) * (uint64_t)STEP_NS;
            build_sample(&build, (struct trace_sample){.first_ns = now,
                                                       .last_ns = last_ns,
                                                       .cpu_ns = cpu_ns,
                                                       .node = stack[top],
                                                       .count = count,
                                                       .kind = QUT_TRACE_KIND_CPU,
                                                       .flags = QUT_TRACE_SAMPLE_ON_CPU});
            now = last_ns;
        }
        end_ns = now > end_ns ? now : end_ns;
    }
    trace->end_ns = end_ns + STEP_NS;
    free(children);
    free(stack);
    build_end(&build);
}
