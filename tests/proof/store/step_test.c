// SPDX-License-Identifier: Apache-2.0
// Appends, executed one instruction at a time (ptrace). After each instruction the whole segment is decoded, as another
// process sees it, and compared with what must be there: every append that has returned, nothing torn, the balance
// exact. With and without a signal whose handler appends too, at any instruction, and jumps out of it.
//
// Usage: step_test [heavy]
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/proof/store/shadow.h"
#include "tests/support/tap.h"

enum {
    BRIM_BYTES = 60, // a record of `long_records` is shorter
    METRICS = 1 << QUT_TRACE_METRIC_MINOR_FAULTS | 1 << QUT_TRACE_METRIC_ALLOCATED_BYTES,
};

static bool is_heavy;
static struct shadow *shadow;
static struct segment segment;

enum what_handlers_do { APPEND, JUMP, APPEND_AND_JUMP };

// The words that parent and child share beside the shadow.
#define HANDLERS_DO (shadow->words[0]) // enum what_handlers_do
#define ROUNDS      (shadow->words[1]) // done

enum policy {
    NEVER,
    AT_ONE,   // round k: a signal at instruction k
    AT_EACH,  // at each instruction that is not a handler's
    AT_RANDOM // at some, of handlers too, up to 5 deep
};

struct run {
    struct shadow_plan plan;
    enum policy policy;
    enum what_handlers_do handlers_do;
    uint32_t fill; // appends before
    uint32_t rounds, appends;
    bool to_the_brim;       // of a chunk, before each round
    uint32_t first, stride; // AT_ONE: the first round's instruction, and how many further the next one's is; AT_EACH:
                            // so many from one to the next
    uint32_t mode, flags;
    uint32_t seed;
    uint32_t check_every; // instructions
};

// ---- child

static struct qut_trace_thread *child_thread;
static sigjmp_buf jump_target;
static uintptr_t stack_low, stack_high;

static __attribute__((noinline)) void append(void)
{
    shadow_append(shadow, &shadow->threads[0], &segment, child_thread, stack_low, stack_high);
    __asm__ volatile("" ::: "memory"); // no tail call
}

// The parent steps until it gets here.
static __attribute__((noinline)) void round_over(void)
{
    __asm__ volatile("nop" ::: "memory");
}

static void handler(int signal_number)
{
    (void)signal_number;
    if (HANDLERS_DO != JUMP)
        append();
    if (HANDLERS_DO != APPEND) {
        shadow->hits_in_doubt = shadow->hits_in_doubt + 6; // all that may be interrupted here
        siglongjmp(jump_target, 1);
    }
}

// Until the open chunk of level 0 has no room for two more records. Bounded: chunks hold fewer than that.
static void fill_to_the_brim(void)
{
    for (int i = 0; i < 5000; i++) {
        const struct qut_trace_writer *writer = &child_thread->writers[0];
        uint32_t used_bytes = writer->commits[writer->version & 1].used_bytes;
        if (used_bytes + sizeof(struct qut_trace_chunk) > QUT_TRACE_CHUNK_BYTES - BRIM_BYTES)
            break;
        append();
    }
}

static _Noreturn void child(const struct run *run)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    stack_low = here - (4u << 20); // the main thread's stack has at least that much room
    stack_high = here + (1u << 20);
    child_thread = segment_thread_begin(&segment, (uint32_t)getpid(), "stepped", segment.header->start_ns);
    shadow->threads[0].uid = child_thread->uid;
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
        _exit(77);
    for (uint32_t i = 0; i < run->fill; i++)
        append();
    for (uint32_t i = 0; i < run->rounds; i++) {
        if (run->to_the_brim)
            fill_to_the_brim();
        if (sigsetjmp(jump_target, 1) == 0) {
            __asm__ volatile("int3" ::: "memory");
            for (uint32_t j = 0; j < run->appends; j++)
                append();
        } else {
            shadow_doubt(&shadow->threads[0]);
        }
        round_over();
        ROUNDS = ROUNDS + 1;
    }
    // After all that, it goes on as ever.
    for (int i = 0; i < 1000; i++)
        append();
    _exit(0);
}

// ---- parent

struct outcome {
    uint64_t steps, checks, signals;
    uint64_t longest; // round, in instructions without those of handlers
    struct decoded_totals totals;
};

