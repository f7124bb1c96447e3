// SPDX-License-Identifier: Apache-2.0
// Walks a thread of a target.
#include <stdlib.h>

#include "libqut/runtime/walk.h"
#include "libqut/target/opened_target.h"

enum {
    ATTEMPTS_MAX = 16,       // at a thread that sleeps now and again
    PAGE_BYTES = 4096,       // or a part of one
    ZEROS_LEAST_BYTES = 256, // on a stack: fewer may be true
};

static const struct target_code_range *find_range(struct qut_target *target, uint64_t pc)
{
    // Callers often lie in the same module.
    if (target->last_range < target->range_count) {
        const struct target_code_range *last = &target->ranges[target->last_range];
        if (pc >= last->start && pc < last->end)
            return last;
    }
    size_t low = 0, high = target->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (target->ranges[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == target->range_count || target->ranges[low].start > pc)
        return NULL;
    target->last_range = low;
    return &target->ranges[low];
}

// Executable memory that is no ELF image.
static void find_made_code(struct qut_target *target, struct target_image *image, uint64_t pc,
                           struct runtime_code *code)
{
    // A group of methods has holes where methods were that are gone or have files of their own.
    bool has_table = target_find_jit(target, pc, code);
    if (has_table && target_has_row(code->table, pc))
        return;
    if (target_find_hotspot(target, pc, code) || target_find_art(target, pc, code) || has_table)
        return;
    if (!target_jit_reason(target, pc, image->reason, sizeof image->reason) &&
        !target_hotspot_reason(target, image->reason, sizeof image->reason))
        return;
    image->table_state = TARGET_TABLE_NONE;
    code->state = RUNTIME_CODE_NO_TABLE;
}

static void find_code(void *context, uint64_t pc, struct runtime_code *code)
{
    struct qut_target *target = context;
    const struct target_code_range *range = find_range(target, pc);
    *code = (struct runtime_code){.state = RUNTIME_CODE_NO_MODULE};
    if (!range)
        return;
    struct target_image *image = range->image;
    if (target->frame_pointers)
        code->frame_pointers = image->is_elf ? RUNTIME_FRAME_POINTERS_OF_IMAGE : RUNTIME_FRAME_POINTERS_OF_MADE_CODE;
    if (!image->is_elf) {
        find_made_code(target, image, pc, code);
        return;
    }
    if (image->table_state == TARGET_TABLE_UNTRIED)
        target_make_table(target, image);
    code->state = image->table_state == TARGET_TABLE_READY ? RUNTIME_CODE_READY : RUNTIME_CODE_NO_TABLE;
    code->table = &image->stored.table;
    code->load_bias = image->load_bias;
    code->entry = image->entry;
    // A compiler may put its code into a buffer inside an image.
    if (code->state != RUNTIME_CODE_READY || !target_has_row(code->table, pc - code->load_bias))
        target_find_jit(target, pc, code);
}

static uint64_t strip(void *context, uint64_t pc)
{
    const struct qut_target *target = context;
    return target->arch->has_signed_ra ? pc & ~target->pac_mask : pc;
}

static uint64_t vector_bytes(void *context)
{
    const struct qut_target *target = context;
    return target->vector_bytes;
}

static const struct runtime_walk_ops ops = {
    .read = target_read_word,
    .read_code = target_read_code,
    .find = find_code,
    .strip = strip,
    .vector_bytes = vector_bytes,
    .machine_rule = target_machine_rule,
    .leave_switch = target_go_leave,
    .true_return = target_art_true_return,
};

// Code that is called lies in executable memory: another return address was never one, and what led to it is broken.
// What a signal interrupted can stand anywhere, after a call through a bad pointer.
static bool is_caller(struct qut_target *target, struct runtime_walk *walk)
{
    const struct arch *arch = target->arch;
    uint64_t pc = walk->regs.pc & ~(uint64_t)(arch->has_thumb ? 1 : 0);
    if (walk->pc_kind != ARCH_PC_RETURN || (walk->flags & QUT_FRAME_DEX))
        return true;
    uint64_t lookup_pc = arch_lookup_pc(pc, ARCH_PC_RETURN);
    if (find_range(target, lookup_pc))
        return true;
    walk->end.reason = target_maps_find(&target->maps, lookup_pc) ? QUT_END_NOT_CODE : QUT_END_NO_MODULE;
    walk->end.pc = pc;
    return false;
}

// What the rule rests on by which this frame is left.
static uint32_t origin_flags(const struct runtime_walk *walk)
{
    if (walk->end.reason != QUT_END_NOT || walk->trampoline || (walk->flags & (QUT_FRAME_DEX | QUT_FRAME_GUESSED)) ||
        walk->rule.kind != QUT_RULE_FRAME)
        return 0;
    return walk->rule.origin == QUT_RULE_FROM_CODE  ? QUT_FRAME_FROM_CODE
           : walk->rule.origin == QUT_RULE_DOUBTFUL ? QUT_FRAME_DOUBTFUL
                                                    : 0u;
}

static size_t walk_frames(struct qut_target *target, const struct arch_frame_regs *regs, struct qut_frame *frames,
                          size_t max, struct qut_end *end)
{
    struct arch_frame_regs top = *regs;
    top.pc = strip(target, top.pc);
    struct runtime_walk walk;
    target_begin_reads(target);
    target_jit_new_moment(target);
    runtime_walk_begin(target->arch, &walk, &top, ARCH_PC_EXACT);
    size_t count = 0;
    do {
        runtime_walk_frame(target->arch, &ops, target, &walk, &frames[count]);
        frames[count].flags |= origin_flags(&walk);
        count++;
    } while (count < max && runtime_walk_step(target->arch, &ops, target, &walk) && is_caller(target, &walk));
    *end = walk.end;
    if (count == max && end->reason == QUT_END_NOT) {
        end->reason = QUT_END_LIMIT;
        end->pc = frames[count - 1].pc;
    }
    return count;
}

size_t target_walk_copy(struct qut_target *target, const struct arch_frame_regs *regs, struct target_copy *copy,
                        struct qut_frame *frames, size_t max, struct qut_end *end)
{
    copy->reached = 0;
    target->copy = copy;
    target->go = (struct target_go){.is_read = true, .walk.thread = copy->go};
    target->art_thread = 0; // what it leads to is of a later moment: the copy has what was
    size_t count = walk_frames(target, regs, frames, max, end);
    target->copy = NULL;
    return count;
}

// A new thread's stack begins where no rule is. Of the thread that made it, the caller stands on top of the stack.
static size_t walk_and_end(struct qut_target *target, const struct qut_target_thread *thread, struct qut_frame *frames,
                           size_t max, struct qut_end *end)
{
    size_t count = walk_frames(target, &thread->regs, frames, max, end);
    if (count == 1 && end->reason == QUT_END_NO_ROW && thread->is_newborn)
        end->reason = QUT_END_OUTERMOST;
    return count;
}

// What gdb cannot read of a process is zeros in the core file that it writes (seen with gcore 13 and stacks of
// OpenJDK's threads), and a return address of zero means the outermost frame elsewhere.
static void doubt_zeros(struct qut_target *target, const struct qut_target_thread *thread, size_t count,
                        struct qut_end *end)
{
    uint8_t bytes[PAGE_BYTES + ZEROS_LEAST_BYTES];
    uint64_t sp = thread->regs.reg[target->arch->sp_reg];
    size_t size = PAGE_BYTES - (size_t)(sp % PAGE_BYTES);
    if (size < ZEROS_LEAST_BYTES)
        size += PAGE_BYTES;
    if (target->kind->stop || count != 1 || end->reason != QUT_END_OUTERMOST ||
        target->kind->read(target, sp, bytes, size) != size)
        return;
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return;
    end->reason = QUT_END_BAD_MEMORY;
    end->address = sp;
}

static size_t walk_stopped(struct qut_target *target, const struct qut_target_thread *thread, struct qut_frame *frames,
                           size_t max, struct qut_end *end)
{
    target->go = (struct target_go){.thread_pointer = thread->thread_pointer};
    target->art_thread = thread->art_thread;
    size_t count = walk_and_end(target, thread, frames, max, end);
    doubt_zeros(target, thread, count, end);
    return count;
}

static size_t no_frames(struct qut_end *end, enum qut_end_reason reason)
{
    *end = (struct qut_end){.reason = reason, .guessed_frame = QUT_NO_GUESS};
    return 0;
}

// What was read counts if nothing of it has changed, and the thread did not wake meanwhile.
static bool walk_noted(struct qut_target *target, struct qut_target_thread *thread, struct qut_frame *frames,
                       size_t max, struct qut_end *end, size_t *count)
{
    target->notes = target->note_room;
    target->go = (struct target_go){.sleeper = thread};
    *count = walk_and_end(target, thread, frames, max, end);
    bool holds = target_words_hold(target) && target_jit_holds(target) && target->kind->still_asleep(target, thread);
    target->notes = NULL;
    return holds;
}

static size_t walk_asleep(struct qut_target *target, struct qut_target_thread *thread, struct qut_frame *frames,
                          size_t max, struct qut_end *end)
{
    if (!target->note_room)
        target->note_room = malloc(TARGET_READ_NOTES_MAX * sizeof *target->note_room);
    if (!target->note_room)
        return no_frames(end, QUT_END_NO_PROGRESS);
    bool can_retake = target->kind->retake && target->stopped;
    // A thread that waited for a disk may be done by now.
    if (can_retake && !*thread->info.asleep_in && !target->kind->retake(target, thread))
        return no_frames(end, QUT_END_NO_REGISTER);
    for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        size_t count;
        if (thread->state == TARGET_REGISTERS_READ)
            return walk_stopped(target, thread, frames, max, end);
        if (walk_noted(target, thread, frames, max, end, &count))
            return count;
        if (!can_retake)
            break;
        if (!target->kind->retake(target, thread))
            return no_frames(end, QUT_END_NO_REGISTER);
    }
    return no_frames(end, QUT_END_NO_PROGRESS);
}

