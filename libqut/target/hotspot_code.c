// SPDX-License-Identifier: Apache-2.0
// Code of HotSpot in a target.
#include <stdio.h>
#include <string.h>

#include "libqut/hotspot/source.h"
#include "libqut/target/machine.h"

// Read once, or at each moment until the machine has started. What is not whole, or not known, is read again ever more
// seldom: the loader lists a library before it has put addresses into its data. NULL: there is none, or it is not
// known.
static const struct hotspot_machine *hotspot(struct qut_target *target)
{
    struct target_machine *machine = target_machine(target);
    if (!machine)
        return NULL;
    target_machine_search(machine);
    if (!machine->hotspot_structs)
        return NULL;
    bool is_settled = machine->hotspot_fault == HOTSPOT_FINE || machine->hotspot_fault == HOTSPOT_OTHER_ARCH;
    if (!is_settled && machine->hotspot_moment != machine->moment) {
        machine->hotspot_moment = machine->moment;
        unsigned odd = machine->hotspot_fault == HOTSPOT_STARTING ? 0 : ++machine->hotspot_odd;
        if ((odd & (odd - 1)) != 0) // at the first, the second, the fourth, ... moment
            return NULL;
        machine->hotspot_fault =
            hotspot_machine_read(&machine->memory, machine->hotspot_structs, machine->hotspot_types, &machine->hotspot);
    }
    return machine->hotspot_fault == HOTSPOT_FINE ? &machine->hotspot : NULL;
}

bool target_hotspot_reason(struct qut_target *target, char *reason, size_t size)
{
    if (hotspot(target) || !target->machine || !target->machine->hotspot_structs)
        return false;
    snprintf(reason, size, "no ELF image; of OpenJDK's machine, %s",
             hotspot_fault_text(target->machine->hotspot_fault));
    return true;
}

bool target_find_hotspot(struct qut_target *target, uint64_t pc, struct runtime_code *code)
{
    const struct hotspot_machine *machine = hotspot(target);
    if (!machine || !hotspot_heap_at(machine, pc))
        return false;
    code->state = RUNTIME_CODE_OF_MACHINE;
    code->frame_pointers = RUNTIME_FRAME_POINTERS_NOT;
    code->frame_flags = QUT_FRAME_JIT | QUT_FRAME_MANAGED;
    code->has_entries = hotspot_is_interpreter(machine, pc);
    code->machine = machine;
    return true;
}

static bool name_by_hotspot(struct qut_target *target, uint64_t address, struct qut_made_code *code)
{
    static_assert(sizeof code->name == HOTSPOT_NAME_BYTES, "none is cut again");
    const struct hotspot_machine *machine = hotspot(target);
    struct hotspot_code_name name;
    if (!machine || !hotspot_name_code(machine, &target->machine->memory, address, &name))
        return false;
    *code = (struct qut_made_code){.start = name.start, .end = name.end};
    memcpy(code->name, name.text, strlen(name.text) + 1);
    return true;
}

static void give_out(const struct qut_made_code *found, struct qut_made_code *code, size_t size)
{
    memset(code, 0, size);
    memcpy(code, found, size < sizeof *found ? size : sizeof *found);
}

bool qut_target_made_code(struct qut_target *target, uint64_t address, struct qut_made_code *code, size_t size)
{
    struct qut_made_code found;
    bool is_found = name_by_hotspot(target, address, &found) ||
                    target_jit_dump_find(target, address, UINT64_MAX, &found) ||
                    target_perf_map_find(target, address, &found);
    if (is_found)
        give_out(&found, code, size);
    return is_found;
}

bool qut_target_made_code_of(struct qut_target *target, uint64_t address, uint64_t monotonic_ns,
                             struct qut_made_code *code, size_t size)
{
    struct qut_made_code found;
    bool is_found = target_jit_dump_find(target, address, monotonic_ns, &found);
    if (is_found)
        give_out(&found, code, size);
    return is_found;
}

bool target_hotspot_rule(void *target, const void *machine, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                         struct arch_interpreted *interpreted)
{
    const struct qut_target *opened = target;
    return hotspot_frame_rule(machine, &opened->machine->memory, pc, kind, rule, interpreted);
}

