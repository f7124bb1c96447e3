// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/waits/world.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/blocked.h"
#include "qutc/include/qutc/provide.h"

#include <qut/qut.h>

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "world: %s\n", what);
    abort();
}

// What the agent's start has.
_Thread_local struct agent_thread agent_thread __attribute__((tls_model("initial-exec")));
uint32_t agent_watched;
struct agent_settings agent_settings;

bool agent_thread_is_due(uint32_t what)
{
    return (agent_watched & what) != 0;
}

uint32_t agent_tid(void)
{
    if (!agent_thread.tid)
        agent_thread.tid = (uint32_t)gettid();
    return agent_thread.tid;
}

void world_open(uint32_t sync, uint64_t least_ns, uint64_t interval_ns, uint32_t trigger)
{
    static bool has_tables;
    world_thread_begins(); // before the trace has a key: keys are cleared in their order
    if (!has_tables) {
        struct qut_options options = {.size = sizeof(options), .compile = qutc_compile_for_qut};
        must(qut_start(&options) == 0, "qut_start");
        must((qut_wait(120000)) == 0, "qut_wait(120000)");
        has_tables = true;
    }
    struct qut_trace_options trace = {
        .size = sizeof(trace), .mode = QUT_TRACE_KEEP_ALL, .segment_bytes = 64 << 20, .thread_count = 64};
    world_close(NULL); // a test's that failed
    must((qut_trace_open(&trace)) == 0, "qut_trace_open(&trace)");
    struct qut_sampling_options sampling = {
        .size = sizeof(sampling), .trigger = trigger, .period_ns = 1000000, .sync_interval_ns = interval_ns};
    must((qut_sampling_start(&sampling)) == 0, "qut_sampling_start(&sampling)");
    qut_trace_thread_register();
    agent_settings.blocked_least_ns = least_ns;
    agent_settings.sync = sync;
    __atomic_store_n(&agent_watched, sync, __ATOMIC_SEQ_CST);
}

int world_has_trigger(uint32_t trigger)
{
    struct qut_trace_options trace = {.size = sizeof(trace)};
    struct qut_sampling_options sampling = {.size = sizeof(sampling), .trigger = trigger};
    world_close(NULL); // a test's that failed
    must(qut_trace_open(&trace) == 0, "qut_trace_open");
    int result = qut_sampling_start(&sampling);
    if (!result)
        qut_sampling_stop();
    qut_trace_close();
    return result;
}

void world_close(struct trace *trace)
{
    __atomic_store_n(&agent_watched, 0, __ATOMIC_SEQ_CST);
    qut_sampling_stop();
    if (qut_trace_fd() < 0)
        return;
    int fd = dup(qut_trace_fd());
    qut_trace_close();
    if (trace) {
        struct base_error error;
        must(trace_read_fd(fd, "segment", trace, &error) == 0, error.detail);
        struct trace_balance balance = trace_balance(trace);
        must((balance.hits_missing) == 0, "balance.hits_missing");
        must((balance.samples_missing) == 0, "balance.samples_missing");
    }
    close(fd);
}

static pthread_key_t end_key;

static void thread_ends(void *value)
{
    (void)value;
    agent_blocked_thread_ends();
    must((agent_thread.inside) == 0, "agent_thread.inside");
}

static void make_key(void)
{
    must((pthread_key_create(&end_key, thread_ends)) == 0, "pthread_key_create(&end_key, thread_ends)");
}

void world_thread_begins(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    pthread_setspecific(end_key, &end_key);
}

void world_wait_until_asleep(uint32_t tid)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/%u/stat", tid);
    for (;;) {
        int fd = open(path, O_RDONLY);
        ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
        close(fd);
        text[size > 0 ? size : 0] = 0;
        const char *end = strrchr(text, ')');
        if (end && end[2] == 'S')
            return;
        sched_yield();
    }
}

const struct trace_thread *world_thread(const struct trace *trace, uint32_t tid)
{
    for (size_t i = 0; i < trace->thread_count; i++)
        if (trace->threads[i].tid == tid)
            return &trace->threads[i];
    return NULL;
}

static const struct trace_sample *find(const struct trace *trace, uint32_t tid, uint32_t kind, bool is_end,
                                       size_t index, size_t *count)
{
    const struct trace_thread *thread = world_thread(trace, tid);
    *count = 0;
    for (size_t i = 0; thread && i < thread->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[thread->first_sample + i];
        uint64_t duration_ns;
        bool ends = trace_extra(trace, sample, QUT_EXTRA_DURATION_NS, &duration_ns);
        if (sample->kind != kind || ends != is_end || (sample->flags & QUT_EVENT_BEGINS))
            continue;
        if ((*count)++ == index)
            return sample;
    }
    return NULL;
}

const struct trace_sample *world_sample(const struct trace *trace, uint32_t tid, uint32_t kind, bool is_end,
                                        size_t index)
{
    size_t count;
    return find(trace, tid, kind, is_end, index, &count);
}

size_t world_count(const struct trace *trace, uint32_t tid, uint32_t kind, bool is_end)
{
    size_t count;
    find(trace, tid, kind, is_end, SIZE_MAX, &count);
    return count;
}

uint64_t world_extra(const struct trace *trace, const struct trace_sample *sample, uint32_t key)
{
    uint64_t value;
    return trace_extra(trace, sample, key, &value) ? value : 0;
}

// The address in memory that a node's stands for: all modules lie where they lay.
static uintptr_t address_of(const struct trace *trace, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    if (at->module == TRACE_NONE)
        return (uintptr_t)at->pc;
    const struct trace_module *module = &trace->modules[at->module];
    return (uintptr_t)(at->pc - module->start_vaddr + module->start);
}

bool world_is_in(const struct trace *trace, const struct trace_sample *sample, const void *function, size_t bytes)
{
    for (uint32_t node = sample->node; node; node = trace->nodes[node].parent) {
        uintptr_t address = address_of(trace, node);
        if (address - (uintptr_t)function < bytes)
            return true;
    }
    return false;
}

const char *world_innermost(const struct trace *trace, const struct trace_sample *sample)
{
    Dl_info info;
    uint32_t node = sample->node;
    while (node && (trace->nodes[node].label || !trace->nodes[node].pc))
        node = trace->nodes[node].parent;
    if (!dladdr((const void *)address_of(trace, node), &info) || !info.dli_sname)
        return "?";
    return info.dli_sname;
}
