// SPDX-License-Identifier: Apache-2.0
// A made-up recording of one host of many, as a segment, put there by the product's own writer. All hosts run the same
// program: its functions and its stacks are the same each time. The stack of rank k is met as often as
// 1 / (k + OFFSET) ^ SKEW says: then different stacks grow as the SKEWth root of samples.
//
//     fleet_maker SEGMENT HOST VERSION SAMPLES [STACKS FUNCTIONS SKEW OFFSET]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden/build.h"
#include "tests/support/golden/golden.h"
#include "tests/support/golden/segment.h"

enum {
    THREADS = 8,
    STEP_NS = 10000000,  // of a thread, between two samples: too far apart to be merged
    JITTER_NS = 1 << 20, // clocks are not exact
    DEPTH_MAX = 64,
    FUNCTION_BYTES = 64,
    SWAPPED = 64,  // the most frequent stacks, which have each other's places in version 2
    PLACES = 7919, // a prime: stacks that are frequent lie anywhere in the tree
};
#define CODE_VADDR UINT64_C(0x1000)
#define BEGAN_NS   UINT64_C(1795651200000000000)
#define BETWEEN_NS UINT64_C(1000000000) // begins of two hosts

struct tree_node {
    uint32_t parent, function;
    uint32_t depth;
    uint32_t made; // its number in the trace; 0: no sample has met it
};

struct program {
    struct tree_node *nodes; // nodes[0] is the root
    size_t node_count;
    uint32_t *ends;     // of each stack, its innermost node
    double *cumulative; // of each rank: how often this one or one before it is met, of cumulative[stacks - 1]
    size_t stacks, functions;
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void *room_for(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory)
        abort();
    return memory;
}

// Each stack leaves an earlier one some frames from its end, and goes on by some frames of its own.
static void make_program(struct program *program, double skew, double offset)
{
    enum { UP = 5, DOWN = 4 };
    uint64_t state = 1;
    program->nodes = room_for(1 + DOWN * program->stacks + DEPTH_MAX, sizeof *program->nodes);
    program->ends = room_for(program->stacks, sizeof *program->ends);
    program->cumulative = room_for(program->stacks, sizeof *program->cumulative);
    program->node_count = 1;
    double sum = 0;
    for (size_t i = 0; i < program->stacks; i++) {
        uint32_t at = i ? program->ends[next_random(&state) % i] : 0;
        for (uint32_t up = next_random(&state) % UP; up && at; up--)
            at = program->nodes[at].parent;
        while (program->nodes[at].depth > DEPTH_MAX - DOWN)
            at = program->nodes[at].parent;
        // The first ones are as long as a main program's and a library's way to where work is done.
        const uint32_t down = i ? 1 + next_random(&state) % DOWN : 10;
        for (uint32_t frame = 0; frame < down; frame++) {
            struct tree_node *node = &program->nodes[program->node_count];
            *node = (struct tree_node){.parent = at,
                                       .depth = program->nodes[at].depth + 1,
                                       .function = next_random(&state) % (uint32_t)program->functions};
            at = (uint32_t)program->node_count++;
        }
        program->ends[i] = at;
        sum += pow((double)i + 1 + offset, -skew);
        program->cumulative[i] = sum;
    }
}

static void free_program(struct program *program)
{
    free(program->nodes);
    free(program->ends);
    free(program->cumulative);
}

