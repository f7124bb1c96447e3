// SPDX-License-Identifier: Apache-2.0
// What a decoder makes of instructions: one a line, "ADDRESS BYTES", in hexadecimal, on stdin. Prints for each its
// size, then what it says of the registers that it writes, in their DWARF numbers. usage: read_lines ARCH [MODE]
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/code/op.h"

static void print_op(const struct code_op *op)
{
    static const char *const names[] = {"lose",   "compute", "set",  "add",     "and",   "or",      "shift", "insert",
                                        "extend", "vector",  "load", "indexed", "store", "compare", "sign",  "auth"};
    printf(" %s:%d,%d,%d,%u,%u%s,%" PRId64, names[op->kind], op->to == CODE_REG_NONE ? -1 : op->to,
           op->from == CODE_REG_NONE ? -1 : op->from, op->other == CODE_REG_NONE ? -1 : op->other, op->shift,
           op->size_bytes, op->negative ? "-" : "", op->number);
}

static void print(const struct code_instruction *in)
{
    static const char *const flows[] = {"next", "call", "jump", "branch", "return", "stop", "system", "unknown"};
    printf("%u %s", in->size_bytes, flows[in->flow]);
    if (in->through != CODE_REG_NONE)
        printf(" through:%u", in->through);
    else if (in->flow == CODE_CALL || in->flow == CODE_JUMP || in->flow == CODE_BRANCH)
        printf(" target:%" PRIx64, in->target);
    for (unsigned i = 0; i < in->op_count; i++)
        print_op(&in->ops[i]);
    printf("%s\n", in->is_padding ? " padding" : "");
}

int main(int count, char **arguments)
{
    const struct code_arch *code = NULL;
    for (unsigned id = QUT_ARCH_NONE + 1; count > 1 && id < QUT_ARCH_END; id++)
        if (strcmp(arch_by_id(id)->name, arguments[1]) == 0)
            code = code_arch(arch_by_id(id));
    if (!code || !code->read) {
        fprintf(stderr, "read_lines: no decoder of that architecture\n");
        return 2;
    }
    unsigned mode = count > 2 ? (unsigned)atoi(arguments[2]) : 0;
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        char *at;
        uint64_t vaddr = strtoull(line, &at, 16);
        uint8_t bytes[64];
        size_t size = 0;
        unsigned byte;
        for (int used; size < sizeof bytes && sscanf(at, " %2x%n", &byte, &used) == 1; at += used)
            bytes[size++] = (uint8_t)byte;
        struct code_instruction in;
        code->read((struct base_bytes){bytes, size}, vaddr, mode, &in);
        print(&in);
    }
    return 0;
}
