// SPDX-License-Identifier: Apache-2.0
#include "libqut/walk/walk_local.h"

#include <stdatomic.h>
#include <string.h>

#include "libqut/modules/jit.h"
#include "libqut/modules/machine_code.h"
#include "libqut/os/os.h"

// ---- memory

static bool read_by_window(struct walk_local *local, uintptr_t address, uint64_t *value)
{
    uintptr_t word;
    if (address - local->window_start > local->window_bytes - sizeof word || local->window_bytes < sizeof word) {
        local->window_start = address;
        local->window_bytes = os_read_self(address, local->window, WALK_WINDOW_BYTES);
        if (local->window_bytes < sizeof word)
            return false;
    }
    memcpy(&word, local->window + (address - local->window_start), sizeof word);
    *value = word;
    return true;
}

static inline __attribute__((always_inline)) bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct walk_local *local = context;
    uintptr_t at = (uintptr_t)address;
    if (__builtin_expect(
            at >= local->direct_low && at < local->direct_high && local->direct_high - at >= sizeof(uintptr_t), 1)) {
        *value = os_load(at);
        return true;
    }
    return read_by_window(local, at, value);
}

enum { CODE_BEFORE_BYTES = 32 };

static bool holds_code(const struct runtime_code_window *window, uintptr_t at, size_t size)
{
    return at - window->start <= window->size && window->size - (at - window->start) >= size;
}

// Around an interrupted pc of which nothing is known, several read the code: the first of them brings what all want. A
// function of its own: without it a read needs no stack.
__attribute__((noinline)) static size_t read_by_code_window(struct runtime_code_window *window, uintptr_t at,
                                                            void *bytes, size_t size)
{
    if (!holds_code(window, at, size)) {
        window->start = at - CODE_BEFORE_BYTES;
        window->size = os_read_self(window->start, window->bytes, sizeof window->bytes);
    }
    if (!holds_code(window, at, size)) // it ends there, or begins
        return os_read_self(at, bytes, size);
    // By hand: a handler may interrupt this, and a memcpy of glibc's for i386 states its frame wrongly.
    const uint8_t *from = window->bytes + (at - window->start);
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)bytes)[i] = from[i];
        __asm__("" ::: "memory");
    }
    return size;
}

static size_t read_code(void *context, uint64_t pc, void *bytes, size_t size)
{
    struct walk_local *local = context;
    return local->has_code_window ? read_by_code_window(&local->thread->code_window, (uintptr_t)pc, bytes, size)
                                  : os_read_self((uintptr_t)pc, bytes, size);
}

enum { PAGE_BYTES = 4096, PROBED_PAGES_MAX = 64 };

// Whether a part of a stack is there. One system call a page.
static bool probe(uintptr_t low, uintptr_t high)
{
    if (high - low > (uintptr_t)PROBED_PAGES_MAX * PAGE_BYTES)
        return false;
    for (uintptr_t at = low & ~(uintptr_t)(PAGE_BYTES - 1); at < high; at += PAGE_BYTES) {
        uint8_t byte;
        if (os_read_self(at, &byte, 1) != 1)
            return false;
    }
    return true;
}

// Lowers the thread's stack_low to an address that the stack reached. Never from what a context says alone: a thread
// can have guard pages inside its stack, and a corrupt sp can point at them.
static void note_growth(struct runtime_thread *thread, uintptr_t sp, uintptr_t here)
{
    bool is_running_stack = here >= thread->stack_limit && here < thread->stack_high;
    if (is_running_stack && here < thread->stack_low)
        thread->stack_low = here;
    if (!is_running_stack && sp >= thread->stack_limit && sp < thread->stack_low && probe(sp, thread->stack_low))
        thread->stack_low = sp;
}

bool walk_local_grown(struct runtime_thread *thread, uintptr_t sp, uintptr_t here)
{
    note_growth(thread, sp, here);
    return sp >= thread->stack_low;
}

// `here`: whatever lies between it and its stack's end is mapped.
void walk_local_choose_direct(struct walk_local *local, uintptr_t sp, uintptr_t here)
{
    local->direct_low = local->direct_high = 0;
    struct runtime_thread *thread = local->thread;
    if (thread && sp < thread->stack_high && sp >= thread->stack_limit) {
        walk_local_on_own_stack(thread, sp, here);
        local->direct_low = thread->stack_low;
        local->direct_high = thread->stack_high;
        return;
    }
    uintptr_t low, high;
    if (sp >= here && os_alternate_stack(&low, &high) && here >= low && here < high && sp < high) {
        local->direct_low = here;
        local->direct_high = high;
    }
}

