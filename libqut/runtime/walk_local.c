// SPDX-License-Identifier: Apache-2.0
// Walking the calling thread. Everything here is signal-safe: it allocates nothing, takes no lock, keeps errno, and all
// of its state is on its own stack, below 1 KiB.
#include <string.h>

#include <qut/local.h>

#include "libqut/arch/native.h"
#include "libqut/os/os.h"
#include "libqut/runtime/modules.h"
#include "libqut/runtime/stats.h"
#include "libqut/runtime/walk_step.h"

enum { WINDOW_BYTES = 32 };

// What one walk works with.
struct local {
    struct qut_thread *thread; // NULL: not registered
    const struct qut_modules *modules;
    bool up_to_date;                    // every answer of `modules` holds; else each is confirmed
    bool outermost;                     // no other walk of this thread is under way: the cache may be written
    const struct qut_module *confirmed; // the one that was found last
    // The part of the stack that is known to be there: read directly.
    uintptr_t direct_low, direct_high;
    // Elsewhere: what the last fault-safe read brought.
    uintptr_t window_start;
    size_t window_bytes;
    uint8_t window[WINDOW_BYTES];
};

// ---- memory

static bool read_by_window(struct local *local, uintptr_t address, uint64_t *value)
{
    uintptr_t word;
    if (address - local->window_start > local->window_bytes - sizeof word || local->window_bytes < sizeof word) {
        local->window_start = address;
        local->window_bytes = qut_os_read_self(address, local->window, WINDOW_BYTES);
        if (local->window_bytes < sizeof word)
            return false;
    }
    memcpy(&word, local->window + (address - local->window_start), sizeof word);
    *value = word;
    return true;
}

static inline __attribute__((always_inline)) bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct local *local = context;
    uintptr_t at = (uintptr_t)address;
    if (__builtin_expect(
            at >= local->direct_low && at < local->direct_high && local->direct_high - at >= sizeof(uintptr_t), 1)) {
        *value = qut_os_load(at);
        return true;
    }
    return read_by_window(local, at, value);
}

static size_t read_code(void *context, uint64_t pc, void *bytes, size_t size)
{
    (void)context;
    return qut_os_read_self((uintptr_t)pc, bytes, size);
}

enum { PAGE_BYTES = 4096, PROBED_PAGES_MAX = 64 };

// Whether a part of a stack is there. One system call a page.
static bool probe(uintptr_t low, uintptr_t high)
{
    if (high - low > (uintptr_t)PROBED_PAGES_MAX * PAGE_BYTES)
        return false;
    for (uintptr_t at = low & ~(uintptr_t)(PAGE_BYTES - 1); at < high; at += PAGE_BYTES) {
        uint8_t byte;
        if (qut_os_read_self(at, &byte, 1) != 1)
            return false;
    }
    return true;
}

// Lowers the thread's stack_low to an address that the stack reached. Never from what a context says alone: a thread
// can have guard pages inside its stack, and a corrupt sp can point at them.
static void note_growth(struct qut_thread *thread, uintptr_t sp, uintptr_t here)
{
    bool is_running_stack = here >= thread->stack_limit && here < thread->stack_high;
    if (is_running_stack && here < thread->stack_low)
        thread->stack_low = here;
    if (!is_running_stack && sp >= thread->stack_limit && sp < thread->stack_low && probe(sp, thread->stack_low))
        thread->stack_low = sp;
}

// Which stack is sp on, and what of it is sure to be there? `here` is an address on the running stack: whatever lies
// between it and its stack's end is mapped.
static void choose_direct(struct local *local, uintptr_t sp, uintptr_t here)
{
    local->direct_low = local->direct_high = 0;
    struct qut_thread *thread = local->thread;
    if (thread && sp < thread->stack_high && sp >= thread->stack_limit) {
        note_growth(thread, sp, here);
        local->direct_low = thread->stack_low;
        local->direct_high = thread->stack_high;
        return;
    }
    uintptr_t low, high;
    if (sp >= here && qut_os_alternate_stack(&low, &high) && here >= low && here < high && sp < high) {
        local->direct_low = here;
        local->direct_high = high;
    }
}

// ---- code

static void find_code(void *context, uint64_t pc, struct qut_code *code)
{
    struct local *local = context;
    const struct qut_module *module = qut_modules_find(local->modules, (uintptr_t)pc);
    if (module && (local->up_to_date || module == local->confirmed || qut_module_confirm(module, (uintptr_t)pc))) {
        local->confirmed = module;
        *code = module->code;
        return;
    }
    // A module that the list does not have yet, or code that belongs to none.
    *code = (struct qut_code){.state = module || !local->up_to_date ? QUT_CODE_PENDING : QUT_CODE_NO_MODULE};
    qut_modules_want_refresh();
}

static uint64_t strip(void *context, uint64_t pc)
{
    (void)context;
    return qut_native_strip(pc);
}

