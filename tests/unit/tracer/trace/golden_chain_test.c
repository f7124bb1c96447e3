// SPDX-License-Identifier: Apache-2.0
// What is put into a segment comes out again: of the segment, of the file that it is collected to, closed or left
// behind. The golden trace is what was put in, but for what no writer can say.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/golden/golden.h"
#include "tests/support/golden/segment.h"
#include "tests/support/run_suite.h"
#include "tracer/collect/collect.h"

static struct trace golden, read_back;
static char path[64];

static void begin(void)
{
    golden_trace(&golden);
    snprintf(path, sizeof path, "/dev/shm/qut-golden-test.%d", (int)getpid());
}

static void end(void)
{
    golden_free(&golden);
}

static uint64_t units(uint64_t ns)
{
    return ns >> QUT_TRACE_TIME_SHIFT << QUT_TRACE_TIME_SHIFT;
}

static const char *module_path(const struct trace *trace, const struct trace_node *node)
{
    return node->module == TRACE_NONE ? "" : trace->modules[node->module].path;
}

static void same_stack(uint32_t wanted, uint32_t found)
{
    while (wanted && found) {
        const struct trace_node *from = &golden.nodes[wanted], *to = &read_back.nodes[found];
        ck_assert_uint_eq(from->kind, to->kind);
        ck_assert_uint_eq(from->depth, to->depth);
        ck_assert_str_eq(module_path(&golden, from), module_path(&read_back, to));
        ck_assert_uint_eq(from->pc, to->pc);
        ck_assert(!from->label == !to->label);
        if (from->class_ == QUT_TRACE_CLASS_LABEL)
            ck_assert_str_eq(from->label, to->label);
        wanted = from->parent;
        found = to->parent;
    }
    ck_assert_uint_eq(wanted, found);
}

static void same_extras(const struct trace_sample *wanted, const struct trace_sample *found)
{
    ck_assert_uint_eq(wanted->extra_count, found->extra_count);
    for (unsigned i = 0; i < wanted->extra_count; i++) {
        const struct trace_extra *from = &golden.extras[wanted->first_extra + i];
        uint64_t value = 0;
        ck_assert(trace_extra(&read_back, found, from->key, &value));
        if (from->key == QUT_TRACE_EXTRA_BEGIN_NODE)
            same_stack((uint32_t)from->value, (uint32_t)value);
        else
            ck_assert_uint_eq(from->value, value);
    }
    // A sample that says none has those of the one before it.
    if (wanted->metrics != TRACE_NONE)
        ck_assert_mem_eq(golden.metrics[wanted->metrics], read_back.metrics[found->metrics], sizeof golden.metrics[0]);
}

static void same_samples(const struct trace_thread *wanted, const struct trace_thread *found)
{
    ck_assert_uint_eq(wanted->sample_count, found->sample_count);
    for (size_t i = 0; i < wanted->sample_count; i++) {
        const struct trace_sample *from = &golden.samples[wanted->first_sample + i];
        const struct trace_sample *to = &read_back.samples[found->first_sample + i];
        ck_assert_uint_eq(units(from->first_ns), to->first_ns);
        ck_assert_uint_eq(units(from->last_ns), to->last_ns);
        ck_assert_uint_eq(units(from->cpu_ns), to->cpu_ns);
        ck_assert_uint_eq(from->count, to->count);
        ck_assert_uint_eq(from->kind, to->kind);
        ck_assert_uint_eq(from->flags, to->flags);
        ck_assert_uint_eq(from->level, to->level);
        same_stack(from->node, to->node);
        same_extras(from, to);
    }
}

static void same_marks(const struct trace_thread *wanted, const struct trace_thread *found)
{
    ck_assert_uint_eq(wanted->mark_count, found->mark_count);
    for (size_t i = 0; i < wanted->mark_count; i++) {
        const struct trace_mark *from = &golden.marks[wanted->first_mark + i];
        const struct trace_mark *to = &read_back.marks[found->first_mark + i];
        ck_assert_uint_eq(units(from->time_ns), to->time_ns);
        ck_assert_uint_eq(from->kind, to->kind);
        ck_assert_uint_eq(from->id, to->id);
        ck_assert_str_eq(from->name, to->name);
    }
}

// `hits` less what was overwritten or under way, which is not put in.
static void same_threads(void)
{
    ck_assert_uint_eq(golden.thread_count, read_back.thread_count);
    for (size_t i = 0; i < golden.thread_count; i++) {
        const struct trace_thread *from = &golden.threads[i], *to = &read_back.threads[i];
        ck_assert_uint_eq(from->tid, to->tid);
        ck_assert_str_eq(from->name, to->name);
        ck_assert_uint_eq(from->start_ns, to->start_ns);
        ck_assert_uint_eq(from->end_ns, to->end_ns);
        ck_assert_uint_eq(from->counts.throttled, to->counts.throttled);
        ck_assert_uint_eq(from->counts.marks, to->counts.marks);
        ck_assert_mem_eq(from->counts.lost, to->counts.lost, sizeof from->counts.lost);
        ck_assert_mem_eq(from->counts.cut, to->counts.cut, sizeof from->counts.cut);
        ck_assert_mem_eq(from->totals, to->totals, sizeof from->totals);
        same_samples(from, to);
        same_marks(from, to);
    }
}

