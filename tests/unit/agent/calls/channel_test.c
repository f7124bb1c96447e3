// SPDX-License-Identifier: Apache-2.0
// A tracer asks the agent for thunk memory before the program's first instruction, traces a function, and reads its
// calls when the program is gone.
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/agent/calls/channel_subject.h"
#include "tests/unit/agent/calls/thunks.h"
#include "tests/unit/agent/listener.h"

enum { BLOCK_BYTES = 8192, ID = 5 };

static const char *subject;
static struct listener_run run;
static struct agent_settings settings;
static struct qut_calls_header *child_header;
static int calls_told, calls_error;

static struct agent_channel_mapped ask(int fd, enum agent_channel_type type, uint64_t begin, uint64_t end,
                                       uint64_t size)
{
    static uint64_t number = 1000;
    struct agent_channel_mapped mapped = {.error = -1};
    struct agent_channel_map map = {.head = {.version = AGENT_VERSION, .type = type},
                                    .begin = begin,
                                    .end = end,
                                    .size_bytes = size,
                                    .number = ++number};
    memcpy(map.head.token, settings.token, sizeof settings.token);
    ck_assert_int_eq(send(fd, &map, sizeof map, MSG_NOSIGNAL), sizeof map);
    ck_assert_int_eq(recv(fd, &mapped, sizeof mapped, 0), sizeof mapped);
    ck_assert_uint_eq(mapped.head.type, AGENT_CHANNEL_MAPPED);
    ck_assert_uint_eq(mapped.number, number);
    return mapped;
}

// The line of maps that begins at `address`; "": there is none.
static void line_of(uint32_t pid, uint64_t address, char line[512])
{
    char path[64], begin[32];
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    snprintf(begin, sizeof begin, "%08" PRIx64 "-", address);
    FILE *maps = fopen(path, "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, 512, maps))
        if (strncmp(line, begin, strlen(begin)) == 0)
            break;
        else
            line[0] = 0;
    fclose(maps);
}

static void write_there(int memory, uint64_t address, const void *bytes, size_t size)
{
    ck_assert_int_eq(pwrite(memory, bytes, size, (off_t)address), (ssize_t)size);
}

static void trace_function(uint32_t pid, const struct qut_calls_header *header, uint64_t block)
{
    char path[64];
    uint8_t thunk[QUT_CALLS_THUNK_BYTES_MAX], jump[THUNKS_NOPS];
    const uint64_t at = block + QUT_CALLS_BLOCK_CODE_AT;
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    write_there(memory, block + QUT_CALLS_BLOCK_ENTER_AT, &header->enter_stub, 8);
    write_there(memory, block + QUT_CALLS_BLOCK_COUNT_AT, &header->count_stub, 8);
    write_there(memory, at, thunk, thunks_make(thunk, at, block, CHANNEL_SUBJECT_ADDRESS, ID));
    thunks_jump(jump, CHANNEL_SUBJECT_ADDRESS, at);
    write_there(memory, CHANNEL_SUBJECT_ADDRESS, jump, sizeof jump);
    close(memory);
}

static void look_at_answers(int fd, const struct agent_channel_calls *calls)
{
    static const uint64_t code = CHANNEL_SUBJECT_ADDRESS;
    char line[512];
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_MAP, code, code + 16, 100).error, -EINVAL);
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_MAP, code + 16, code, 4096).error, -EINVAL);
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_MAP, 4096, UINT64_C(1) << 40, 4096).error, -EINVAL);
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_SHADOW, 4096, 8192, 0).error, -EINVAL);
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_TRAPS, 4096, 4096 + 24, 0).error, -ENOTSUP); // nobody asked for traps
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_SHADOW, UINT64_C(0x7f0000000000), UINT64_C(0x7f0000100000), 0).error, 0);
    line_of(calls->pid, UINT64_C(0x7f0000000000) - (UINT64_C(1) << QUT_CALLS_X86_64_SHADOW_LOG2), line);
    ck_assert_msg(strstr(line, "rw-p"), "the shadow: %s", line);
    struct agent_channel_mapped other = ask(fd, AGENT_CHANNEL_MAP, code, code + 16, BLOCK_BYTES);
    ck_assert_int_eq(other.error, 0);
    line_of(calls->pid, other.address, line);
    ck_assert_msg(strstr(line, "r-xp"), "a block: %s", line);
    ck_assert_int_eq(ask(fd, AGENT_CHANNEL_UNMAP, other.address, other.address + BLOCK_BYTES, 0).error, 0);
    line_of(calls->pid, other.address, line);
    ck_assert_str_eq(line, "");
}