static uint32_t random_state;
static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)random_state * bound >> 32);
}

// Handlers that run now, by where the stack was that they were put on.
struct nest {
    uintptr_t sp[16];
    uint32_t count, sent;
    bool has_returned; // a handler, to an instruction that no other signal may meet then
};

static bool wants_signal(const struct run *run, const struct nest *nest, uint64_t step, uint64_t round)
{
    switch (run->policy) {
    case NEVER: return false;
    case AT_ONE: return nest->count == 0 && step == run->first + round * run->stride && !nest->has_returned;
    case AT_EACH: return nest->count == 0 && step % run->stride == 0 && !nest->has_returned;
    case AT_RANDOM: return nest->count < 5 && nest->sent < 15 && random_below(nest->count ? 80 : 150) == 0;
    }
    return false;
}

// One round: steps until the child is at round_over. False: something was wrong.
static bool step_round(const struct run *run, pid_t pid, struct decoder *decoder, struct outcome *outcome)
{
    uint64_t step = 0, round = ROUNDS;
    struct nest nest = {.count = 0};
    for (;;) {
        struct user_regs_struct regs;
        ptrace(PTRACE_GETREGS, pid, 0, &regs);
        // A handler's frame lies below the red zone.
        while (nest.count > 0 && regs.rsp + 128 > nest.sp[nest.count - 1])
            nest.count--;
        if (regs.rip == (uintptr_t)round_over && nest.count == 0)
            break;
        if (outcome->steps % run->check_every == 0) {
            outcome->checks++;
            if (!shadow_check(shadow, decoder, &outcome->totals)) {
                printf("round %llu, instruction %llu, at %#llx (segment_append is at %#lx): %s\n",
                       (unsigned long long)round, (unsigned long long)step, regs.rip, (unsigned long)segment_append,
                       decoder->fault);
                return false;
            }
        }
        bool sends = wants_signal(run, &nest, step, round);
        if (sends) {
            outcome->signals++;
            nest.sent++;
            nest.sp[nest.count++] = regs.rsp;
            nest.has_returned = true;
        } else if (nest.count == 0) {
            step++;
            nest.has_returned = false;
        }
        int status;
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, sends ? SIGUSR1 : 0) != 0 || waitpid(pid, &status, 0) != pid ||
            !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
            printf("round %llu, instruction %llu, at %#llx: the child did not stop as it should\n",
                   (unsigned long long)round, (unsigned long long)step, regs.rip);
            return false;
        }
        outcome->steps++;
    }
    if (step > outcome->longest)
        outcome->longest = step;
    return true;
}

static bool drive(const struct run *run, struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    random_state = run->seed;
    struct segment_options options = {.segment_bytes = 1 << 20,
                                      .mode = run->mode,
                                      .flags = run->flags,
                                      .metric_mask = run->plan.has_metrics ? METRICS : 0,
                                      .thread_count = 4,
                                      .node_bits = 10,
                                      .merge_gap_ns = 20000000,
                                      .pid = (uint32_t)getpid(),
                                      .arch = 1,
                                      .word_bytes = 8,
                                      .command = "step_test"};
    int created = segment_create(&segment, &options);
    if (!CHECK(created == 0, "%d", created))
        return false;
    bool is_fine = CHECK(shadow_begin(shadow, &segment, &run->plan), "nodes");
    HANDLERS_DO = run->handlers_do;
    struct decoder decoder;
    is_fine = is_fine && CHECK(decoder_open(&decoder, segment.header, segment.segment_bytes), "%s", decoder.fault);
    fflush(stdout);
    pid_t pid = is_fine ? fork() : -1;
    if (pid == 0)
        child(run);
    int status = 0;
    while (is_fine && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) != SIGTRAP)
            is_fine = CHECK(false, "the child stopped by signal %d", WSTOPSIG(status));
        else
            is_fine = CHECK(step_round(run, pid, &decoder, outcome), "round %u", ROUNDS);
        if (is_fine)
            ptrace(PTRACE_CONT, pid, 0, 0);
    }
    if (!is_fine && pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    if (is_fine && CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", status)) {
        is_fine = CHECK(shadow_check(shadow, &decoder, &outcome->totals), "%s", decoder.fault);
        struct shadow_thread *thread = &shadow->threads[0];
        if (run->handlers_do == APPEND) {
            // Nothing was jumped out of: not one is missing.
            CHECK(outcome->totals.sum.under_way == 0, "%llu", (unsigned long long)outcome->totals.sum.under_way);
            CHECK(outcome->totals.sum.hits == thread->hits, "%llu hits for %u",
                  (unsigned long long)outcome->totals.sum.hits, thread->hits);
            CHECK(outcome->totals.lost[QUT_TRACE_LOST_NESTED] == thread->refused, "%llu for %u",
                  (unsigned long long)outcome->totals.lost[QUT_TRACE_LOST_NESTED], thread->refused);
        }
        const struct qut_trace_thread *slot = decoder_thread(&decoder, 0);
        for (int level = 0; level < QUT_TRACE_LEVELS; level++)
            CHECK(slot->entry_sp[level] == 0, "level %d is under way for ever", level);
    }
    segment_unmap(&segment);
    printf(
        "# %llu instructions, %llu checks, %llu signals; longest round %llu; hits %llu, refused %u, doubtful %u; "
        "levels %llu %llu %llu\n",
        (unsigned long long)outcome->steps, (unsigned long long)outcome->checks, (unsigned long long)outcome->signals,
        (unsigned long long)outcome->longest, (unsigned long long)outcome->totals.sum.hits, shadow->threads[0].refused,
        shadow->threads[0].writers[0].doubt_count, (unsigned long long)shadow->threads[0].writers[0].done,
        (unsigned long long)shadow->threads[0].writers[1].done, (unsigned long long)shadow->threads[0].writers[2].done);
    return is_fine;
}

