// SPDX-License-Identifier: Apache-2.0
// The generic walker on random registers and stacks of every architecture, with tables of real libraries: no walk reads
// outside its memory (the sanitizers say so), every walk ends after a bounded number of steps, and the reason it gives
// is true. `corrupt_generic_test [COUNT [FIRST]]`, or QUT_CORRUPT_WALKS; the number of a walk decides all of it.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/corrupt/generic_world.h"
#include "tests/support/tap.h"

enum { COUNT_DEFAULT = 100000, FAILURES_SHOWN_MAX = 5 };

// A step moves sp at least by one byte, or passes a signal frame. Random memory has no end; there a walk is cut.
enum { STEPS_MAX = 66 * (WORLD_STACK_BYTES + 64), STEPS_IN_NOISE_MAX = 4096 };

static uint64_t walk_count = COUNT_DEFAULT, first_walk;
static struct world world;
static uint64_t shown; // failures of the architecture that is tested

#define EXPECT(condition, seed, ...) expect((condition), (seed), #condition, __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static void expect(bool holds, uint64_t seed, const char *condition,
                                                         const char *format, ...)
{
    if (holds)
        return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tap.failed_checks++;
    if (shown++ < FAILURES_SHOWN_MAX)
        printf("%s, walk %" PRIu64 ": not so: %s: %s\n", world.arch->name, seed, condition, text);
}

// Whether the reason is one that this memory and these tables can give.
static void check_end(uint64_t seed, const struct runtime_walk *walk)
{
    const struct qut_end *end = &walk->end;
    uint64_t plain_pc = world.arch->has_thumb ? walk->regs.pc & ~UINT64_C(1) : walk->regs.pc;
    struct runtime_code code = {0};
    bool exact = walk->pc_kind == ARCH_PC_EXACT;
    world_ops.find(&world, arch_lookup_pc(plain_pc, (enum arch_pc_kind)walk->pc_kind), &code);
    struct qut_rule rule = {0};
    if (code.state == RUNTIME_CODE_READY)
        runtime_table_rule(code.table, arch_lookup_pc(plain_pc, (enum arch_pc_kind)walk->pc_kind) - code.load_bias,
                           &rule);

    EXPECT(end->pc == plain_pc, seed, "0x%" PRIx64 ", at 0x%" PRIx64, end->pc, plain_pc);
    switch (end->reason) {
    case QUT_END_OUTERMOST: break;
    case QUT_END_NO_MODULE:
        EXPECT(code.state == RUNTIME_CODE_NO_MODULE, seed, "pc 0x%" PRIx64 " state %d", plain_pc, (int)code.state);
        break;
    case QUT_END_TABLE_PENDING:
        EXPECT(code.state == RUNTIME_CODE_PENDING, seed, "pc 0x%" PRIx64 " state %d", plain_pc, (int)code.state);
        break;
    case QUT_END_NO_TABLE:
        EXPECT(code.state == RUNTIME_CODE_NO_TABLE, seed, "pc 0x%" PRIx64 " state %d", plain_pc, (int)code.state);
        break;
    case QUT_END_NO_ROW:
        EXPECT(code.state == RUNTIME_CODE_READY && rule.kind == QUT_RULE_HOLE, seed, "pc 0x%" PRIx64 " kind %u",
               plain_pc, rule.kind);
        break;
    case QUT_END_REFUSED:
        EXPECT(rule.kind == QUT_RULE_REFUSED && end->refusal == rule.reason && end->refusal != QUT_REFUSED_NOT, seed,
               "pc 0x%" PRIx64 " kind %u, %u for %u", plain_pc, rule.kind, end->refusal, rule.reason);
        break;
    case QUT_END_BAD_MEMORY: EXPECT(!world_readable(&world, end->address), seed, "0x%" PRIx64, end->address); break;
    case QUT_END_NO_REGISTER:
    case QUT_END_NO_PROGRESS:
        EXPECT(code.state != RUNTIME_CODE_NO_MODULE || walk->trampoline, seed, "%d", exact);
        break;
    default: EXPECT(end->reason != end->reason, seed, "reason %u", end->reason);
    }
    EXPECT((end->reason == QUT_END_REFUSED) == (end->refusal != 0), seed, "reason %u, refusal %u", end->reason,
           end->refusal);
    EXPECT(end->reason == QUT_END_BAD_MEMORY || end->address == 0, seed, "reason %u, address 0x%" PRIx64, end->reason,
           end->address);
    EXPECT(end->guessed_frame == QUT_NO_GUESS || end->guessed_frame <= walk->index, seed, "%u of %u",
           end->guessed_frame, walk->index);
}

static void check_frame(uint64_t seed, const struct runtime_walk *walk, const struct qut_frame *frame, uint32_t steps)
{
    uint64_t mask = world.arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
    EXPECT(walk->index == steps, seed, "frame %u is called %u", steps, walk->index);
    EXPECT((frame->pc & mask) == frame->pc, seed, "0x%" PRIx64, frame->pc);
    EXPECT(steps == 0 || (frame->sp & mask) == frame->sp, seed, "0x%" PRIx64, frame->sp);
    bool exact = frame->flags & (QUT_FRAME_INTERRUPTED | QUT_FRAME_SIGNAL);
    EXPECT(frame->lookup_pc == frame->pc - !exact, seed, "0x%" PRIx64 " of 0x%" PRIx64 ", flags %x", frame->lookup_pc,
           frame->pc, frame->flags);
    EXPECT(!(frame->flags & QUT_FRAME_THUMB) || world.arch->has_thumb, seed, "flags %x", frame->flags);
}