static const struct qut_walk_ops local_ops = {read_stack, read_code, find_code, strip};

// ---- the walk

static void begin(struct local *local, uintptr_t sp, uintptr_t here)
{
    local->thread = qut_thread_self;
    local->modules = qut_modules_enter(local->thread);
    local->outermost = local->thread && atomic_load_explicit(&local->thread->walking, memory_order_relaxed) == 1;
    local->up_to_date = local->modules && qut_modules_up_to_date(local->modules);
    if (local->modules && !local->up_to_date)
        qut_modules_want_refresh();
    local->confirmed = NULL;
    local->window_start = local->window_bytes = 0;
    choose_direct(local, sp, here);
}

static void finish(struct local *local)
{
    qut_modules_leave(local->thread);
}

// cfa = base + k; ra, tracked registers = *(cfa + k). False: leave the frame by the long way, nothing is changed.
__attribute__((noinline)) static bool leave_by_cached(struct local *local, struct qut_walk *walk,
                                                      const struct qut_cached_rule *rule)
{
    const struct qut_arch *arch = &qut_native_arch;
    struct qut_caller *regs = &walk->regs;
    uint64_t sp_bit = (uint64_t)1 << arch->sp_reg, base, ra;
    if (rule->base_slot == QUT_CACHED_SP) {
        base = regs->sp;
    } else {
        base = regs->tracked[rule->base_slot];
        if (!(regs->valid >> arch->tracked[rule->base_slot] & 1))
            return false;
    }
    uint64_t cfa = (base + (uint64_t)(int64_t)rule->cfa_offset_bytes) & qut_word_mask(arch);
    // Progress must be certain, and the innermost frame, where sp may stay, is rare: the long way judges it. An
    // unchanged ra is in its register, which is known in interrupted frames only: the long way, too.
    if (!(regs->valid & sp_bit) || cfa <= regs->sp || rule->ra_offset_bytes == QUT_CACHED_SAME ||
        !read_stack(local, cfa + (uint64_t)(int64_t)rule->ra_offset_bytes, &ra))
        return false;
    uint64_t pc = qut_native_strip(ra);
    if (pc == 0)
        return false;

    uint64_t valid = sp_bit;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        uint64_t bit = (uint64_t)1 << arch->tracked[slot];
        int16_t offset = rule->tracked_offset_bytes[slot];
        if (offset == QUT_CACHED_SAME)
            valid |= regs->valid & bit;
        else if (offset != QUT_CACHED_LOST && read_stack(local, cfa + (uint64_t)(int64_t)offset, &regs->tracked[slot]))
            valid |= bit;
    }
    regs->pc = pc;
    regs->sp = cfa;
    regs->valid = valid;
    walk->block_layout = NULL;
    walk->pc_kind = QUT_PC_RETURN;
    walk->flags = 0;
    walk->index++;
    return true;
}

// A function of its own: the stack for looking a rule up is not needed while it is applied.
__attribute__((noinline)) static void classify(struct local *local, struct qut_walk *walk)
{
    bool cacheable = false;
    qut_classify(&qut_native_arch, &local_ops, local, walk, &cacheable);
    if (cacheable && local->up_to_date && local->outermost)
        qut_cache_put(&local->thread->cache, &qut_native_arch,
                      (uintptr_t)qut_lookup_pc(qut_plain_pc(&qut_native_arch, walk->regs.pc), walk->pc_kind),
                      local->modules->epoch, &walk->rule);
}

static bool step(struct local *local, struct qut_walk *walk, uintptr_t here)
{
    if (!walk->classified)
        classify(local, walk);
    bool was_signal = walk->flags & QUT_FRAME_SIGNAL;
    if (!qut_leave(&qut_native_arch, &local_ops, local, walk))
        return false;
    if (was_signal)
        choose_direct(local, (uintptr_t)walk->regs.sp, here);
    return true;
}

static size_t collect(struct local *local, struct qut_walk *walk, uintptr_t *pcs, size_t max, uintptr_t here)
{
    const struct qut_arch *arch = &qut_native_arch;
    bool use_cache = local->thread && local->up_to_date;
    for (size_t count = 0;; count++) {
        if (count == max) {
            qut_walk_ends(&qut_native_arch, walk, QUT_END_LIMIT);
            return count;
        }
        uintptr_t pc = (uintptr_t)qut_plain_pc(arch, walk->regs.pc);
        uintptr_t lookup_pc = (uintptr_t)qut_lookup_pc(pc, walk->pc_kind);
        pcs[count] = lookup_pc;
        if (use_cache) {
            const struct qut_cached_rule *rule =
                qut_cache_find(&local->thread->cache, lookup_pc, local->modules->epoch);
            if (rule && leave_by_cached(local, walk, rule))
                continue;
        }
        bool moved = step(local, walk, here);
        // Only now is it known that the handler's frame returned into a trampoline, at its first instruction.
        bool was_signal = moved ? walk->pc_kind == QUT_PC_EXACT : (walk->flags & QUT_FRAME_SIGNAL) != 0;
        if (was_signal)
            pcs[count] = pc;
        if (!moved)
            return count + 1;
    }
}