// ---- code

enum { CALL_SITE_BITS = 10 };

// Return addresses before which a call was found, and where no trampoline begins: reading code takes a system call.
// Shared by all threads, each word on its own. Where code was put in place of other code an answer may be old: it makes
// a guess no more than a guess.
static _Atomic uintptr_t call_sites[1 << CALL_SITE_BITS];

static inline _Atomic uintptr_t *call_site_place(uint64_t pc)
{
    return &call_sites[(pc * 0x9e3779b97f4a7c15u) >> (64 - CALL_SITE_BITS)];
}

bool walk_local_is_known_call(uint64_t pc)
{
    return atomic_load_explicit(call_site_place(pc), memory_order_relaxed) == (uintptr_t)pc;
}

static enum runtime_call_site call_site(void *context, uint64_t pc)
{
    if (walk_local_is_known_call(pc))
        return RUNTIME_CALL_SITE;
    enum runtime_call_site site = runtime_read_call_site(&arch_native_arch, read_code, context, pc);
    if (site == RUNTIME_CALL_SITE && !runtime_is_trampoline(&arch_native_arch, read_code, context, pc))
        atomic_store_explicit(call_site_place(pc), (uintptr_t)pc, memory_order_relaxed);
    return site;
}

// Nothing tells when it goes. But what stands on the stack does not: once a walk.
static bool confirm_unlisted(struct walk_local *local, const struct module *module, uintptr_t pc)
{
    if (local->unlisted == module->unlisted)
        return true;
    if (!module_confirm(module, pc)) {
        modules_want_mappings();
        return false;
    }
    local->unlisted = module->unlisted;
    return true;
}

static bool holds(struct walk_local *local, const struct module *module, uintptr_t pc)
{
    if (module->unlisted)
        return confirm_unlisted(local, module, pc);
    return local->up_to_date || module == local->confirmed || module_confirm(module, pc);
}

static void find_code(void *context, uint64_t pc, struct runtime_code *code)
{
    struct walk_local *local = context;
    if (modules_machine_made((uintptr_t)pc, code)) {
        local->confirmed = NULL;
        return;
    }
    const struct module *module = modules_at(local->modules, (uintptr_t)pc);
    if (module && holds(local, module, (uintptr_t)pc)) {
        local->confirmed = module;
        *code = module->code;
        return;
    }
    if (!module && modules_jit_find((uintptr_t)pc, &local->confirmed, code))
        return; // to be confirmed
    if (!module && modules_machine_find((uintptr_t)pc, code)) {
        local->confirmed = NULL;
        return;
    }
    // A module that the list does not have yet, or code that belongs to none.
    *code =
        (struct runtime_code){.state = module || !local->up_to_date ? RUNTIME_CODE_PENDING : RUNTIME_CODE_NO_MODULE};
    if (code->state == RUNTIME_CODE_NO_MODULE && modules_is_code((uintptr_t)pc))
        code->frame_pointers = RUNTIME_FRAME_POINTERS_OF_MADE_CODE;
    modules_want_refresh();
}

static uint64_t strip(void *context, uint64_t pc)
{
    (void)context;
    return arch_native_strip(pc);
}

static bool machine_rule(void *context, const void *machine, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                         struct arch_interpreted *interpreted)
{
    (void)context;
    return modules_machine_rule(machine, (uintptr_t)pc, kind, rule, interpreted);
}

