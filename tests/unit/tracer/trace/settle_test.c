// SPDX-License-Identifier: Apache-2.0
// Files that are finished are written once more: how small they are; that a file is whole at each moment of it, and
// where there is no room for it; blocks of that form which are malformed.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/qut_table_check.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/files.h"
#include "tests/unit/tracer/trace/maker.h"
#include "tracer/collect/collect.h"
#include "tracer/trace/file_tree.h"
#include "tracer/trace/raw_trace.h"

static int make_segment(struct maker *maker, size_t steps, bool no_extras)
{
    const struct maker_options options = {.segment_bytes = 8 << 20, .seed = 31, .no_extras = no_extras};
    maker_begin(maker, &options);
    maker_run(maker, &options, steps);
    int fd = dup(maker->segment.fd);
    maker_close(maker);
    return fd;
}

static size_t size_of(int fd)
{
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    return (size_t)status.st_size;
}

// ---- size

// Each sample is random in time, stack, kind and metric: bytes that no form can do without.
START_TEST(test_bytes_of_a_sample)
{
    struct maker maker;
    int segment_fd = make_segment(&maker, 100000, true), fd = new_file();
    struct collect_result result = collect_once(segment_fd, fd);
    struct trace trace = read_file(fd);
    maker_compare(&maker, &trace, true);
    ck_assert_uint_eq(result.file_bytes, size_of(fd));
    ck_assert_uint_ge(trace.present_samples, 100000);
    ck_assert_msg(size_of(fd) <= trace.present_samples * 13 / 2, "%zu bytes of %ju samples", size_of(fd),
                  (uintmax_t)trace.present_samples);
    // In memory they take no more than they took in the segment: nodes have other numbers, and shorter ones.
    struct trace segment;
    ck_assert_int_eq(trace_read_fd(segment_fd, "segment", &segment, NULL), 0);
    ck_assert_msg(trace.chunk_bytes <= segment.chunk_bytes, "%ju bytes of %ju", (uintmax_t)trace.chunk_bytes,
                  (uintmax_t)segment.chunk_bytes);
    trace_free(&segment);
    trace_free(&trace);
    maker_free(&maker);
    close(segment_fd);
    close(fd);
}
END_TEST

// What repeats itself while a process does next to nothing is in the file once: a sample each second, in a minute.
START_TEST(test_idle_minute)
{
    size_t sizes[2];
    for (unsigned minutes = 1; minutes <= 2; minutes++) {
        struct maker maker;
        int segment_fd = make_segment(&maker, minutes * 60, true), fd = new_file();
        collect_once(segment_fd, fd);
        sizes[minutes - 1] = size_of(fd);
        maker_free(&maker);
        close(segment_fd);
        close(fd);
    }
    ck_assert_uint_gt(sizes[1], sizes[0]);
    ck_assert_uint_le(sizes[1] - sizes[0], 1000);
}
END_TEST

// ---- at each moment

// What can be read is all there is, once the first form is whole; before that it is no more.
static bool is_whole_now(int fd, uint64_t samples, bool was_whole)
{
    struct trace trace;
    if (trace_read_fd(fd, "file", &trace, NULL) != 0) {
        ck_assert(!was_whole);
        return false;
    }
    ck_assert_uint_le(trace.present_samples, samples);
    ck_assert_uint_eq(trace.process_count, 1);
    ck_assert(!was_whole || (trace.is_complete && trace.present_samples == samples && !trace.damage_count));
    const bool is_whole = trace.is_complete;
    trace_free(&trace);
    return is_whole;
}