// ---- what is stepped through

static const struct shadow_plan merging = {.run_length = 1000, .has_metrics = true};
static const struct shadow_plan not_merging = {.run_length = 1, .has_metrics = true};
static const struct shadow_plan without_metrics = {.run_length = 2};
static const struct shadow_plan each_another = {.run_length = 1};
static const struct shadow_plan mixed = {.run_length = 3, .mark_every = 5, .extra_every = 4, .has_metrics = true};
static const struct shadow_plan long_records = {.run_length = 1, .extra_every = 1, .has_metrics = true};

static const struct run plain = {
    .rounds = 20,
    .appends = 1,
    .first = 0,
    .stride = 1,
    .mode = QUT_TRACE_OVERWRITE,
    .flags = QUT_TRACE_HAS_CPU_TIME,
    .seed = 1,
    .check_every = 1,
};

static struct run with(struct shadow_plan plan, enum policy policy, enum what_handlers_do handlers_do)
{
    struct run run = plain;
    run.check_every = is_heavy || policy == NEVER ? 1 : 5;
    run.plan = plan;
    run.policy = policy;
    run.handlers_do = handlers_do;
    return run;
}

enum { APPEND_INSTRUCTIONS = 1000 }; // the longest has fewer, but where a chunk begins

// Each round the signal comes a bit further on, in an append that opens no chunk.
static struct run at_one(struct shadow_plan plan, enum what_handlers_do handlers_do)
{
    struct run run = with(plan, AT_ONE, handlers_do);
    run.fill = 10;
    run.stride = is_heavy ? 1 : 127;
    run.rounds = APPEND_INSTRUCTIONS / run.stride;
    run.first = handlers_do * 7 + plan.run_length % 7;
    return run;
}

TEST(each_instruction_of_appends)
{
    struct outcome outcome;
    struct shadow_plan plans[] = {merging, not_merging, without_metrics, mixed};
    for (int i = 0; i < 4; i++) {
        struct run run = with(plans[i], NEVER, APPEND);
        drive(&run, &outcome);
    }
}

// Each round begins where a chunk is nearly full: one of its appends seals it and begins the next one, which, with all
// chunks in use, is one that is overwritten.
static void seal(enum policy policy, enum what_handlers_do handlers_do, uint32_t rounds, uint32_t stride)
{
    for (int is_full = 0; is_full < 2; is_full++) {
        struct outcome outcome;
        struct run run = with(long_records, policy, handlers_do);
        run.plan.mark_every = 9;
        run.fill = is_full ? 30000 : 0;
        run.to_the_brim = true;
        run.appends = 2;
        run.rounds = rounds;
        run.stride = stride;
        run.first = is_full ? 1 : 0;
        run.check_every = is_heavy ? 1 : is_full ? 50 : policy == NEVER ? 1 : 17; // a full segment takes long to decode
        drive(&run, &outcome);
        CHECK(outcome.longest > 1000, "no seal was stepped through: %llu", (unsigned long long)outcome.longest);
        CHECK(!is_full || outcome.totals.overwritten > 0, "nothing was overwritten");
    }
}

