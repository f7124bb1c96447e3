// SPDX-License-Identifier: Apache-2.0
// Walks of stacks as Android's virtual machine makes them: every form called by every other, walked from the innermost
// function and from each trap; with all shortcuts and without; the frames, what they are, and the dex pcs must be what
// is truly there.
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "tests/proof/managed/managed.h"
#include "tests/support/discipline.h"
#include "tests/support/tap.h"

static struct managed_chain chain;
static struct managed_frame expected[MANAGED_FRAMES_MAX];
static uintptr_t pcs[MANAGED_FRAMES_MAX + 1];
static bool with_limits; // each walk is done with every number of frames that there can be room for
static unsigned wrong_count;
static size_t walk_count, trap_count, dex_count, sized_count;

static const uint32_t tiers[] = {0, RUNTIME_TIER_LINKED, RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN,
                                 RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN};
enum { TIERS = sizeof tiers / sizeof *tiers, SAID_MAX = 20 };

__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    if (wrong_count++ >= SAID_MAX)
        return;
    printf("# ");
    for (size_t i = 0; i < chain.form_count; i++)
        printf("%s%s", i ? " > " : "", __start_managed_forms[chain.forms[i]].name);
    printf(": ");
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

// ---- one walk

// own_count: innermost frames that are not in `expected`.
static void judge_pcs(const char *where, size_t count, size_t own_count, size_t expected_count, size_t max,
                      const struct qut_end *end)
{
    size_t right_count = own_count + expected_count;
    bool is_cut = right_count > max;
    if (is_cut)
        right_count = max;
    if (count != right_count)
        return wrong("%s: %zu frames, not %zu; %s at %#zx", where, count, right_count, qut_end_reason_name(end->reason),
                     (size_t)end->pc);
    for (size_t i = own_count; i < count; i++)
        if (pcs[i] != expected[i - own_count].pc)
            return wrong("%s: frame %zu of %zu is at %#zx, not %#zx", where, i, count, (size_t)pcs[i],
                         (size_t)expected[i - own_count].pc);
    uint32_t reason = is_cut ? (uint32_t)QUT_END_LIMIT : chain.outer_end.reason;
    if (end->reason != reason || end->guessed_frame != QUT_NO_GUESS)
        wrong("%s: ends with %s, guess %u", where, qut_end_reason_name(end->reason), (unsigned)end->guessed_frame);
    walk_count++;
}

static void judge_cursor(const char *where, struct qut_cursor *cursor, size_t own_count, size_t expected_count)
{
    size_t count = 0;
    uint64_t sp = 0, caller_sp = 0;
    do {
        struct qut_frame frame;
        qut_cursor_frame(cursor, &frame);
        if (count >= own_count + expected_count)
            return wrong("%s: the cursor has more frames than there are", where);
        if (count++ < own_count)
            continue;
        const struct managed_frame *right = &expected[count - 1 - own_count];
        uint32_t flags = frame.flags & ~(uint32_t)QUT_FRAME_THUMB;
        if (frame.lookup_pc != right->pc || flags != right->flags)
            return wrong("%s: the cursor's frame %zu is at %#zx, flags %#x; not %#zx, %#x", where, count - 1,
                         (size_t)frame.lookup_pc, flags, (size_t)right->pc, right->flags);
        dex_count += (flags & QUT_FRAME_DEX) != 0;
        if (frame.flags & QUT_FRAME_DEX ? (frame.pc != right->pc || frame.flags & QUT_FRAME_THUMB) : frame.sp < sp)
            return wrong("%s: the cursor's frame %zu has pc %#zx, sp %#zx", where, count - 1, (size_t)frame.pc,
                         (size_t)frame.sp);
        if (caller_sp && frame.sp != caller_sp)
            return wrong("%s: the cursor's frame %zu has sp %#zx, not %#zx", where, count - 1, (size_t)frame.sp,
                         (size_t)caller_sp);
        sp = frame.sp;
        caller_sp = right->frame_bytes ? sp + right->frame_bytes : 0;
        sized_count += right->frame_bytes != 0;
    } while (qut_cursor_next(cursor));
    if (count != own_count + expected_count)
        wrong("%s: the cursor has %zu frames, not %zu", where, count, own_count + expected_count);
}

// ---- where walks begin

// Its frame 0 is its own, and those of `expected` are all others.
__attribute__((noinline)) static void walk_here(struct managed_chain *unused)
{
    (void)unused;
    struct qut_end end;
    size_t expected_count = managed_truth(&chain, expected);
    for (unsigned i = 0; i < TIERS; i++) {
        atomic_store_explicit(&runtime_tiers, tiers[i], memory_order_relaxed);
        for (size_t max = with_limits ? 1 : MANAGED_FRAMES_MAX; max <= MANAGED_FRAMES_MAX; max++) {
            size_t count = qut_backtrace(pcs, max, &end);
            judge_pcs("here", count, 1, expected_count, max, &end);
            if (max > expected_count)
                max = MANAGED_FRAMES_MAX;
        }
    }
    struct qut_cursor cursor;
    qut_cursor_here(&cursor);
    judge_cursor("here", &cursor, 1, expected_count);
}

