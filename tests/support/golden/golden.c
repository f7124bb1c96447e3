// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden/golden.h"

#include <string.h>

#include "tests/support/golden/build.h"

enum { MS = 1000000 };

// Addresses in the files of the modules: tests/support/golden/names.c has names for them.
enum { MODULE_LIBRARY, MODULE_PROGRAM, MODULE_HOSTILE, MODULE_JIT, MODULE_DEX, MODULE_VDSO };

struct nodes {
    uint32_t start, main, a, deep, recursive, inlined, jit, dex, signal, handler, labels, hostile, empty, broken,
        broken_leaf, cut_walk, raw, vdso, unloaded, lock, unlock, guessed;
};

static uint64_t at(uint64_t ms)
{
    return GOLDEN_START_NS + ms * MS;
}

static void add_modules(struct build_trace *build)
{
    struct trace_module modules[] = {
        {.code_base = 0x1000,
         .code_bytes = 0x4000,
         .start = 0x7f0000001000,
         .start_vaddr = 0x1000,
         .path = "/usr/lib/x86_64-linux-gnu/libgolden.so.1",
         .build_id_bytes = 20},
        {.code_base = 0x10000,
         .code_bytes = 0x20000,
         .start = 0x555500001000,
         .start_vaddr = 0x1000,
         .path = "/opt/app/golden",
         .build_id_bytes = 16},
        {.code_base = 0x40000,
         .code_bytes = 0x1000,
         .start = 0x7f1000000000,
         .start_vaddr = 0,
         .load_ns = at(10),
         .unload_ns = at(500),
         .path = "/tmp/" GOLDEN_HOSTILE ".so"},
        {.start = 0x7f2000000000,
         .code_bytes = 0x200,
         .load_ns = at(100),
         .path = "LInterpreted;->loop(I)V",
         .flags = QUT_TRACE_MODULE_JIT},
        {.start = 0x7f3000000000,
         .code_bytes = 0x10000,
         .path = "/data/app/~~k3y==/org.example.golden-5ec7==/base.apk!classes.dex",
         .flags = QUT_TRACE_MODULE_FILE},
        {.code_base = 0x50000,
         .code_bytes = 0x1000,
         .start = 0x7ffff7fc0000,
         .start_vaddr = 0x400,
         .path = "[vdso]",
         .flags = QUT_TRACE_MODULE_VDSO},
    };
    for (unsigned i = 0; i < sizeof modules / sizeof *modules; i++) {
        struct trace_module *module = &modules[i];
        if (!module->load_ns)
            module->load_ns = GOLDEN_START_NS;
        if (!module->unload_ns)
            module->unload_ns = UINT64_MAX;
        for (unsigned byte = 0; byte < module->build_id_bytes; byte++)
            module->build_id[byte] = (uint8_t)(0xa0 + 16 * i + byte);
        build_module(build, module);
    }
}

static uint32_t program(struct build_trace *build, uint32_t parent, uint64_t pc)
{
    return build_node(build, parent, QUT_TRACE_CLASS_CODE, 0, MODULE_PROGRAM, pc);
}

static uint32_t library(struct build_trace *build, uint32_t parent, uint64_t pc, unsigned bits)
{
    return build_node(build, parent, QUT_TRACE_CLASS_CODE, bits, MODULE_LIBRARY, pc);
}