// Code whose frames are sized by it has read it: so may we, unless the kernel has switched vectors off since. It never
// changes.
uint64_t walk_local_vector_bytes(void)
{
    static _Atomic uint32_t known;
    if (!arch_native_arch.vector_bytes_reg)
        return 0;
    uint32_t bytes = atomic_load_explicit(&known, memory_order_relaxed); // all threads store the same
    if (bytes == 0 && os_vectors_are_on()) {
        bytes = (uint32_t)arch_native_vector_bytes();
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

static uint64_t vector_bytes(void *context)
{
    (void)context;
    return walk_local_vector_bytes();
}

static bool true_return(void *context, uint64_t sp, uint64_t *pc)
{
    (void)context;
    return modules_art_true_return(sp, pc);
}

const struct runtime_walk_ops walk_local_ops = {.read = read_stack,
                                                .read_code = read_code,
                                                .find = find_code,
                                                .strip = strip,
                                                .vector_bytes = vector_bytes,
                                                .call_site = call_site,
                                                .is_known_call = walk_local_is_known_call,
                                                .machine_rule = machine_rule,
                                                .true_return = true_return};

// ---- the walk

void walk_local_begin(struct walk_local *local, struct runtime_thread *thread, const struct modules *modules,
                      uintptr_t sp, uintptr_t here)
{
    local->thread = thread;
    local->modules = modules;
    local->up_to_date = modules && modules_up_to_date(modules);
    if (modules && !local->up_to_date)
        modules_want_refresh();
    local->confirmed = NULL;
    local->window_start = local->window_bytes = 0;
    local->has_code_window = false;
    walk_local_choose_direct(local, sp, here);
}

__attribute__((noinline)) void walk_local_find_rule(struct walk_local *local, struct runtime_walk *walk)
{
    runtime_classify(&arch_native_arch, &walk_local_ops, local, walk);
}

__attribute__((noinline)) bool walk_local_find_true_return(struct walk_local *local, struct runtime_walk *walk)
{
    return runtime_find_true_return(&arch_native_arch, &walk_local_ops, local, walk);
}

__attribute__((noinline)) void walk_local_confirm(struct walk_local *local, struct runtime_walk *walk)
{
    uint64_t pc = arch_lookup_pc(runtime_plain_pc(&arch_native_arch, walk->regs.pc), walk->pc_kind);
    bool holds = walk->end.reason == QUT_END_NO_MODULE
                     ? modules_jit_confirm_nothing((uintptr_t)pc, &local->jit)
                     : !local->confirmed || // a machine's, which it says itself
                           modules_jit_confirm((uintptr_t)pc, local->confirmed, local->thread, &local->jit);
    if (holds)
        return;
    walk->end.refusal = 0;
    runtime_walk_ends(&arch_native_arch, walk, QUT_END_TABLE_PENDING);
}

bool walk_local_leave(struct walk_local *local, struct runtime_walk *walk)
{
    return runtime_leave(&arch_native_arch, &walk_local_ops, local, walk);
}

bool walk_local_is_exchanged(const struct runtime_walk *walk)
{
    return runtime_is_exchanged(walk);
}

bool walk_local_leave_exchanged(struct walk_local *local, struct runtime_walk *walk)
{
    return runtime_leave_by_rule(&arch_native_arch, &walk_local_ops, local, walk);
}

bool walk_local_no_progress(struct runtime_walk *walk)
{
    return runtime_walk_ends(&arch_native_arch, walk, QUT_END_NO_PROGRESS);
}

bool walk_local_not_started(struct runtime_walk *walk)
{
    return runtime_walk_ends(&arch_native_arch, walk, QUT_END_NOT_STARTED);
}

// ---- where walks begin

void walk_local_begin_at_capture(struct runtime_walk *walk, const struct arch_capture *capture)
{
    const struct arch *arch = &arch_native_arch;
    struct arch_caller *regs = &walk->regs;
    regs->pc = arch_native_strip(capture->pc);
    regs->sp = capture->sp;
    regs->valid = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        regs->tracked[slot] = capture->tracked[slot];
        regs->valid |= (uint64_t)1 << arch->tracked[slot];
    }
    runtime_begin(walk, ARCH_PC_RETURN);
}

void walk_local_begin_at_context(struct runtime_walk *walk, const void *ucontext)
{
    const struct arch *arch = &arch_native_arch;
    const struct arch_register_layout *layout = arch->ucontext_registers;
    struct arch_caller *regs = &walk->regs;
    uintptr_t block = (uintptr_t)ucontext;
    regs->pc = arch_native_strip(os_load(block + layout->pc_offset));
    regs->sp = os_load(block + layout->reg_offset[arch->sp_reg]);
    regs->valid = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        regs->tracked[slot] = os_load(block + layout->reg_offset[arch->tracked[slot]]);
        regs->valid |= (uint64_t)1 << arch->tracked[slot];
    }
    runtime_begin(walk, ARCH_PC_EXACT);
    walk->block_address = block;
    walk->block_layout = layout;
}
