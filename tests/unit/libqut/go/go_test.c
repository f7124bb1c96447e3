// SPDX-License-Identifier: Apache-2.0
// Records of Go's runtime, made up: where callers are behind each change of stacks, and what is believed of nothing.
#include <stdlib.h>
#include <string.h>

#include "libqut/go/go.h"
#include "tests/support/tap.h"

enum {
    BASE = 0x100000,
    SIZE = 0x10000,
    TLS = BASE + 0x400, // the thread's pointer
    M = BASE + 0x1000,
    G0 = BASE + 0x2000,
    SIGNAL_G = BASE + 0x2400,
    CURG = BASE + 0x2800,
    SYSTEM_LOW = BASE + 0x4000,
    SYSTEM_HIGH = BASE + 0x6000,
    SIGNAL_LOW = BASE + 0x7000,
    SIGNAL_HIGH = BASE + 0x8000,
    USER_LOW = BASE + 0xa000,
    USER_HIGH = BASE + 0xc000,
    SYSTEM_SP = SYSTEM_HIGH - 0x100,
    USER_SP = USER_HIGH - 0x400,
    USER_PC = 0x401234,
    RA = 0x405678,
};

static uint64_t words[SIZE / 8];
static struct go_layout layout;
static uint64_t reads;

static size_t read_fake(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    reads++;
    if (address < BASE || address - BASE >= SIZE)
        return 0;
    size_t left = SIZE - (size_t)(address - BASE);
    size = size < left ? size : left;
    memcpy(bytes, (const uint8_t *)words + (address - BASE), size);
    return size;
}

static const struct elf_art_memory memory = {.read = read_fake};

static void put(uint64_t address, uint64_t word)
{
    words[(address - BASE) / 8] = word;
}

static void put_g(uint64_t g, uint64_t low, uint64_t high, uint64_t sp, uint64_t pc)
{
    put(g, low);
    put(g + 8, high);
    put(g + layout.g_m, M);
    put(g + layout.g_sched, sp);
    put(g + layout.g_sched + 8, pc);
}

static void begin(const char *version)
{
    memset(words, 0, sizeof words);
    go_layout_of(version, strlen(version), &layout);
    put(TLS - 8, CURG);
    put(M, G0);
    put(M + layout.m_gsignal, SIGNAL_G);
    put(M + layout.m_curg, CURG);
    put_g(G0, SYSTEM_LOW, SYSTEM_HIGH, SYSTEM_SP, 0);
    put_g(SIGNAL_G, SIGNAL_LOW, SIGNAL_HIGH, 0, 0);
    put_g(CURG, USER_LOW, USER_HIGH, USER_SP, USER_PC);
    put(USER_SP, RA);
}

static struct go_walk walk_now(void)
{
    struct go_walk walk;
    go_thread_read(&memory, &layout, TLS, &walk.thread);
    return walk;
}

static struct go_caller caller;

static enum go_found leave(enum qut_stack_switch which, uint64_t sp, bool is_exact)
{
    struct go_walk walk = walk_now();
    const struct go_frame frame = {.which = which, .cfa_bytes = 8, .sp = sp, .is_exact = is_exact};
    return go_leave(&walk, &memory, &frame, &caller);
}

#define IS(found, wanted_pc, wanted_sp)                                                                                \
    CHECK((found) == GO_CALLER && caller.pc == (wanted_pc) && caller.sp == (wanted_sp), "pc %#llx sp %#llx",           \
          (unsigned long long)caller.pc, (unsigned long long)caller.sp)