static uint64_t reasons[QUT_END_REASON_COUNT], frames_total, frames_most, cut;

static void walk_once(uint64_t seed)
{
    struct arch_frame_regs regs;
    enum arch_pc_kind kind;
    world_shuffle(&world, seed, &regs, &kind);

    struct runtime_walk walk, copy;
    memset(&walk, 0xa5, sizeof walk);
    runtime_walk_begin(world.arch, &walk, &regs, kind);
    struct qut_frame frame;
    uint32_t steps = 0;
    bool copied = false;
    for (;; steps++) {
        runtime_walk_frame(world.arch, &world_ops, &world, &walk, &frame);
        check_frame(seed, &walk, &frame, steps);
        if (!copied && steps == 1) {
            copy = walk;
            copied = true;
        }
        struct qut_frame before = frame;
        bool knew_sp = walk.regs.valid >> world.arch->sp_reg & 1, interrupted = walk.pc_kind == ARCH_PC_EXACT;
        if (!runtime_walk_step(world.arch, &world_ops, &world, &walk))
            break;
        if (!(before.flags & QUT_FRAME_SIGNAL) && knew_sp && walk.regs.valid >> world.arch->sp_reg & 1)
            EXPECT(walk.regs.sp > before.sp || (interrupted && walk.regs.sp == before.sp), seed,
                   "sp 0x%" PRIx64 " after 0x%" PRIx64, walk.regs.sp, before.sp);
        if (steps > (world.all_readable ? STEPS_IN_NOISE_MAX : STEPS_MAX)) {
            EXPECT(world.all_readable, seed, "%u steps", steps);
            cut++;
            return;
        }
    }
    check_end(seed, &walk);
    if (walk.end.reason < QUT_END_REASON_COUNT)
        reasons[walk.end.reason]++;
    frames_total += steps + 1;
    frames_most = frames_most > steps + 1 ? frames_most : steps + 1;

    // Ended is ended, and a copy goes the same way.
    struct qut_end end = walk.end;
    bool more = runtime_walk_step(world.arch, &world_ops, &world, &walk);
    EXPECT(!more && memcmp(&end, &walk.end, sizeof end) == 0, seed, "reason %u, then %u", end.reason, walk.end.reason);
    if (copied) {
        while (runtime_walk_step(world.arch, &world_ops, &world, &copy))
            ;
        EXPECT(memcmp(&end, &copy.end, sizeof end) == 0, seed, "a copy: %u, not %u", copy.end.reason, end.reason);
    }
}

static void walk_many(enum qut_arch_id id)
{
    struct base_error error = {0};
    char text[256];
    if (!world_open(&world, arch_by_id(id), &error)) {
        if (error.reason != BASE_OK)
            CHECK(false, "%s", base_error_text(&error, text, sizeof text));
        else
            SKIP("no libraries of %s", arch_by_id(id)->name);
        return;
    }
    memset(reasons, 0, sizeof reasons);
    frames_total = frames_most = cut = shown = 0;
    for (uint64_t seed = first_walk; seed < first_walk + walk_count; seed++)
        walk_once(seed);
    printf("# %s: %" PRIu64 " walks, %" PRIu64 " frames, longest %" PRIu64 ", without an end in noise %" PRIu64 ":",
           world.arch->name, walk_count, frames_total, frames_most, cut);
    for (unsigned reason = 0; reason < QUT_END_REASON_COUNT; reason++)
        if (reasons[reason])
            printf(" %s %" PRIu64 ";", qut_end_reason_name(reason), reasons[reason]);
    putchar('\n');
    // A generator of walks that go nowhere would find nothing.
    if (walk_count >= 10000) {
        CHECK(reasons[QUT_END_BAD_MEMORY] && reasons[QUT_END_NO_PROGRESS] && reasons[QUT_END_NO_MODULE],
              "the walks were all alike");
        CHECK(frames_most > 3 && frames_total > walk_count + walk_count / 20, "%" PRIu64 " frames", frames_total);
    }
    world_close(&world);
}

TEST(random_stacks_of_x86_64)
{
    walk_many(QUT_ARCH_X86_64);
}
TEST(random_stacks_of_aarch64)
{
    walk_many(QUT_ARCH_AARCH64);
}
TEST(random_stacks_of_arm)
{
    walk_many(QUT_ARCH_ARM);
}
TEST(random_stacks_of_x86)
{
    walk_many(QUT_ARCH_X86);
}
TEST(random_stacks_of_riscv64)
{
    walk_many(QUT_ARCH_RISCV64);
}

int main(int argc, char **argv)
{
    const char *count = argc > 1 ? argv[1] : getenv("QUT_CORRUPT_WALKS");
    if (count)
        walk_count = strtoull(count, NULL, 0);
    if (argc > 2)
        first_walk = strtoull(argv[2], NULL, 0);
    RUN(random_stacks_of_x86_64);
    RUN(random_stacks_of_aarch64);
    RUN(random_stacks_of_arm);
    RUN(random_stacks_of_x86);
    RUN(random_stacks_of_riscv64);
    return tap_finish();
}