// The collector stops at each of its system calls, and could be killed there.
START_TEST(test_each_system_call)
{
    struct maker maker;
    int segment_fd = make_segment(&maker, 8000, false), fd = new_file();
    uint64_t samples = 0;
    for (unsigned i = 0; i < MAKER_THREADS; i++)
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
            samples += maker.threads[i].hit_count[level];
    pid_t child = fork();
    if (child == 0) {
        struct collect_result result;
        const struct collect_options options = {
            .segment_fd = segment_fd, .file_fd = fd, .stop_fd = -1, .process_fd = -1};
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(collect(&options, &result, NULL) != 0);
    }
    int status = 0;
    unsigned whole_stops = 0;
    size_t largest = 0;
    bool is_whole = false;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        is_whole = is_whole_now(fd, samples, is_whole);
        whole_stops += is_whole;
        largest = size_of(fd) > largest ? size_of(fd) : largest;
        ck_assert_int_eq(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
    }
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert(is_whole_now(fd, samples, true));
    // It was seen with both forms in it.
    ck_assert_uint_gt(whole_stops, 10);
    ck_assert_uint_gt(largest, size_of(fd) * 3 / 2);
    maker_free(&maker);
    close(segment_fd);
    close(fd);
}
END_TEST

struct bytes {
    uint8_t *data;
    size_t size;
};

static struct bytes load(int fd)
{
    struct bytes bytes = {.size = size_of(fd)};
    bytes.data = malloc(bytes.size);
    ck_assert_ptr_nonnull(bytes.data);
    ck_assert_int_eq(pread(fd, bytes.data, bytes.size, 0), (ssize_t)bytes.size);
    return bytes;
}

// Files may grow to so much only: the first form has room, the second beside it has not. That is no failure.
static struct bytes first_form(int segment_fd, size_t settled_bytes)
{
    struct rlimit all;
    getrlimit(RLIMIT_FSIZE, &all);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t limit_bytes = settled_bytes;; limit_bytes += settled_bytes / 20) {
        int fd = new_file();
        const struct rlimit limit = {limit_bytes, all.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        struct collect_result result = collect_once(segment_fd, fd);
        setrlimit(RLIMIT_FSIZE, &all);
        struct bytes bytes = load(fd);
        close(fd);
        if (result.has_trailer && !result.failed_writes) {
            ck_assert_uint_eq(result.file_bytes, bytes.size);
            ck_assert_uint_gt(bytes.size, settled_bytes);
            return bytes;
        }
        free(bytes.data);
    }
}

static void expect_all(const uint8_t *bytes, size_t size, uint64_t samples, unsigned processes, size_t at)
{
    struct trace trace;
    uint8_t *copy = aligned_alloc(64, (size + 63) & ~(size_t)63);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    if (trace_read_bytes(copy, size, "both", &trace, NULL) != 0 || !trace.is_complete || trace.damage_count ||
        trace.present_samples != samples || trace.process_count != processes)
        ck_abort_msg("at %zu of %zu: not whole", at, size);
    trace_free(&trace);
    free(copy);
}

// A recording as it was first written, and settled; and the head that the latter has while it stands behind the former.
struct forms {
    struct maker maker;
    int segment_fd, fd;
    struct bytes first, settled;
    struct qut_trace_file_header header;
    uint64_t samples;
};

static struct forms make_forms(void)
{
    struct forms forms = {.fd = new_file()};
    forms.segment_fd = make_segment(&forms.maker, 6000, false);
    collect_once(forms.segment_fd, forms.fd);
    forms.settled = load(forms.fd);
    forms.first = first_form(forms.segment_fd, forms.settled.size);
    struct trace trace = read_file(forms.fd);
    forms.samples = trace.present_samples;
    trace_free(&trace);
    struct qut_trace_file_header *header = &forms.header;
    memcpy(header, forms.settled.data, sizeof *header);
    header->supersedes_bytes = forms.first.size;
    header->checksum = qut_table_checksum(header, offsetof(struct qut_trace_file_header, checksum));
    return forms;
}

static void free_forms(struct forms *forms)
{
    free(forms->first.data);
    free(forms->settled.data);
    maker_free(&forms->maker);
    close(forms->segment_fd);
    close(forms->fd);
}

