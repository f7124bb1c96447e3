// SPDX-License-Identifier: Apache-2.0
// Two processes whose threads wait: for locks that others hold, for a condition, in calls that take long, and in one
// that does not come back. What is said of it is in traces.h.
#include "tests/unit/tracer/report/traces.h"

#include "tests/support/golden/build.h"
#include "tests/support/golden/golden.h"

enum { MS = 1000000, MAIN = 100, WORKER_A, WORKER_B, CHILD = 200 };
enum { LOCK = 0x5000, CONDITION = 0x6000, FLOW_LOCK = 1000, FLOW_BACK = 1500, FLOW_CONDITION = 2000 };
#define START_NS 5000000000u

static uint64_t at(double ms)
{
    return START_NS + (uint64_t)(ms * MS);
}

// Outermost first, up to NULL.
static uint32_t stack(struct build_trace *build, const char *const *names)
{
    uint32_t node = 0;
    for (; *names; names++) {
        uint32_t child = 0;
        for (uint32_t i = 1; i < build->trace->node_count; i++)
            if (build->trace->nodes[i].parent == node && build->trace->nodes[i].label == *names)
                child = i;
        node = child ? child : build_label(build, node, *names);
    }
    return node;
}
#define STACK(...) stack(build, (const char *const[]){__VA_ARGS__, NULL})

static uint64_t cpu_ns; // of the thread that is being made

static struct trace_sample *take(struct build_trace *build, double ms, uint32_t node, unsigned kind, unsigned flags)
{
    return build_sample(build, (struct trace_sample){.first_ns = at(ms),
                                                     .last_ns = at(ms),
                                                     .cpu_ns = cpu_ns,
                                                     .node = node,
                                                     .count = 1,
                                                     .kind = (uint16_t)kind,
                                                     .flags = (uint16_t)flags});
}

static void tick(struct build_trace *build, double ms, uint32_t node)
{
    cpu_ns += MS;
    take(build, ms, node, QUT_TRACE_KIND_CPU, QUT_TRACE_SAMPLE_ON_CPU);
}

static void wait(struct build_trace *build, double from_ms, double to_ms, uint32_t node, unsigned kind)
{
    take(build, to_ms, node, kind, QUT_TRACE_SAMPLE_OFF_CPU);
    build_extra(build, QUT_TRACE_EXTRA_DURATION_NS, at(to_ms) - at(from_ms));
}

static void lock_extras(struct build_trace *build, uint64_t lock, uint32_t owner, uint32_t waker, uint64_t flow)
{
    build_extra(build, QUT_TRACE_EXTRA_LOCK, lock);
    if (owner)
        build_extra(build, QUT_TRACE_EXTRA_OWNER_TID, owner);
    build_extra(build, QUT_TRACE_EXTRA_WAKER_TID, waker);
    build_extra(build, QUT_TRACE_EXTRA_FLOW, flow);
}

static void release(struct build_trace *build, double ms, uint32_t node, unsigned kind, uint64_t lock, uint64_t flow)
{
    take(build, ms, node, kind, QUT_TRACE_SAMPLE_ON_CPU);
    build_extra(build, QUT_TRACE_EXTRA_LOCK, lock);
    build_extra(build, QUT_TRACE_EXTRA_FLOW, flow);
}

static void allocate(struct build_trace *build, double ms, uint32_t node, uint64_t count, uint64_t bytes)
{
    take(build, ms, node, QUT_TRACE_KIND_ALLOCATE, QUT_TRACE_SAMPLE_ON_CPU);
    const uint64_t metrics[QUT_TRACE_METRIC_COUNT] = {[QUT_TRACE_METRIC_MINOR_FAULTS] = bytes / 4096,
                                                      [QUT_TRACE_METRIC_ALLOCATIONS] = count,
                                                      [QUT_TRACE_METRIC_ALLOCATED_BYTES] = bytes};
    build_metrics(build, metrics);
}

static void add_main(struct build_trace *build)
{
    struct trace_thread *thread = build_thread(build, MAIN, "server", START_NS, UINT64_MAX);
    thread->totals[QUT_TRACE_TOTAL_ALLOCATIONS] = 1000;
    thread->totals[QUT_TRACE_TOTAL_ALLOCATED_BYTES] = 10 << 20;
    thread->totals[QUT_TRACE_TOTAL_FREES] = 900;
    thread->totals[QUT_TRACE_TOTAL_FREED_BYTES] = 9 << 20;
    cpu_ns = 0;
    wait(build, 0, 90, STACK("main", "serve", "epoll_wait"), QUT_TRACE_KIND_POLL);
    for (unsigned i = 0; i < 10; i++) {
        // Between two ticks it allocates; the processor time between them is the ticks'.
        tick(build, 91 + i, STACK("main", "serve", "parse"));
        cpu_ns += MS / 4;
        allocate(build, 91.5 + i,
                 i % 2 ? STACK("main", "serve", "read_header", "malloc") : STACK("main", "serve", "parse", "malloc"),
                 i * 100, i * (1 << 20));
    }
    release(build, 549.9, STACK("main", "serve", "queue_push", "pthread_cond_signal"), QUT_TRACE_KIND_WAKE, CONDITION,
            FLOW_CONDITION);
    wait(build, 600, 2600, STACK("main", "serve", "load_config", "read"), QUT_TRACE_KIND_READ);
    build_extra(build, QUT_TRACE_EXTRA_FD, 7);
    tick(build, 2601, STACK("main", "serve", "parse"));
}

