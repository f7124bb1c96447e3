// SPDX-License-Identifier: Apache-2.0
// Walks through code of a machine that is in this process: made frames call one another, so each walk is known, whether
// it takes the shortcuts or not, and also where other code lies at the same addresses by now.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <qut/local.h>
#include <qutc/provide.h>

#include "libqut/runtime/tiers.h"
#include "libqut/runtime/walking_thread.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/hotspot/fake_hotspot.h"

enum {
    BLOBS = 8,
    BLOCK_BYTES = 0x400,
    BLOCKS = FAKE_CODE + 0x2000,
    STUBS = FAKE_CODE + 0x8000,
    LEAF = FAKE_CODE + 0xa000
};
enum { FRAMES = 64, CALL_END = 18, STUB_CALL_END = 19, TURNS = 100 };

// As the library of a machine exports them.
extern uint64_t gHotSpotVMStructs, gHotSpotVMTypes;
__attribute__((visibility("default"))) uint64_t gHotSpotVMStructs, gHotSpotVMTypes;

static struct fake_hotspot fake;
static uint64_t made[BLOBS], stub, leaf;
static bool is_there;

static struct taken {
    uintptr_t pcs[FRAMES];
    size_t count;
    struct qut_end end;
} taken;

static void take(void)
{
    taken.count = qut_backtrace(taken.pcs, FRAMES, &taken.end);
}

static uint64_t block_at(unsigned blob)
{
    return BLOCKS + (uint64_t)blob * BLOCK_BYTES;
}

// push %rbp; sub $more, %rsp; movabs $next, %rax; call *%rax; add $more, %rsp; pop %rbp; ret, with a frame of `more`
// and two words. Each calls the next one, the last one `take`.
static void make_frames(unsigned first_words)
{
    for (unsigned i = 0; i < BLOBS; i++) {
        uint8_t code[] = {0x55, 0x48, 0x83, 0xec, 0,    0x48, 0xb8, 0,    0,    0, 0,    0,
                          0,    0,    0,    0x90, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0, 0x5d, 0xc3};
        unsigned words = first_words + 2 * (i % 3); // an even number keeps calls aligned
        uint64_t next = i + 1 < BLOBS ? block_at(i + 1) + FAKE_BLOB_HEAD_BYTES : (uint64_t)(uintptr_t)take;
        code[4] = code[21] = (uint8_t)((words - 2) * 8);
        memcpy(code + 7, &next, sizeof next);
        made[i] = fake_blob(&fake, block_at(i), BLOCK_BYTES, (int)words, 5, code, sizeof code);
    }
    if (is_there)
        memcpy((void *)(uintptr_t)FAKE_BASE, fake.bytes, FAKE_BYTES);
}

// push %rbp; mov %rsp, %rbp; sub %rdi, %rsp; movabs $made, %rax; call *%rax; leave; ret: a frame of any size, left by
// fp.
static void make_stub(void)
{
    uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xfc, 0x48, 0xb8, 0,   0,
                      0,    0,    0,    0,    0,    0,    0xff, 0xd0, 0xc9, 0xc3};
    memcpy(code + 9, &made[0], sizeof made[0]);
    stub = fake_blob(&fake, STUBS, 0x1000, 0, -1, code, sizeof code);
    fake_put_word(&fake, fake.call_stub_at, stub + STUB_CALL_END);
}

// nop; ud2; nop; ret
static const uint8_t leaf_code[] = {0x90, 0x0f, 0x0b, 0x90, 0xc3};
enum { LEAF_STOPS_AT = 1, LEAF_STOP_BYTES = 2 };

static void take_interrupted(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    taken.count = qut_backtrace_context(context, taken.pcs, FRAMES, &taken.end);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += LEAF_STOP_BYTES;
}