// Written so far, copied so far; behind the trace of another process, whose bytes are no business of this one's.
START_TEST(test_each_moment)
{
    struct forms forms = make_forms();
    const struct bytes first = forms.first, settled = forms.settled;
    const struct qut_trace_file_header header = forms.header;
    const uint64_t samples = forms.samples;
    const size_t before = _i ? settled.size : 0, size = before + first.size + settled.size;
    uint8_t *both = malloc(size);
    ck_assert_ptr_nonnull(both);
    memcpy(both, settled.data, before);
    memcpy(both + before, first.data, first.size);
    memcpy(both + before + first.size, &header, sizeof header);
    memcpy(both + before + first.size + sizeof header, settled.data + sizeof header, settled.size - sizeof header);
    const uint64_t all = samples * (1 + (unsigned)_i);
    const size_t step = settled.size / 211 + 1;
    for (size_t at = sizeof header; at < settled.size; at += step)
        expect_all(both, before + first.size + at, all, 1 + (unsigned)_i, at);
    for (size_t at = sizeof header; at < settled.size; at += step) {
        memcpy(both + before + sizeof header, settled.data + sizeof header, at - sizeof header);
        expect_all(both, size, all, 1 + (unsigned)_i, at);
    }
    memcpy(both + before, settled.data, settled.size);
    expect_all(both, size, all, 1 + (unsigned)_i, settled.size);
    free(both);
    free_forms(&forms);
}
END_TEST

// A recorder that was killed while it wrote the settled form, and what `cat` puts behind: another process's trace
// begins where the last block would go on.
START_TEST(test_joined_behind_one_that_is_cut)
{
    struct forms forms = make_forms();
    const struct bytes first = forms.first, settled = forms.settled;
    const struct qut_trace_file_header header = forms.header;
    const uint64_t samples = forms.samples;
    uint8_t *all = malloc(first.size + 2 * settled.size);
    ck_assert_ptr_nonnull(all);
    memcpy(all, first.data, first.size);
    const size_t step = settled.size / 97 + 1;
    for (size_t at = sizeof header; at < settled.size; at += step) {
        memcpy(all + first.size, settled.data, at);
        memcpy(all + first.size, &header, sizeof header);
        memcpy(all + first.size + at, settled.data, settled.size);
        expect_all(all, first.size + at + settled.size, 2 * samples, 2, at);
    }
    free(all);
    free_forms(&forms);
}
END_TEST

// ---- the tree

enum { TREE_CAPACITY = 64 };

static uint64_t word_of(uint64_t parent, uint64_t code, uint64_t kind)
{
    return parent << QUT_TRACE_PARENT_SHIFT | code << QUT_TRACE_KIND_BITS | kind;
}

// Ids as a hash would give them; a deep branch, a wide one, equal codes.
static void fill(uint64_t nodes[TREE_CAPACITY])
{
    memset(nodes, 0, TREE_CAPACITY * sizeof *nodes);
    nodes[40] = word_of(0, 0x700000001, 4);
    nodes[3] = word_of(40, 0x10, 1);
    nodes[60] = word_of(3, 0x10, 1);
    nodes[9] = word_of(60, 0x10, 31);
    nodes[11] = word_of(40, 0x20, 0);
    nodes[12] = word_of(40, 0x21, 0);
    nodes[7] = word_of(0, 1, 24);
    nodes[63] = word_of(7, 0x7ffffffff, 2);
}

static uint8_t *write_tree(const uint64_t *nodes, struct trace_tree *tree, struct trace_memory *memory, size_t *size)
{
    uint8_t *bytes = trace_memory_take(memory, QUT_TRACE_FILE_BLOCK_BYTES_MAX, 1);
    size_t next = 1;
    ck_assert(trace_tree_number(tree, nodes, TREE_CAPACITY, memory));
    *size = trace_tree_write(bytes, tree, 1, &next, memory);
    ck_assert_uint_eq(next, tree->count);
    return bytes;
}

