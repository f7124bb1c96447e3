// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/backtrace.h"

#include <qut/local.h>

#include "libqut/runtime/stats.h"

// ---- slowly

static void begin_slowly(struct qut_backtrace *b, struct qut_walk *walk)
{
    if (b->count <= 1) {
        if (b->capture)
            qut_local_begin_at_capture(walk, b->capture);
        else
            qut_local_begin_at_context(walk, b->ucontext);
        return;
    }
    qut_begin(walk, QUT_PC_RETURN);
    walk->index = (uint32_t)b->count - 1;
    walk->switches = b->switches;
    walk->end.guessed_frame = b->guessed_frame;
    walk->regs.pc = b->key;
    walk->regs.sp = b->at.sp;
    walk->regs.tracked[QUT_NATIVE_FP_SLOT] = b->at.fp;
    walk->regs.valid = (uint64_t)1 << qut_native_arch.sp_reg | (uint64_t)1
                                                                   << qut_native_arch.tracked[QUT_NATIVE_FP_SLOT];
    b->forgot = true;
}

// At a caller on the thread's own stack, of which all is known that the fast ways want to know.
static bool go_on_fast(struct qut_backtrace *b, const struct qut_walk *walk)
{
    uint64_t needed = (uint64_t)1 << qut_native_arch.sp_reg | (uint64_t)1
                                                                  << qut_native_arch.tracked[QUT_NATIVE_FP_SLOT];
    uintptr_t sp = (uintptr_t)walk->regs.sp;
    if (!b->is_fast || walk->pc_kind != QUT_PC_RETURN || (walk->regs.valid & needed) != needed ||
        !qut_local_on_own_stack(b->thread, sp, b->here))
        return false;
    // What is remembered ascends. An alternate stack can lie anywhere, in the thread's own too.
    if (b->remembers && !b->memo_is_done && qut_memo_last(&b->thread->memo)->sp >= sp)
        qut_walk_fast_end(b, STOP_STUCK);
    b->switches = walk->switches;
    b->guessed_frame = walk->end.guessed_frame;
    b->key = (uintptr_t)qut_plain_pc(&qut_native_arch, walk->regs.pc);
    b->at = (struct qut_memo_frame){
        .sp = sp, .fp = (uintptr_t)walk->regs.tracked[QUT_NATIVE_FP_SLOT], .ra = (uintptr_t)walk->regs.pc};
    return true;
}

// From the frame the walk is at, which was given out if any was. True: the fast ways can go on; false: b->end is set.
__attribute__((noinline)) static bool run_slowly(struct qut_backtrace *b)
{
    struct qut_walk walk;
    struct qut_local local;
    begin_slowly(b, &walk);
    qut_local_begin(&local, b->thread, b->modules, (uintptr_t)walk.regs.sp, b->here);
    bool moved = true;
    for (bool is_given = b->count != 0; moved; is_given = false) {
        uintptr_t pc = (uintptr_t)qut_plain_pc(&qut_native_arch, walk.regs.pc);
        if (!is_given) {
            if (b->count && go_on_fast(b, &walk))
                return true;
            if (b->count == b->max) {
                qut_walk_ends(&qut_native_arch, &walk, QUT_END_LIMIT);
                break;
            }
            if (b->count && b->remembers)
                b->thread->memo.contiguous = false;
            b->pcs[b->count++] = (uintptr_t)qut_lookup_pc(pc, walk.pc_kind);
        }
        b->slow_count++;
        moved = qut_local_step(&local, &walk, b->here);
        // Only now is it known that the handler's frame returned into a trampoline, at its first instruction.
        bool was_signal = moved ? walk.pc_kind == QUT_PC_EXACT : (walk.flags & QUT_FRAME_SIGNAL) != 0;
        if (was_signal)
            b->pcs[b->count - 1] = pc;
    }
    b->end = walk.end;
    return false;
}

// ---- where walks begin

