// SPDX-License-Identifier: Apache-2.0
// Walks at each instruction of traced functions, thunks and stubs: a program steps itself, by the trap flag, and walks
// in the handler. In the program's own functions each walk is what it was before anything was traced; in thunks and
// stubs it has the callers that the function has, without a guess;
// a thunk counts as its function. So has the machine code of a probe's program, and what is called from there.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"
#include "tests/unit/agent/calls/account.h"
#include "tests/unit/agent/calls/machine_code.h"
#include "tests/unit/agent/calls/tail.h"
#include "tests/unit/agent/calls/thunks_inside.h"

// ---- the program: recursion, calls within calls, calls at the end, a function that is not traced in between

static volatile int made;
static volatile bool is_inside; // the program

#define PROGRAM __attribute__((noinline, section("program_text")))
extern const char __start_program_text[], __stop_program_text[]; // by the linker

void innermost(void);
PROGRAM TRACED void innermost(void)
{
    made++;
}

// Begins with push %rbp; mov %rsp, %rbp; push %rbx: five bytes, which are moved.
void moved(void);
__asm__(".pushsection program_text, \"ax\", @progbits\n"
        "moved:  .cfi_startproc\n"
        "        pushq %rbp\n"
        "        .cfi_def_cfa_offset 16\n"
        "        .cfi_offset rbp, -16\n"
        "        movq %rsp, %rbp\n"
        "        .cfi_def_cfa_register rbp\n"
        "        pushq %rbx\n"
        "        .cfi_offset rbx, -24\n"
        "        xorl %ebx, %ebx\n"
        "        subq $24, %rsp\n"
        "        call innermost\n"
        "        addq $24, %rsp\n"
        "        popq %rbx\n"
        "        popq %rbp\n"
        "        .cfi_def_cfa rsp, 8\n"
        "        ret\n"
        "        .cfi_endproc\n"
        "        .popsection\n");

// Begins with a call, which is moved as a push of what it returns to and a jump.
void calls_first(void);
__asm__(".pushsection program_text, \"ax\", @progbits\n"
        "calls_first: .cfi_startproc\n"
        "        .byte 0xe8; .long innermost - . - 4\n"
        "        subq $24, %rsp\n"
        "        .cfi_def_cfa_offset 32\n"
        "        call innermost\n"
        "        addq $24, %rsp\n"
        "        .cfi_def_cfa_offset 8\n"
        "        ret\n"
        "        .cfi_endproc\n"
        "        .popsection\n");

PROGRAM static void between(int n)
{
    volatile char room[72];
    room[0] = (char)n;
    moved();
    calls_first();
    made += room[0];
}

PROGRAM TRACED static void recursive(int n)
{
    between(n);
    if (n > 0)
        recursive(n - 1);
    made += tail_a(n);
}

static bool has_machine_code; // the program runs that, too

PROGRAM static void program(void)
{
    is_inside = true;
    if (has_machine_code) {
        const uint64_t fields[QUT_PROBE_FIELD_END] = {0};
        struct bytecode_host host = {machine_code_helper};
        made += (int)bytecode_machine.enter(machine_code, fields, &host);
    }
    for (int i = 0; i < 3; i++) {
        recursive(3);
        made += tail_a(i);
    }
    is_inside = false;
}

// ---- each step

enum { FRAMES_MAX = 40, STEPS_MAX = 40000, NOPS_BYTES = 5, FUNCTIONS = 6, TRAP_FLAG = 0x100 };

struct walk {
    size_t count;
    struct qut_end end;
    uintptr_t pcs[FRAMES_MAX];
};

static struct walk *walks; // of the program's own instructions, before anything was traced
static size_t walk_count, walk_next, steps, elsewhere, in_machine_code, guesses, wrong;
static char first_wrong[200];
static bool is_traced;
static bool has_places; // the last two functions are passed by way of the stub of places
static uintptr_t entries[FUNCTIONS];
static struct walk last; // at the last of the program's own instructions

static bool is_program(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_program_text && pc < (uintptr_t)__stop_program_text;
}

static bool is_patched(uintptr_t pc)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (pc - entries[i] < NOPS_BYTES)
            return true;
    return false;
}

// Of the functions that end in calls, which are not in the program's text.
static bool is_near_entry(uintptr_t pc)
{
    enum { SMALL_BYTES = 24 };
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (pc - entries[i] < SMALL_BYTES)
            return true;
    return false;
}

static void note_wrong(const char *what, const struct walk *walk, const struct walk *right)
{
    if (wrong++)
        return;
    snprintf(first_wrong, sizeof first_wrong, "step %zu, %s: %zu frames from %#zx, %s at %#zx; right: %zu from %#zx",
             steps, what, walk->count, (size_t)walk->pcs[0], qut_end_reason_name(walk->end.reason),
             (size_t)walk->end.pc, right->count, (size_t)right->pcs[0]);
}

static bool is_same(const struct walk *a, const struct walk *b)
{
    return a->count == b->count && a->end.reason == b->end.reason && a->end.pc == b->end.pc &&
           memcmp(a->pcs, b->pcs, a->count * sizeof *a->pcs) == 0;
}

