// SPDX-License-Identifier: Apache-2.0
// Code of HotSpot in a target.
#include <stdio.h>
#include <string.h>

#include "libqut/target/machine.h"

// Read once, or at each moment until the machine has started. NULL: there is none, or it is not known.
static const struct hotspot_machine *hotspot(struct qut_target *target)
{
    struct target_machine *machine = target_machine(target);
    if (!machine)
        return NULL;
    target_machine_search(machine);
    if (!machine->hotspot_structs)
        return NULL;
    if (machine->hotspot_fault == HOTSPOT_STARTING && machine->hotspot_moment != machine->moment) {
        machine->hotspot_moment = machine->moment;
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
                         int16_t *method_cfa_bytes)
{
    const struct qut_target *opened = target;
    return hotspot_frame_rule(machine, &opened->machine->memory, pc, kind, rule, method_cfa_bytes);
}
