// SPDX-License-Identifier: Apache-2.0
// How often a walk through code made at run time asks the kernel, and what for: once a walk, however many frames of
// such code it meets, and while the list changes too. The first walk that meets a change looks at what is new, and at
// no more than that; a reading of the list is asked for.
//
// Usage: asks_test [--time]: what that costs beside walks through compiled code, instead
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/modules/jit/player.h"

enum {
    LAYOUTS = 3,
    DEPTH = 6,            // slots of code, one within the other
    ASKS_OF_A_CHANGE = 8, // the list's head, its entry, its file's header and 4 sections, and the list's number again
};

static struct owner owner;
static uint8_t symfiles[CODE_SLOTS][CODE_SYMFILE_BYTES_MAX];
static struct jit_entry *entries[CODE_SLOTS];

// ---- the kernel, counted

static volatile bool is_counting;
static unsigned asks, entry_reads;

static bool is_entry(uintptr_t address, size_t size)
{
    if (size < offsetof(struct jit_entry, timestamp) || size > sizeof(struct jit_entry))
        return false;
    for (const struct jit_entry *entry = owner.descriptor->first; entry; entry = entry->next)
        if ((uintptr_t)entry == address)
            return true;
    return false;
}

// libc's, but for the count: all that libqut reads of memory that may be gone goes this way. As there, six arguments are
// taken whatever the call has, which AddressSanitizer would not have.
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (is_counting && number == SYS_futex && arguments[1] == FUTEX_CMP_REQUEUE_PRIVATE)
        asks++;
    if (is_counting && number == SYS_process_vm_readv) {
        const struct {
            uintptr_t address;
            size_t size;
        } *parts = (const void *)arguments[3];
        asks++;
        for (long i = 0; i < arguments[4]; i++)
            entry_reads += is_entry(parts[i].address, parts[i].size);
    }
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

// ---- a stack of such code

static void add(unsigned slot, unsigned size)
{
    struct code_method method = code_emit(slot, size);
    entries[slot] = owner_add(&owner, symfiles[slot], code_symfile(&method, 1, symfiles[slot]));
}

static unsigned first_slot, depth;
static void (*innermost)(void);
static volatile int after_call;

__attribute__((noinline)) static void compiled(code_callee *callee)
{
    callee();
    after_call++; // so that its frame stays
}

static bool is_compiled;

__attribute__((noinline)) static void descend(void)
{
    if (depth == DEPTH) {
        innermost();
    } else {
        unsigned slot = first_slot + depth++;
        (is_compiled ? compiled : code_of(slot))(descend);
    }
    after_call++;
}

static void on_stack(unsigned slot, void (*what)(void))
{
    first_slot = slot;
    depth = 0;
    innermost = what;
    descend();
}

// ---- walks of it

static uintptr_t pcs[PLAYER_FRAMES_MAX];
static struct qut_end end;
static unsigned crossed, walk_asks, walk_entry_reads, cursor_asks;

static bool is_of(uintptr_t pc)
{
    return pc - (uintptr_t)code_buffer < (uintptr_t)CODE_SLOTS * CODE_SLOT_BYTES;
}

static void walk(void)
{
    asks = entry_reads = crossed = 0;
    is_counting = true;
    size_t count = qut_backtrace(pcs, PLAYER_FRAMES_MAX, &end);
    is_counting = false;
    walk_asks = asks;
    walk_entry_reads = entry_reads;
    for (size_t i = 0; i < count; i++)
        crossed += is_of(pcs[i]);
    struct qut_cursor cursor;
    asks = 0;
    is_counting = true;
    qut_cursor_here(&cursor);
    while (qut_cursor_next(&cursor))
        ;
    is_counting = false;
    cursor_asks = asks;
    is_counting = false;
}

static bool is_gdb(void)
{
    return owner.layout == ART_JIT_GDB;
}

static void add_all(void)
{
    for (unsigned slot = 0; slot < DEPTH; slot++)
        add(slot, slot + 1);
    qut_refresh();
}

#define CHECK_CROSSED()                                                                                                \
    CHECK(crossed == DEPTH && end.reason == QUT_END_OUTERMOST, "layout %d: %u of %d frames, reason %u", owner.layout,  \
          crossed, DEPTH, end.reason)

