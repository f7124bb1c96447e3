// SPDX-License-Identifier: Apache-2.0
// A step that was made once is made again only where all that it depended on is what it was. A frame of two words on a
// stack of our own stands for all; what runtimes' own frames do is judged where they run (tests/whole).
#include "libqut/walk/seen_steps.h"

#include <string.h>

#include "libqut/arch/native.h"
#include "tests/support/tap.h"

enum { PC = 0x401000, OUTER_PC = 0x402000, WORDS = 16 };

static struct runtime_seen_steps seen;
static uintptr_t stack[WORDS];

static struct walk_direct all_of_it(void)
{
    return (struct walk_direct){(uintptr_t)stack, (uintptr_t)(stack + WORDS)};
}

static uint64_t registers(void)
{
    return (uint64_t)1 << arch_native_arch.sp_reg | (uint64_t)1 << arch_native_arch.tracked[ARCH_NATIVE_FP_SLOT];
}

static struct runtime_walk walk_at(uintptr_t pc, unsigned flags)
{
    struct runtime_walk walk;
    memset(&walk, 0, sizeof walk);
    walk.regs.pc = pc;
    walk.regs.sp = (uintptr_t)stack;
    walk.regs.tracked[ARCH_NATIVE_FP_SLOT] = (uintptr_t)(stack + 2);
    walk.regs.valid = registers();
    walk.pc_kind = ARCH_PC_RETURN;
    walk.flags = (uint8_t)flags;
    walk.index = 3;
    walk.end.guessed_frame = QUT_NO_GUESS;
    return walk;
}

static bool follows(struct runtime_walk *walk)
{
    unsigned flags = 0;
    return walk_seen_follow(&seen, walk, all_of_it(), &flags) && flags == walk->flags;
}

// What the slow way does: it reads two words, and is at the caller.
static void step(struct runtime_walk *walk)
{
    unsigned flags = walk->flags;
    walk_seen_note_read(&seen, (uintptr_t)(stack + 2), stack[2]);
    walk_seen_note_read(&seen, (uintptr_t)(stack + 3), stack[3]);
    walk->regs.pc = OUTER_PC;
    walk->regs.sp = (uintptr_t)(stack + 4);
    walk->regs.tracked[ARCH_NATIVE_FP_SLOT] = stack[2];
    walk->index++;
    walk_seen_keep(&seen, walk, flags);
}

static void begin(void)
{
    memset(&seen, 0, sizeof seen);
    for (unsigned i = 0; i < WORDS; i++)
        stack[i] = 0x1000 + i;
    walk_seen_begin(&seen, 7, 1);
    struct runtime_walk walk = walk_at(PC, QUT_FRAME_GUESSED);
    CHECK(!follows(&walk), "nothing was seen yet");
    CHECK(walk.regs.pc == PC, "and the walk is where it was");
    step(&walk);
}

TEST(the_same_is_followed)
{
    begin();
    struct runtime_walk walk = walk_at(PC, QUT_FRAME_GUESSED);
    CHECK(follows(&walk), "what was read is what it was");
    CHECK(walk.regs.pc == OUTER_PC && walk.regs.sp == (uintptr_t)(stack + 4) &&
              walk.regs.tracked[ARCH_NATIVE_FP_SLOT] == stack[2] && walk.regs.valid == registers(),
          "at pc %llx", (unsigned long long)walk.regs.pc);
    CHECK(walk.index == 4 && walk.end.guessed_frame == 4, "frame %u, guessed from %u on", walk.index,
          walk.end.guessed_frame);
}