TEST(versions)
{
    static const char *const known[] = {"go1.17", "go1.19.8", "go1.21rc2", "go1.24.1 X:nocoverageredesign", "go1.27.3"};
    static const char *const unknown[] = {"go1.16.5", "go1.28", "go2.0", "devel +abc",
                                          "go1.",     "go",     "",      "go1.99999999999"};
    struct go_layout found;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(go_layout_of(known[i], strlen(known[i]), &found) && found.is_known, "%s", known[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK(!go_layout_of(unknown[i], strlen(unknown[i]), &found) && !found.is_known, "%s", unknown[i]);
    go_layout_of("go1.24", 6, &found);
    CHECK(found.m_curg == 192 && found.m_gsignal == 80, "%u", found.m_curg);
    go_layout_of("go1.25", 6, &found);
    CHECK(found.m_curg == 184 && found.m_gsignal == 72, "%u", found.m_curg);
}

TEST(the_version_of_a_program)
{
    uint8_t bytes[128] = {0};
    char version[GO_VERSION_BYTES];
    memcpy(bytes + 32, "\xff Go buildinf:\x08\x02", 16);
    bytes[64] = 8;
    memcpy(bytes + 65, "go1.19.8", 8);
    CHECK(go_version_in(&memory, bytes, sizeof bytes, version) == 8 && !memcmp(version, "go1.19.8", 8), "inline");
    for (size_t size = 0; size < 73; size++)
        CHECK(go_version_in(&memory, bytes, size, version) == 0, "cut off at %zu", size);
    bytes[64] = 0xff; // longer than there is
    CHECK(go_version_in(&memory, bytes, sizeof bytes, version) == 0, "a long one");
    begin("go1.17");
    bytes[47] = 0; // by pointers, as before 1.18
    uint64_t string = BASE + 0x3000;
    memcpy(bytes + 48, &string, 8);
    put(string, BASE + 0x3010);
    put(string + 8, 6);
    memcpy((uint8_t *)words + 0x3010, "go1.17", 6);
    CHECK(go_version_in(&memory, bytes, sizeof bytes, version) == 6 && !memcmp(version, "go1.17", 6), "by pointers");
    put(string, 8); // not readable
    CHECK(go_version_in(&memory, bytes, sizeof bytes, version) == 0, "a bad pointer");
}

// One that sleeps: nobody has asked for its pointer, and words of its stack lead to its records.
TEST(a_thread_that_sleeps)
{
    enum { TID = 4711, SP = SYSTEM_SP - 0x800 };
    struct go_thread thread;
    uint64_t g = 0;
    begin("go1.19.8");
    put(TLS - 8, 0);
    put(M + layout.m_procid, TID);
    put(M + layout.m_curg, 0);
    CHECK(!go_thread_find(&memory, &layout, SP, TID, &g, &thread) && !thread.is_known && g == 0, "no word names it");
    put(SP + 0x40, RA);
    put(SP + 0x48, CURG); // of no thread any more
    put(CURG + layout.g_m, 0);
    put(SP + 0x700, M);
    CHECK(go_thread_find(&memory, &layout, SP, TID, &g, &thread) && thread.is_known && g == G0, "by its m");
    CHECK(thread.curg == 0 && thread.system.high == SYSTEM_HIGH, "%#llx", (unsigned long long)thread.curg);
    put(SP + 0x700, 0);
    reads = 0;
    CHECK(go_thread_find(&memory, &layout, SP, TID, &g, &thread) && reads < 8, "found again in %llu reads",
          (unsigned long long)reads);
    CHECK(!go_thread_find(&memory, &layout, SP, TID + 1, &g, &thread) && g == 0, "another thread's");
    put(SP + 0x700, G0);
    CHECK(go_thread_find(&memory, &layout, SP, TID, &g, &thread) && g == G0, "by its g0");
    CHECK(!go_thread_find(&memory, &layout, BASE + 0xd000, TID, &g, &thread), "sp is on none of its stacks");
    g = 0;
    put(M + layout.m_curg, CURG);
    put(CURG + layout.g_m, M);
    put(SP + 0x700, CURG); // as asmcgocall keeps it
    CHECK(go_thread_find(&memory, &layout, SP, TID, &g, &thread) && thread.curg == CURG, "by its goroutine");
    g = 0;
    for (unsigned at = 0; at < 0x700; at += 8) // each one is asked for, within a bound
        put(SP + at, BASE + 0xe000 + at);
    CHECK(!go_thread_find(&memory, &layout, SP, TID, &g, &thread), "far out, behind too much else");
}

// Its records are there before it runs, but for its goroutine, which it takes first of all.
TEST(a_thread_that_has_just_begun)
{
    begin("go1.19.8");
    put(TLS - 8, 0);
    put(TLS - 64, SIGNAL_G);
    put(TLS - 144, G0);
    put(M + layout.m_curg, 0);
    CHECK(leave(QUT_SWITCH_NEW_THREAD, SYSTEM_HIGH, true) == GO_OUTERMOST, "it stands where its stack ends");
    CHECK(leave(QUT_SWITCH_NEW_THREAD, SIGNAL_HIGH, true) == GO_UNKNOWN, "another stack");
    put(G0 + layout.g_m, 0);
    CHECK(leave(QUT_SWITCH_NEW_THREAD, SYSTEM_HIGH, true) == GO_UNKNOWN, "nothing agrees");
    begin("go1.19.8");
    put(SYSTEM_SP - 0x40, RA);
    IS(leave(QUT_SWITCH_NEW_THREAD, SYSTEM_SP - 0x40, true), RA, SYSTEM_SP - 0x38);
}

TEST(behind_each_change)
{
    static const char *const releases[] = {"go1.19.8", "go1.25.0"};
    for (size_t i = 0; i < 2; i++) {
        begin(releases[i]);
        IS(leave(QUT_SWITCH_SYSTEM_STACK, SYSTEM_SP, false), RA, USER_SP + 8);
        IS(leave(QUT_SWITCH_MCALL, SYSTEM_SP - 8, false), USER_PC, USER_SP);
        IS(leave(QUT_SWITCH_MCALL, SYSTEM_SP, true), USER_PC, USER_SP);
        IS(leave(QUT_SWITCH_MORE_STACK, SYSTEM_SP, false), USER_PC, USER_SP);
        CHECK(!caller.is_exact, "behind a call");
        put(SYSTEM_SP - 64 + 48, CURG);
        IS(leave(QUT_SWITCH_CALL_C, SYSTEM_SP - 64, false), RA, USER_SP + 8);
    }
}

// Before the change, and after the way back: the row holds.
TEST(on_the_goroutines_stack)
{
    begin("go1.19.8");
    uint64_t sp = USER_SP - 0x80;
    put(sp, RA + 1);
    IS(leave(QUT_SWITCH_SYSTEM_STACK, sp, true), RA + 1, sp + 8);
    IS(leave(QUT_SWITCH_MCALL, sp, true), RA + 1, sp + 8);
    IS(leave(QUT_SWITCH_MORE_STACK, sp, true), RA + 1, sp + 8);
    IS(leave(QUT_SWITCH_CALL_C, sp, true), RA + 1, sp + 8);
    // A goroutine that is gone on with: its record's sp is taken, its pc is not.
    put(CURG + layout.g_sched, 0);
    IS(leave(QUT_SWITCH_GOGO, sp, true), USER_PC, sp);
    put(CURG + layout.g_sched, USER_SP);
    CHECK(leave(QUT_SWITCH_GOGO, sp, true) == GO_UNKNOWN, "another sp than the record's");
    CHECK(leave(QUT_SWITCH_GOGO, sp, false) == GO_UNKNOWN, "gogo calls nothing");
}

// Called on the system stack, or that of signal handlers: nothing is changed.
TEST(without_a_change)
{
    begin("go1.19.8");
    uint64_t deeper = SYSTEM_SP - 0x200, on_signal = SIGNAL_HIGH - 0x100;
    put(deeper, RA + 2);
    put(on_signal, RA + 3);
    IS(leave(QUT_SWITCH_SYSTEM_STACK, deeper, true), RA + 2, deeper + 8);
    IS(leave(QUT_SWITCH_SYSTEM_STACK, on_signal, true), RA + 3, on_signal + 8);
    IS(leave(QUT_SWITCH_GOGO, deeper, true), RA + 2, deeper + 8);
    CHECK(leave(QUT_SWITCH_MCALL, deeper, false) == GO_UNKNOWN, "mcall is not called there");
    CHECK(leave(QUT_SWITCH_CALL_C, deeper, false) == GO_UNKNOWN, "nothing tells");
    put(deeper + 40, deeper + 72); // what sp was, before it was aligned
    put(deeper + 72, RA + 4);
    IS(leave(QUT_SWITCH_CALL_C, deeper, false), RA + 4, deeper + 80);
}

TEST(goroutines_that_begin_or_are_gone)
{
    begin("go1.19.8");
    put(CURG + layout.g_sched, USER_HIGH - 40);
    CHECK(leave(QUT_SWITCH_MCALL, SYSTEM_SP - 8, false) == GO_CALLER && caller.is_exact, "it has not begun");
    put(TLS - 8, G0);
    put(M + layout.m_curg, 0);
    CHECK(leave(QUT_SWITCH_MCALL, SYSTEM_SP - 8, false) == GO_OUTERMOST, "none");
    CHECK(leave(QUT_SWITCH_SYSTEM_STACK, SYSTEM_SP, false) == GO_UNKNOWN, "none to go back to");
    put(M + layout.m_curg, CURG);
    put(CURG + layout.g_m, 0);
    CHECK(leave(QUT_SWITCH_MCALL, SYSTEM_SP - 8, false) == GO_OUTERMOST, "it is being given up");
    put(CURG + layout.g_m, M + 0x200);
    CHECK(leave(QUT_SWITCH_MCALL, SYSTEM_SP - 8, false) == GO_UNKNOWN, "another thread's");
}

// Go, C, Go, C, Go: each callback takes the walk to C's part of the system stack, and remembers the goroutine's.
TEST(callbacks)
{
    begin("go1.19.8");
    uint64_t first = SYSTEM_SP - 0x400, second = SYSTEM_SP - 0x800, inner = USER_SP - 0x100, outer = USER_SP;
    put(G0 + layout.g_sched, second);
    put(second, first);
    put(first, SYSTEM_SP);
    put(second + 32, RA + 1); // crosscall2
    put(first + 32, RA + 2);
    put(inner + 32, USER_PC + 1);
    put(outer + 32, USER_PC + 2);
    struct go_walk walk = walk_now();
    struct go_frame frame = {.which = QUT_SWITCH_CALLED_BY_C, .cfa_bytes = 40, .sp = inner};
    IS(go_leave(&walk, &memory, &frame, &caller), RA + 1, second + 40);
    CHECK(walk.thread.system_sp == first && walk.thread.user_sp == inner + 40 && walk.thread.user_pc == USER_PC + 1,
          "%#llx", (unsigned long long)walk.thread.system_sp);
    // What called C from there.
    put(first - 64 + 48, CURG);
    put(inner + 40, RA + 5);
    const struct go_frame calls_c = {.which = QUT_SWITCH_CALL_C, .cfa_bytes = 8, .sp = first - 64};
    IS(go_leave(&walk, &memory, &calls_c, &caller), RA + 5, inner + 48);
    frame.sp = outer;
    IS(go_leave(&walk, &memory, &frame, &caller), RA + 2, first + 40);
    CHECK(walk.thread.system_sp == SYSTEM_SP, "%#llx", (unsigned long long)walk.thread.system_sp);
    // A thread that has no g yet is on its one stack.
    begin("go1.19.8");
    put(TLS - 8, 0);
    put(SYSTEM_SP + 32, RA + 6);
    walk = walk_now();
    frame.sp = SYSTEM_SP;
    IS(go_leave(&walk, &memory, &frame, &caller), RA + 6, SYSTEM_SP + 40);
    CHECK(leave(QUT_SWITCH_SYSTEM_STACK, SYSTEM_SP, false) == GO_UNKNOWN, "nothing else is there");
}

TEST(a_register_that_keeps_sp)
{
    begin("go1.19.8");
    struct go_walk walk = walk_now();
    struct go_frame frame = {.which = QUT_SWITCH_SAVED, .cfa_bytes = 8, .sp = SYSTEM_SP - 16, .kept_sp = USER_SP};
    IS(go_leave(&walk, &memory, &frame, &caller), RA, USER_SP + 8);
    const uint64_t bad[] = {0, USER_SP + 1, BASE + 8, UINT64_MAX, USER_HIGH};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frame.kept_sp = bad[i];
        CHECK(go_leave(&walk, &memory, &frame, &caller) == GO_UNKNOWN, "%#llx", (unsigned long long)bad[i]);
    }
}

// Another variable of C code's lies nearest to the thread's pointer.
TEST(g_is_found_among_others)
{
    begin("go1.19.8");
    put(TLS - 8, BASE + 0x9000);
    put(TLS - 16, 12345);
    put(TLS - 24, CURG);
    IS(leave(QUT_SWITCH_MCALL, SYSTEM_SP - 8, false), USER_PC, USER_SP);
}

// Each word of the records spoiled: the walk goes on as before, or says nothing; the reads stay few.
TEST(spoiled_records)
{
    static const uint64_t values[] = {0,  1,    8,          BASE,           BASE + SIZE - 8, M,
                                      G0, CURG, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    const uint64_t records[] = {TLS - 8, M, G0, SIGNAL_G, CURG};
    for (size_t r = 0; r < sizeof records / sizeof *records; r++)
        for (unsigned at = 0; at < 256; at += 8)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                begin("go1.19.8");
                put(records[r] + at, values[v]);
                reads = 0;
                for (int which = 0; which <= QUT_SWITCH_END; which++)
                    for (unsigned sp = 0; sp < 3; sp++) {
                        enum go_found found = leave((enum qut_stack_switch)which,
                                                    sp == 0   ? SYSTEM_SP
                                                    : sp == 1 ? USER_SP
                                                              : UINT64_MAX - 7,
                                                    true);
                        bool is_frame = found == GO_CALLER && which == QUT_SWITCH_MORE_STACK && sp == 0;
                        bool is_inside = caller.sp >= BASE && caller.sp < BASE + SIZE;
                        CHECK(!is_frame || is_inside, "caller at %#llx", (unsigned long long)caller.sp);
                    }
                if (!CHECK(reads < 6000, "%llu reads", (unsigned long long)reads))
                    return;
            }
}

TEST(random_memory)
{
    srand(1);
    for (int round = 0; round < 3000; round++) {
        begin(round % 2 ? "go1.19.8" : "go1.25");
        for (int i = 0; i < 40; i++) {
            uint64_t value = BASE + ((uint64_t)rand() % SIZE & ~(uint64_t)7);
            put(BASE + ((uint64_t)rand() % SIZE & ~(uint64_t)7), rand() % 4 ? value : (uint64_t)rand() << 40);
        }
        struct go_walk walk = walk_now();
        // A walk of any length: state changes with each callback.
        for (int step = 0; step < 64; step++) {
            const struct go_frame frame = {.which = (enum qut_stack_switch)(rand() % (QUT_SWITCH_END + 1)),
                                           .cfa_bytes = rand() % 100 - 20,
                                           .sp = BASE + ((uint64_t)rand() % SIZE & ~(uint64_t)7),
                                           .kept_sp = USER_SP,
                                           .is_exact = rand() % 2};
            enum go_found found = go_leave(&walk, &memory, &frame, &caller);
            CHECK(found != GO_CALLER || caller.pc, "a caller without pc");
        }
    }
}

int main(void)
{
    RUN(versions);
    RUN(the_version_of_a_program);
    RUN(a_thread_that_sleeps);
    RUN(a_thread_that_has_just_begun);
    RUN(behind_each_change);
    RUN(on_the_goroutines_stack);
    RUN(without_a_change);
    RUN(goroutines_that_begin_or_are_gone);
    RUN(callbacks);
    RUN(a_register_that_keeps_sp);
    RUN(g_is_found_among_others);
    RUN(spoiled_records);
    RUN(random_memory);
    return tap_finish();
}
