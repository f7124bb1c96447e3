// SPDX-License-Identifier: Apache-2.0
// A plan's bytes, checked once, and what is said about it.
#include <stdlib.h>
#include <string.h>

#include "formats/qut_checksum_inline.h"
#include "formats/qut_rule.h"
#include "formats/qut_table_check.h"
#include "tracer/calls/plan.h"

static bool is_sound_instruction(const struct qut_plan_instruction *i)
{
    unsigned behind = i->length - i->operand_at; // operand bytes at least
    if (i->length == 0 || i->length > 15 || i->operand_at >= i->length || i->zero)
        return false;
    switch ((enum qut_plan_move)i->move) {
    case QUT_MOVE_COPY:
    case QUT_MOVE_SKIP: return true;
    case QUT_MOVE_ADDRESS: return i->operand_at > 0 && behind >= 4;
    case QUT_MOVE_JUMP:
    case QUT_MOVE_CONDITION: return i->operand_at > 0 && (behind == 1 || behind == 4);
    case QUT_MOVE_LOOP: return i->operand_at > 0 && behind == 1;
    case QUT_MOVE_CALL: return i->operand_at > 0 && behind == 4;
    case QUT_MOVE_CALL_BY: return i->operand_at > 0;
    case QUT_MOVE_CALL_BY_ADDRESS: return i->operand_at > 0 && behind == 5;
    case QUT_MOVE_END: break;
    }
    return false;
}

// One instruction is exchanged for one. What it is, the thunk looks at.
static bool is_sound_patch_of_one(const struct qut_plan_function *f)
{
    enum { BYTES = 4, SIGNED = QUT_PLAN_SIGNED_A | QUT_PLAN_SIGNED_B };
    const struct qut_plan_instruction *i = &f->instructions[0];
    return f->instruction_count == 1 && i->length == BYTES && i->operand_at == 0 && !i->zero &&
           i->move <= QUT_MOVE_CONDITION && (f->kind == QUT_PLAN_JUMP || f->kind == QUT_PLAN_NOPS) &&
           f->patch_bytes == BYTES && f->moved_bytes == BYTES && f->code_bytes == BYTES &&
           f->entry_vaddr % BYTES == 0 && (f->patch_at == 0 || f->patch_at == BYTES) && (f->flags & SIGNED) != SIGNED &&
           (f->patch_at || !(f->flags & SIGNED));
}

static bool is_sound_patch(const struct qut_plan_function *f)
{
    unsigned moved = 0;
    if (f->instruction_count == 0 || f->instruction_count > QUT_PLAN_MOVES_MAX)
        return false;
    for (unsigned i = 0; i < f->instruction_count; i++) {
        if (!is_sound_instruction(&f->instructions[i]))
            return false;
        moved += f->instructions[i].length;
    }
    unsigned patch = f->kind == QUT_PLAN_TRAP ? 1 : f->kind == QUT_PLAN_SHORT ? 2 : 5;
    unsigned code = moved > patch ? moved : patch;
    return moved == f->moved_bytes && f->patch_bytes == patch && f->code_bytes == code && code <= QUT_PLAN_CODE_MAX &&
           (moved >= patch || (f->flags & QUT_PLAN_ENDS));
}

static bool is_sound_function(const struct calls_plan *plan, const struct qut_plan_function *f)
{
    const struct qut_plan_header *header = plan->header;
    if (f->name >= header->names_bytes || f->readable >= header->names_bytes || f->kind >= QUT_PLAN_KIND_END ||
        f->entry_vaddr < header->text_start || f->entry_vaddr >= header->text_end || f->patch_at > 4 ||
        header->text_end - f->entry_vaddr < f->size_bytes)
        return false;
    if (f->kind == QUT_PLAN_REFUSED)
        return f->refusal != QUT_PLAN_OK && f->refusal < QUT_PLAN_REFUSAL_END;
    return f->refusal == QUT_PLAN_OK &&
           (header->architecture == QUT_ARCH_AARCH64 ? is_sound_patch_of_one(f) : is_sound_patch(f));
}

static bool are_sound(const struct calls_plan *plan)
{
    const struct qut_plan_header *header = plan->header;
    for (uint32_t i = 0; i < header->function_count; i++)
        if (!is_sound_function(plan, &plan->functions[i]) ||
            (i && plan->functions[i].entry_vaddr <= plan->functions[i - 1].entry_vaddr))
            return false;
    for (uint32_t i = 0; i < header->alias_count; i++)
        if (plan->aliases[i].function >= header->function_count || plan->aliases[i].name >= header->names_bytes ||
            plan->aliases[i].readable >= header->names_bytes ||
            (i && plan->aliases[i].function < plan->aliases[i - 1].function))
            return false;
    return header->names_bytes && plan->names[0] == 0 && plan->names[header->names_bytes - 1] == 0;
}

