// SPDX-License-Identifier: Apache-2.0
// Code made at run time in another process: its symbol files are found by the list that the process publishes, in each
// layout, whatever else is in it, and when it changes. The children are forks of this program; their made code lies
// where frame_asm.h has its text.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

#include "libqut/arch/native.h"
#include "libqut/os/os.h"
#include "tests/support/run_suite.h"
#include "tests/unit/libqut/target/made_code.h"

enum { FRAMES_MAX = 64, FUNCTION_BYTES = 256, MANY = 100000 };

static pid_t child;
static struct qut_target *target;
static const char beam_text[] = "\0\0\0\1lists:map/2 and so on"; // Erlang's machine registers such

static void set_up(void)
{
    made_shared = mmap(NULL, sizeof *made_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(made_shared != MAP_FAILED);
    ck_assert_int_eq(pipe(made_pipe), 0);
}

static void tear_down(void)
{
    qut_target_close(target);
    target = NULL;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void wait_ready(unsigned count)
{
    for (unsigned i = 0; i < 10000 && made_shared->ready < count; i++)
        usleep(1000);
    ck_assert_uint_ge(made_shared->ready, count);
    usleep(20000); // from there into the system call
}

static void start(void (*body)(void), bool one_by_one)
{
    static const struct qutc_provide_options provide = {.size = sizeof provide};
    const struct qut_target_options options = {.size = sizeof options,
                                               .compile = qutc_compile_for_qut,
                                               .compile_context = (void *)&provide,
                                               .one_by_one = one_by_one};
    struct qut_target_error error = {""};
    child = fork();
    if (child == 0) {
        made_begin();
        body();
        _exit(0);
    }
    wait_ready(1);
    target = qut_target_process(child, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
}

static void stop(void)
{
    struct qut_target_error error = {""};
    ck_assert_msg(qut_target_stop(target, &error) == 0, "%s", error.text);
}

static bool is_in(const struct qut_frame *frame, made_function function)
{
    return frame->pc - (uintptr_t)function < FUNCTION_BYTES;
}

static void expect_slot(const struct qut_frame *frame, unsigned slot, uint32_t flags)
{
    ck_assert_uint_eq(frame->pc, FRAME_TEXT + slot * SLOT_BYTES + RETURN_OFFSET);
    ck_assert_uint_eq(frame->flags, flags);
    ck_assert_uint_eq(frame[1].sp - frame->sp, made_frame_bytes[slot] + 8);
    ck_assert_uint_eq(frame[1].flags, 0);
}

static size_t walk_to_the_end(struct qut_frame *frames)
{
    struct qut_end end;
    struct qut_module_info module = {0};
    size_t count = qut_target_walk(target, 0, frames, FRAMES_MAX, &end);
    qut_target_module(target, end.pc, &module);
    ck_assert_msg(end.reason == QUT_END_OUTERMOST && end.guessed_frame == QUT_NO_GUESS, "%s at 0x%jx after %zu: %s",
                  qut_end_reason_name(end.reason), (uintmax_t)end.pc, count,
                  module.table_reason ? module.table_reason : "");
    return count;
}

// The walk of the only thread is what made_descend() makes of it. flags: of frames of made code.
static void expect_whole(uint32_t flags)
{
    struct qut_frame frames[FRAMES_MAX];
    size_t count = walk_to_the_end(frames), at = 0;
    while (at < count && !is_in(&frames[at], made_leaf))
        at++;
    ck_assert_uint_lt(at + 6, count);
    expect_slot(&frames[at + 1], 1, flags);
    // call_slot may be inlined.
    for (at += 3; at < count && frames[at].pc - FRAME_TEXT >= CODE_BYTES; at++)
        ck_assert_uint_eq(frames[at].flags, 0);
    ck_assert_uint_lt(at + 1, count);
    expect_slot(&frames[at], 0, flags);
    for (at++; at < count; at++)
        ck_assert_uint_eq(frames[at].flags, 0);
}

static void expect_end_in_slot_1(const char *reason)
{
    struct qut_frame frames[FRAMES_MAX];
    struct qut_end end;
    struct qut_module_info module;
    size_t count = qut_target_walk(target, 0, frames, FRAMES_MAX, &end);
    ck_assert_uint_eq(frames[count - 1].pc, FRAME_TEXT + SLOT_BYTES + RETURN_OFFSET);
    ck_assert_msg(end.reason == QUT_END_NO_TABLE, "%s", qut_end_reason_name(end.reason));
    ck_assert(qut_target_module(target, end.pc, &module));
    ck_assert_msg(module.table_reason && strstr(module.table_reason, reason), "\"%s\" instead of \"%s\"",
                  module.table_reason ? module.table_reason : "", reason);
}

// ---- each layout

static void two_files(void)
{
    made_add_file(0, made_file(0, 1, 0), 1);
    made_add_file(1, made_file(1, 1, 0), 2);
    made_descend();
}

static void two_files_android1(void)
{
    made_set_layout(ANDROID1);
    two_files();
}

static void two_files_android2(void)
{
    made_set_layout(ANDROID2);
    two_files();
}

static void one_loaded_file(void)
{
    made_add_file(0, made_loaded_file(0, 2), 0);
    made_descend();
}

static const struct {
    void (*body)(void);
    uint32_t flags;
} layouts[] = {{two_files, QUT_FRAME_JIT},
               {two_files_android1, QUT_FRAME_JIT | QUT_FRAME_MANAGED},
               {two_files_android2, QUT_FRAME_JIT | QUT_FRAME_MANAGED},
               {one_loaded_file, QUT_FRAME_JIT}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

START_TEST(stopped)
{
    start(layouts[_i].body, false);
    for (int round = 0; round < 3; round++) {
        stop();
        expect_whole(layouts[_i].flags);
        qut_target_resume(target);
    }
    // The process runs: what the walk used is still to be had.
    size_t size = 0;
    const uint8_t *symbols = qut_target_jit_symbols(target, FRAME_TEXT + RETURN_OFFSET, &size);
    ck_assert(symbols && size > 64 && memcmp(symbols, "\177ELF", 4) == 0);
    ck_assert_ptr_null(qut_target_jit_symbols(target, FRAME_TEXT + 3 * SLOT_BYTES, &size));
    ck_assert_uint_eq(size, 0);
}
END_TEST

#ifndef OS_SANITIZED
START_TEST(asleep)
{
    start(layouts[_i].body, false);
    ck_assert_uint_eq(qut_target_thread_count(target), 1);
    expect_whole(layouts[_i].flags);
    expect_whole(layouts[_i].flags);
}
END_TEST
#endif

START_TEST(one_by_one)
{
    start(layouts[_i].body, true);
    stop();
    expect_whole(layouts[_i].flags);
    qut_target_resume_thread(target, 0);
    expect_whole(layouts[_i].flags);
}
END_TEST

// ---- what else is in lists

// The older file is of code that was there before. A group of methods says nothing of those that are not in it.
static void old_files(void)
{
    made_set_layout(ANDROID2);
    struct build_buffer group = made_file(2, 1, 0);
    Elf64_Ehdr header;
    Elf64_Shdr text;
    memcpy(&header, group.data, sizeof header);
    memcpy(&text, group.data + header.e_shoff + sizeof text, sizeof text);
    text.sh_addr = FRAME_TEXT;
    text.sh_size = SLOTS * SLOT_BYTES;
    memcpy(group.data + header.e_shoff + sizeof text, &text, sizeof text);
    made_add_file(0, made_file(1, 1, 0), 20);
    made_add_file(1, made_file(0, 2, 16), 10);
    made_add_file(2, made_file(0, 1, 0), 30);
    made_add_file(3, group, 40);
    made_descend();
}

static void odd_entries(void)
{
    made_set_layout(ANDROID2);
    made_add(&__jit_debug_descriptor, 0, NULL, 0, 0);
    made_add_file(1, made_file(0, 2, 0), 1);
    made_add(&__jit_debug_descriptor, 2, beam_text, sizeof beam_text, 2);
    made_add(&__jit_debug_descriptor, 3, (const void *)8, 500, 3);
    made_add_file(4, made_file(0, 2, 16), 4)->seqlock = 1; // deleted
    made_add(&__jit_debug_descriptor, 5, &made_entries, UINT64_MAX, 5);
    made_descend();
}

// As an application has them that runs for days. Most are of code elsewhere; the last two that were added count.
static void a_hundred_thousand(void)
{
    static struct made_entry many[MANY];
    struct build_buffer elsewhere = made_file(3, 1, 0);
    made_set_layout(ANDROID2);
    for (size_t i = 0; i < MANY; i++)
        many[i] = (struct made_entry){.next = i + 1 < MANY ? &many[i + 1] : NULL,
                                      .symfile = elsewhere.data,
                                      .symfile_bytes = elsewhere.size,
                                      .timestamp = MANY - i};
    __jit_debug_descriptor.first = many;
    made_add_file(0, made_file(0, 1, 0), MANY + 1);
    made_add_file(1, made_file(1, 1, 0), MANY + 2);
    made_descend();
}

// What stands before a bad link is known all the same.
static void link_on(struct made_entry *next)
{
    made_set_layout(ANDROID1);
    made_add_file(0, made_file(0, 1, 0), 1)->next = next;
    made_add_file(1, made_file(1, 1, 0), 2);
    made_descend();
}

static void link_back(void)
{
    link_on(&made_entries[1]);
}

static void link_to_nowhere(void)
{
    link_on((void *)0x10);
}

START_TEST(the_right_one_of_many)
{
    static void (*const bodies[])(void) = {old_files, odd_entries, a_hundred_thousand, link_back, link_to_nowhere};
    start(bodies[_i], false);
    stop();
    expect_whole(QUT_FRAME_JIT | QUT_FRAME_MANAGED);
}
END_TEST

static void not_covered(void)
{
    made_add_file(0, made_file(0, 1, 0), 1);
    made_add(&__jit_debug_descriptor, 1, beam_text, sizeof beam_text, 2);
    made_descend();
}

static void cyclic(void)
{
    made_add_file(0, made_file(0, 1, 0), 1)->next = &made_entries[0];
    made_descend();
}

static void broken_file(void)
{
    struct build_buffer file = made_file(1, 1, 0);
    Elf64_Ehdr header;
    memcpy(&header, file.data, sizeof header);
    memset(file.data + 64, 0xff, 16); // the CIE
    made_add_file(0, file, 1);
    made_descend();
}

START_TEST(ends_are_explained)
{
    static const struct {
        void (*body)(void);
        const char *reason;
    } cases[] = {{not_covered, "no symbol file"}, {cyclic, "cycle"}, {broken_file, ".debug_frame"}};
    start(cases[_i].body, false);
    stop();
    expect_end_in_slot_1(cases[_i].reason);
}
END_TEST

// ---- changes

START_TEST(changed_between_walks)
{
    static void (*const bodies[])(void) = {made_reused, made_entry_reused, made_replaced};
    uint32_t flags = QUT_FRAME_JIT | (bodies[_i % 3] == made_replaced ? QUT_FRAME_MANAGED : 0);
    bool stops = _i < 3;
    start(bodies[_i % 3], false);
    if (stops)
        stop();
    else
        ck_assert_uint_eq(qut_target_thread_count(target), 1);
    expect_whole(flags);
    if (stops)
        qut_target_resume(target);
    ck_assert_int_eq(write(made_pipe[1], "1", 1), 1);
    wait_ready(2);
    if (stops)
        stop();
    else
        ck_assert_uint_eq(qut_target_thread_count(target), 1);
    made_frame_bytes[1] += CHANGE_BYTES;
    expect_whole(flags);
    made_frame_bytes[1] -= CHANGE_BYTES;
}
END_TEST

static void storm_android2(void)
{
    made_set_layout(ANDROID2);
    made_storm();
}

// Made code on the stack is code that is registered. Its frames are as large as the process itself has it.
static bool check_storm_walk(void)
{
    struct qut_frame frames[FRAMES_MAX];
    unsigned now[SLOTS], found = 0;
    size_t count = walk_to_the_end(frames);
    ck_assert_uint_eq(qut_target_read(target, (uintptr_t)made_frame_bytes, now, sizeof now), sizeof now);
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t into = frames[i].pc - FRAME_TEXT;
        if (into >= CODE_BYTES)
            continue;
        ck_assert(frames[i].flags & QUT_FRAME_JIT);
        if (into % SLOT_BYTES == RETURN_OFFSET)
            ck_assert_uint_eq(frames[i + 1].sp - frames[i].sp, now[into / SLOT_BYTES] + 8);
        found++;
    }
    return found > 0;
}

START_TEST(while_it_changes)
{
    enum { STOPS = 100 };
    unsigned met = 0;
    start(_i ? storm_android2 : made_storm, false);
    for (unsigned i = 0; i < STOPS; i++) {
        stop();
        met += check_storm_walk();
        qut_target_resume(target);
        usleep(i % 7 * 100);
    }
    ck_assert_uint_gt(met, STOPS / 20);
}
END_TEST

// ---- dex files

static uint8_t dex[2][256];

static void with_dex_files(void)
{
    made_add(&__dex_debug_descriptor, 0, dex[0], sizeof dex[0], 0);
    made_add(&__dex_debug_descriptor, 1, dex[1], sizeof dex[1] / 2, 0);
    made_descend();
}

START_TEST(dex_files)
{
    uint64_t start_address, size;
    start(with_dex_files, false);
    stop();
    for (size_t i = 0; i < 2; i++) {
        uint64_t expected_size = i ? sizeof dex[1] / 2 : sizeof dex[0];
        for (uint64_t into = 0; into < expected_size; into += expected_size - 1) {
            ck_assert(qut_target_dex_at(target, (uintptr_t)dex[i] + into, &start_address, &size));
            ck_assert_uint_eq(start_address, (uintptr_t)dex[i]);
            ck_assert_uint_eq(size, expected_size);
        }
        ck_assert(
            !qut_target_dex_at(target, (uintptr_t)dex[i] + (i ? expected_size : UINT64_MAX), &start_address, &size) ||
            start_address != (uintptr_t)dex[i]);
    }
    ck_assert(!qut_target_dex_at(target, (uintptr_t)dex[1] + sizeof dex[1] / 2, &start_address, &size));
    ck_assert(!qut_target_dex_at(target, 0, &start_address, &size));
}
END_TEST

int main(void)
{
    if (arch_native_arch.id != QUT_ARCH_X86_64) {
        printf("SKIP: the made code is x86-64's\n");
        return 77;
    }
    Suite *suite = suite_create("target_jit");
    TCase *tests = tcase_create("target_jit");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, stopped, 0, LAYOUTS);
    tcase_add_loop_test(tests, one_by_one, 0, LAYOUTS);
    tcase_add_loop_test(tests, the_right_one_of_many, 0, 5);
    tcase_add_loop_test(tests, ends_are_explained, 0, 3);
#ifdef OS_SANITIZED
    // Of a thread that sleeps only pc and sp are known, and a sanitizer's frames hang on rbp.
    printf("SKIP: threads that are not stopped: this program's frames want more than sp\n");
    tcase_add_loop_test(tests, changed_between_walks, 0, 3);
#else
    tcase_add_loop_test(tests, asleep, 0, LAYOUTS);
    tcase_add_loop_test(tests, changed_between_walks, 0, 6);
#endif
    tcase_add_loop_test(tests, while_it_changes, 0, 2);
    tcase_add_test(tests, dex_files);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
