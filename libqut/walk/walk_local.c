// SPDX-License-Identifier: Apache-2.0
#include "libqut/walk/walk_local.h"

#include <stdatomic.h>
#include <string.h>

#include "libqut/modules/jit.h"
#include "libqut/modules/machine_code.h"
#include "libqut/os/os.h"
#include "libqut/walk/known_code.h"

// ---- memory

// The step under way is not one of those that are kept by themselves.
static void give_up_keeping(struct walk_local *local)
{
    if (local->has_seen_steps)
        walk_seen_give_up(local->thread->seen);
}

// It depends on what cannot be compared.
static void cannot_be_kept(struct walk_local *local)
{
    give_up_keeping(local);
    local->is_spoiled = true;
}

// Functions that are jumped to: a read needs next to no stack. This one calls, so it keeps in registers as little as it
// can: on aarch64 the longest way of a walk ends in it, and with one more took 1,024 bytes.
__attribute__((noinline)) static bool fill_window(struct walk_local *local, uintptr_t address, uint64_t *value)
{
    uintptr_t word;
    local->window_start = address;
    local->window_bytes = (uint8_t)os_read_self(address, local->window, WALK_WINDOW_BYTES);
    if (local->window_bytes < sizeof word)
        return false;
    memcpy(&word, local->window, sizeof word);
    *value = word;
    return true;
}

__attribute__((noinline)) static bool read_by_window(struct walk_local *local, uintptr_t address, uint64_t *value)
{
    uintptr_t word;
    cannot_be_kept(local);
    if (local->window_bytes < sizeof word || address - local->window_start > local->window_bytes - sizeof word)
        return fill_window(local, address, value);
    memcpy(&word, local->window + (address - local->window_start), sizeof word);
    *value = word;
    return true;
}

__attribute__((noinline)) static bool read_and_note(struct walk_local *local, uintptr_t address, uint64_t *value)
{
    *value = os_load(address);
    walk_seen_note_read(local->thread->seen, address, (uintptr_t)*value);
    if (local->is_recorded)
        walk_trail_reads(local->thread->trail, address, (uintptr_t)*value);
    return true;
}

static inline __attribute__((always_inline)) bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct walk_local *local = context;
    uintptr_t at = (uintptr_t)address;
    if (!__builtin_expect(walk_is_direct(local->direct, at), 1))
        return read_by_window(local, at, value);
    if (local->has_seen_steps)
        return read_and_note(local, at, value);
    *value = os_load(at);
    return true;
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
    local->direct = (struct walk_direct){0};
    struct runtime_thread *thread = local->thread;
    if (thread && sp < thread->stack_high && sp >= thread->stack_limit) {
        walk_local_on_own_stack(thread, sp, here);
        local->direct = (struct walk_direct){thread->stack_low, thread->stack_high};
        return;
    }
    uintptr_t low, high;
    if (sp >= here && os_alternate_stack(&low, &high) && here >= low && here < high && sp < high) {
        local->direct = (struct walk_direct){here, high};
    }
}

// ---- code

static enum runtime_call_site call_site(void *context, uint64_t pc)
{
    if (walk_is_known_call(pc))
        return RUNTIME_CALL_SITE;
    cannot_be_kept(context); // next time it is known
    enum runtime_call_site site = runtime_read_call_site(&arch_native_arch, read_code, context, pc);
    if (site == RUNTIME_CALL_SITE && !runtime_is_trampoline(&arch_native_arch, read_code, context, pc))
        walk_keep_call(pc);
    return site;
}

static bool holds(struct walk_local *local, const struct module *module, uintptr_t pc)
{
    if (module->unlisted)
        return walk_local_confirm_unlisted(local, module, pc);
    return local->up_to_date || module == local->confirmed || module_confirm(module, pc);
}

// What code's rules rest on that is found at pc.
static void note_source(struct walk_local *local, uint64_t pc, enum runtime_rule_proof proof, uint32_t number)
{
    if (!local->has_seen_steps)
        return;
    if (local->is_recorded)
        walk_trail_rests_on(local->thread->trail, (uintptr_t)pc, proof, number);
    local->source = (struct walk_rule_source){.is_known = proof == RUNTIME_RULE_LISTED || number != 0,
                                              .proof = (uint8_t)proof,
                                              .number = number,
                                              .pc = (uintptr_t)pc};
}

static void find_code(void *context, uint64_t pc, struct runtime_code *code)
{
    struct walk_local *local = context;
    local->source.is_known = false;
    if (modules_machine_made((uintptr_t)pc, code)) {
        local->confirmed = NULL;
        if (code->has_entries)
            return;
        give_up_keeping(local); // compiled code: it comes and goes
        if (local->is_recorded)
            walk_trail_meets_machine(local->thread->trail);
        return;
    }
    const struct module *module = modules_at(local->modules, (uintptr_t)pc);
    if (module && holds(local, module, (uintptr_t)pc)) {
        local->confirmed = module;
        *code = module->code;
        note_source(local, pc, module->unlisted ? RUNTIME_RULE_UNLISTED : RUNTIME_RULE_LISTED, module->unlisted);
        if (module->unlisted)
            give_up_keeping(local);
        return;
    }
    // What was made at run time, and is followed by a guess, may be kept: it stays a guess.
    const bool may_be_described = module || modules_jit_is_known() || modules_machine_is_known();
    if (may_be_described)
        give_up_keeping(local);
    if (!module && modules_jit_find((uintptr_t)pc, &local->confirmed, code)) { // to be confirmed
        if (code->state == RUNTIME_CODE_READY)
            note_source(local, pc, RUNTIME_RULE_MADE, modules_jit_list_of(local->confirmed));
        else
            cannot_be_kept(local);
        return;
    }
    if (!module && modules_machine_find((uintptr_t)pc, code)) {
        if (local->has_seen_steps) // it is asked for
            note_source(local, pc, RUNTIME_RULE_COUNTED, walk_local_made_number(local, (uintptr_t)pc));
        local->confirmed = NULL;
        return;
    }
    if (may_be_described)
        cannot_be_kept(local);
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
    cannot_be_kept(context);
    return modules_art_true_return(sp, pc);
}

const struct runtime_walk_ops walk_local_ops = {.read = read_stack,
                                                .read_code = read_code,
                                                .find = find_code,
                                                .strip = strip,
                                                .vector_bytes = vector_bytes,
                                                .call_site = call_site,
                                                .is_known_call = walk_is_known_call,
                                                .known_edge = walk_known_edge,
                                                .keep_edge = walk_keep_edge,
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
    local->window_start = 0;
    local->window_bytes = 0;
    local->has_code_window = local->has_seen_steps = false;
    local->is_recorded = local->is_spoiled = false;
    local->source.is_known = false;
    walk_local_choose_direct(local, sp, here);
}

void walk_local_use_thread(struct walk_local *local)
{
    struct runtime_seen_steps *seen = local->thread->seen;
    local->has_code_window = true;
    local->thread->code_window.size = 0;
    local->has_seen_steps = seen && walk_seen_is_used() && local->up_to_date;
    if (!local->has_seen_steps)
        return;
    walk_seen_begin(seen, local->modules->epoch, modules_made_generation());
    walk_rules_begin(local->thread->rules, local->modules->epoch, modules_made_generation());
    walk_trail_begin(local->thread->trail, local->modules->epoch, modules_made_generation());
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
