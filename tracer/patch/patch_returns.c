// SPDX-License-Identifier: Apache-2.0
// Return addresses that the enter stub has exchanged: put back wherever they still are. They are found by the shadow,
// not by walks: stacks of coroutines that nobody runs have one as well. Of the shadow's pages those are read that were
// written to, as the kernel says (pagemap).
#include <string.h>
#include <unistd.h>

#include "formats/qut_calls.h"
#include "tracer/patch/inside.h"

enum { PAGE_BYTES = 4096, PAGES_AT_ONCE = 4096, SLOT_BYTES = 8 };
static const uint64_t page_is_present = (uint64_t)1 << 63, page_is_swapped = (uint64_t)1 << 62;

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

// Threads in the exit stub put their return address back themselves, and tell the exit. 8 behind their slot is sp.
static bool note_leaving(struct patch_process *process)
{
    const struct qut_target *target = process->target;
    const struct patch_stub *stub = &process->stub;
    process->leaving.count = 0;
    for (size_t i = 0; i < target->thread_count; i++) {
        const struct qut_target_thread *thread = &target->threads[i];
        if (thread->state == TARGET_REGISTERS_NONE || thread->regs.pc < stub->exit_return ||
            thread->regs.pc >= stub->exit_end)
            continue;
        uint64_t *slot = BASE_ADD(&process->leaving);
        if (!slot)
            return false;
        *slot = thread->regs.reg[target->arch->sp_reg] - sizeof *slot;
    }
    return true;
}

static bool is_leaving(const struct patch_process *process, uint64_t slot)
{
    for (size_t i = 0; i < process->leaving.count; i++)
        if (process->leaving.items[i] == slot)
            return true;
    return false;
}

// The word that is kept for a slot is its exit's event, and names the slot: nothing else looks like it.
static void restore_page(struct patch_process *process, uint64_t shadow_page, struct patch_figures *figures)
{
    const uint64_t stack_page = shadow_page + process->stub.shadow_distance;
    struct qut_target *target = process->target;
    const uint64_t words_page = stack_page - process->stub.words_distance;
    uint8_t shadow[PAGE_BYTES], stack[PAGE_BYTES], words[PAGE_BYTES];
    if (target->kind->read(target, shadow_page, shadow, sizeof shadow) != sizeof shadow ||
        target->kind->read(target, words_page, words, sizeof words) != sizeof words ||
        target->kind->read(target, stack_page, stack, sizeof stack) != sizeof stack)
        return;
    figures->moved_bytes += sizeof shadow + sizeof words + sizeof stack;
    for (size_t at = 0; at < PAGE_BYTES; at += SLOT_BYTES) {
        const uint64_t slot = stack_page + at, event = word_at(words + at), to = word_at(shadow + at);
        if (word_at(stack + at) != process->stub.exit_return || to == 0 ||
            (event & ~(uint64_t)QUT_CALLS_EVENT_TAIL) != qut_calls_exit_word(slot, qut_calls_word_id(event)) ||
            is_leaving(process, slot))
            continue;
        if (patch_write(process, slot, &to, sizeof to, NULL) == 0)
            figures->restored_returns++;
    }
}

static bool was_written(const struct patch_process *process, const uint64_t *entries, size_t i)
{
    return process->pages_fd < 0 || entries[i] & (page_is_present | page_is_swapped);
}

// Pages of the shadow of [start, end), which is mapped and lies on whole pages.
static void restore_range(struct patch_process *process, uint64_t start, uint64_t end, struct patch_figures *figures)
{
    uint64_t entries[PAGES_AT_ONCE];
    for (uint64_t page = start; page < end; page += (uint64_t)PAGES_AT_ONCE * PAGE_BYTES) {
        size_t count = (size_t)((end - page) / PAGE_BYTES);
        count = count < PAGES_AT_ONCE ? count : PAGES_AT_ONCE;
        if (process->pages_fd >= 0 &&
            pread(process->pages_fd, entries, count * sizeof *entries, (off_t)(page / PAGE_BYTES * sizeof *entries)) !=
                (ssize_t)(count * sizeof *entries))
            continue;
        for (size_t i = 0; i < count; i++)
            if (was_written(process, entries, i))
                restore_page(process, page + i * PAGE_BYTES, figures);
    }
}

static bool holds_data(const struct target_map *map)
{
    return map->writable && !map->executable;
}

void patch_restore_returns(struct patch_process *process, struct patch_figures *figures)
{
    const struct target_maps *maps = &process->target->maps;
    const uint64_t distance = process->stub.shadow_distance;
    if (process->stub.exit_return == 0 || !note_leaving(process))
        return;
    // Both lists ascend: what is a shadow has a stack so far above.
    size_t s = 0;
    for (size_t i = 0; i < maps->count; i++) {
        const struct target_map *shadow = &maps->items[i];
        if (!holds_data(shadow) || shadow->inode != 0)
            continue;
        while (s < maps->count && maps->items[s].end <= shadow->start + distance)
            s++;
        for (size_t k = s; k < maps->count && maps->items[k].start < shadow->end + distance; k++) {
            const struct target_map *stack = &maps->items[k];
            if (!holds_data(stack))
                continue;
            uint64_t start = stack->start - distance, end = stack->end - distance;
            restore_range(process, start > shadow->start ? start : shadow->start, end < shadow->end ? end : shadow->end,
                          figures);
        }
    }
}
