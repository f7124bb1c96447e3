// SPDX-License-Identifier: Apache-2.0
// Stack switches of a target that is a Go program.
#include <stdlib.h>
#include <string.h>

#include "libqut/target/opened_target.h"

enum { VERSION_SOUGHT_BYTES = 1 << 20 }; // of each mapping of data: the linker puts it near the beginning of one

static size_t read_any(void *context, uint64_t address, void *bytes, size_t size)
{
    return target_read_any(context, address, bytes, size);
}

// What a walk reads of stacks: of the copy, where there is one.
static size_t read_stack(void *context, uint64_t address, void *bytes, size_t size)
{
    uint64_t word;
    if (size != sizeof word || !target_read_word(context, address, &word))
        return 0;
    memcpy(bytes, &word, size);
    return size;
}

uint64_t target_core_word(const struct arch *arch, const void *block, unsigned offset)
{
    uint64_t pointer = 0;
    if (offset && arch->word_bytes == sizeof pointer && arch->core_registers->size_bytes >= offset + sizeof pointer)
        memcpy(&pointer, (const uint8_t *)block + offset, sizeof pointer);
    return pointer;
}

static const struct go_layout *layout_of(struct qut_target *target, struct target_image *image)
{
    const struct elf_art_memory memory = {.read = read_any, .context = target, .arch = target->arch};
    char version[GO_VERSION_BYTES];
    if (image->go_is_tried || image->table_state != TARGET_TABLE_READY)
        return &image->go;
    image->go_is_tried = true;
    uint8_t *bytes = image->stored.table.header->flags & QUT_TABLE_FROM_GOPCLNTAB ? malloc(VERSION_SOUGHT_BYTES) : NULL;
    for (size_t i = 0; bytes && i < target->maps.count && !image->go.is_known; i++) {
        const struct target_map *map = &target->maps.items[i];
        if (map->image != image || map->executable || !map->readable)
            continue;
        uint64_t size = map->end - map->start;
        size_t got = target_read_any(target, map->start, bytes,
                                     size < VERSION_SOUGHT_BYTES ? (size_t)size : VERSION_SOUGHT_BYTES);
        size_t length = go_version_in(&memory, bytes, got, version);
        if (length)
            go_layout_of(version, length, &image->go);
    }
    free(bytes);
    return &image->go;
}

// The program is Go's, or a library of it. NULL: it has none.
static const struct go_layout *layout_of_program(struct qut_target *target)
{
    for (size_t i = 0; i < target->image_count; i++) {
        const struct go_layout *layout = layout_of(target, target->images[i]);
        if (layout->is_known)
            return layout;
    }
    return NULL;
}

bool target_go_thread(struct qut_target *target, uint64_t thread_pointer, struct go_thread *thread)
{
    const struct elf_art_memory memory = {.read = read_any, .context = target, .arch = target->arch};
    const struct go_layout *layout = thread_pointer ? layout_of_program(target) : NULL;
    *thread = (struct go_thread){0};
    return layout && go_thread_read(&memory, layout, thread_pointer, thread);
}

bool target_go_sleeper(struct qut_target *target, uint64_t sp, pid_t tid, uint64_t *g, struct go_thread *thread)
{
    const struct elf_art_memory memory = {.read = read_any, .context = target, .arch = target->arch};
    // Elsewhere functions that change stacks keep their callers in other places: nothing of them is known (leave.c).
    const struct go_layout *layout = target->arch->core_thread_pointer_offset ? layout_of_program(target) : NULL;
    *thread = (struct go_thread){0};
    return layout && go_thread_find(&memory, layout, sp, (uint32_t)tid, g, thread);
}

static void find_sleeper(struct qut_target *target, const struct qut_target_thread *sleeper, struct go_thread *thread)
{
    pid_t tid = target->kind->inner_tid ? target->kind->inner_tid(target, sleeper) : sleeper->info.tid;
    uint64_t g = 0;
    target_go_sleeper(target, sleeper->regs.reg[target->arch->sp_reg], tid, &g, thread);
}

static uint64_t kept_register(const struct arch *arch, const struct runtime_walk *walk)
{
    int slot = arch_slot(arch, walk->rule.cfa.reg);
    return slot >= 0 && walk->regs.valid >> walk->rule.cfa.reg & 1 ? walk->regs.tracked[slot] : 0;
}

enum runtime_switch target_go_leave(void *context, const struct runtime_walk *walk, uint64_t *pc, uint64_t *sp,
                                    enum arch_pc_kind *kind)
{
    struct qut_target *target = context;
    struct target_go *go = &target->go;
    const struct elf_art_memory memory = {.read = read_stack, .context = target, .arch = target->arch};
    struct go_caller caller;
    if (walk->rule.stack_switch == QUT_SWITCH_UNKNOWN)
        return RUNTIME_SWITCH_UNKNOWN;
    if (!go->is_read) {
        go->is_read = true;
        if (go->sleeper)
            find_sleeper(target, go->sleeper, &go->walk.thread);
        else
            target_go_thread(target, go->thread_pointer, &go->walk.thread);
    }
    const struct go_frame frame = {
        .which = (enum qut_stack_switch)walk->rule.stack_switch,
        .cfa_bytes = walk->rule.cfa.offset_bytes,
        .sp = walk->regs.sp,
        .kept_sp = walk->rule.stack_switch == QUT_SWITCH_SAVED ? kept_register(target->arch, walk) : 0,
        .is_exact = walk->pc_kind == ARCH_PC_EXACT,
    };
    enum go_found found = go_leave(&go->walk, &memory, &frame, &caller);
    if (found == GO_OUTERMOST)
        return RUNTIME_SWITCH_OUTERMOST;
    *pc = caller.pc;
    *sp = caller.sp;
    *kind = caller.is_exact ? ARCH_PC_EXACT : ARCH_PC_RETURN;
    return found == GO_CALLER ? RUNTIME_SWITCH_TO_CALLER : RUNTIME_SWITCH_UNKNOWN;
}
