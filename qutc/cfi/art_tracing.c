// SPDX-License-Identifier: Apache-2.0
// Where traced methods return to, in a libart without a symbol for it. x86-64's begins with a push of 0, which makes
// room for the return address that was taken, and says so: before it the cfa is sp itself, as nowhere else. What it
// calls has a symbol, since it is C++.
#include "qutc/cfi/art.h"

enum { PUSH_BYTES = 2, CALL_BYTES = 5, CALL_FURTHEST_BYTES = 1024 };

static bool is_told(const struct input_image *image)
{
    return !image->arch->ra_in_register && image->arch->word_bytes == sizeof(uint64_t);
}

static bool counts_with_sp(const struct input_image *image, const struct qut_rule *rule)
{
    return rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG && rule->cfa.reg == image->arch->sp_reg;
}

static bool calls(struct base_bytes code, uint64_t vaddr, uint64_t callee)
{
    for (size_t at = 0; at + CALL_BYTES <= code.size; at++) {
        const uint8_t *in = code.data + at;
        uint32_t distance = (uint32_t)in[1] | (uint32_t)in[2] << 8 | (uint32_t)in[3] << 16 | (uint32_t)in[4] << 24;
        if (in[0] == 0xe8 && vaddr + at + CALL_BYTES + (uint64_t)(int64_t)(int32_t)distance == callee)
            return true;
    }
    return false;
}

static bool begins_there(const struct input_image *image, uint64_t vaddr, uint64_t end, const struct qut_rule *rule,
                         uint64_t callee)
{
    if (!counts_with_sp(image, rule) || rule->cfa.offset_bytes != 0)
        return false;
    uint64_t size = end - vaddr < CALL_FURTHEST_BYTES ? end - vaddr : CALL_FURTHEST_BYTES;
    struct base_bytes code = input_image_some(image, vaddr, size);
    return code.size > PUSH_BYTES && code.data[0] == 0x6a && code.data[1] == 0 && calls(code, vaddr, callee);
}

struct input_range cfi_art_tracing_exit(const struct input_image *image, uint64_t text_start,
                                        const struct cfi_rule_set *rules, const struct cfi_row_list *rows,
                                        uint64_t callee)
{
    if (!callee || !is_told(image))
        return (struct input_range){0};
    size_t end = rows->count; // of the function that a row belongs to: a hole, from the end on
    for (size_t i = rows->count; i-- > 0;) {
        const struct qut_rule *rule = &rules->rules[rows->rows[i].rule_id];
        if (rule->kind == QUT_RULE_HOLE)
            end = i;
        if (end == rows->count)
            continue;
        const struct input_range found = {text_start + rows->rows[i].pc_rel, text_start + rows->rows[end].pc_rel};
        if (begins_there(image, found.start, found.end, rule, callee))
            return found;
    }
    return (struct input_range){0};
}

uint64_t cfi_art_tracing_body(const struct input_image *image, uint64_t text_start, const struct cfi_rule_set *rules,
                              const struct cfi_row_list *rows, struct input_range exit)
{
    enum { RET = 0xc3 };
    int32_t word = image->arch->word_bytes, last = 0;
    if (!is_told(image))
        return 0;
    for (size_t i = 0; i < rows->count && text_start + rows->rows[i].pc_rel < exit.end; i++) {
        const struct qut_rule *rule = &rules->rules[rows->rows[i].rule_id];
        uint64_t vaddr = text_start + rows->rows[i].pc_rel;
        if (vaddr < exit.start)
            continue;
        if (!counts_with_sp(image, rule) || (vaddr == exit.start) != (rule->cfa.offset_bytes == 0))
            return 0;
        if (rule->cfa.offset_bytes == word && last > word) {
            struct base_bytes code = input_image_some(image, vaddr, 1);
            return code.size && code.data[0] == RET ? vaddr + 1 : 0;
        }
        last = rule->cfa.offset_bytes;
    }
    return 0;
}
