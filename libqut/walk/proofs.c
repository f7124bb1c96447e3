// SPDX-License-Identifier: Apache-2.0
// What rules of code rest on that no loader lists, and that comes and goes: asked once a walk, since what stands on the
// stack stays what it is.
#include "libqut/modules/machine_code.h"
#include "libqut/os/os.h"
#include "libqut/walk/walk_local.h"

bool walk_local_confirm_unlisted(struct walk_local *local, const struct module *module, uintptr_t pc)
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

uint32_t walk_local_made_number(struct walk_local *local, uintptr_t pc)
{
    uintptr_t at = modules_art_made_at(pc);
    if (!local->made_number && at &&
        os_read_self(at, &local->made_number, sizeof local->made_number) != sizeof local->made_number)
        local->made_number = 0;
    return at ? local->made_number : 0;
}

static bool is_made_number(struct walk_local *local, uintptr_t pc, uint32_t number)
{
    if (!local->made_number) {
        uintptr_t at = modules_art_made_at(pc);
        if (at && os_is_word(at, number))
            local->made_number = number;
    }
    return local->made_number == number;
}

bool walk_local_proof_holds(void *context, uintptr_t pc, unsigned proof, uint32_t number)
{
    struct walk_local *local = context;
    if (proof == RUNTIME_RULE_MADE)
        return modules_jit_list_still_holds(number, pc, &local->jit);
    if (proof == RUNTIME_RULE_COUNTED)
        return is_made_number(local, pc, number);
    if (proof == RUNTIME_RULE_OF_MACHINE)
        return modules_machine_holds(pc, number);
    if (local->unlisted == number)
        return true;
    const struct module *module = modules_at(local->modules, pc);
    return module && module->unlisted == number && walk_local_confirm_unlisted(local, module, pc);
}

bool walk_local_rule_holds(void *context, const struct runtime_known_rule *rule)
{
    uintptr_t pc = (uintptr_t)arch_lookup_pc(rule->pc, (enum arch_pc_kind)rule->pc_kind);
    return walk_local_proof_holds(context, pc, rule->proof, rule->proof_number);
}
