// SPDX-License-Identifier: Apache-2.0
// Calls in a file: what was written is read, event for event; what is spoiled, cut off or could not be written is told,
// and leaves the rest.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/codec.h"
#include "formats/qut_table_check.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/call_times/story.h"
#include "tracer/call_times/walk.h"
#include "tracer/collect/collect.h"
#include "tracer/trace/raw_trace.h"

enum { MANY = 300000, DEPTH_MAX = 3000 };

// A program's: calls of a few functions in patterns, deeper than what a block remembers; now and then nonsense.
static struct qut_calls_event *make_events(size_t count, bool has_nonsense)
{
    struct qut_calls_event *events = calloc(count, sizeof *events);
    uint64_t *slots = calloc(DEPTH_MAX, sizeof *slots), ticks = 1000000;
    uint32_t *ids = calloc(DEPTH_MAX, sizeof *ids), depth = 0;
    srand(7);
    for (size_t i = 0; i < count; i++) {
        ticks += (uint64_t)(40 + rand() % 90);
        if (has_nonsense && rand() % 1000 == 0) {
            const uint64_t slot = ((uint64_t)rand() << 20 | (uint64_t)rand()) & 0x7ffffffffff0;
            events[i] = (struct qut_calls_event){
                (uint64_t)rand() << 33, qut_calls_word(slot | 8, rand() % 2, (uint32_t)(rand() % QUT_CALLS_ID_MAX))};
        } else if (depth < DEPTH_MAX && (depth == 0 || rand() % 100 < (depth < 8 ? 60 : 49))) {
            const uint32_t id = depth ? ids[depth - 1] % 19 + 1 + (uint32_t)rand() % 3 : 1;
            ids[depth] = id;
            slots[depth] = (depth ? slots[depth - 1] : STORY_STACK) - 16 * (id % 7 + 1);
            const uint64_t tail = has_nonsense && rand() % 8 == 0 ? QUT_CALLS_EVENT_TAIL : 0;
            events[i] = (struct qut_calls_event){ticks, qut_calls_word(slots[depth++], false, id) | tail};
        } else {
            depth--;
            events[i] = (struct qut_calls_event){ticks, qut_calls_word(slots[depth], true, ids[depth])};
        }
    }
    free(slots);
    free(ids);
    return events;
}

static void write_events(struct story *story, uint32_t thread, const struct qut_calls_event *events, size_t count)
{
    struct base_error error = {0};
    for (size_t done = 0, part; done < count; done += part) {
        part = (size_t)(rand() % 5000) < count - done ? (size_t)(rand() % 5000) : count - done;
        part = part < count - done ? part : count - done;
        ck_assert_int_eq(collect_calls_events(story->calls, thread, events + done, part, &error), 0);
        if (rand() % 16 == 0)
            ck_assert_int_eq(collect_calls_flush(story->calls, &error), 0);
    }
}

static void expect_events(const struct call_events *calls, uint32_t thread, const struct qut_calls_event *events,
                          size_t count)
{
    struct call_events_reader *reader = call_events_begin(calls, thread);
    struct call_event event;
    for (size_t i = 0; i < count; i++) {
        const bool is_same = call_events_next(reader, &event) && event.ticks == events[i].time_ticks &&
                             event.slot == qut_calls_word_slot(events[i].word) &&
                             event.is_exit == qut_calls_word_is_exit(events[i].word) &&
                             event.is_tail == qut_calls_word_is_tail(events[i].word) &&
                             calls->functions.items[event.function].id == qut_calls_word_id(events[i].word) &&
                             !event.after_loss;
        if (!is_same) // asserted a million times, it would take seconds
            ck_abort_msg("event %zu is another one", i);
    }
    ck_assert(!call_events_next(reader, &event));
    call_events_end(reader);
}

