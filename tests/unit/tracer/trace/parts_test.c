// SPDX-License-Identifier: Apache-2.0
// Several traces in one file: each process's threads, samples and notes are what they are in a file of their own;
// modules and nodes that are equal are one; a part that is spoiled or cut off leaves the others.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/files.h"
#include "tests/unit/tracer/trace/maker.h"
#include "tracer/collect/collect.h"

enum { PARTS = 3, STEPS = 3000 };

static const struct trace_note *notes_of(void *context, size_t *count)
{
    static struct trace_note notes[3];
    uint32_t pid = *(const uint32_t *)context;
    notes[0] = (struct trace_note){.name = "ticks-due", .value = 1000 + pid};
    notes[1] = (struct trace_note){.name = "command", .text = pid & 1 ? "odd --with arguments" : "/bin/even"};
    notes[2] = (struct trace_note){.name = "parent-pid", .value = pid - 1};
    *count = 3;
    return notes;
}

// What a process put into its trace.
static int make_file(uint32_t pid, uint64_t seed)
{
    struct maker maker;
    const struct maker_options options = {.segment_bytes = 2 << 20, .seed = seed, .pid = pid};
    maker_begin(&maker, &options);
    maker_run(&maker, &options, STEPS);
    int segment_fd = dup(maker.segment.fd), fd = new_file();
    maker_close(&maker);
    struct collect_result result;
    struct base_error error = {0};
    const struct collect_options collected = {.segment_fd = segment_fd,
                                              .file_fd = fd,
                                              .stop_fd = -1,
                                              .process_fd = -1,
                                              .notes = notes_of,
                                              .notes_context = &pid};
    ck_assert_int_eq(collect(&collected, &result, &error), 0);
    ck_assert(result.has_trailer);
    close(segment_fd);
    maker_free(&maker);
    return fd;
}

static void append(int to_fd, int fd)
{
    struct base_error error = {0};
    ck_assert_int_eq(collect_append(to_fd, fd, &error), 0);
}

static size_t size_of(int fd)
{
    return (size_t)lseek(fd, 0, SEEK_END);
}

static void same_stack(const struct trace *wanted, uint32_t from, const struct trace *found, uint32_t to)
{
    for (; from && to; from = wanted->nodes[from].parent, to = found->nodes[to].parent) {
        const struct trace_node *left = &wanted->nodes[from], *right = &found->nodes[to];
        ck_assert_uint_eq(left->kind, right->kind);
        ck_assert_uint_eq(left->depth, right->depth);
        ck_assert_uint_eq(left->pc, right->pc);
        ck_assert(!left->label == !right->label && (!left->label || strcmp(left->label, right->label) == 0));
        ck_assert((left->module == TRACE_NONE) == (right->module == TRACE_NONE));
        if (left->module != TRACE_NONE)
            ck_assert_str_eq(wanted->modules[left->module].path, found->modules[right->module].path);
    }
    ck_assert_uint_eq(from, to);
}

static void same_sample(const struct trace *wanted, const struct trace_sample *from, const struct trace *found,
                        const struct trace_sample *to, bool is_first)
{
    ck_assert_uint_eq(from->first_ns, to->first_ns);
    ck_assert_uint_eq(from->last_ns, to->last_ns);
    ck_assert_uint_eq(from->cpu_ns, to->cpu_ns);
    ck_assert_uint_eq(from->count, to->count);
    ck_assert_uint_eq(from->flags, to->flags);
    ck_assert_uint_eq(from->is_open, to->is_open);
    ck_assert_str_eq(trace_kind_name(wanted, from->kind), trace_kind_name(found, to->kind));
    same_stack(wanted, from->node, found, to->node);
    ck_assert_uint_eq(from->extra_count, to->extra_count);
    for (unsigned i = 0; i < from->extra_count; i++) {
        const struct trace_extra *left = &wanted->extras[from->first_extra + i];
        const struct trace_extra *right = &found->extras[to->first_extra + i];
        ck_assert_uint_eq(left->key, right->key);
        if (left->key == QUT_TRACE_EXTRA_BEGIN_NODE)
            same_stack(wanted, (uint32_t)left->value, found, (uint32_t)right->value);
        else if (left->key != QUT_TRACE_EXTRA_FLOW || is_first)
            ck_assert_uint_eq(left->value, right->value);
    }
    ck_assert((from->metrics == TRACE_NONE) == (to->metrics == TRACE_NONE));
    if (from->metrics != TRACE_NONE)
        ck_assert_mem_eq(wanted->metrics[from->metrics], found->metrics[to->metrics], sizeof *wanted->metrics);
}

