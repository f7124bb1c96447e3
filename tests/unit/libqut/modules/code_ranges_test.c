// SPDX-License-Identifier: Apache-2.0
// Code in no module, that keeps frame pointers: walks of this process go through it where that is asked for, once it is
// known to be executable. What was called is what the test called.
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <qut/local.h>
#include <qutc/provide.h>

#include "libqut/arch/native.h"
#include "libqut/walk/noted_walk.h"
#include "tests/support/run_suite.h"

typedef void callee(void);
typedef void caller(callee *called);

// Calls what it is given: with a frame pointer, as compilers make it.
enum { CODE_BYTES = 24 };
static const struct {
    enum qut_arch_id arch;
    uint8_t bytes[CODE_BYTES];
} codes[] = {
    // push; mov; call *%rdi; pop; ret
    {QUT_ARCH_X86_64, {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}},
    // push; mov; sub $8, %esp; call *8(%ebp); leave; ret
    {QUT_ARCH_X86, {0x55, 0x89, 0xe5, 0x83, 0xec, 0x08, 0xff, 0x55, 0x08, 0xc9, 0xc3}},
    // stp; mov; blr x0; ldp; ret
    {QUT_ARCH_AARCH64, {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
                        0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6}},
    // addi; sd ra; sd s0; addi s0; jalr a0; ld ra; ld s0; addi; ret
    {QUT_ARCH_RISCV64,
     {0x41, 0x11, 0x06, 0xe4, 0x22, 0xe0, 0x00, 0x08, 0x02, 0x95, 0xa2, 0x60, 0x02, 0x64, 0x41, 0x01, 0x82, 0x80}},
};
static const uint8_t *code; // of this machine

enum { DEPTH = 12, FRAMES = 64, PAGE = 4096 };

static uint8_t *pages;
static unsigned left;
static uintptr_t pcs[FRAMES];
static size_t count;
static struct qut_end end;

__attribute__((noinline)) static void deeper(void)
{
    if (left--)
        ((caller *)(uintptr_t)pages)(deeper);
    else
        count = qut_backtrace(pcs, FRAMES, &end);
    __asm__ volatile("");
}

__attribute__((noinline)) static void walk(void)
{
    left = DEPTH;
    deeper();
    __asm__ volatile("");
}

static size_t made_frames(void)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += pcs[i] >= (uintptr_t)pages && pcs[i] < (uintptr_t)pages + CODE_BYTES;
    return found;
}

static void start(uint32_t flags)
{
    struct qut_options options = {
        .size = sizeof options, .compile = qutc_compile_for_qut, .flags = flags | QUT_START_NO_THREAD};
    ck_assert_int_eq(qut_start(&options), 0);
    qut_refresh();
    pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    memcpy(pages, code, CODE_BYTES);
    __builtin___clear_cache((char *)pages, (char *)pages + CODE_BYTES);
}

static void stop(void)
{
    qut_stop();
    munmap(pages, PAGE);
}

START_TEST(walks_go_through_it_once_it_is_known)
{
    start(QUT_START_FRAME_POINTERS);
    walk();
    ck_assert_uint_eq(made_frames(), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_MODULE);
    qut_refresh(); // what the thread does when a walk has met it
    walk();
    ck_assert_uint_eq(made_frames(), DEPTH);
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    ck_assert_uint_ne(end.guessed_frame, QUT_NO_GUESS);
    for (size_t i = 0; i + 1 < 2 * DEPTH; i++) // in turns
        ck_assert(((pcs[i] >= (uintptr_t)pages && pcs[i] < (uintptr_t)pages + CODE_BYTES)) == (i % 2 == 1));
    size_t whole = count;
    for (unsigned i = 0; i < 100; i++) { // and as it is remembered
        walk();
        ck_assert_uint_eq(count, whole);
        ck_assert_uint_eq(made_frames(), DEPTH);
    }
    stop();
}
END_TEST

// A chain of made functions, each calls the next one: movabs $next, %rax; call *%rax, with a frame around it.
enum { LINKS = 10, LINK_BYTES = 32, CHAIN_OFFSET = 64 };

static uint8_t noted_flags[FRAMES + 1];
static size_t frames_max = FRAMES;
static bool spoils_fp;

static void take_notes(void)
{
    ucontext_t context;
    getcontext(&context);
    // The frame pointer that the middle of the chain has saved.
    uintptr_t *fp = __builtin_frame_address(0), kept;
    for (unsigned i = 0; i < LINKS / 2; i++)
        fp = *(uintptr_t **)fp;
    kept = *fp;
    if (spoils_fp)
        *fp = (uintptr_t)noted_flags;
    struct runtime_thread *thread = runtime_thread_self();
    struct walk_noted_walk notes = {
        .modules = modules_enter(thread), .pcs = pcs, .max = frames_max, .flags = noted_flags};
    memset(noted_flags, 0, sizeof noted_flags);
    count = walk_take_notes(&notes, NULL, &context);
    *fp = kept;
    end = notes.end;
    modules_leave(thread);
}

