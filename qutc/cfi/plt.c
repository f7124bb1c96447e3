// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/plt.h"

// The first entry of a lazy .plt, which calls the resolver, is the only one that touches the stack. Recognised by its
// code; where that is neither known nor readable, the header stays a hole.
struct plt_header {
    uint32_t size_bytes;
    uint32_t push_instruction; // 0: never touches the stack
    uint32_t push_bytes;
    int32_t ra_offset_bytes; // from the cfa, after the push
};

static bool header_of(enum qut_arch_id arch, struct plt_header *header)
{
    switch (arch) {
    case QUT_ARCH_AARCH64: // stp x16, x30, [sp, #-16]!
        *header = (struct plt_header){32, 0xa9bf7bf0, 16, -8};
        return true;
    case QUT_ARCH_ARM: // str lr, [sp, #-4]!
        *header = (struct plt_header){20, 0xe52de004, 4, -4};
        return true;
    case QUT_ARCH_RISCV64: *header = (struct plt_header){32, 0, 0, 0}; return true;
    default: return false;
    }
}

// Offset of the instruction after the push, 0 where there is none in the first two (a landing pad may come first).
static uint32_t after_push(const struct qutc_image *image, uint64_t start, const struct plt_header *header)
{
    struct qutc_cursor c = qutc_cursor(qutc_image_some(image, start, 8));
    for (uint32_t offset = 4; offset <= 8; offset += 4)
        if (qutc_read_u32(&c) == header->push_instruction && !c.failed)
            return offset;
    return 0;
}

int qutc_plt_rows(const struct qutc_image *image, uint64_t text_start, uint64_t text_end, struct qutc_rule_set *rules,
                  struct qutc_row_list *rows, struct qutc_error *error)
{
    struct plt_header header;
    if (!header_of(image->arch->id, &header))
        return 0;
    struct qut_rule leaf = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER}; // cfa = sp; ra in its register
    leaf.cfa.reg = image->arch->sp_reg;
    struct qut_rule pushed = leaf; // cfa = sp + push_bytes; ra = *(cfa + ra_offset_bytes)
    pushed.cfa.offset_bytes = (int32_t)header.push_bytes;
    pushed.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = header.ra_offset_bytes};
    uint32_t leaf_id = qutc_rule_set_intern(rules, &leaf), pushed_id = qutc_rule_set_intern(rules, &pushed);
    if (leaf_id == QUTC_RULE_NO_MEMORY || pushed_id == QUTC_RULE_NO_MEMORY)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "rules");
    if (qutc_row_list_reserve(rows, 4 * (size_t)image->plt_count, error) != 0)
        return -1;
    uint64_t reached = text_start;
    for (unsigned i = 0; i < image->plt_count; i++) {
        struct qutc_range plt = image->plt[i];
        if (plt.start < reached || plt.end > text_end || plt.end - plt.start < header.size_bytes)
            continue;
        uint32_t start_rel = (uint32_t)(plt.start - text_start);
        uint32_t push_rel = header.push_instruction ? after_push(image, plt.start, &header) : header.size_bytes;
        qutc_row_list_put(rows, start_rel, push_rel ? leaf_id : QUTC_RULE_HOLE_ID);
        if (push_rel && push_rel < header.size_bytes)
            qutc_row_list_put(rows, start_rel + push_rel, pushed_id);
        qutc_row_list_put(rows, start_rel + header.size_bytes, leaf_id);
        qutc_row_list_put(rows, (uint32_t)(plt.end - text_start), QUTC_RULE_HOLE_ID);
        reached = plt.end;
    }
    return 0;
}