static void add_nodes(struct build_trace *build, struct nodes *nodes)
{
    nodes->start = program(build, 0, 0x1100);
    nodes->main = program(build, nodes->start, 0x1200);
    nodes->a = program(build, nodes->main, 0x1300);
    nodes->deep = nodes->main;
    for (unsigned depth = 2; depth < GOLDEN_DEEP; depth++)
        nodes->deep = program(build, nodes->deep, 0x2000 + 16 * (depth % 7));
    nodes->recursive = nodes->main;
    for (unsigned i = 0; i < 3; i++)
        nodes->recursive = program(build, program(build, nodes->recursive, 0x1300), 0x1400);
    nodes->inlined = program(build, nodes->a, 0x1500); // two functions inlined there
    nodes->jit = build_node(build, nodes->a, QUT_TRACE_CLASS_JIT, 0, MODULE_JIT, 0x40);
    nodes->dex = build_node(build, nodes->jit, QUT_TRACE_CLASS_DEX, 0, MODULE_DEX, 0x1234);
    nodes->signal = build_node(build, nodes->a, QUT_TRACE_CLASS_SIGNAL, 0, MODULE_LIBRARY, 0x1800);
    nodes->handler = program(build, nodes->signal, 0x1600);
    nodes->labels = build_label(build, build_label(build, 0, "request"), "parse");
    nodes->hostile = build_label(build, nodes->labels, GOLDEN_HOSTILE);
    nodes->empty = build_label(build, nodes->hostile, "");
    nodes->broken = build_end_node(build, 1 + 6, "[no unwind information covers the code]");
    nodes->broken_leaf = library(build, library(build, nodes->broken, 0x1900, 0), 0x1a00, QUT_TRACE_NODE_EXACT);
    nodes->cut_walk = program(build, build_end_node(build, 1 + 9, "[stack could not be read]"), 0x1300);
    nodes->raw = build_node(build, nodes->main, QUT_TRACE_CLASS_RAW, QUT_TRACE_NODE_EXACT, TRACE_NONE, 0x7f4000000123);
    nodes->vdso = build_node(build, nodes->a, QUT_TRACE_CLASS_CODE, QUT_TRACE_NODE_EXACT, MODULE_VDSO, 0x480);
    nodes->unloaded = build_node(build, nodes->main, QUT_TRACE_CLASS_CODE, 0, MODULE_HOSTILE, 0x80);
    nodes->lock = library(build, nodes->a, 0x1b00, 0);
    nodes->unlock = library(build, nodes->main, 0x1c00, 0);
    nodes->guessed = library(build, nodes->a, 0x1d00, QUT_TRACE_NODE_GUESSED);
}

static struct trace_sample *take(struct build_trace *build, uint64_t first_ms, uint64_t last_ms, uint32_t count,
                                 uint32_t node, unsigned kind, unsigned flags)
{
    return build_sample(build, (struct trace_sample){.first_ns = at(first_ms),
                                                     .last_ns = at(last_ms),
                                                     .cpu_ns = last_ms * MS / 2, // always half of the time
                                                     .node = node,
                                                     .count = count,
                                                     .kind = (uint16_t)kind,
                                                     .flags = (uint16_t)flags,
                                                     .level = kind == QUT_TRACE_KIND_CPU});
}

static void tick(struct build_trace *build, uint64_t ms, uint32_t node)
{
    take(build, ms, ms, 1, node, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU);
}

