// SPDX-License-Identifier: Apache-2.0
// Prints what a decoder says of instructions: `code_reader ARCH` reads lines of mode, address and bytes in hex, and
// answers each with a line that the judges read: size, flow, through, target, target's mode, conditional, how many
// behind it are; and the operations.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "qutc/code/op.h"

static const struct arch *named(const char *name)
{
    for (enum qut_arch_id id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++)
        if (strcmp(arch_by_id(id)->name, name) == 0)
            return arch_by_id(id);
    return NULL;
}

static void print_ops(const struct code_instruction *in)
{
    static const char *const names[] = {"lose",   "set",  "add",     "and",   "shift",   "insert", "extend",
                                        "vector", "load", "indexed", "store", "compare", "sign",   "auth"};
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        printf(" | %s %d %d %d %u %u %d %" PRId64, names[op->kind], op->to == CODE_REG_NONE ? -1 : op->to,
               op->from == CODE_REG_NONE ? -1 : op->from, op->other == CODE_REG_NONE ? -1 : op->other, op->shift,
               op->size_bytes, op->negative, op->number);
    }
}

int main(int argc, char **argv)
{
    static const char *const flows[] = {"next", "call", "jump", "branch", "return", "stop", "system"};
    const struct arch *arch = argc == 2 ? named(argv[1]) : NULL;
    char digits[64];
    unsigned mode;
    uint64_t vaddr;
    if (!arch || !code_arch(arch)->read)
        return 2;
    while (scanf("%u %" SCNx64 " %63s", &mode, &vaddr, digits) == 3) {
        uint8_t bytes[32];
        size_t size = 0;
        for (unsigned byte; size < sizeof bytes && sscanf(digits + 2 * size, "%2x", &byte) == 1; size++)
            bytes[size] = (uint8_t)byte;
        struct code_instruction in;
        code_arch(arch)->read((struct base_bytes){bytes, size}, vaddr, mode, &in);
        printf("%u %s %d %" PRIx64 " %u %d %u", in.size_bytes, flows[in.flow],
               in.through == CODE_REG_NONE ? -1 : in.through, in.target, in.target_mode, in.conditional,
               in.conditional_next);
        print_ops(&in);
        putchar('\n');
    }
    return 0;
}