static void start_chain(void)
{
    start(QUT_START_FRAME_POINTERS);
    for (unsigned i = 0; i < LINKS; i++) {
        static const uint8_t link[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,
                                       0,    0,    0,    0,    0,    0xff, 0xd0, 0x5d, 0xc3};
        uint8_t *at = pages + CHAIN_OFFSET + i * LINK_BYTES;
        uintptr_t next = i + 1 < LINKS ? (uintptr_t)at + LINK_BYTES : (uintptr_t)take_notes;
        memcpy(at, link, sizeof link);
        memcpy(at + 6, &next, sizeof next);
    }
    qut_refresh();
}

static void call_chain(void)
{
    ((callee *)(uintptr_t)(pages + CHAIN_OFFSET))();
}

// Where the frame of the chain returns to that is the frame-th of all, less 1.
static uintptr_t chain_pc(size_t frame)
{
    enum { CALLED_BYTES = 16 };
    return (uintptr_t)pages + CHAIN_OFFSET + (LINKS - frame) * LINK_BYTES + CALLED_BYTES - 1;
}

START_TEST(every_frame_that_a_guess_led_to_is_noted)
{
    if (arch_native_arch.id != QUT_ARCH_X86_64)
        return;
    start_chain();
    for (unsigned turn = 0; turn < 20; turn++) {
        call_chain();
        ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
        // 0 is take_notes; from the first made function on, which a rule led to, each step is a guess.
        for (size_t i = 0; i <= LINKS + 1; i++)
            ck_assert_msg((noted_flags[i] & QUT_FRAME_GUESSED ? 1 : 0) == (i >= 2), "turn %u, frame %zu", turn, i);
        for (size_t i = 1; i <= LINKS; i++)
            ck_assert_uint_eq(pcs[i], chain_pc(i));
    }
    stop();
}
END_TEST

START_TEST(a_chain_of_guesses_is_cut_where_there_is_no_room)
{
    if (arch_native_arch.id != QUT_ARCH_X86_64)
        return;
    start_chain();
    call_chain();
    size_t whole = count;
    for (frames_max = 1; frames_max <= whole; frames_max++) {
        call_chain();
        ck_assert_uint_eq(count, frames_max);
        ck_assert_uint_eq(end.reason, frames_max < whole ? QUT_END_LIMIT : QUT_END_OUTERMOST);
        for (size_t i = 1; i <= LINKS && i < count; i++)
            ck_assert_uint_eq(pcs[i], chain_pc(i));
    }
    frames_max = FRAMES;
    stop();
}
END_TEST

START_TEST(a_chain_of_guesses_ends_at_a_frame_pointer_that_leads_elsewhere)
{
    if (arch_native_arch.id != QUT_ARCH_X86_64)
        return;
    start_chain();
    call_chain();
    spoils_fp = true;
    for (unsigned turn = 0; turn < 20; turn++) {
        call_chain();
        ck_assert_uint_eq(end.reason, QUT_END_NO_MODULE);
        ck_assert_uint_eq(end.pc, chain_pc(count - 1) + 1);
        ck_assert(count > 2 && count <= LINKS);
        for (size_t i = 1; i < count; i++)
            ck_assert_uint_eq(pcs[i], chain_pc(i));
    }
    spoils_fp = false;
    call_chain();
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    stop();
}
END_TEST

START_TEST(walks_end_there_where_it_is_not_asked_for)
{
    start(0);
    walk();
    qut_refresh();
    walk();
    ck_assert_uint_eq(made_frames(), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_MODULE);
    ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
    stop();
}
END_TEST

START_TEST(memory_that_is_not_executable_any_more_is_no_code)
{
    start(QUT_START_FRAME_POINTERS);
    qut_refresh();
    walk();
    ck_assert_uint_eq(made_frames(), DEPTH);
    munmap(pages, PAGE);
    qut_refresh();
    // Its return addresses are known no more: a walk by what was there would need them.
    pages = mmap(pages, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(pages, code, CODE_BYTES);
    __builtin___clear_cache((char *)pages, (char *)pages + CODE_BYTES);
    walk();
    ck_assert_uint_eq(made_frames(), 1);
    ck_assert_uint_eq(end.reason, QUT_END_NO_MODULE);
    stop();
}
END_TEST

int main(void)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].arch == arch_native_arch.id)
            code = codes[i].bytes;
    if (!code) {
        puts("SKIP: frame pointers are not followed on this architecture");
        return 77;
    }
    Suite *suite = suite_create("code_ranges");
    TCase *tcase = tcase_create("code_ranges");
    tcase_add_test(tcase, walks_go_through_it_once_it_is_known);
    tcase_add_test(tcase, every_frame_that_a_guess_led_to_is_noted);
    tcase_add_test(tcase, a_chain_of_guesses_is_cut_where_there_is_no_room);
    tcase_add_test(tcase, a_chain_of_guesses_ends_at_a_frame_pointer_that_leads_elsewhere);
    tcase_add_test(tcase, walks_end_there_where_it_is_not_asked_for);
    tcase_add_test(tcase, memory_that_is_not_executable_any_more_is_no_code);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