TEST(each_instruction_of_a_seal)
{
    seal(NEVER, APPEND, 4, 1);
}

TEST(a_signal_at_each_instruction)
{
    struct shadow_plan plans[] = {merging, not_merging, without_metrics, mixed};
    for (int i = 0; i < 4; i++) {
        struct outcome outcome;
        struct run run = at_one(plans[i], APPEND);
        drive(&run, &outcome);
        run = with(plans[i], AT_EACH, APPEND);
        run.rounds = is_heavy ? 20 : 1;
        run.stride = is_heavy ? 1 : 67;
        drive(&run, &outcome);
    }
}

TEST(a_signal_at_each_instruction_of_a_seal)
{
    seal(AT_ONE, APPEND, is_heavy ? 4000 : 4, is_heavy ? 1 : 1031);
    seal(AT_EACH, APPEND, 1, is_heavy ? 1 : 661);
}

// Handlers that interrupt each other, deeper than there are levels.
TEST(signals_in_signals)
{
    struct shadow_plan plans[] = {without_metrics, mixed, long_records};
    for (uint32_t seed = 1; seed <= (is_heavy ? 30 : 2); seed++) {
        struct outcome outcome;
        struct run run = with(plans[seed % 3], AT_RANDOM, APPEND);
        run.rounds = is_heavy ? 20 : 4;
        run.seed = seed;
        drive(&run, &outcome);
        CHECK(shadow->threads[0].refused > 0, "none was nested too deep");
    }
}

// A handler that jumps out of the append that it interrupted, with or without one of its own before.
TEST(jumps_out_of_appends)
{
    struct shadow_plan plans[] = {merging, not_merging, without_metrics, mixed};
    for (int i = 0; i < 8; i++) {
        struct outcome outcome;
        struct run run = at_one(plans[i % 4], i < 4 ? JUMP : APPEND_AND_JUMP);
        drive(&run, &outcome);
    }
    // At every one, behind two of the nodes that share an index: none is taken for the other.
    struct outcome outcome;
    struct run run = with(each_another, AT_ONE, JUMP);
    run.fill = 2 * SHADOW_NODES + 10;
    run.first = 300;                    // the commit comes later
    run.rounds = is_heavy ? 3000 : 150; // of code that was optimized, this is the rest
    run.check_every = 97;
    drive(&run, &outcome);
}

TEST(jumps_out_of_seals)
{
    seal(AT_ONE, JUMP, is_heavy ? 4000 : 4, is_heavy ? 1 : 1031);
    seal(AT_ONE, APPEND_AND_JUMP, is_heavy ? 4000 : 4, is_heavy ? 1 : 1031);
}

TEST(jumps_out_of_handlers_in_handlers)
{
    for (uint32_t seed = 1; seed <= (is_heavy ? 30 : 2); seed++) {
        struct outcome outcome;
        struct run run = with(seed % 2 ? mixed : without_metrics, AT_RANDOM, APPEND_AND_JUMP);
        run.rounds = is_heavy ? 40 : 10;
        run.seed = seed;
        drive(&run, &outcome);
    }
}

// Parent and child take turns: on one processor that takes a fraction of the time.
static void stay_here(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
}

int main(int argc, char **argv)
{
    stay_here();
    is_heavy = argc > 1 && strcmp(argv[1], "heavy") == 0;
    shadow = shadow_create();
    if (!shadow)
        return 1;
    RUN(each_instruction_of_appends);
    RUN(each_instruction_of_a_seal);
    RUN(a_signal_at_each_instruction);
    RUN(a_signal_at_each_instruction_of_a_seal);
    RUN(signals_in_signals);
    RUN(jumps_out_of_appends);
    RUN(jumps_out_of_seals);
    RUN(jumps_out_of_handlers_in_handlers);
    return tap_finish();
}