TEST(another_frame_is_not)
{
    begin();
    struct runtime_walk walk = walk_at(PC + 1, QUT_FRAME_GUESSED);
    CHECK(!follows(&walk), "another pc");
    begin();
    walk = walk_at(PC, 0);
    CHECK(!follows(&walk), "the frame was not guessed now");
    begin();
    walk = walk_at(PC, QUT_FRAME_GUESSED);
    walk.regs.tracked[ARCH_NATIVE_FP_SLOT]++;
    CHECK(!follows(&walk), "another fp");
    begin();
    walk = walk_at(PC, QUT_FRAME_GUESSED);
    walk.regs.valid = UINT64_MAX;
    CHECK(!follows(&walk), "more is known of it, which the step might have needed");
    begin();
    walk = walk_at(PC, QUT_FRAME_GUESSED);
    walk.pc_kind = ARCH_PC_EXACT;
    CHECK(!follows(&walk), "it was interrupted");
}

TEST(other_words_are_not)
{
    for (unsigned i = 2; i < 4; i++) {
        begin();
        stack[i]++;
        struct runtime_walk walk = walk_at(PC, QUT_FRAME_GUESSED);
        CHECK(!follows(&walk), "word %u is another", i);
    }
    begin();
    stack[4]++;
    struct runtime_walk walk = walk_at(PC, QUT_FRAME_GUESSED);
    CHECK(follows(&walk), "word 4 was not read");
    begin();
    walk = walk_at(PC, QUT_FRAME_GUESSED);
    unsigned flags;
    struct walk_direct part = {(uintptr_t)stack, (uintptr_t)(stack + 3)};
    CHECK(!walk_seen_follow(&seen, &walk, part, &flags), "word 3 can not be read now");
}

TEST(what_is_known_of_code_has_changed)
{
    begin();
    walk_seen_begin(&seen, 7, 1);
    struct runtime_walk walk = walk_at(PC, QUT_FRAME_GUESSED);
    CHECK(follows(&walk), "it has not");
    walk_seen_begin(&seen, 8, 1);
    walk = walk_at(PC, QUT_FRAME_GUESSED);
    CHECK(!follows(&walk), "another list of modules");
    begin();
    walk_seen_begin(&seen, 7, 2);
    walk = walk_at(PC, QUT_FRAME_GUESSED);
    CHECK(!follows(&walk), "other code that no module has");
}

TEST(some_steps_are_not_kept)
{
    begin();
    struct runtime_walk walk = walk_at(PC + 16, 0);
    CHECK(!follows(&walk), "new");
    walk_seen_give_up(&seen);
    step(&walk);
    walk = walk_at(PC + 16, 0);
    CHECK(!follows(&walk), "it had read code, say");
    for (unsigned i = 0; i <= RUNTIME_SEEN_READS_MAX; i++)
        walk_seen_note_read(&seen, (uintptr_t)stack, stack[0]);
    step(&walk);
    walk = walk_at(PC + 16, 0);
    CHECK(!follows(&walk), "it had read more than there is room for");
    walk.regs.pc = OUTER_PC;
    walk_seen_keep(&seen, &walk, QUT_FRAME_GUESSED);
    walk = walk_at(PC + 16, 0);
    CHECK(!follows(&walk), "the frame turned out to be guessed");
    walk.regs.pc = OUTER_PC;
    walk_seen_keep(&seen, &walk, QUT_FRAME_INTERPRETER);
    walk = walk_at(PC + 16, 0);
    CHECK(!follows(&walk), "its bytecode stood in a register");
    walk.interpreted.method_cfa_bytes = -40;
    walk.regs.pc = OUTER_PC;
    walk_seen_keep(&seen, &walk, QUT_FRAME_INTERPRETER);
    walk = walk_at(PC + 16, 0);
    unsigned flags;
    CHECK(walk_seen_follow(&seen, &walk, all_of_it(), &flags) && flags == QUT_FRAME_INTERPRETER,
          "it stood on the stack, and was read");
}

int main(void)
{
    RUN(the_same_is_followed);
    RUN(another_frame_is_not);
    RUN(other_words_are_not);
    RUN(what_is_known_of_code_has_changed);
    RUN(some_steps_are_not_kept);
    return tap_finish();
}