// All of `right` but its innermost frame.
static bool has_callers(const struct walk *walk, const struct walk *right)
{
    size_t callers = right->count - 1;
    return walk->count > callers && walk->end.reason == right->end.reason &&
           memcmp(walk->pcs + walk->count - callers, right->pcs + 1, callers * sizeof *walk->pcs) == 0;
}

static void judge(uintptr_t pc, const struct walk *walk)
{
    if (!is_program(pc)) {
        if (!is_inside)
            return;
        elsewhere++;
        in_machine_code += pc - (uintptr_t)machine_code < machine_code_bytes;
        guesses += walk->end.guessed_frame != QUT_NO_GUESS;
        bool is_stub = is_traced && pc >= thunks_header()->stub_begin && pc < thunks_header()->stub_end;
        // What the stub of places calls runs each time, and is walked through as what it is.
        bool is_called = (has_places || has_machine_code) && pc - thunks_block() >= THUNKS_BLOCK_BYTES;
        if (!is_stub && !is_called && !is_program(walk->pcs[0]) && !is_near_entry(walk->pcs[0]))
            note_wrong("in a thunk", walk, &last);
        if (!has_callers(walk, &last))
            note_wrong("elsewhere", walk, &last);
        return;
    }
    last = *walk;
    if (is_patched(pc))
        return;
    if (!is_traced && walk_count < STEPS_MAX)
        walks[walk_count++] = *walk;
    else if (is_traced && (walk_next == walk_count || !is_same(walk, &walks[walk_next++])))
        note_wrong("in the program", walk, &walks[walk_next ? walk_next - 1 : 0]);
}

static void on_trap(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    static struct walk walk;
    uintptr_t pc = (uintptr_t)((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
    walk.count = qut_backtrace_context(ucontext, walk.pcs, FRAMES_MAX, &walk.end);
    steps++;
    judge(pc, &walk);
}

static void set_trap_flag(bool on)
{
    if (on)
        __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
    else
        __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
}

__attribute__((noinline)) static void step_through(bool traced)
{
    is_traced = traced;
    walk_next = steps = elsewhere = in_machine_code = guesses = 0;
    set_trap_flag(true);
    program();
    set_trap_flag(false);
}

static void trace(void (*const *functions)(void))
{
    trace_begins(RING, 4);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        CHECK(i < FUNCTIONS - 2 ? thunks_trace(functions[i], i + 1)
              : has_places      ? thunks_place(functions[i], i + 1)
                                : thunks_trace_moved(functions[i], i + 1),
              "no nops");
    functions[0](); // signals are blocked while a thread's first call is prepared: a trap would be the end
}

static void step_with(uint32_t tiers)
{
    static void (*const traced[FUNCTIONS])(void) = {
        innermost, (void (*)(void))recursive, (void (*)(void))tail_a, (void (*)(void))tail_b, moved, calls_first};
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    walks = calloc(STEPS_MAX, sizeof *walks);
    if (!walks || !discipline_start())
        abort();
    qut_thread_register();
    atomic_store_explicit(&runtime_tiers, tiers, memory_order_relaxed);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        entries[i] = (uintptr_t)traced[i];
    sigaction(SIGTRAP, &action, NULL);
    volatile unsigned round_count = 2; // unknown to the compiler: both are called from one place
    for (unsigned round = 0; round < round_count; round++) {
        if (round)
            trace(traced);
        step_through(round);
        CHECK(wrong == 0, "%zu of %zu steps wrong: %s", wrong, steps, first_wrong);
    }
    printf("# %zu steps, %zu of them in the program; %zu in thunks and stubs, %zu of these walked by a guess\n", steps,
           walk_count, elsewhere, guesses);
    CHECK(walk_count > 300 && walk_count < STEPS_MAX && walk_next == walk_count && elsewhere > 1000 && guesses == 0,
          "%zu steps, %zu seen again, %zu elsewhere", walk_count, walk_next, elsewhere);
    thunks_drain();
    CHECK(thunks_sums()->enters[1] == 37 && thunks_sums()->exits[1] == 37, "%lu", thunks_sums()->enters[1]);
}

TEST(each_instruction)
{
    step_with(0);
}

TEST(each_instruction_with_shortcuts)
{
    step_with(RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN);
}

TEST(each_instruction_by_places)
{
    has_places = true;
    step_with(0);
}

TEST(each_instruction_by_places_with_shortcuts)
{
    has_places = true;
    step_with(RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN);
}

static void step_with_machine_code(uint32_t tiers)
{
    has_machine_code = true;
    machine_code_make();
    step_with(tiers);
    CHECK(in_machine_code > (size_t)MACHINE_CODE_CALLS * 20, "%zu steps in machine code", in_machine_code);
}

TEST(each_instruction_of_machine_code)
{
    step_with_machine_code(0);
}

TEST(each_instruction_of_machine_code_with_shortcuts)
{
    step_with_machine_code(RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN);
}

int main(void)
{
    if (!discipline_has_compiler()) {
        printf("SKIP: no QUT_TEST_QUTC: no tables\n");
        return 77;
    }
    RUN_ALONE(each_instruction);
    RUN_ALONE(each_instruction_with_shortcuts);
    RUN_ALONE(each_instruction_by_places);
    RUN_ALONE(each_instruction_by_places_with_shortcuts);
    RUN_ALONE(each_instruction_of_machine_code);
    RUN_ALONE(each_instruction_of_machine_code_with_shortcuts);
    return tap_finish();
}
