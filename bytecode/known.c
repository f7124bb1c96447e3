// SPDX-License-Identifier: Apache-2.0
// What the verifier has found out on its way, for those who made the program or explain it.
#include "bytecode/inside.h"

void bytecode_look(const struct qut_probe_image *image, uint32_t program, struct bytecode_workspace *workspace)
{
    struct bytecode_fault fault = {.refusal = BYTECODE_OK};
    bytecode_verify_program(image, program, workspace, &fault);
}

bool bytecode_constant(const struct bytecode_workspace *workspace, uint32_t instruction, unsigned index,
                       int32_t *number)
{
    const struct bytecode_value *value = &workspace->states[instruction].registers[index];
    *number = value->number;
    return value->kind == CONSTANT;
}

uint32_t bytecode_fields_read(const struct qut_probe_image *image, uint32_t program,
                              const struct bytecode_workspace *workspace)
{
    const struct qut_probe_program *own = &image->programs[program];
    const struct qut_probe_instruction *code = image->instructions + own->first_instruction;
    uint32_t fields = 0;
    for (uint32_t i = 0; i < own->instruction_count; i++) {
        const bool is_load = (code[i].opcode & QUT_PROBE_CLASS_MASK) == QUT_PROBE_CLASS_LDX;
        if (workspace->states[i].is_second || !is_load)
            continue;
        const struct bytecode_value *from = &workspace->states[i].registers[qut_probe_source(&code[i])];
        if (from->kind == FIELDS)
            fields |= UINT32_C(1) << ((from->number + code[i].offset) / 8);
    }
    return fields;
}