static void let_go_on(int fd)
{
    const struct agent_channel_answer answer = {.version = AGENT_VERSION, .type = AGENT_CHANNEL_OK};
    ck_assert_int_eq(send(fd, &answer, sizeof answer, MSG_NOSIGNAL), sizeof answer);
}

static void trace(int fd, const struct agent_channel_calls *calls, int memory_fd)
{
    calls_told++;
    calls_error = calls->error;
    if (calls->error != 0) {
        ck_assert_int_lt(memory_fd, 0);
        return;
    }
    struct qut_calls_header *header = mmap(NULL, calls->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    ck_assert(header != MAP_FAILED);
    ck_assert(qut_calls_header_is_sound(header, calls->memory_bytes));
    ck_assert_uint_eq(header->pid, calls->pid);
    if (calls_told > 1) { // a child of fork has its parent's code
        ck_assert_uint_eq(calls->begin, AGENT_BEGAN_BY_FORK);
        child_header = header;
        return;
    }
    ck_assert_uint_eq(calls->begin, AGENT_BEGAN_BY_EXEC);
    thunks_look_at(header);
    look_at_answers(fd, calls);
    const uint64_t code = CHANNEL_SUBJECT_ADDRESS;
    const struct agent_channel_mapped block = ask(fd, AGENT_CHANNEL_MAP, code, code + 16, BLOCK_BYTES);
    ck_assert_int_eq(block.error, 0);
    trace_function(calls->pid, header, block.address);
    let_go_on(fd);
}

static void run_traced(uint64_t ring_bytes, bool follow)
{
    listener_settings(&settings);
    settings.call_ring_bytes = ring_bytes;
    settings.follow = follow;
    listener_calls = trace;
    listener_run(&settings, (const char *[]){subject, NULL}, true, &run);
    ck_assert_str_eq(run.output, "1000 100 10\n");
    ck_assert_int_eq(run.status, 0);
    ck_assert_uint_eq(run.malformed, 0);
    ck_assert_int_eq(calls_told, follow ? 2 : 1);
    listener_free(&run);
}

START_TEST(calls_of_a_process_that_is_gone_are_read)
{
    run_traced(65536, false);
    ck_assert_int_eq(calls_error, 0);
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    const uint64_t expected = CHANNEL_SUBJECT_CALLS + CHANNEL_SUBJECT_THREAD_CALLS;
    ck_assert_uint_eq(sums->enters[ID], expected);
    ck_assert_uint_eq(sums->exits[ID], expected);
    ck_assert_uint_eq(sums->events, 2 * expected);
    ck_assert_uint_eq(sums->unpaired, 0);
    // The other thread gave its ring back.
    ck_assert_uint_eq(thunks_ring(0)->generation, 1);
    ck_assert_uint_eq(thunks_ring(1)->generation, 1);
    ck_assert_uint_eq(thunks_ring(1)->state, QUT_CALLS_RING_FREE);
}
END_TEST

START_TEST(a_child_that_is_followed_has_rings_of_its_own)
{
    run_traced(65536, true);
    thunks_drain();
    ck_assert_uint_eq(thunks_sums()->enters[ID], CHANNEL_SUBJECT_CALLS + CHANNEL_SUBJECT_THREAD_CALLS);
    const uint64_t before = thunks_sums()->events;
    ck_assert_ptr_nonnull(child_header);
    thunks_look_at(child_header);
    thunks_drain();
    ck_assert_uint_eq(thunks_sums()->events - before, 2 * CHANNEL_SUBJECT_CHILD_CALLS);
}
END_TEST

START_TEST(what_cannot_be_is_told)
{
    run_traced(1000, false); // no power of two
    ck_assert_int_eq(calls_error, -EINVAL);
}
END_TEST

int main(int argument_count, char **arguments)
{
    if (argument_count != 3)
        return 2;
    setenv("QUT_TEST_AGENT", arguments[1], 1);
    subject = arguments[2];
    Suite *suite = suite_create("calls_channel");
    TCase *cases = tcase_create("channel");
    suite_add_tcase(suite, cases);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, calls_of_a_process_that_is_gone_are_read);
    tcase_add_test(cases, a_child_that_is_followed_has_rings_of_its_own);
    tcase_add_test(cases, what_cannot_be_is_told);
    return run_suite(suite);
}