START_TEST(test_tree)
{
    uint64_t nodes[TREE_CAPACITY], read[TREE_CAPACITY] = {0};
    struct trace_memory *memory = trace_memory_new();
    struct trace_tree tree;
    size_t size, end = 0;
    bool no_memory = false;
    fill(nodes);
    uint8_t *bytes = write_tree(nodes, &tree, memory, &size);
    ck_assert_uint_eq(tree.count, 9);
    ck_assert(trace_tree_read((struct base_bytes){bytes, size}, read, TREE_CAPACITY, &end, &no_memory));
    ck_assert_uint_eq(end, 9);
    for (size_t id = 1; id < TREE_CAPACITY; id++) {
        if (!nodes[id])
            continue;
        const uint64_t parent = nodes[id] >> QUT_TRACE_PARENT_SHIFT,
                       below = ((uint64_t)1 << QUT_TRACE_PARENT_SHIFT) - 1;
        ck_assert_uint_eq(read[tree.ids[id]],
                          (nodes[id] & below) | (uint64_t)tree.ids[parent] << QUT_TRACE_PARENT_SHIFT);
        ck_assert_uint_lt(tree.ids[parent], tree.ids[id]);
    }
    // A block that begins in the middle stands for itself: its chain says where it hangs.
    for (size_t first = 2; first < tree.count; first++) {
        size_t next = 0;
        memset(read, 0, sizeof read);
        size = trace_tree_write(bytes, &tree, first, &next, memory);
        ck_assert(trace_tree_read((struct base_bytes){bytes, size}, read, TREE_CAPACITY, &end, &no_memory));
        ck_assert_mem_eq(read + first, tree.words + first, (tree.count - first) * sizeof *read);
    }
    trace_memory_free(memory);
}
END_TEST

START_TEST(test_tree_without_way)
{
    uint64_t nodes[TREE_CAPACITY];
    struct trace_memory *memory = trace_memory_new();
    struct trace_tree tree;
    fill(nodes);
    nodes[20] = word_of(21, 5, 0); // whose parent is not there
    ck_assert(!trace_tree_number(&tree, nodes, TREE_CAPACITY, memory));
    nodes[21] = word_of(20, 5, 0); // or its own child
    ck_assert(!trace_tree_number(&tree, nodes, TREE_CAPACITY, memory));
    nodes[20] = word_of(TREE_CAPACITY, 5, 0);
    ck_assert(!trace_tree_number(&tree, nodes, TREE_CAPACITY, memory));
    trace_memory_free(memory);
}
END_TEST

// Any byte may have any value, and any be the last one: no id at or beyond the capacity, no parent behind its child.
START_TEST(test_tree_spoiled)
{
    uint64_t nodes[TREE_CAPACITY];
    struct trace_memory *memory = trace_memory_new();
    struct trace_tree tree;
    size_t size, refused = 0;
    fill(nodes);
    const uint8_t *bytes = write_tree(nodes, &tree, memory, &size);
    for (size_t at = 0; at < size; at++) {
        for (unsigned value = 0; value < 256; value++) {
            uint64_t read[TREE_CAPACITY] = {0};
            uint8_t *copy = malloc(size);
            size_t end = 0;
            bool no_memory = false;
            ck_assert_ptr_nonnull(copy);
            memcpy(copy, bytes, size);
            copy[at] = (uint8_t)value;
            refused += !trace_tree_read((struct base_bytes){copy, size}, read, TREE_CAPACITY, &end, &no_memory);
            if (end > TREE_CAPACITY || no_memory)
                ck_abort_msg("byte %zu as %u: to %zu", at, value, end);
            for (size_t id = 1; id < end; id++)
                if (read[id] >> QUT_TRACE_PARENT_SHIFT >= id)
                    ck_abort_msg("byte %zu as %u: a parent behind its child", at, value);
            free(copy);
        }
        uint64_t read[TREE_CAPACITY] = {0};
        size_t end = 0;
        bool no_memory = false;
        ck_assert(!trace_tree_read((struct base_bytes){bytes, at}, read, TREE_CAPACITY, &end, &no_memory));
    }
    ck_assert_uint_gt(refused, 1000);
    trace_memory_free(memory);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("settle");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, test_bytes_of_a_sample);
    tcase_add_test(all, test_idle_minute);
    tcase_add_test(all, test_each_system_call);
    tcase_add_loop_test(all, test_each_moment, 0, 2);
    tcase_add_test(all, test_joined_behind_one_that_is_cut);
    tcase_add_test(all, test_tree);
    tcase_add_test(all, test_tree_without_way);
    tcase_add_test(all, test_tree_spoiled);
    Suite *suite = suite_create("trace");
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