static void walk_context(const void *ucontext, uintptr_t pc, const struct managed_spot *spot)
{
    char where[64];
    snprintf(where, sizeof where, "at %#zx", (size_t)(pc - chain.outer[0].pc));
    bool has_dex = spot->has_dex_pc && chain.dex_pc;
    size_t own_count = 1 + has_dex;
    expected[0] = (struct managed_frame){
        pc & ~(uintptr_t)arch_native_arch.has_thumb,
        QUT_FRAME_INTERRUPTED | (spot->is_interpreter ? QUT_FRAME_INTERPRETER : 0),
        0,
    };
    if (has_dex)
        expected[1] = (struct managed_frame){chain.dex_pc, QUT_FRAME_DEX, 0};
    size_t expected_count = own_count + managed_truth(&chain, expected + own_count);
    struct qut_end end;
    for (unsigned i = 0; i < TIERS; i++) {
        atomic_store_explicit(&runtime_tiers, tiers[i], memory_order_relaxed);
        for (size_t max = with_limits ? 1 : MANAGED_FRAMES_MAX; max <= MANAGED_FRAMES_MAX; max++) {
            size_t count = qut_backtrace_context(ucontext, pcs, max, &end);
            judge_pcs(where, count, 0, expected_count, max, &end);
            if (max > expected_count)
                max = MANAGED_FRAMES_MAX;
        }
    }
    struct qut_cursor cursor;
    qut_cursor_context(&cursor, ucontext);
    judge_cursor(where, &cursor, 0, expected_count);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)info;
    uintptr_t *pc = (uintptr_t *)((char *)context + arch_native_arch.ucontext_registers->pc_offset);
    const struct managed_spot *spot = managed_spot_at(*pc);
    if (!spot) {
        signal(number, SIG_DFL);
        return;
    }
    trap_count++;
    walk_context(context, *pc, spot);
    *pc = spot->behind; // without Thumb bit: the mode is another register's
}

// ---- chains

static bool start(void)
{
    static bool is_started;
    if (!is_started && (!discipline_has_compiler() || !discipline_start()))
        return false;
    is_started = true;
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    wrong_count = 0;
    walk_count = trap_count = dex_count = sized_count = 0;
    with_limits = false;
    return true;
}

static void run(const uint8_t *forms, size_t count)
{
    chain.forms = forms;
    chain.form_count = count;
    chain.leaf = walk_here;
    chain.dex_pc = 0x70000001;
    chain.bytes = 64;
    managed_run(&chain);
}

static void finish(void)
{
    CHECK(wrong_count == 0, "%u walks wrong", wrong_count);
    CHECK(walk_count > trap_count && trap_count > 0 && dex_count > 0 && sized_count > 0,
          "%zu walks, %zu traps, %zu dex frames, %zu of known size", walk_count, trap_count, dex_count, sized_count);
    CHECK(chain.outer_end.reason == QUT_END_OUTERMOST, "the stack ends with %s",
          qut_end_reason_name(chain.outer_end.reason));
    printf("# %zu walks, %zu traps, %zu dex frames\n", walk_count, trap_count, dex_count);
}

TEST(every_form_calls_every_other)
{
    if (!start())
        SKIP("no QUT_TEST_QUTC: no tables");
    for (uint8_t i = 0; i < managed_form_count(); i++)
        for (uint8_t k = 0; k < managed_form_count(); k++)
            run((uint8_t[]){i, k}, 2);
    finish();
}

// As they come in a program.
TEST(chains_of_a_virtual_machine)
{
    static const char *const names[] = {
        "native", "invoke_stub", "compiled", "jni_stub", "native", "invoke_stub", "switch", "native", "switch",
        "native", "compiled", "generic_jni", "native", "osr_stub", "compiled", "nterp", "nterp", "compiled", "mterp",
        "native", "mterp", "generic_jni", "native",
        // A class is initialised, in the interpreter; what that calls is resolved.
        "invoke_stub", "compiled", "save_everything", "native", "invoke_stub", "to_interpreter", "native", "switch",
        "native", "invoke_stub", "compiled", "save_refs_and_args", "native", "invoke_stub", "nterp",
        "save_refs_and_args", "native", "mterp", "native", "to_interpreter", "native", "switch", "native",
        // Allocates, calls native code in all ways, throws.
        "compiled", "save_refs_only", "native", "compiled", "fast_native", "native", "invoke_stub", "compiled",
        "critical_stub", "critical_native", "critical_lookup", "native", "save_all", "native"};
    if (!start())
        SKIP("no QUT_TEST_QUTC: no tables");
    uint8_t forms[sizeof names / sizeof *names];
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (managed_form_index(names[i]) >= 0)
            forms[count++] = (uint8_t)managed_form_index(names[i]);
    for (size_t first = 0; first < count; first += 3)
        run(forms + first, count - first);
    finish();
}

TEST(room_for_any_number_of_frames)
{
    if (!start())
        SKIP("no QUT_TEST_QUTC: no tables");
    with_limits = true;
    for (uint8_t i = 0; i < managed_form_count(); i++) {
        uint8_t interpreter = (uint8_t)managed_form_index("switch");
        run((uint8_t[]){interpreter, i, interpreter, interpreter}, 4);
    }
    finish();
}

int main(void)
{
    RUN(every_form_calls_every_other);
    RUN(chains_of_a_virtual_machine);
    RUN(room_for_any_number_of_frames);
    return tap_finish();
}