static size_t draw_rank(const struct program *program, uint64_t *state)
{
    const double wanted = program->cumulative[program->stacks - 1] * ((double)next_random(state) / 2147483648.0);
    size_t low = 0, high = program->stacks - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (program->cumulative[middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The node in the trace; those that are further out are made before it.
static uint32_t node_of(struct build_trace *build, struct program *program, uint32_t module, uint32_t at)
{
    uint32_t way[DEPTH_MAX + 1], count = 0;
    for (; at && !program->nodes[at].made; at = program->nodes[at].parent)
        way[count++] = at;
    uint32_t made = program->nodes[at].made;
    while (count) {
        struct tree_node *node = &program->nodes[way[--count]];
        made = node->made = build_node(build, made, QUT_TRACE_CLASS_CODE, 0, module,
                                       CODE_VADDR + FUNCTION_BYTES * (uint64_t)node->function);
    }
    return made;
}

static void make_samples(struct build_trace *build, struct program *program, uint32_t module, size_t samples,
                         unsigned version, uint64_t seed)
{
    struct trace *trace = build->trace;
    uint64_t end_ns = trace->start_ns;
    for (uint32_t t = 0; t < THREADS; t++) {
        char name[QUT_TRACE_NAME_BYTES];
        snprintf(name, sizeof name, "worker %u", t);
        build_thread(build, trace->pid + t, name, trace->start_ns, UINT64_MAX);
        uint64_t state = seed * THREADS + t + 1, now_ns = trace->start_ns, cpu_ns = 0;
        const size_t count = samples / THREADS + (t < samples % THREADS);
        for (size_t i = 0; i < count; i++) {
            size_t rank = draw_rank(program, &state);
            if (version == 2 && rank < SWAPPED)
                rank ^= 1;
            now_ns += STEP_NS + next_random(&state) % JITTER_NS;
            cpu_ns += STEP_NS - next_random(&state) % JITTER_NS;
            const uint32_t end = program->ends[rank * PLACES % program->stacks];
            build_sample(build, (struct trace_sample){.first_ns = now_ns,
                                                      .last_ns = now_ns,
                                                      .cpu_ns = cpu_ns,
                                                      .node = node_of(build, program, module, end),
                                                      .count = 1,
                                                      .kind = QUT_TRACE_KIND_CPU,
                                                      .flags = QUT_TRACE_SAMPLE_ON_CPU});
        }
        end_ns = now_ns > end_ns ? now_ns : end_ns;
    }
    trace->end_ns = end_ns + STEP_NS;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 9) {
        fputs("usage: fleet_maker SEGMENT HOST VERSION SAMPLES [STACKS FUNCTIONS SKEW OFFSET]\n", stderr);
        return 2;
    }
    const uint32_t host = (uint32_t)strtoul(argv[2], NULL, 10);
    const unsigned version = (unsigned)strtoul(argv[3], NULL, 10);
    const size_t samples = strtoul(argv[4], NULL, 10);
    struct program program = {.stacks = argc > 5 ? strtoul(argv[5], NULL, 10) : 20000,
                              .functions = argc > 6 ? strtoul(argv[6], NULL, 10) : 8000};
    if (program.stacks == 0 || program.functions == 0)
        return 2;
    make_program(&program, argc > 7 ? strtod(argv[7], NULL) : 2.17, argc > 8 ? strtod(argv[8], NULL) : 28);

    struct build_trace build;
    struct trace trace;
    build_begin(&build, &trace);
    trace.arch = 1;
    trace.word_bytes = 8;
    trace.has_cpu_time = trace.is_complete = true;
    trace.pid = GOLDEN_PID;
    trace.command = "/opt/shop/bin/shop --serve";
    trace.start_ns = trace.boottime_ns = GOLDEN_START_NS;
    trace.realtime_ns = BEGAN_NS + BETWEEN_NS * host;
    memcpy(trace.identity, &host, sizeof host);
    struct trace_module module = {.code_base = CODE_VADDR,
                                  .code_bytes = FUNCTION_BYTES * program.functions,
                                  .start = 0x555500000000 + CODE_VADDR,
                                  .start_vaddr = CODE_VADDR,
                                  .load_ns = GOLDEN_START_NS,
                                  .unload_ns = UINT64_MAX,
                                  .path = "/opt/shop/bin/shop",
                                  .build_id_bytes = 20};
    memset(module.build_id, (int)version, module.build_id_bytes);
    make_samples(&build, &program, build_module(&build, &module), samples, version, host + 1);
    build_end(&build);
    const int status = golden_write(&trace, argv[1], true);
    build_free(&trace);
    free_program(&program);
    if (status != 0)
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-status));
    return status == 0 ? 0 : 1;
}