static size_t walk_thread(struct qut_target *target, struct qut_target_thread *thread, struct qut_frame *frames,
                          size_t max, struct qut_end *end)
{
    if (thread->state == TARGET_REGISTERS_NONE)
        return no_frames(end, QUT_END_NO_REGISTER);
    if (thread->state == TARGET_REGISTERS_READ)
        return walk_stopped(target, thread, frames, max, end);
    return walk_asleep(target, thread, frames, max, end);
}

size_t qut_target_walk(struct qut_target *target, size_t index, struct qut_frame *frames, size_t max,
                       struct qut_end *end)
{
    struct qut_end unused;
    if (!end)
        end = &unused;
    if (index >= target->thread_count)
        return no_frames(end, QUT_END_NO_REGISTER);
    if (max == 0)
        return no_frames(end, QUT_END_LIMIT);
    struct qut_target_thread *thread = &target->threads[index];
    if (thread->state == TARGET_REGISTERS_UNREAD && target->one_by_one && target->kind->retake) {
        if (!target->kind->retake(target, thread))
            thread->state = TARGET_REGISTERS_NONE;
    }
    if (thread->state == TARGET_REGISTERS_UNREAD)
        thread->state = target->kind->registers && target->kind->registers(target, thread) ? TARGET_REGISTERS_READ
                                                                                           : TARGET_REGISTERS_NONE;
    size_t count = walk_thread(target, thread, frames, max, end);
    target_hotspot_identify(target, frames, count);
    return count;
}