TEST(a_walk_asks_once)
{
    add_all();
    on_stack(0, walk); // in GDB's layout a thread's first walk does not know yet what it will meet
    unsigned first = walk_asks;
    on_stack(0, walk);
    CHECK_CROSSED();
    printf("# layout %d: %d frames, %u calls at first, then %u a walk, %u with a cursor\n", owner.layout, DEPTH, first,
           walk_asks, cursor_asks);
    CHECK(walk_asks == 1 && cursor_asks == 1, "layout %d: %u calls, %u with a cursor", owner.layout, walk_asks,
          cursor_asks);
    CHECK(first <= (is_gdb() ? DEPTH : 1), "layout %d: %u at first", owner.layout, first);
    CHECK(walk_entry_reads == (is_gdb() ? DEPTH : 0), "layout %d: %u entries", owner.layout, walk_entry_reads);
}

// What comes is elsewhere, and more than walks look at at once: but they look each time.
TEST(a_list_that_grows)
{
    add_all();
    on_stack(0, walk);
    for (unsigned slot = DEPTH; slot < DEPTH + 30; slot++) {
        add(slot, 3);
        on_stack(0, walk);
        CHECK_CROSSED();
        unsigned most = is_gdb() ? 2 : 1 + ASKS_OF_A_CHANGE; // GDB's: what was the first has got a neighbour
        CHECK(walk_asks <= most, "layout %d: the first walk after it asked %u times", owner.layout, walk_asks);
        CHECK(is_gdb() || walk_entry_reads <= 1, "layout %d: it read %u entries", owner.layout, walk_entry_reads);
        CHECK(is_gdb() || qut_wait(0) != 0, "layout %d: nobody asked for a reading", owner.layout);
        on_stack(0, walk);
        CHECK_CROSSED();
        CHECK(is_gdb() || (walk_asks == 1 && cursor_asks == 1),
              "layout %d: the second one asked %u times, %u with a cursor", owner.layout, walk_asks, cursor_asks);
    }
    qut_refresh();
    on_stack(0, walk);
    on_stack(0, walk);
    CHECK(walk_asks == 1 && crossed == DEPTH, "layout %d: %u times after a reading", owner.layout, walk_asks);
}

TEST(many_changes_at_once_are_left_to_the_reading)
{
    add_all();
    for (unsigned slot = DEPTH; slot < DEPTH + 5; slot++)
        add(slot, 3);
    on_stack(0, walk);
    if (!is_gdb())
        CHECK(walk_asks == 2 && end.reason == QUT_END_TABLE_PENDING && crossed == 1,
              "layout %d: %u calls, %u frames, reason %u", owner.layout, walk_asks, crossed, end.reason);
    qut_refresh();
    on_stack(0, walk);
    CHECK_CROSSED();
}

// Walks have followed some changes already; what comes then may be about the code on the stack.
static void follow_some(unsigned from)
{
    add_all();
    for (unsigned slot = from; slot < from + 3; slot++) {
        add(slot, 3);
        on_stack(0, walk);
        CHECK_CROSSED();
    }
}

#define CHECK_PENDING(frames, what)                                                                                    \
    CHECK(end.reason == QUT_END_TABLE_PENDING && crossed == (frames), "layout %d, " what ": %u frames, reason %u",     \
          owner.layout, crossed, end.reason)

TEST(newer_code_in_the_same_place_is_seen)
{
    if (is_gdb())
        return; // nothing in its list says that there is more than one
    follow_some(DEPTH);
    add(2, 11); // of an older entry that stays
    on_stack(0, walk);
    CHECK_PENDING(DEPTH - 2, "covered"); // those that it called, and itself
    add(DEPTH + 4, 3);
    on_stack(0, walk);
    CHECK_PENDING(DEPTH - 2, "covered, and one more");
    qut_refresh();
    on_stack(0, walk);
    CHECK_CROSSED();
}

// Entries are used again: the list begins, and its entries lie, where they did.
TEST(removed_code_is_seen)
{
    follow_some(DEPTH);
    owner_remove(&owner, entries[2]);
    on_stack(0, walk);
    CHECK(end.reason == QUT_END_TABLE_PENDING, "layout %d: removed: reason %u", owner.layout, end.reason);
    add(2, 11);
    on_stack(0, walk);
    CHECK(end.reason == QUT_END_TABLE_PENDING, "layout %d: and added: reason %u", owner.layout, end.reason);
    owner_remove(&owner, entries[DEPTH + 2]);
    add(DEPTH + 2, 5);
    on_stack(0, walk);
    CHECK(end.reason == QUT_END_TABLE_PENDING, "layout %d: and others: reason %u", owner.layout, end.reason);
    qut_refresh();
    on_stack(0, walk);
    CHECK_CROSSED();
    owner_remove(&owner, entries[2]); // the newest but one: the list begins as it did
    add(2, 12);
    on_stack(0, walk);
    CHECK(end.reason == QUT_END_TABLE_PENDING, "layout %d: again: reason %u", owner.layout, end.reason);
}

