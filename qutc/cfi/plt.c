// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/plt.h"

// A header is recognised by its code; where that is neither known nor readable, it stays a hole. Offset of the
// instruction after the push, 0 where there is none in the first two (a landing pad may come first).
static uint32_t after_push(const struct input_image *image, uint64_t start, const struct arch_plt_header *header)
{
    struct base_cursor c = base_cursor(input_image_some(image, start, 8));
    for (uint32_t offset = 4; offset <= 8; offset += 4)
        if (base_read_u32(&c) == header->push_instruction && !c.failed)
            return offset;
    return 0;
}

int cfi_plt_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end, struct cfi_rule_set *rules,
                 struct cfi_row_list *rows, struct base_error *error)
{
    const struct arch_plt_header *header = &image->arch->plt_header;
    if (header->size_bytes == 0)
        return 0;
    struct qut_rule leaf = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER}; // cfa = sp; ra in its register
    leaf.cfa.reg = image->arch->sp_reg;
    struct qut_rule pushed = leaf; // cfa = sp + push_bytes; ra = *(cfa + ra_offset_bytes)
    pushed.cfa.offset_bytes = header->push_bytes;
    pushed.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = header->ra_offset_bytes};
    uint32_t leaf_id = cfi_rule_set_intern(rules, &leaf), pushed_id = cfi_rule_set_intern(rules, &pushed);
    if (leaf_id == CFI_RULE_NO_MEMORY || pushed_id == CFI_RULE_NO_MEMORY)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    if (cfi_row_list_reserve(rows, 4 * (size_t)image->plt_count, error) != 0)
        return -1;
    uint64_t reached = text_start;
    for (unsigned i = 0; i < image->plt_count; i++) {
        struct input_range plt = image->plt[i];
        if (plt.start < reached || plt.end > text_end || plt.end - plt.start < header->size_bytes)
            continue;
        uint32_t start_rel = (uint32_t)(plt.start - text_start);
        uint32_t push_rel = header->push_instruction ? after_push(image, plt.start, header) : header->size_bytes;
        cfi_row_list_put(rows, start_rel, push_rel ? leaf_id : CFI_RULE_HOLE_ID);
        if (push_rel && push_rel < header->size_bytes)
            cfi_row_list_put(rows, start_rel + push_rel, pushed_id);
        cfi_row_list_put(rows, start_rel + header->size_bytes, leaf_id);
        cfi_row_list_put(rows, (uint32_t)(plt.end - text_start), CFI_RULE_HOLE_ID);
        reached = plt.end;
    }
    return 0;
}