// ---- where walks begin

static void begin_at_capture(struct qut_walk *walk, const struct qut_capture *capture)
{
    const struct qut_arch *arch = &qut_native_arch;
    struct qut_caller *regs = &walk->regs;
    regs->pc = qut_native_strip(capture->pc);
    regs->sp = capture->sp;
    regs->valid = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        regs->tracked[slot] = capture->tracked[slot];
        regs->valid |= (uint64_t)1 << arch->tracked[slot];
    }
    qut_begin(walk, QUT_PC_RETURN);
}

static void begin_at_context(struct qut_walk *walk, const void *ucontext)
{
    const struct qut_arch *arch = &qut_native_arch;
    const struct qut_register_layout *layout = arch->ucontext_registers;
    struct qut_caller *regs = &walk->regs;
    uintptr_t block = (uintptr_t)ucontext;
    regs->pc = qut_native_strip(qut_os_load(block + layout->pc_offset));
    regs->sp = qut_os_load(block + layout->reg_offset[arch->sp_reg]);
    regs->valid = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        regs->tracked[slot] = qut_os_load(block + layout->reg_offset[arch->tracked[slot]]);
        regs->valid |= (uint64_t)1 << arch->tracked[slot];
    }
    qut_begin(walk, QUT_PC_EXACT);
    walk->block_address = block;
    walk->block_layout = layout;
}

// From a capture, or else from a ucontext. One frame of stack for both: there is not much.
static size_t run(const struct qut_capture *capture, const void *ucontext, uintptr_t *pcs, size_t max,
                  struct qut_end *end)
{
    struct qut_walk walk;
    struct local local;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (capture)
        begin_at_capture(&walk, capture);
    else
        begin_at_context(&walk, ucontext);
    begin(&local, (uintptr_t)walk.regs.sp, here);
    size_t count = 0;
    if (local.modules)
        count = collect(&local, &walk, pcs, max, here);
    else
        qut_walk_ends(&qut_native_arch, &walk, QUT_END_NOT_STARTED);
    qut_stats_count_end(walk.end.reason);
    finish(&local);
    if (end)
        *end = walk.end;
    return count;
}

// capture.S calls these two.
size_t qut_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct qut_capture *capture);
void qut_cursor_captured(struct qut_cursor *cursor, const struct qut_capture *capture);

size_t qut_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct qut_capture *capture)
{
    return run(capture, NULL, pcs, max, end);
}

size_t qut_backtrace_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end)
{
    return run(NULL, ucontext, pcs, max, end);
}

// ---- cursor

static_assert(sizeof(struct qut_walk) <= sizeof(struct qut_cursor), "the cursor's size is part of the ABI");

static struct qut_walk *walk_of(struct qut_cursor *cursor)
{
    return (struct qut_walk *)cursor->opaque;
}

void qut_cursor_captured(struct qut_cursor *cursor, const struct qut_capture *capture)
{
    begin_at_capture(walk_of(cursor), capture);
}

void qut_cursor_context(struct qut_cursor *cursor, const void *ucontext)
{
    begin_at_context(walk_of(cursor), ucontext);
}

// Between two calls nothing is held: each finds the modules anew.
static bool enter(struct local *local, struct qut_walk *walk, uintptr_t here)
{
    begin(local, (uintptr_t)walk->regs.sp, here);
    return local->modules || qut_walk_ends(&qut_native_arch, walk, QUT_END_NOT_STARTED);
}

void qut_cursor_frame(struct qut_cursor *cursor, struct qut_frame *frame)
{
    struct qut_walk *walk = walk_of(cursor);
    if (!walk->classified) {
        struct local local;
        if (enter(&local, walk, (uintptr_t)__builtin_frame_address(0)))
            classify(&local, walk);
        finish(&local);
    }
    qut_describe(&qut_native_arch, walk, frame);
}

int qut_cursor_next(struct qut_cursor *cursor)
{
    struct qut_walk *walk = walk_of(cursor);
    struct local local;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool moved = enter(&local, walk, here) && step(&local, walk, here);
    finish(&local);
    return moved;
}

int qut_cursor_register(const struct qut_cursor *cursor, unsigned dwarf_register, uint64_t *value)
{
    const struct qut_walk *walk = (const struct qut_walk *)cursor->opaque;
    struct local local = {0}; // no part of the stack is sure: a signal context is read carefully
    return qut_register(&qut_native_arch, &local_ops, &local, walk, dwarf_register, value);
}

void qut_cursor_end(const struct qut_cursor *cursor, struct qut_end *end)
{
    *end = ((const struct qut_walk *)cursor->opaque)->end;
}
