// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/go_rows.h"

#include <string.h>

enum {
    DEPTH_BYTES_MAX = 1 << 30,
};

struct reader {
    const struct arch *arch;
    struct cfi_rule_set *rules;
    struct cfi_row_list *rows;
    uint64_t text_start, text_end;
    struct base_error *error;
};

static struct qut_reg_rule at_cfa(int64_t offset_bytes)
{
    return (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = (int32_t)offset_bytes};
}

// Where the function has pushed `depth_bytes`. On x86 a call pushes the return address: cfa = sp + depth + word;
// ra = *(cfa - word). Else the first thing that is pushed lies lowest: cfa = sp + depth; ra = *sp, or in its register.
static struct qut_rule rule_at(const struct arch *arch, const struct input_go_function *function, int64_t depth_bytes)
{
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    int64_t word = arch->word_bytes;
    rule.cfa.reg = arch->sp_reg;
    rule.cfa.offset_bytes = (int32_t)(depth_bytes + (arch->ra_in_register ? 0 : word));
    if (function->flags & INPUT_GO_TOP_FRAME)
        rule.ra.how = QUT_REG_UNDEFINED;
    else if (!arch->ra_in_register)
        rule.ra = at_cfa(-word);
    else if (depth_bytes)
        rule.ra = at_cfa(-depth_bytes);
    // Go's calls keep no register but the frame pointer: fp = *(cfa - 2 * word), on x86 with 64 bits, and not in
    // assembly. (With a link register it lies below sp, where no rule of ours looks.)
    bool keeps_fp = !arch->ra_in_register && word == 8 && !(function->flags & INPUT_GO_IS_ASSEMBLY);
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        rule.tracked[slot].how = QUT_REG_UNDEFINED;
    if (keeps_fp && depth_bytes >= word)
        rule.tracked[0] = at_cfa(-2 * word);
    else if (depth_bytes == 0)
        rule.tracked[0].how = QUT_REG_SAME;
    return rule;
}

static int put(struct reader *reader, uint64_t start, const struct qut_rule *rule)
{
    uint32_t id = cfi_rule_set_intern(reader->rules, rule);
    if (id == CFI_RULE_NO_MEMORY)
        return base_fail(reader->error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    if (cfi_row_list_reserve(reader->rows, 1, reader->error) != 0)
        return -1;
    cfi_row_list_put(reader->rows, (uint32_t)(start - reader->text_start), id);
    return 0;
}

// 0, or -1; what is malformed is a hole from there on.
static int read_function(struct reader *reader, const struct input_go_functions *functions,
                         const struct input_go_function *function, bool *is_malformed)
{
    const struct qut_rule hole = cfi_rule_hole(), refused = cfi_rule_refused(QUT_REFUSED_STACK_SWITCH);
    struct input_go_sp sp;
    uint64_t reached = function->start;
    input_go_sp_begin(&sp, functions, function);
    bool is_refused = (function->flags & INPUT_GO_WRITES_SP) && !(function->flags & INPUT_GO_TOP_FRAME);
    while (input_go_sp_next(&sp)) {
        if (sp.depth_bytes < 0 || sp.depth_bytes > DEPTH_BYTES_MAX)
            break;
        struct qut_rule rule = rule_at(reader->arch, function, sp.depth_bytes);
        if (put(reader, sp.start, is_refused ? &refused : &rule) != 0)
            return -1;
        reached = sp.pc;
    }
    *is_malformed = reached != function->end && reached != function->start;
    return put(reader, reached, &hole);
}

int cfi_go_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end, struct cfi_rule_set *rules,
                struct cfi_row_list *rows, struct cfi_go_counts *counts, struct base_error *error)
{
    struct reader reader = {image->arch, rules, rows, text_start, text_end, error};
    struct input_go_functions functions;
    if (!input_go_find(image, &functions))
        return 0;
    uint64_t reached = text_start;
    for (uint64_t i = 0; i < functions.count; i++) {
        struct input_go_function function;
        bool is_malformed = false;
        if (!input_go_at(&functions, i, &function) || function.start < reached || function.end > text_end) {
            counts->malformed++;
            continue;
        }
        if (function.sp_offset == 0)
            continue; // C code: what describes it is elsewhere
        if (read_function(&reader, &functions, &function, &is_malformed) != 0)
            return -1;
        reached = function.end;
        counts->functions++;
        counts->malformed += is_malformed;
    }
    return 0;
}