static void add_main_thread(struct build_trace *build, const struct nodes *nodes)
{
    struct trace_thread *thread = build_thread(build, GOLDEN_PID, "main", at(0), UINT64_MAX);
    thread->counts.throttled = 17;
    thread->counts.cut[QUT_TRACE_CUT_DEPTH] = 1;
    thread->totals[QUT_TRACE_TOTAL_ALLOCATIONS] = 5;
    thread->totals[QUT_TRACE_TOTAL_ALLOCATED_BYTES] = 65536;
    tick(build, 10, nodes->main);
    take(build, 11, 20, 10, nodes->a, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU); // merged
    tick(build, 21, nodes->deep);
    tick(build, 22, nodes->recursive);
    tick(build, 23, nodes->inlined);
    tick(build, 24, nodes->a);
    tick(build, 25, nodes->jit);
    tick(build, 26, nodes->dex);
    tick(build, 27, nodes->handler);
    tick(build, 28, nodes->raw);
    tick(build, 29, nodes->vdso);
    tick(build, 30, nodes->unloaded);
    tick(build, 31, nodes->guessed);
    // The same stack for three requests: only marks tell them apart.
    for (unsigned request = 0; request < 3; request++) {
        build_mark(build, QUT_TRACE_MARK_BEGIN, at(40 + 10 * request), 7 + request,
                   request ? "request" : GOLDEN_HOSTILE);
        take(build, 41 + 10 * request, 48 + 10 * request, 8, nodes->a, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU);
        build_mark(build, QUT_TRACE_MARK_END, at(49 + 10 * request), 7 + request, request ? "request" : GOLDEN_HOSTILE);
    }
    build_mark(build, QUT_TRACE_MARK_INSTANT, at(75), 0, "instant");
    static const uint64_t values[] = {3, UINT64_MAX / 4, 5};
    for (unsigned i = 0; i < 3; i++)
        build_mark(build, QUT_TRACE_MARK_COUNTER, at(80 + i), values[i], "queue");
    for (unsigned i = 0; i < 5; i++) {
        take(build, 90 + i, 90 + i, 1, nodes->inlined, QUT_TRACE_KIND_ALLOCATE, QUT_TRACE_SAMPLE_ON_CPU);
        build_extra(build, QUT_TRACE_EXTRA_SIZE, 4096u << i);
        build_extra(build, QUT_TRACE_EXTRA_ADDRESS, 0x5600000000 + 0x10000 * i);
        const uint64_t metrics[QUT_TRACE_METRIC_COUNT] = {
            [QUT_TRACE_METRIC_MINOR_FAULTS] = 100 + 3 * i,
            [QUT_TRACE_METRIC_ALLOCATIONS] = 1 + i,
            [QUT_TRACE_METRIC_ALLOCATED_BYTES] = (8192u << i) - 4096,
        };
        build_metrics(build, metrics);
    }
    // It gives the lock that the worker waits for.
    take(build, 130, 130, 1, nodes->unlock, QUT_TRACE_KIND_UNLOCK, QUT_TRACE_SAMPLE_ON_CPU);
    build_extra(build, QUT_TRACE_EXTRA_LOCK, GOLDEN_LOCK);
    build_extra(build, QUT_TRACE_EXTRA_WAKEE_TID, GOLDEN_PID + 1);
    build_extra(build, QUT_TRACE_EXTRA_FLOW, GOLDEN_FLOW);
    // Blocked: an interval with a stack at both ends.
    take(build, 300, 300, 1, nodes->lock, QUT_TRACE_KIND_POLL, QUT_TRACE_SAMPLE_OFF_CPU);
    build_extra(build, QUT_TRACE_EXTRA_DURATION_NS, 150 * MS);
    build_extra(build, QUT_TRACE_EXTRA_BEGIN_NODE, nodes->a);
    build_extra(build, QUT_TRACE_EXTRA_FD, 5);
    build_extra(build, QUT_TRACE_EXTRA_RESULT, (uint64_t)-2);
    take(build, 400, 400, 1, nodes->a, GOLDEN_OWN_KIND, 0);
    build_extra(build, QUT_TRACE_EXTRA_OWN_FIRST + 1, 12345);
    build_extra(build, QUT_TRACE_EXTRA_WEIGHT, 6);
    tick(build, 990, nodes->main);
}

static void add_worker(struct build_trace *build, const struct nodes *nodes)
{
    struct trace_thread *thread = build_thread(build, GOLDEN_PID + 1, "w\"<b>;\n\\ork", at(50), at(900));
    thread->counts.lost[QUT_TRACE_LOST_POOL] = 40;
    thread->counts.lost[QUT_TRACE_LOST_NESTED] = 2;
    thread->counts.cut[QUT_TRACE_CUT_WALK] = 2;
    thread->totals[QUT_TRACE_TOTAL_LOCK_WAITS] = 1;
    thread->totals[QUT_TRACE_TOTAL_LOCK_WAIT_NS] = GOLDEN_LOCK_WAIT_NS;
    tick(build, 60, nodes->a);
    take(build, 131, 131, 1, nodes->lock, QUT_TRACE_KIND_LOCK, QUT_TRACE_SAMPLE_OFF_CPU);
    build_extra(build, QUT_TRACE_EXTRA_DURATION_NS, GOLDEN_LOCK_WAIT_NS);
    build_extra(build, QUT_TRACE_EXTRA_LOCK, GOLDEN_LOCK);
    build_extra(build, QUT_TRACE_EXTRA_OWNER_TID, GOLDEN_PID);
    build_extra(build, QUT_TRACE_EXTRA_WAKER_TID, GOLDEN_PID);
    build_extra(build, QUT_TRACE_EXTRA_FLOW, GOLDEN_FLOW);
    take(build, 140, 160, 21, nodes->recursive, QUT_TRACE_KIND_WALL, QUT_TRACE_SAMPLE_ON_CPU);
    build_gap(build, TRACE_GAP_LOST, at(161), at(200), 40);
    tick(build, 201, nodes->recursive);
    take(build, 202, 202, 1, nodes->broken_leaf, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU | QUT_TRACE_SAMPLE_CUT);
    take(build, 203, 203, 1, nodes->cut_walk, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU | QUT_TRACE_SAMPLE_CUT);
    take(build, 204, 204, 1, nodes->broken, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU | QUT_TRACE_SAMPLE_CUT);
    tick(build, 205, nodes->labels);
    tick(build, 206, nodes->hostile);
    tick(build, 207, nodes->empty);
    tick(build, 208, 0); // no frame at all
    take(build, 700, 700, 1, nodes->a, QUT_TRACE_KIND_THREAD_END, 0);
}