// What a thread expects is of its last walk, and of one list.
TEST(other_code_each_time)
{
    for (unsigned slot = 0; slot < 4 * DEPTH; slot++)
        add(slot, slot + 1);
    qut_refresh();
    for (unsigned i = 0; i < 12; i++) {
        on_stack(i % 4 * DEPTH, walk);
        CHECK_CROSSED();
        CHECK(walk_asks <= (is_gdb() ? DEPTH : 1), "layout %d: %u", owner.layout, walk_asks);
    }
    owner_remove(&owner, entries[1]);
    memset(symfiles[1], 0, sizeof symfiles[1]);
    on_stack(2 * DEPTH, walk);
    if (is_gdb())
        CHECK_CROSSED();
}

// Each slot is called twice in a row; no thread remembers anything.
static unsigned repeated_first;

static void walk_unregistered(void)
{
    qut_thread_unregister();
    walk();
    qut_thread_register();
}

static void twice(void)
{
    if (repeated_first++ == 0)
        code_of(0)(twice);
    else
        walk_unregistered();
    after_call++;
}

TEST(recursion_asks_once_even_without_memory)
{
    add_all();
    depth = DEPTH;
    innermost = walk_unregistered;
    code_of(0)(descend);
    unsigned once = walk_entry_reads; // what is read of the stack is more
    repeated_first = 0;
    code_of(0)(twice);
    CHECK(crossed == 2 && walk_entry_reads == once, "layout %d: %u frames, %u entries, not %u", owner.layout, crossed,
          walk_entry_reads, once);
}

// ---- instead: time

static double walk_ns;

static void time_walks(void)
{
    enum { WALKS = 20000 };
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (unsigned i = 0; i < WALKS; i++)
        qut_backtrace(pcs, PLAYER_FRAMES_MAX, &end);
    clock_gettime(CLOCK_MONOTONIC, &to);
    walk_ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / WALKS;
}

TEST(times)
{
    enum { ROUNDS = 9 };
    add_all();
    double best[3] = {1e9, 1e9, 1e9};
    for (unsigned i = 0; i < ROUNDS; i++)
        for (unsigned way = 0; way < 3; way++) {
            if (way == 2)
                add(DEPTH + i, 3);
            is_compiled = way == 0;
            on_stack(0, time_walks);
            best[way] = walk_ns < best[way] ? walk_ns : best[way];
            is_compiled = false;
            qut_refresh();
        }
    printf(
        "layout %d: %d frames of compiled code %.0f ns a walk, made at run time %.0f, while the list is newer %.0f\n",
        owner.layout, DEPTH, best[0], best[1], best[2]);
}

// ----

static void in_each_layout(void (*test)(void), const char *name)
{
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        owner_load(&owner, (enum art_jit_layout)layout);
        if (!owner.descriptor) {
            tap_check(false, __FILE__, __LINE__, name, "layout %u: no library", layout);
            tap.failed++;
            continue;
        }
        qut_refresh();
        tap_run(name, test);
        owner_unload(&owner);
        qut_refresh();
    }
}
#define RUN_EACH(test) in_each_layout(test, #test)

int main(int argc, char **argv)
{
    struct qut_options options = {.size = sizeof options, .compile = player_compile, .flags = QUT_START_NO_THREAD};
    if (!discipline_has_compiler()) {
        puts("SKIP: no qutc for the program's own table\n0 passed, 0 failed, 1 skipped");
        return 77;
    }
    // Without it memory is read in other ways, which take more calls (an emulator; a filter of calls).
    char byte;
    const struct {
        void *address;
        size_t size;
    } to = {&byte, 1}, from = {&options, 1};
    if (syscall(SYS_process_vm_readv, getpid(), &to, 1ul, &from, 1ul, 0ul) != 1) {
        puts("SKIP: this kernel (or qemu) has no process_vm_readv\n0 passed, 0 failed, 1 skipped");
        return 77;
    }
    if (!code_start() || qut_start(&options) != 0 || qut_thread_register() != 0)
        return 1;
    qut_refresh();
    if (argc > 1 && strcmp(argv[1], "--time") == 0) {
        RUN_EACH(times);
        return tap_finish();
    }
    RUN_EACH(a_walk_asks_once);
    RUN_EACH(a_list_that_grows);
    RUN_EACH(many_changes_at_once_are_left_to_the_reading);
    RUN_EACH(newer_code_in_the_same_place_is_seen);
    RUN_EACH(removed_code_is_seen);
    RUN_EACH(other_code_each_time);
    RUN_EACH(recursion_asks_once_even_without_memory);
    qut_stop();
    return tap_finish();
}