// All that a process has in its own file it has in the one of several.
static void same_process(const struct trace *wanted, const struct trace *found, uint32_t index, bool is_first)
{
    const struct trace_process *process = &found->processes[index];
    ck_assert_uint_eq(process->pid, wanted->pid);
    ck_assert_str_eq(process->command, wanted->command);
    ck_assert_uint_eq(process->parent_pid, wanted->pid - 1);
    ck_assert_uint_eq(process->thread_count, wanted->thread_count);
    ck_assert_uint_eq(process->present_samples, wanted->present_samples);
    ck_assert_uint_eq(process->counts.hits, wanted->counts.hits);
    ck_assert_uint_eq(process->end, QUT_TRACE_FILE_END_CLOSED);
    uint64_t due;
    ck_assert(trace_note_number(found, index, "ticks-due", &due));
    ck_assert_uint_eq(due, 1000 + wanted->pid);
    for (size_t t = 0; t < wanted->thread_count; t++) {
        const struct trace_thread *from = &wanted->threads[t], *to = &found->threads[process->first_thread + t];
        ck_assert_uint_eq(to->process, index);
        ck_assert_uint_eq(from->tid, to->tid);
        ck_assert_str_eq(from->name, to->name);
        ck_assert_uint_eq(from->sample_count, to->sample_count);
        ck_assert_uint_eq(from->mark_count, to->mark_count);
        ck_assert_uint_eq(from->gap_count, to->gap_count);
        for (size_t i = 0; i < from->sample_count; i++)
            same_sample(wanted, &wanted->samples[from->first_sample + i], found, &found->samples[to->first_sample + i],
                        is_first);
        for (size_t i = 0; i < from->mark_count; i++) {
            const struct trace_mark *left = &wanted->marks[from->first_mark + i];
            const struct trace_mark *right = &found->marks[to->first_mark + i];
            ck_assert(left->time_ns == right->time_ns && left->id == right->id && left->kind == right->kind);
            ck_assert_str_eq(left->name, right->name);
        }
    }
}

static uint32_t process_with(const struct trace *trace, uint32_t pid)
{
    for (uint32_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].pid == pid)
            return i;
    ck_abort_msg("no process %u", pid);
}

START_TEST(test_several)
{
    struct trace alone[PARTS];
    int all = new_file();
    uint64_t hits = 0, samples = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        int fd = make_file(100 + i, 7 + i);
        alone[i] = read_file(fd);
        hits += alone[i].counts.hits;
        samples += alone[i].present_samples;
        append(all, fd);
        close(fd);
    }
    struct trace trace = read_file(all);
    ck_assert_uint_eq(trace.process_count, PARTS);
    ck_assert(trace.is_complete);
    ck_assert_uint_eq(trace.damage_count, 0);
    ck_assert_uint_eq(trace.counts.hits, hits);
    ck_assert_uint_eq(trace.present_samples, samples);
    struct trace_balance balance = trace_balance(&trace);
    ck_assert(!balance.hits_missing && !balance.samples_missing);
    ck_assert_uint_eq(trace_note_sum(&trace, "ticks-due"), 3 * 1000 + 100 + 101 + 102);
    for (unsigned i = 0; i < PARTS; i++) {
        same_process(&alone[i], &trace, process_with(&trace, 100 + i), i == 0);
        trace_free(&alone[i]);
    }
    // No two threads have the same uid, and no parent stands behind its child.
    for (size_t i = 0; i < trace.thread_count; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(trace.threads[i].uid, trace.threads[j].uid);
    for (size_t i = 1; i < trace.node_count; i++)
        ck_assert_uint_lt(trace.nodes[i].parent, i);
    trace_free(&trace);
    close(all);
}
END_TEST

// The same twice: nothing new but samples.
START_TEST(test_equal_is_one)
{
    int fd = make_file(5, 9), twice = new_file();
    struct trace once = read_file(fd);
    append(twice, fd);
    append(twice, fd);
    struct trace trace = read_file(twice);
    ck_assert_uint_eq(trace.process_count, 2);
    size_t jit = 0;
    for (size_t i = 0; i < once.module_count; i++)
        jit += (once.modules[i].flags & QUT_TRACE_MODULE_JIT) != 0;
    ck_assert_uint_le(trace.module_count, once.module_count + jit);
    if (!jit)
        ck_assert_uint_le(trace.node_count, once.node_count);
    ck_assert_uint_eq(trace.sample_count, 2 * once.sample_count);
    trace_free(&trace);
    trace_free(&once);
    close(fd);
    close(twice);
}
END_TEST