TEST(it_begins)
{
    static const uint8_t code[] = {0x55, 0x48, 0x8b, 0xec, 0x90, 0xc9, 0xc3};
    fake_begin(&fake, FAKE_17, NULL);
    make_frames(8);
    make_stub();
    leaf = fake_blob(&fake, LEAF, 0x100, 0, -1, leaf_code, sizeof leaf_code);
    fake_interpreter(&fake, FAKE_CODE + 0x1000, code, sizeof code);
    void *place = mmap((void *)(uintptr_t)FAKE_BASE, FAKE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (place != (void *)(uintptr_t)FAKE_BASE)
        SKIP("something else is where the machine should be");
    memcpy(place, fake.bytes, FAKE_BYTES);
    is_there = true;
    memcpy(&gHotSpotVMStructs, fake.bytes + (fake.structs - FAKE_BASE), sizeof gHotSpotVMStructs);
    memcpy(&gHotSpotVMTypes, fake.bytes + (fake.types - FAKE_BASE), sizeof gHotSpotVMTypes);
    struct qut_options options = {
        .size = sizeof options, .compile = qutc_compile_for_qut, .flags = QUT_START_NO_THREAD};
    CHECK(qut_start(&options) == 0, "libqut does not start");
    qut_refresh();
}

// Whether the walk came through all made frames to the root.
__attribute__((noinline)) static bool walk_from(uint64_t entry, uint64_t stub_bytes)
{
    ((void (*)(uint64_t))(uintptr_t)entry)(stub_bytes);
    __asm__ volatile("");
    if (taken.end.reason != QUT_END_OUTERMOST || taken.count < BLOBS + 2)
        return false;
    for (unsigned i = 0; i < BLOBS; i++)
        if (taken.pcs[1 + i] != made[BLOBS - 1 - i] + CALL_END - 1)
            return false;
    return entry != stub || taken.pcs[1 + BLOBS] == stub + STUB_CALL_END - 1;
}

static bool walk(void)
{
    return walk_from(made[0], 0);
}

static bool has_link(uintptr_t key)
{
    const struct runtime_link_cache *links = &runtime_thread_self()->links;
    for (unsigned i = 0; i < RUNTIME_LINK_COUNT; i++)
        if (links->links[i].key == key)
            return true;
    return false;
}

static const uint32_t tiers[] = {RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN, RUNTIME_TIERS_ALL, RUNTIME_TIER_LINKED, 0};
enum { TIER_SETS = sizeof tiers / sizeof tiers[0] };

TEST(every_way_leads_through_made_frames)
{
    walk(); // now it is known that there is a machine
    qut_refresh();
    for (unsigned set = 0; set < TIER_SETS; set++) {
        atomic_store(&runtime_tiers, tiers[set]);
        for (unsigned turn = 0; turn < TURNS; turn++)
            CHECK(walk(), "tiers %u, turn %u: %zu frames, end %u", tiers[set], turn, taken.count, taken.end.reason);
    }
}

TEST(shortcuts_are_taken)
{
    const struct runtime_tier_counts *counts = &runtime_thread_self()->counts;
    atomic_store(&runtime_tiers, tiers[0]);
    for (volatile unsigned turn = 0; turn < 2; turn++) { // from one place
        uint64_t remembered = counts->remembered, looked_up = counts->looked_up;
        walk();
        remembered = counts->remembered - remembered;
        CHECK(turn == 0 || (remembered == taken.count && counts->looked_up == looked_up), "%zu of %zu, %zu looked up",
              (size_t)remembered, taken.count, (size_t)(counts->looked_up - looked_up));
    }
    // By links alone, which are found by no return address: they say what to expect, and the machine is asked.
    atomic_store(&runtime_tiers, RUNTIME_TIER_LINKED);
    for (volatile unsigned turn = 0; turn < 2; turn++) {
        uint64_t looked_up = counts->looked_up;
        walk();
        CHECK(turn == 0 || counts->looked_up == looked_up, "%zu looked up", (size_t)(counts->looked_up - looked_up));
    }
    for (unsigned i = 0; i < BLOBS; i++)
        CHECK(has_link(~(uintptr_t)(made[i] + CALL_END)) && !has_link((uintptr_t)(made[i] + CALL_END)), "frame %u", i);
}

// Whatever the size of the frame by which C++ came to the code, and whatever it was before.
TEST(what_a_stub_calls_is_left_by_fp)
{
    for (unsigned set = 0; set < TIER_SETS; set++) {
        atomic_store(&runtime_tiers, tiers[set]);
        for (unsigned turn = 0; turn < TURNS; turn++) {
            uint64_t bytes = 16 * (turn / 2 % 5);
            CHECK(walk_from(stub, bytes), "tiers %u, turn %u: %zu frames, end %u", tiers[set], turn, taken.count,
                  taken.end.reason);
        }
    }
}

TEST(a_stub_is_left_by_a_shortcut)
{
    const struct runtime_tier_counts *counts = &runtime_thread_self()->counts;
    atomic_store(&runtime_tiers, tiers[0]);
    for (volatile unsigned turn = 0; turn < 2; turn++) {
        uint64_t remembered = counts->remembered, looked_up = counts->looked_up;
        walk_from(stub, 64);
        remembered = counts->remembered - remembered;
        CHECK(turn == 0 || (remembered == taken.count && counts->looked_up == looked_up), "%zu of %zu, %zu looked up",
              (size_t)remembered, taken.count, (size_t)(counts->looked_up - looked_up));
    }
}

// The same return addresses, and frames of other sizes: as if code had been given up and made anew.
TEST(code_that_was_replaced_is_walked_as_it_is)
{
    for (unsigned set = 0; set < TIER_SETS; set++) {
        atomic_store(&runtime_tiers, tiers[set]);
        for (unsigned turn = 0; turn < TURNS; turn++) {
            make_frames(8 + 2 * (turn % 3));
            CHECK(walk(), "tiers %u, turn %u: %zu frames, end %u", tiers[set], turn, taken.count, taken.end.reason);
        }
    }
}

// A block that is given back says nothing of its frames' size: what comes behind is a guess, in every way.
TEST(code_that_went_is_a_guess)
{
    uint8_t *used = (uint8_t *)(uintptr_t)(block_at(BLOBS / 2) + 8);
    *used = 0;
    for (unsigned set = 0; set < TIER_SETS; set++) {
        atomic_store(&runtime_tiers, tiers[set]);
        walk();
        CHECK(taken.end.guessed_frame == BLOBS / 2 + 1, "tiers %u: frame %u, %zu frames, end %u", tiers[set],
              taken.end.guessed_frame, taken.count, taken.end.reason);
    }
    *used = 1;
    CHECK(walk() && taken.end.guessed_frame == QUT_NO_GUESS, "frame %u", taken.end.guessed_frame);
}

__attribute__((noinline)) static void call_leaf(void)
{
    ((void (*)(void))(uintptr_t)leaf)();
    __asm__ volatile("");
}

// C++ flushes caches by a stub, whose frame nothing describes: a guess, and a right one.
TEST(a_stub_that_native_code_calls_has_its_caller)
{
    struct sigaction action = {.sa_sigaction = take_interrupted, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGILL, &action, &before);
    for (unsigned set = 0; set < TIER_SETS; set++) {
        atomic_store(&runtime_tiers, tiers[set]);
        taken.count = 0;
        call_leaf();
        CHECK(taken.count > 3 && taken.end.reason == QUT_END_OUTERMOST && taken.end.guessed_frame == 1 &&
                  taken.pcs[0] == leaf + LEAF_STOPS_AT && taken.pcs[1] - (uintptr_t)call_leaf < 64,
              "tiers %u: %zu frames, end %u, guess %u", tiers[set], taken.count, taken.end.reason,
              taken.end.guessed_frame);
    }
    sigaction(SIGILL, &before, NULL);
}

int main(void)
{
    RUN(it_begins);
    if (!is_there)
        return tap_finish();
    RUN(every_way_leads_through_made_frames);
    RUN(shortcuts_are_taken);
    RUN(what_a_stub_calls_is_left_by_fp);
    RUN(a_stub_is_left_by_a_shortcut);
    RUN(code_that_was_replaced_is_walked_as_it_is);
    RUN(code_that_went_is_a_guess);
    RUN(a_stub_that_native_code_calls_has_its_caller);
    qut_stop();
    return tap_finish();
}