void target_hotspot_identify(struct qut_target *target, struct qut_frame *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_interpreted = frames[i].flags & QUT_FRAME_DEX;
        if (!is_interpreted && !(frames[i].flags & QUT_FRAME_JIT))
            continue;
        const struct hotspot_machine *machine = hotspot(target);
        if (machine && (is_interpreted || hotspot_heap_at(machine, frames[i].lookup_pc)))
            frames[i].code_id = hotspot_code_id(machine, &target->machine->memory, frames[i].lookup_pc);
    }
}

// ---- levels

static void put_level(const struct qut_made_level *level, struct qut_made_level *levels, size_t at, size_t max,
                      size_t size)
{
    if (at >= max)
        return;
    uint8_t *to = (uint8_t *)levels + at * size;
    memset(to, 0, size);
    memcpy(to, level, size < sizeof *level ? size : sizeof *level);
}

static bool describe(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                     const struct hotspot_level *from, struct qut_made_level *level)
{
    static_assert(sizeof level->file == HOTSPOT_FILE_BYTES, "none is cut again");
    struct hotspot_source source;
    if (!hotspot_source_of(machine, memory, from, &source))
        return false;
    memcpy(level->name, source.method, sizeof level->name);
    memcpy(level->file, source.file, sizeof level->file);
    level->line = source.line;
    return true;
}

// Both places may be of one line.
static bool is_near(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                    const struct hotspot_levels *found, uint32_t line)
{
    const struct hotspot_level before = {found->items[0].method, found->bytecode_before};
    struct hotspot_source source;
    return found->is_near && (!line || !hotspot_source_of(machine, memory, &before, &source) || source.line != line);
}

// Of a level that cannot be named the others are not told either: which one is missing would not be seen.
static size_t compiled_levels(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                              const struct qut_frame *frame, struct qut_made_level *levels, size_t max, size_t size)
{
    struct hotspot_levels found;
    enum arch_pc_kind kind = frame->flags & QUT_FRAME_INTERRUPTED ? ARCH_PC_EXACT : ARCH_PC_RETURN;
    if (!hotspot_levels_at(machine, memory, frame->pc, kind, &found))
        return 0;
    for (size_t i = 0; i < found.count; i++) {
        struct qut_made_level level = {.start = found.start, .end = found.end};
        level.flags = i + 1 < found.count ? QUT_MADE_INLINED : 0;
        if (!describe(machine, memory, &found.items[i], &level))
            return 0;
        level.flags |= i == 0 && is_near(machine, memory, &found, level.line) ? QUT_MADE_NEAR : 0;
        put_level(&level, levels, i, max, size);
    }
    return hotspot_levels_hold(machine, memory, frame->lookup_pc, &found) ? found.count : 0;
}

static size_t interpreted_level(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                                const struct qut_frame *frame, struct qut_made_level *levels, size_t max, size_t size)
{
    struct hotspot_level found;
    struct qut_made_level level = {.start = frame->pc, .end = frame->pc + machine->names.method_bytes};
    if (!hotspot_level_of_word(machine, memory, frame->lookup_pc, &found) || !describe(machine, memory, &found, &level))
        return 0;
    put_level(&level, levels, 0, max, size);
    return 1;
}

size_t qut_target_made_levels(struct qut_target *target, const struct qut_frame *frame, struct qut_made_level *levels,
                              size_t max, size_t size)
{
    const struct hotspot_machine *machine = hotspot(target);
    struct qut_made_code code;
    size_t count = 0;
    bool is_interpreted = frame->flags & QUT_FRAME_DEX;
    if (machine && (is_interpreted || hotspot_heap_at(machine, frame->lookup_pc))) {
        const struct elf_art_memory *memory = &target->machine->memory;
        if (frame->code_id && frame->code_id != hotspot_code_id(machine, memory, frame->lookup_pc))
            return 0;
        count = is_interpreted ? interpreted_level(machine, memory, frame, levels, max, size)
                               : compiled_levels(machine, memory, frame, levels, max, size);
        if (frame->code_id && frame->code_id != hotspot_code_id(machine, memory, frame->lookup_pc))
            return 0;
    }
    if (count == 0 && !is_interpreted && qut_target_made_code(target, frame->lookup_pc, &code, sizeof code)) {
        struct qut_made_level level = {.start = code.start, .end = code.end};
        static_assert(sizeof level.name == sizeof code.name, "none is cut");
        memcpy(level.name, code.name, sizeof level.name);
        put_level(&level, levels, 0, max, size);
        count = 1;
    }
    return count;
}