START_TEST(events_are_as_they_were)
{
    struct story story;
    const int fd = story_file();
    struct qut_calls_event *events = make_events(MANY, _i);
    story_begin(&story, fd);
    const uint32_t one = story_thread(&story, "one"), two = story_thread(&story, "a name that is too long");
    write_events(&story, two, events, MANY / 2);
    write_events(&story, one, events, MANY);
    story_thread_ends(&story, two);
    struct base_error error = {0};
    ck_assert_int_eq(collect_calls_events(story.calls, two, events + MANY / 2, MANY / 2, &error), 0);
    struct collect_calls_sums sums;
    collect_calls_sums(story.calls, &sums);
    ck_assert_uint_eq(sums.enters + sums.exits, 2 * MANY);
    story_end(&story);

    struct trace trace = story_read(fd);
    ck_assert(trace.is_complete);
    ck_assert_uint_eq(trace.calls_count, 1);
    const struct call_events *calls = trace.calls[0];
    expect_events(calls, one, events, MANY);
    expect_events(calls, two, events, MANY);
    ck_assert_uint_eq(calls->enters, sums.enters);
    ck_assert_uint_eq(calls->exits, sums.exits);
    const double bytes = (double)trace.file_bytes / (2 * MANY);
    uint8_t packed[512] = {0};
    size_t packed_bytes;
    const bool has_zstd =
        base_zstd_pack((struct base_bytes){packed, 64}, 1, packed + 64, sizeof packed - 64, &packed_bytes, NULL) == 0;
    ck_assert_msg(_i || bytes <= (has_zstd ? 3 : 6), "%.2f bytes for an event", bytes);
    trace_free(&trace);
    free(events);
    close(fd);
}
END_TEST

START_TEST(tables_are_as_they_were)
{
    struct story story;
    const int fd = story_file();
    story_begin(&story, fd);
    const uint32_t thread = story_thread(&story, "one");
    const uint32_t second = story_thread(&story, "two");
    story_tell(&story, &thread, 1, "a1 b2 /b2 /a1");
    struct base_error error = {0};
    ck_assert_int_eq(collect_calls_counted(story.calls, 3, 17, &error), 0);
    ck_assert_int_eq(collect_calls_counted(story.calls, 3, 170, &error), 0);
    ck_assert_int_eq(collect_calls_thread_is(story.calls, second, "renamed", UINT64_MAX, &error), 0);
    story_end(&story);
    ck_assert_int_eq(collect_append_notes(fd, &(struct trace_note){.name = "more", .value = 1}, 1, &error), 0);

    struct trace trace = story_read(fd);
    const struct call_events *calls = trace.calls[0];
    uint64_t value;
    ck_assert_uint_eq(trace.process_count, 1);
    ck_assert_uint_eq(trace.processes[0].pid, STORY_PID);
    ck_assert_str_eq(trace.command, "/story/program --told");
    ck_assert_uint_eq(trace.thread_count, 2);
    ck_assert_uint_eq(trace.threads[1].tid, STORY_PID + 1);
    ck_assert_str_eq(trace.threads[1].name, "renamed");
    ck_assert_uint_eq(calls->threads.items[1].thread, 1);
    ck_assert_uint_eq(trace.start_ns, STORY_BEGIN_NS);
    ck_assert_uint_eq(trace.end_ns, STORY_BEGIN_NS + 50);
    ck_assert(trace_note_number(&trace, TRACE_NONE, "calls-refused-short", &value) && value == 3);
    ck_assert(trace_note_number(&trace, TRACE_NONE, "more", &value));
    ck_assert_uint_eq(calls->functions.count, STORY_FUNCTIONS);
    const struct call_events_function *function = &calls->functions.items[call_events_find(calls, 3)];
    const struct trace_node *node = &trace.nodes[function->node];
    ck_assert_str_eq(function->name, "c");
    ck_assert_uint_eq(function->counted, 170);
    ck_assert_uint_eq(node->pc, 0x1020);
    ck_assert_str_eq(trace.modules[node->module].path, "/story/program");
    ck_assert_uint_eq(trace.modules[node->module].build_id_bytes, 3);
    trace_free(&trace);
    close(fd);
}
END_TEST

static size_t bytes_of(int fd, uint8_t **bytes)
{
    const size_t size = (size_t)lseek(fd, 0, SEEK_END);
    *bytes = aligned_alloc(64, (size + 63) / 64 * 64);
    ck_assert_int_eq(pread(fd, *bytes, size, 0), (ssize_t)size);
    return size;
}

static int make_small(void)
{
    struct story story;
    const int fd = story_file();
    struct qut_calls_event *events = make_events(3000, true);
    story_begin(&story, fd);
    const uint32_t threads[] = {story_thread(&story, "one"), story_thread(&story, "two")};
    write_events(&story, threads[0], events, 1500);
    story_tell(&story, threads, 2, "a1 ! b2 | a1 b2 ! /a1 . ");
    write_events(&story, threads[0], events + 1500, 1500);
    story_end(&story);
    free(events);
    return fd;
}