static void same_modules(void)
{
    ck_assert_uint_eq(golden.module_count, read_back.module_count);
    for (size_t i = 0; i < golden.module_count; i++) {
        const struct trace_module *from = &golden.modules[i], *to = &read_back.modules[i];
        ck_assert_str_eq(from->path, to->path);
        ck_assert_uint_eq(from->start, to->start);
        ck_assert_uint_eq(from->start_vaddr, to->start_vaddr);
        ck_assert_uint_eq(from->code_bytes, to->code_bytes);
        ck_assert_uint_eq(from->load_ns, to->load_ns);
        ck_assert_uint_eq(from->unload_ns, to->unload_ns);
        ck_assert_uint_eq(from->flags, to->flags);
        ck_assert_uint_eq(from->build_id_bytes, to->build_id_bytes);
        ck_assert_mem_eq(from->build_id, to->build_id, from->build_id_bytes);
    }
}

static void same_head(bool is_closed)
{
    ck_assert_mem_eq(golden.identity, read_back.identity, sizeof golden.identity);
    ck_assert_uint_eq(golden.arch, read_back.arch);
    ck_assert_uint_eq(golden.word_bytes, read_back.word_bytes);
    ck_assert_uint_eq(golden.mode, read_back.mode);
    ck_assert_uint_eq(golden.pid, read_back.pid);
    ck_assert_str_eq(golden.command, read_back.command);
    ck_assert_uint_eq(golden.start_ns, read_back.start_ns);
    ck_assert_uint_eq(golden.realtime_ns, read_back.realtime_ns);
    ck_assert_uint_eq(golden.boottime_ns, read_back.boottime_ns);
    ck_assert_uint_eq(golden.metric_mask, read_back.metric_mask);
    ck_assert(read_back.has_cpu_time);
    if (is_closed && read_back.damage_count)
        ck_abort_msg("%s", read_back.damages[0]);
    ck_assert_uint_eq(read_back.is_complete, is_closed);
    if (is_closed)
        ck_assert_uint_eq(golden.end_ns, read_back.end_ns);
    ck_assert_str_eq(trace_kind_name(&golden, GOLDEN_OWN_KIND), trace_kind_name(&read_back, GOLDEN_OWN_KIND));
    ck_assert_uint_eq(read_back.present_samples, golden.present_samples);
    ck_assert_uint_eq(read_back.stored + read_back.merged, golden.present_samples);
    ck_assert_uint_eq(read_back.merged, golden.present_samples - golden.sample_count);
    ck_assert_uint_eq(read_back.counts.lost[QUT_TRACE_LOST_THREADS], golden.counts.lost[QUT_TRACE_LOST_THREADS]);
    ck_assert_uint_eq(read_back.damaged_samples, 0);
    ck_assert_uint_eq(read_back.overwritten_samples, 0);
    struct trace_balance balance = trace_balance(&read_back);
    ck_assert_int_eq(balance.hits_missing, 0);
    ck_assert_int_eq(balance.samples_missing, 0);
}

static void compare(bool is_closed)
{
    same_head(is_closed);
    same_modules();
    same_threads();
}

// The worker lost 42 hits between two of its samples.
static void has_its_gap(void)
{
    const struct trace_thread *worker = &read_back.threads[1];
    ck_assert_uint_ge(worker->gap_count, 1);
    const struct trace_gap *gap = &read_back.gaps[worker->first_gap];
    ck_assert_uint_eq(gap->reason, TRACE_GAP_LOST);
    ck_assert_uint_eq(gap->lost, 42);
    // Somewhere among the records of its chunk: more is not known.
    ck_assert_uint_eq(gap->from_ns, units(GOLDEN_START_NS + 60000000));
    ck_assert_uint_ge(gap->to_ns, units(GOLDEN_START_NS + 201000000));
}

// Without a name, so that nothing is left when an assertion fails.
static int write_segment(bool closes)
{
    ck_assert_int_eq(golden_write(&golden, path, closes), 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void read_and_compare(int fd, bool is_closed)
{
    ck_assert_int_eq(trace_read_fd(fd, "golden", &read_back, NULL), 0);
    compare(is_closed);
    has_its_gap();
    trace_free(&read_back);
    close(fd);
}

START_TEST(test_segment)
{
    read_and_compare(write_segment(_i), _i);
}
END_TEST

START_TEST(test_file)
{
    int segment_fd = write_segment(_i), file_fd = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_ge(file_fd, 0);
    const struct collect_options options = {
        .segment_fd = segment_fd, .file_fd = file_fd, .stop_fd = -1, .process_fd = -1};
    struct collect_result result;
    ck_assert_int_eq(collect(&options, &result, NULL), 0);
    ck_assert_uint_eq(result.end, _i ? QUT_TRACE_FILE_END_CLOSED : QUT_TRACE_FILE_END_DIED);
    close(segment_fd);
    read_and_compare(file_fd, _i);
}
END_TEST

int main(void)
{
    if (access("/dev/shm", W_OK) != 0) {
        puts("SKIP: /dev/shm cannot be written to");
        return 77;
    }
    Suite *suite = suite_create("golden_chain");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, begin, end);
    tcase_add_loop_test(all, test_segment, 0, 2);
    tcase_add_loop_test(all, test_file, 0, 2);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
