// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/plt_truth.h"

#include <string.h>

// What the code of a .plt begins with: it pushes, loads an address and jumps.
struct plt_header {
    enum qut_arch_id arch;
    uint32_t push; // the instruction, first or second of the section
    uint32_t pushed_bytes;
    int32_t ra_offset;    // from the CFA
    uint32_t code_bytes;  // behind the push, up to the jump
    uint32_t total_bytes; // of the header; behind its code nothing is executed
};
static const struct plt_header plt_headers[] = {
    {QUT_ARCH_AARCH64, 0xa9bf7bf0, 16, -8, 16, 32}, // stp x16, x30, [sp, #-16]!
    {QUT_ARCH_ARM, 0xe52de004, 4, -4, 12, 20},      // str lr, [sp, #-4]!
};

static const struct plt_header *plt_header_at(const struct input_image *image, uint64_t start, uint64_t *push_pc)
{
    for (size_t i = 0; i < sizeof plt_headers / sizeof *plt_headers; i++) {
        for (*push_pc = start; *push_pc <= start + 4; *push_pc += 4) {
            struct base_cursor code = base_cursor(input_image_at(image, *push_pc));
            if (plt_headers[i].arch == image->arch->id && base_read_u32(&code) == plt_headers[i].push)
                return &plt_headers[i];
        }
    }
    return NULL;
}

bool check_true_of_plt(const struct input_image *image, uint64_t pc, const struct qut_rule *rule)
{
    struct qut_rule expected = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER, .cfa.reg = image->arch->sp_reg};
    const struct input_range *plt = NULL;
    for (unsigned i = 0; i < image->plt_count; i++)
        if (pc >= image->plt[i].start && pc < image->plt[i].end)
            plt = &image->plt[i];
    if (!plt || !image->arch->ra_in_register)
        return false;
    uint64_t push_pc;
    const struct plt_header *header = plt_header_at(image, plt->start, &push_pc);
    if (header && pc > push_pc) {
        if (pc >= push_pc + 4 + header->code_bytes && pc < plt->start + header->total_bytes)
            return true;
        if (pc < push_pc + 4 + header->code_bytes) {
            expected.cfa.offset_bytes = (int32_t)header->pushed_bytes;
            expected.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = header->ra_offset};
        }
    }
    return memcmp(rule, &expected, sizeof expected) == 0;
}
