// SPDX-License-Identifier: Apache-2.0
// Signal frames on stacks, found without unwinding: by what the kernel writes. A handler's return address leads to the
// code that ends it (rt_sigreturn, known by its bytes); behind it lies a ucontext with what was interrupted.
#include <stdlib.h>
#include <string.h>

#include "tracer/patch/inside.h"

enum { STACK_BYTES_MAX = 8 << 20, STACKS_MAX = 8, CONTEXT_FLAGS_MAX = 0xff };

static bool is_code(const struct qut_target *target, uint64_t pc)
{
    size_t low = 0, high = target->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (target->ranges[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < target->range_count && target->ranges[low].start <= pc;
}

uint64_t patch_word_at(const uint8_t *bytes, unsigned word_bytes)
{
    uint64_t wide;
    uint32_t narrow;
    if (word_bytes == sizeof wide) {
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
    memcpy(&narrow, bytes, sizeof narrow);
    return narrow;
}

static bool ends_handler(struct patch_process *process, const struct arch_trampoline *trampoline, uint64_t address)
{
    struct qut_target *target = process->target;
    uint8_t code[sizeof trampoline->code];
    return target->kind->read(target, address, code, trampoline->code_bytes) == trampoline->code_bytes &&
           memcmp(code, trampoline->code, trampoline->code_bytes) == 0;
}

// A handler can be a traced function.
static uint64_t true_return(struct patch_process *process, uint64_t slot, uint64_t word)
{
    struct qut_target *target = process->target;
    uint64_t kept = 0;
    if (process->stub.exit_return == 0 || word != process->stub.exit_return ||
        target->kind->read(target, slot - process->stub.shadow_distance, &kept, sizeof kept) != sizeof kept)
        return word;
    return kept;
}

// The frame whose handler's return address is the first of `bytes`: where in them the interrupted pc is, and the
// interrupted sp. A ucontext begins with flags, of which there are few, and a link, which the kernel leaves 0.
static bool read_frame(struct patch_process *process, uint64_t slot, const uint8_t *bytes, size_t size,
                       size_t *pc_offset, uint64_t *sp)
{
    const struct qut_target *target = process->target;
    const struct arch *arch = target->arch;
    unsigned word = arch->word_bytes;
    if (size < 3 * (size_t)word || patch_word_at(bytes + 2 * word, word) != 0 ||
        patch_word_at(bytes + word, word) > CONTEXT_FLAGS_MAX || !is_code(target, patch_word_at(bytes, word)))
        return false;
    for (unsigned i = 0; i < arch->trampoline_count; i++) {
        const struct arch_trampoline *trampoline = &arch->trampolines[i];
        const struct arch_register_layout *layout = trampoline->layout;
        if (!layout || trampoline->entries[0].registers_offset != 0 || layout->size_bytes + word > size)
            continue;
        *pc_offset = word + layout->pc_offset;
        *sp = patch_word_at(bytes + word + layout->reg_offset[arch->sp_reg], word);
        const struct target_map *map = target_maps_find(&target->maps, *sp);
        if (map && map->writable &&
            ends_handler(process, trampoline, true_return(process, slot, patch_word_at(bytes, word))))
            return true;
    }
    return false;
}

size_t patch_read_stack(struct patch_process *process, uint64_t sp, bool *is_whole)
{
    const struct target_map *map = target_maps_find(&process->target->maps, sp);
    if (!map || !map->writable)
        return 0;
    uint64_t size = map->end - sp;
    if (size > STACK_BYTES_MAX) {
        *is_whole = false;
        size = STACK_BYTES_MAX;
    }
    if (size > process->stack_capacity) {
        uint8_t *more = realloc(process->stack, (size_t)size);
        if (!more) {
            *is_whole = false;
            return 0;
        }
        process->stack = more;
        process->stack_capacity = (size_t)size;
    }
    return process->target->kind->read(process->target, sp, process->stack, (size_t)size);
}

// A return address stands behind a call. Others are left from before: what makes the stub known has its addresses on
// its stack, and stacks have places that nobody has written since.
static bool is_in_stub(const struct patch_process *process, uint64_t word)
{
    struct qut_target *target = process->target;
    uint8_t bytes[ARCH_CALL_BYTES];
    if (word <= process->stub.start || word >= process->stub.end || word == process->stub.exit_return)
        return false;
    return target->arch->call_site_count == 0 ||
           target->kind->read(target, word - sizeof bytes, bytes, sizeof bytes) != sizeof bytes ||
           arch_is_call_site(target->arch, bytes);
}

bool patch_each_handler(struct patch_process *process, uint64_t sp, patch_handler_fn each, void *context,
                        unsigned *in_stub)
{
    struct qut_target *target = process->target;
    unsigned word = target->arch->word_bytes;
    bool is_whole = true;
    // A handler may have a stack of its own: what it interrupted has another.
    for (unsigned stacks = 0; stacks < STACKS_MAX && sp != 0; stacks++) {
        uint64_t start = (sp + word - 1) & ~(uint64_t)(word - 1), next = 0;
        size_t size = patch_read_stack(process, start, &is_whole);
        for (size_t at = 0; at + word <= size; at += word) {
            size_t pc_offset;
            uint64_t interrupted_sp;
            *in_stub += is_in_stub(process, patch_word_at(process->stack + at, word));
            if (!read_frame(process, start + at, process->stack + at, size - at, &pc_offset, &interrupted_sp))
                continue;
            each(context, patch_word_at(process->stack + at + pc_offset, word), start + at + pc_offset);
            if (interrupted_sp < start || interrupted_sp >= start + size)
                next = interrupted_sp;
        }
        sp = next;
    }
    return is_whole;
}