// Notes of the whole recording, behind everything, or between parts.
START_TEST(test_own_notes)
{
    const struct trace_note notes[] = {{.name = "processes-not-followed", .value = 3},
                                       {.name = "host", .text = "\xc3\xa4 b"},
                                       {.name = "processes-not-followed", .value = 4}}; // the last one counts
    struct base_error error = {0};
    int all = new_file(), first = make_file(1, 1), second = make_file(2, 2);
    append(all, first);
    ck_assert_int_eq(collect_append_notes(all, notes, 3, &error), 0);
    for (unsigned parts = 1; parts <= 2; parts++) {
        struct trace trace = read_file(all);
        uint64_t value = 0;
        ck_assert_uint_eq(trace.process_count, parts);
        ck_assert(trace.is_complete);
        ck_assert(trace_note_number(&trace, TRACE_NONE, "processes-not-followed", &value));
        ck_assert_uint_eq(value, 4);
        ck_assert_uint_eq(trace.note_count, 3 * parts + 2);
        ck_assert_str_eq(trace.notes[trace.note_count - 1].name, "host");
        ck_assert_str_eq(trace.notes[trace.note_count - 1].text, "\xc3\xa4 b");
        ck_assert(!trace_note_number(&trace, TRACE_NONE, "ticks-due", &value));
        trace_free(&trace);
        append(all, second);
    }
    close(all);
    close(first);
    close(second);
}
END_TEST

// Cut off anywhere in its last part, spoiled anywhere in its first one: the others are whole.
START_TEST(test_damage)
{
    int all = new_file(), first = make_file(1, 1), second = make_file(2, 2);
    append(all, first);
    append(all, second);
    size_t first_size = size_of(first), size = size_of(all);
    struct trace whole[2] = {read_file(first), read_file(second)};
    for (size_t cut = first_size + 1; cut < size; cut += (size - first_size) / 23 + 1) {
        int fd = new_file();
        append(fd, all);
        ck_assert_int_eq(ftruncate(fd, (off_t)cut), 0);
        struct trace trace = read_file(fd);
        ck_assert(!trace.is_complete);
        ck_assert_uint_gt(trace.damage_count, 0);
        same_process(&whole[0], &trace, process_with(&trace, 1), true);
        struct trace_balance balance = trace_balance(&trace);
        ck_assert(!balance.hits_missing && !balance.samples_missing);
        trace_free(&trace);
        close(fd);
    }
    for (size_t at = 1; at < first_size; at += first_size / 29 + 1) {
        int fd = new_file();
        append(fd, all);
        uint8_t byte;
        ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
        byte ^= 0x10;
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
        struct trace trace = read_file(fd);
        ck_assert(!trace.is_complete);
        ck_assert_uint_gt(trace.damage_count, 0);
        same_process(&whole[1], &trace, process_with(&trace, 2), trace.process_count == 1);
        trace_free(&trace);
        close(fd);
    }
    trace_free(&whole[0]);
    trace_free(&whole[1]);
    close(all);
    close(first);
    close(second);
}
END_TEST

// A part that cannot be written leaves the file as it was.
START_TEST(test_cannot_append)
{
    int all = new_file(), part = make_file(1, 1);
    append(all, part);
    size_t size = size_of(all);
    struct base_error error = {0};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", all);
    ck_assert_int_eq(collect_append(all, -1, &error), -1);
    ck_assert_uint_eq(size_of(all), size);
    ck_assert_int_eq(collect_append(-1, part, &error), -1);
    struct trace trace = read_file(all);
    ck_assert(trace.is_complete);
    trace_free(&trace);
    close(all);
    close(part);
}
END_TEST

// Time and memory are linear in the number of parts.
START_TEST(test_many)
{
    enum { MANY = 200 };
    int part = make_file(1, 1), all = new_file();
    for (unsigned i = 0; i < MANY; i++)
        append(all, part);
    struct trace once = read_file(part), trace = read_file(all);
    ck_assert_uint_eq(trace.process_count, MANY);
    ck_assert_uint_eq(trace.sample_count, MANY * once.sample_count);
    ck_assert_uint_eq(trace.thread_count, MANY * once.thread_count);
    trace_free(&trace);
    trace_free(&once);
    close(all);
    close(part);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("parts");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, test_several);
    tcase_add_test(all, test_equal_is_one);
    tcase_add_test(all, test_own_notes);
    tcase_add_test(all, test_damage);
    tcase_add_test(all, test_cannot_append);
    tcase_add_test(all, test_many);
    Suite *suite = suite_create("trace");
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