static void add_worker_a(struct build_trace *build)
{
    build_thread(build, WORKER_A, "worker-a", at(10), UINT64_MAX);
    cpu_ns = 0;
    uint32_t compute = STACK("thread", "work", "compute"),
             unlock = STACK("thread", "work", "update", "pthread_mutex_unlock");
    for (unsigned i = 0; i < 10; i++) {
        tick(build, 101 + 20 * i, compute);
        tick(build, 103 + 20 * i, compute);
        release(build, 104.9 + 20 * i, unlock, QUT_TRACE_KIND_UNLOCK, LOCK, FLOW_LOCK + i);
    }
    for (unsigned i = 0; i < 3; i++) {
        wait(build, 400 + 10 * i, 402 + 10 * i, STACK("thread", "work", "update", "pthread_mutex_lock"),
             QUT_TRACE_KIND_LOCK);
        lock_extras(build, LOCK, WORKER_B, WORKER_B, FLOW_BACK + i);
        tick(build, 405 + 10 * i, compute);
    }
    wait(build, 500, 550, STACK("thread", "work", "queue_pop", "pthread_cond_wait"), QUT_TRACE_KIND_WAIT);
    lock_extras(build, CONDITION, 0, MAIN, FLOW_CONDITION);
    for (unsigned i = 0; i < 100; i++)
        tick(build, 560 + 20 * i, i % 3 ? compute : STACK("thread", "work", "hash"));
}

static void add_worker_b(struct build_trace *build)
{
    build_thread(build, WORKER_B, "worker-b", at(10), UINT64_MAX);
    cpu_ns = 0;
    uint32_t lock = STACK("thread", "work", "update", "pthread_mutex_lock");
    uint32_t unlock = STACK("thread", "work", "update", "pthread_mutex_unlock");
    for (unsigned i = 0; i < 10; i++) {
        // The beginning of the first one was sampled as well: what it used of the processor is its own. The fourth took
        // a little longer.
        if (i == 0) {
            take(build, 100, lock, QUT_TRACE_KIND_LOCK, QUT_TRACE_SAMPLE_BEGINS);
            cpu_ns += MS / 2;
        }
        wait(build, 100 + 20 * i, 105 + 20 * i + (i == 3), lock, QUT_TRACE_KIND_LOCK);
        lock_extras(build, LOCK, WORKER_A, WORKER_A, FLOW_LOCK + i);
        tick(build, 110 + 20 * i, STACK("thread", "work", "compute"));
    }
    for (unsigned i = 0; i < 3; i++)
        release(build, 401.9 + 10 * i, unlock, QUT_TRACE_KIND_UNLOCK, LOCK, FLOW_BACK + i);
    take(build, 700, STACK("thread", "work", "back_off", "nanosleep"), QUT_TRACE_KIND_SLEEP, QUT_TRACE_SAMPLE_BEGINS)
        ->is_open = 1;
}

static void add_child(struct build_trace *build)
{
    struct trace_thread *thread = build_thread(build, CHILD, "gzip", at(990), at(1700));
    thread->process = 1;
    thread->totals[QUT_TRACE_TOTAL_ALLOCATIONS] = 7;
    thread->totals[QUT_TRACE_TOTAL_ALLOCATED_BYTES] = 70000;
    cpu_ns = 0;
    for (unsigned i = 0; i < 50; i++)
        tick(build, 1000 + 10 * i, STACK("main", "deflate"));
    wait(build, 1500, 1600, STACK("main", "flush", "write"), QUT_TRACE_KIND_WRITE);
}

void waits_trace(struct trace *trace)
{
    static struct trace_process processes[2];
    static struct trace_note notes[] = {
        {"trigger", "task-clock", 0}, {"ticks-due", NULL, 200},   {"ticks-taken", NULL, 184},
        {"ticks-late", NULL, 3},      {"ticks-kernel", NULL, 12}, {"ticks-lost", NULL, 1},
        {"trigger", "task-clock", 0}, {"ticks-due", NULL, 50},    {"ticks-taken", NULL, 50}};
    struct build_trace build;
    build_begin(&build, trace);
    static char path[] = "waits.qtrace";
    trace->path = path;
    trace->arch = 1; // QUT_ARCH_X86_64
    trace->word_bytes = 8;
    trace->has_cpu_time = trace->is_complete = true;
    trace->pid = MAIN;
    trace->command = "/usr/bin/server --threads 2";
    trace->start_ns = trace->boottime_ns = START_NS;
    trace->realtime_ns = 1790000000000000000u;
    trace->end_ns = at(3000);
    trace->metric_mask = 1u << QUT_TRACE_METRIC_MINOR_FAULTS | 1u << QUT_TRACE_METRIC_ALLOCATIONS |
                         1u << QUT_TRACE_METRIC_ALLOCATED_BYTES;
    add_main(&build);
    add_worker_a(&build);
    add_worker_b(&build);
    add_child(&build);
    build_end(&build);
    processes[0] = (struct trace_process){.pid = MAIN,
                                          .command = trace->command,
                                          .is_complete = true,
                                          .start_ns = START_NS,
                                          .end_ns = trace->end_ns,
                                          .thread_count = 3,
                                          .note_count = 6};
    processes[1] = (struct trace_process){.pid = CHILD,
                                          .parent_pid = MAIN,
                                          .command = "/bin/gzip -9",
                                          .is_complete = true,
                                          .start_ns = at(990),
                                          .end_ns = at(1700),
                                          .first_thread = 3,
                                          .thread_count = 1,
                                          .first_note = 6,
                                          .note_count = 3};
    for (size_t t = 0; t < trace->thread_count; t++)
        for (unsigned total = 0; total < QUT_TRACE_TOTAL_COUNT; total++)
            processes[trace->threads[t].process].totals[total] += trace->threads[t].totals[total];
    trace->processes = processes;
    trace->process_count = 2;
    trace->notes = notes;
    trace->note_count = trace->first_own_note = sizeof notes / sizeof *notes;
}