// The parts, where they fit the size exactly.
static bool find_parts(struct calls_plan *plan)
{
    const struct qut_plan_header *header = plan->bytes;
    if (plan->size_bytes < sizeof *header || memcmp(header->magic, QUT_PLAN_MAGIC, sizeof header->magic) != 0 ||
        header->version != QUT_PLAN_VERSION || header->identity_size > QUT_PLAN_IDENTITY_MAX)
        return false;
    uint64_t functions = (uint64_t)header->function_count * sizeof *plan->functions;
    uint64_t aliases = ((uint64_t)header->alias_count * sizeof *plan->aliases + 7) & ~(uint64_t)7;
    uint64_t names = ((uint64_t)header->names_bytes + 7) & ~(uint64_t)7;
    if (plan->size_bytes != sizeof *header + functions + aliases + names)
        return false;
    const uint8_t *at = (const uint8_t *)(header + 1);
    if (!qut_checksum_agrees(header->checksum, qut_table_checksum(at, plan->size_bytes - sizeof *header)))
        return false;
    plan->header = header;
    plan->functions = (const struct qut_plan_function *)(const void *)at;
    plan->aliases = (const struct qut_plan_alias *)(const void *)(at + functions);
    plan->names = (const char *)at + functions + aliases;
    return true;
}

int calls_plan_take(void *bytes, size_t size_bytes, struct calls_plan **plan, struct base_error *error)
{
    *plan = calloc(1, sizeof **plan);
    if (!*plan) {
        free(bytes);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "plan");
    }
    (*plan)->bytes = bytes;
    (*plan)->size_bytes = size_bytes;
    if (!find_parts(*plan) || !are_sound(*plan)) {
        calls_plan_free(*plan);
        *plan = NULL;
        return base_fail(error, BASE_ERR_MALFORMED, "plan", 0, "not a plan of this version, or damaged");
    }
    for (uint32_t i = 0; i < (*plan)->header->function_count; i++) {
        const struct qut_plan_function *function = &(*plan)->functions[i];
        (*plan)->kind_count[function->kind]++;
        (*plan)->refusal_count[function->refusal]++;
    }
    return 0;
}

struct calls_plan *calls_plan_share(struct calls_plan *plan)
{
    if (plan)
        __atomic_fetch_add(&plan->shares, 1, __ATOMIC_RELAXED);
    return plan;
}

void calls_plan_free(struct calls_plan *plan)
{
    if (!plan || __atomic_fetch_sub(&plan->shares, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    free(plan->bytes);
    free(plan);
}

const char *calls_kind_text(enum qut_plan_kind kind)
{
    static const char *const texts[QUT_PLAN_KIND_END] = {
        [QUT_PLAN_REFUSED] = "refused",  [QUT_PLAN_NOPS] = "nops", [QUT_PLAN_JUMP] = "jump",
        [QUT_PLAN_SHORT] = "short jump", [QUT_PLAN_TRAP] = "trap",
    };
    return kind < QUT_PLAN_KIND_END ? texts[kind] : "unknown";
}

const char *calls_refusal_text(enum qut_plan_refusal refusal)
{
    static const char *const texts[QUT_PLAN_REFUSAL_END] = {
        [QUT_PLAN_OK] = "none",
        [QUT_PLAN_NO_UNWIND] = "has no unwind information",
        [QUT_PLAN_UNDECODED] = "begins with an instruction that is not known",
        [QUT_PLAN_UNMOVABLE] = "begins with an instruction that cannot be moved",
        [QUT_PLAN_READS_RETURN] = "reads its own return address",
        [QUT_PLAN_LOADER] = "belongs to the dynamic loader",
        [QUT_PLAN_SAVES_CONTEXT] = "saves or switches a context",
        [QUT_PLAN_SHARES_STACK] = "makes a process or thread on a stack that is shared",
        [QUT_PLAN_SANITIZER] = "belongs to a sanitizer or tracer",
        [QUT_PLAN_BUILTIN] = "is a builtin of V8",
        [QUT_PLAN_GO] = "is Go's, which moves stacks",
        [QUT_PLAN_SIGNAL_RETURN] = "returns from signals",
        [QUT_PLAN_RESOLVER] = "resolves an IFUNC",
        [QUT_PLAN_PROGRAM_END] = "starts or ends the program",
        [QUT_PLAN_UNWINDER] = "unwinds stacks",
        [QUT_PLAN_KEEPS_RETURN] = "calls while its own return address has no place on the stack",
        [QUT_PLAN_SCALABLE] = "takes scalable vectors",
    };
    return refusal < QUT_PLAN_REFUSAL_END ? texts[refusal] : "unknown";
}
