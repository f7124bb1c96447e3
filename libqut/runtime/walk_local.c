// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/walk_local.h"

#include <stdatomic.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/runtime/jit.h"

// ---- memory

static bool read_by_window(struct qut_local *local, uintptr_t address, uint64_t *value)
{
    uintptr_t word;
    if (address - local->window_start > local->window_bytes - sizeof word || local->window_bytes < sizeof word) {
        local->window_start = address;
        local->window_bytes = qut_os_read_self(address, local->window, QUT_WINDOW_BYTES);
        if (local->window_bytes < sizeof word)
            return false;
    }
    memcpy(&word, local->window + (address - local->window_start), sizeof word);
    *value = word;
    return true;
}

static inline __attribute__((always_inline)) bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct qut_local *local = context;
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

bool qut_local_grown(struct qut_thread *thread, uintptr_t sp, uintptr_t here)
{
    note_growth(thread, sp, here);
    return sp >= thread->stack_low;
}

// `here`: whatever lies between it and its stack's end is mapped.
void qut_local_choose_direct(struct qut_local *local, uintptr_t sp, uintptr_t here)
{
    local->direct_low = local->direct_high = 0;
    struct qut_thread *thread = local->thread;
    if (thread && sp < thread->stack_high && sp >= thread->stack_limit) {
        qut_local_on_own_stack(thread, sp, here);
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
    struct qut_local *local = context;
    const struct qut_module *module = qut_modules_find(local->modules, (uintptr_t)pc);
    if (module && (local->up_to_date || module == local->confirmed || qut_module_confirm(module, (uintptr_t)pc))) {
        local->confirmed = module;
        *code = module->code;
        return;
    }
    if (!module && qut_jit_find((uintptr_t)pc, &local->confirmed, code))
        return; // to be confirmed
    // A module that the list does not have yet, or code that belongs to none.
    *code = (struct qut_code){.state = module || !local->up_to_date ? QUT_CODE_PENDING : QUT_CODE_NO_MODULE};
    qut_modules_want_refresh();
}

static uint64_t strip(void *context, uint64_t pc)
{
    (void)context;
    return qut_native_strip(pc);
}

// Code whose frames are sized by it has read it: so may we, unless the kernel has switched vectors off since. It never
// changes.
uint64_t qut_local_vector_bytes(void)
{
    static _Atomic uint32_t known;
    if (!qut_native_arch.vector_bytes_reg)
        return 0;
    uint32_t bytes = atomic_load_explicit(&known, memory_order_relaxed); // whoever stores, stores the same
    if (bytes == 0 && qut_os_vectors_are_on()) {
        bytes = (uint32_t)qut_native_vector_bytes();
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

static uint64_t vector_bytes(void *context)
{
    (void)context;
    return qut_local_vector_bytes();
}

const struct qut_walk_ops qut_local_ops = {read_stack, read_code, find_code, strip, vector_bytes};

// ---- the walk

void qut_local_begin(struct qut_local *local, struct qut_thread *thread, const struct qut_modules *modules,
                     uintptr_t sp, uintptr_t here)
{
    local->thread = thread;
    local->modules = modules;
    local->up_to_date = modules && qut_modules_up_to_date(modules);
    if (modules && !local->up_to_date)
        qut_modules_want_refresh();
    local->confirmed = NULL;
    local->window_start = local->window_bytes = 0;
    qut_local_choose_direct(local, sp, here);
}

__attribute__((noinline)) void qut_local_find_rule(struct qut_local *local, struct qut_walk *walk)
{
    qut_classify(&qut_native_arch, &qut_local_ops, local, walk);
}

__attribute__((noinline)) void qut_local_confirm(struct qut_local *local, struct qut_walk *walk)
{
    uint64_t pc = qut_lookup_pc(qut_plain_pc(&qut_native_arch, walk->regs.pc), walk->pc_kind);
    bool holds = walk->end.reason == QUT_END_NO_MODULE ? qut_jit_confirm_nothing((uintptr_t)pc)
                                                       : qut_jit_confirm((uintptr_t)pc, &local->confirmed);
    if (holds)
        return;
    walk->end.refusal = 0;
    qut_walk_ends(&qut_native_arch, walk, QUT_END_TABLE_PENDING);
}

bool qut_local_leave(struct qut_local *local, struct qut_walk *walk)
{
    return qut_leave(&qut_native_arch, &qut_local_ops, local, walk);
}

bool qut_local_not_started(struct qut_walk *walk)
{
    return qut_walk_ends(&qut_native_arch, walk, QUT_END_NOT_STARTED);
}

// ---- where walks begin

void qut_local_begin_at_capture(struct qut_walk *walk, const struct qut_capture *capture)
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

void qut_local_begin_at_context(struct qut_walk *walk, const void *ucontext)
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