// Whether the fast ways can be taken at all.
static bool begin_fast(struct qut_backtrace *b)
{
    struct qut_thread *thread = b->thread;
    uint32_t tiers = atomic_load_explicit(&qut_tiers, memory_order_relaxed);
    if (!thread || atomic_load_explicit(&thread->walking, memory_order_relaxed) != 1)
        return false;
    thread->memo.contiguous = false;
    if (!(tiers & QUT_TIER_LINKED) || !qut_local_on_own_stack(thread, b->at.sp, b->here) ||
        !qut_modules_up_to_date(b->modules))
        return false;
    if (__builtin_expect(thread->links.epoch != b->modules->epoch, 0)) {
        qut_link_cache_restart(&thread->links, b->modules->epoch);
        qut_memo_restart(&thread->memo);
    }
    b->remembers = (tiers & QUT_TIER_MEMO) && qut_memo_begin(&thread->memo);
    return true;
}

static void run_all(struct qut_backtrace *b)
{
    enum qut_stop stop = STOP_STUCK;
    b->is_fast = begin_fast(b);
    if (b->is_fast)
        stop = qut_walk_fast(b);
    while (stop == STOP_STUCK && run_slowly(b))
        stop = qut_walk_fast(b);
    if (b->remembers)
        qut_walk_fast_end(b, stop);
    if (b->is_fast && stop != STOP_END)
        b->thread->memo.contiguous = false;
    if (stop == STOP_STUCK && b->end.reason == QUT_END_NO_REGISTER && b->forgot) {
        b->is_fast = b->remembers = false;
        b->count = 0;
        run_slowly(b);
    }
    if (stop == STOP_STUCK)
        return;
    // Only where no frame was left yet can the pc be an interrupted one.
    bool is_exact = b->ucontext && b->count <= (stop == STOP_END);
    b->end = (struct qut_end){.reason = stop == STOP_END ? QUT_END_OUTERMOST : QUT_END_LIMIT,
                              .pc = is_exact ? b->key - 1 : b->key,
                              .guessed_frame = b->guessed_frame};
}

static void count(const struct qut_backtrace *b)
{
    struct qut_thread *thread = b->thread;
    qut_stats_count_end(b->end.reason);
    if (!thread || atomic_load_explicit(&thread->walking, memory_order_relaxed) != 1)
        return;
    thread->counts.walks++;
    thread->counts.frames += b->count;
    thread->counts.remembered += b->remembered_count;
    thread->counts.looked_up += b->slow_count;
    if (b->remembers)
        qut_memo_judge(&thread->memo, b->count, b->remembered_count);
}

static size_t run(struct qut_backtrace *b, struct qut_end *end)
{
    b->thread = qut_thread_self;
    b->modules = qut_modules_enter(b->thread);
    if (b->modules)
        run_all(b);
    else
        b->end = (struct qut_end){
            .reason = QUT_END_NOT_STARTED, .pc = b->ucontext ? b->key - 1 : b->key, .guessed_frame = QUT_NO_GUESS};
    count(b);
    qut_modules_leave(b->thread);
    if (end)
        *end = b->end;
    return b->count;
}

// capture.S calls it.
size_t qut_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct qut_capture *capture);

size_t qut_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct qut_capture *capture)
{
    struct qut_backtrace b = {
        .pcs = pcs,
        .max = max,
        .capture = capture,
        .here = (uintptr_t)__builtin_frame_address(0),
        .at = {.sp = capture->sp, .fp = capture->tracked[QUT_NATIVE_FP_SLOT], .ra = capture->pc},
        .key = qut_key_of(capture->pc),
        .guessed_frame = QUT_NO_GUESS,
    };
    return run(&b, end);
}

size_t qut_backtrace_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end)
{
    const struct qut_register_layout *layout = qut_native_arch.ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = qut_os_load(block + layout->pc_offset);
    uintptr_t sp = qut_os_load(block + layout->reg_offset[qut_native_arch.sp_reg]);
    uintptr_t fp = qut_os_load(block + layout->reg_offset[qut_native_arch.tracked[QUT_NATIVE_FP_SLOT]]);
    struct qut_backtrace b = {
        .pcs = pcs,
        .max = max,
        .ucontext = ucontext,
        .here = (uintptr_t)__builtin_frame_address(0),
        .at = {.sp = sp, .fp = fp, .ra = pc, .step.fp_offset_bytes = QUT_MEMO_EXACT},
        .key = qut_key_of(pc) + 1,
        .guessed_frame = QUT_NO_GUESS,
    };
    return run(&b, end);
}