// A suite that starts its server thousands of times, each with all functions traced, has to fit into memory.
START_TEST(processes_share_nodes)
{
    enum { PROCESSES = 20 };
    uint8_t *bytes;
    const int fd = make_small();
    const size_t size = bytes_of(fd, &bytes);
    struct trace one = story_read(fd);
    for (int i = 1; i < PROCESSES; i++)
        ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)(size * (size_t)i)), (ssize_t)size);
    struct trace all = story_read(fd);
    ck_assert_uint_eq(all.calls_count, PROCESSES);
    ck_assert_uint_eq(all.node_count, one.node_count);
    ck_assert_uint_eq(all.module_count, one.module_count);
    for (size_t i = 0; i < all.calls_count; i++)
        for (size_t j = 0; j < one.calls[0]->functions.count; j++) {
            const struct call_events_function *function = &all.calls[i]->functions.items[j];
            ck_assert_uint_eq(function->node, one.calls[0]->functions.items[j].node);
            ck_assert_uint_lt(function->node, all.node_count);
        }
    trace_free(&one);
    trace_free(&all);
    free(bytes);
    close(fd);
}
END_TEST

// Read or refused, and what is read can be gone through and adds up.
static void try_to_read(uint8_t *bytes, size_t size)
{
    struct trace trace;
    struct base_error error = {0};
    if (trace_read_bytes(bytes, size, "spoiled", &trace, &error) != 0) {
        ck_assert_int_ne(error.reason, BASE_OK);
        return;
    }
    for (size_t i = 0; i < trace.calls_count; i++) {
        const struct call_times_visitor visitor = {0};
        struct call_times_account account;
        ck_assert_int_eq(call_times_walk(trace.calls[i], &visitor, &account, &error), 0);
        ck_assert_uint_eq(account.enters, trace.calls[i]->enters);
        ck_assert_uint_eq(account.how[CALL_TIMES_RETURNED] + account.exits_alone, account.exits);
    }
    trace_free(&trace);
}

START_TEST(spoiled_bytes_are_found)
{
    uint8_t *bytes;
    const int fd = make_small();
    const size_t size = bytes_of(fd, &bytes);
    srand((unsigned)_i);
    for (unsigned i = 0; i < 25; i++) {
        const size_t at = (size_t)rand() % size;
        const uint8_t flipped = (uint8_t)(1 + rand() % 255);
        bytes[at] ^= flipped;
        try_to_read(bytes, size);
        bytes[at] ^= flipped;
    }
    for (unsigned i = 0; i < 20; i++)
        try_to_read(bytes, (size_t)rand() % size);
    free(bytes);
    close(fd);
}
END_TEST

// Contents that are spoiled and have good checksums all the same.
START_TEST(malformed_contents_are_found)
{
    uint8_t *bytes;
    const int fd = make_small();
    const size_t size = bytes_of(fd, &bytes);
    uint8_t *copy = aligned_alloc(64, (size + 63) / 64 * 64);
    srand((unsigned)_i + 100);
    for (unsigned round = 0; round < 12; round++) {
        memcpy(copy, bytes, size);
        for (size_t at = sizeof(struct qut_trace_file_header); at < size;) {
            struct qut_trace_file_block block;
            memcpy(&block, copy + at, sizeof block);
            uint8_t *contents = copy + at + sizeof block;
            if (block.codec == QUT_TRACE_FILE_PLAIN && block.type != QUT_TRACE_FILE_TRAILER && rand() % 2)
                contents[(size_t)rand() % block.packed_bytes] = (uint8_t)rand();
            block.contents_checksum = qut_table_checksum(contents, block.packed_bytes);
            block.checksum = qut_table_checksum(&block, offsetof(struct qut_trace_file_block, checksum));
            memcpy(copy + at, &block, sizeof block);
            at += sizeof block + block.packed_bytes;
        }
        try_to_read(copy, size);
    }
    free(copy);
    free(bytes);
    close(fd);
}
END_TEST