static void add_young(struct build_trace *build, const struct nodes *nodes)
{
    struct trace_thread *thread = build_thread(build, 4194303, "", at(300), UINT64_MAX);
    thread->stored = 90; // of which 10 merged: overwritten since
    thread->merged = 10;
    thread->stored -= thread->merged;
    build_gap(build, TRACE_GAP_OVERWRITTEN, at(300), at(500), 90);
    for (unsigned i = 0; i < 20; i++)
        take(build, 500 + 10 * i, 503 + 10 * i, 4, i % 2 ? nodes->labels : nodes->deep, QUT_TRACE_KIND_WALL, 0);
    thread = &build->trace->threads[2];
    thread->under_way = 1;
}

static void fill_head(struct trace *trace)
{
    static char path[] = "golden.qtrace";
    trace->path = path;
    for (unsigned i = 0; i < sizeof trace->identity; i++)
        trace->identity[i] = (uint8_t)(17 * i);
    trace->arch = 1; // QUT_ARCH_X86_64
    trace->word_bytes = 8;
    trace->mode = QUT_TRACE_OVERWRITE;
    trace->has_cpu_time = true;
    trace->is_complete = true;
    trace->pid = GOLDEN_PID;
    trace->command = "/opt/app/golden --name=" GOLDEN_HOSTILE;
    trace->start_ns = GOLDEN_START_NS;
    trace->end_ns = GOLDEN_START_NS + GOLDEN_LENGTH_NS;
    trace->realtime_ns = 1790000000000000000u;
    trace->boottime_ns = GOLDEN_START_NS + 5000000000u;
    trace->metric_mask = 1u << QUT_TRACE_METRIC_MINOR_FAULTS | 1u << QUT_TRACE_METRIC_ALLOCATIONS |
                         1u << QUT_TRACE_METRIC_ALLOCATED_BYTES;
    trace->kind_names[GOLDEN_OWN_KIND - QUT_TRACE_OWN_KIND_FIRST] = "own <kind>";
}

void golden_trace(struct trace *trace)
{
    struct build_trace build;
    struct nodes nodes;
    build_begin(&build, trace);
    fill_head(trace);
    add_modules(&build);
    add_nodes(&build, &nodes);
    add_main_thread(&build, &nodes);
    add_worker(&build, &nodes);
    add_young(&build, &nodes);
    build_thread(&build, GOLDEN_PID + 3, "idle", at(600), UINT64_MAX);
    build_end(&build);
    // Hits of threads that had no slot are the trace's alone.
    trace->counts.lost[QUT_TRACE_LOST_THREADS] += 3;
    trace->counts.hits += 3;
}

void golden_tell(struct trace *trace)
{
    for (size_t i = 0; i < trace->sample_count; i++) {
        struct trace_sample *sample = &trace->samples[i];
        if (sample->kind != GOLDEN_OWN_KIND)
            continue;
        trace->extras[sample->first_extra] = (struct trace_extra){QUT_TRACE_EXTRA_CPU_NS, GOLDEN_TOLD_NS};
        sample->extra_count = 1;
    }
}

void golden_damage(struct trace *trace)
{
    static char *damages[] = {"chunk 7: its checksum is wrong"};
    trace->is_complete = false;
    trace->damaged_chunks = 1;
    trace->damaged_samples = 25;
    trace->stored += 25;
    trace->counts.hits += 25;
    trace->damages = damages;
    trace->damage_count = 1;
}

void golden_free(struct trace *trace)
{
    build_free(trace);
}