// As if a block had never been: the rest stands, and says so.
START_TEST(a_missing_block_is_a_loss)
{
    struct story story;
    uint8_t *bytes;
    struct base_error error = {0};
    const int fd = story_file();
    struct qut_calls_event *events = make_events(3000, false);
    story_begin(&story, fd);
    const uint32_t thread = story_thread(&story, "one");
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(collect_calls_events(story.calls, thread, events + i * 1000, 1000, &error), 0);
        ck_assert_int_eq(collect_calls_flush(story.calls, &error), 0);
    }
    story_end(&story);
    const size_t size = bytes_of(fd, &bytes);
    unsigned met = 0;
    for (size_t at = sizeof(struct qut_trace_file_header); at < size;) {
        struct qut_trace_file_block block;
        memcpy(&block, bytes + at, sizeof block);
        at += sizeof block + block.packed_bytes;
        if (block.type == QUT_TRACE_FILE_CALL_EVENTS && met++ == 1)
            bytes[at - 1] ^= 1;
    }
    struct trace trace;
    ck_assert_int_eq(trace_read_bytes(bytes, size, "spoiled", &trace, &error), 0);
    ck_assert(!trace.is_complete);
    ck_assert_uint_eq(trace.damaged_blocks, 1);
    const struct call_events *calls = trace.calls[0];
    ck_assert_uint_eq(calls->enters + calls->exits, 2000);
    ck_assert(calls->threads.items[0].is_damaged);
    struct call_events_reader *reader = call_events_begin(calls, 0);
    struct call_event event;
    for (unsigned i = 0; call_events_next(reader, &event); i++)
        ck_assert_int_eq(event.after_loss, i == 1000);
    call_events_end(reader);
    trace_free(&trace);
    free(events);
    free(bytes);
    close(fd);
}
END_TEST

// What the file has no room for is lost, and counted.
START_TEST(a_full_disk_costs_what_is_counted)
{
    struct story story;
    struct base_error error = {0};
    struct rlimit limit = {0};
    char path[] = "/tmp/qut-calls-XXXXXX";
    const int fd = mkstemp(path);
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    struct qut_calls_event *events = make_events(MANY, false);
    story_begin(&story, fd);
    const uint32_t thread = story_thread(&story, "one");
    limit.rlim_cur = 100000;
    setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert_int_ne(collect_calls_events(story.calls, thread, events, MANY, &error), 0);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert_int_eq(collect_calls_events(story.calls, thread, events, 10, &error), 0);
    story_end(&story);
    struct trace trace = story_read(fd);
    const struct call_events *calls = trace.calls[0];
    ck_assert_uint_gt(calls->lost_enters, 0);
    ck_assert_uint_eq(calls->enters + calls->exits + calls->lost_enters + calls->lost_exits, MANY + 10);
    ck_assert_uint_eq(calls->told.lost_enters, calls->lost_enters);
    trace_free(&trace);
    free(events);
    close(fd);
}
END_TEST

START_TEST(times_follow_the_clocks)
{
    struct call_events *calls = call_events_new();
    const struct qut_trace_file_call_clock clocks[] = {{1000, 500}, {2000, 1500}, {3000, 2000}};
    bool no_memory = false;
    ck_assert(call_events_take(calls, QUT_TRACE_FILE_CALL_CLOCKS,
                               (struct base_bytes){(const uint8_t *)clocks, sizeof clocks}, &no_memory));
    const uint64_t pairs[][2] = {{1000, 500},  {1500, 1000}, {2000, 1500},
                                 {2500, 1750}, {3000, 2000}, {4000, 2500},
                                 {900, 400},   {0, 0},       {UINT64_MAX / 2, UINT64_MAX / 4}};
    for (size_t i = 0; i + 1 < sizeof pairs / sizeof *pairs; i++)
        ck_assert_uint_eq(call_events_ns(calls, pairs[i][0]), pairs[i][1]);
    ck_assert_uint_gt(call_events_ns(calls, INT64_MAX), INT64_MAX / 4);
    ck_assert(!call_events_take(calls, QUT_TRACE_FILE_CALL_CLOCKS,
                                (struct base_bytes){(const uint8_t *)clocks, sizeof *clocks}, &no_memory));
    call_events_free(calls);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("call_times_file");
    TCase *tests = tcase_create("file");
    tcase_set_timeout(tests, 60); // as the machine may have much else to do
    tcase_add_loop_test(tests, events_are_as_they_were, 0, 2);
    tcase_add_test(tests, tables_are_as_they_were);
    tcase_add_test(tests, processes_share_nodes);
    tcase_add_loop_test(tests, spoiled_bytes_are_found, 0, 4);
    tcase_add_loop_test(tests, malformed_contents_are_found, 0, 4);
    tcase_add_test(tests, a_missing_block_is_a_loss);
    tcase_add_test(tests, a_full_disk_costs_what_is_counted);
    tcase_add_test(tests, times_follow_the_clocks);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
