// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/go_rows.h"

#include <string.h>

#include "qutc/input/go_special.h"

enum {
    DEPTH_BYTES_MAX = 1 << 30,
};

struct reader {
    const struct arch *arch;
    enum cfi_go_part part;
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
static struct qut_rule rule_at(const struct arch *arch, const struct input_go_function *function,
                               const struct input_go_special *special, int64_t depth_bytes)
{
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    int64_t word = arch->word_bytes;
    rule.cfa.reg = arch->sp_reg;
    rule.cfa.offset_bytes = (int32_t)(depth_bytes + (arch->ra_in_register ? 0 : word));
    if (special->manner == INPUT_GO_INTERRUPTED)
        rule.flags = QUT_RULE_SIGNAL;
    if (function->flags & INPUT_GO_TOP_FRAME && special->manner != INPUT_GO_ON_SIGNAL)
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

// Where the function goes on with another stack. cfa is where its frame ends on the one that it was called on.
static struct qut_rule switch_at(const struct arch *arch, const struct input_go_special *special, int64_t depth_bytes)
{
    struct qut_rule rule = cfi_rule_refused(QUT_REFUSED_STACK_SWITCH);
    if (special->which == QUT_SWITCH_UNKNOWN)
        return rule;
    rule.stack_switch = (uint8_t)special->which;
    rule.cfa.reg = special->which == QUT_SWITCH_SAVED ? special->kept_reg : arch->sp_reg;
    rule.cfa.offset_bytes = (int32_t)(depth_bytes + arch->word_bytes);
    return rule;
}

// Whether the function's depth is what put_kept takes it for: one where sp is kept, and the same as long as it is.
static bool kept_depth(const struct input_go_functions *functions, const struct input_go_function *function,
                       const struct input_go_special *special, int64_t *kept_bytes)
{
    struct input_go_sp sp;
    bool is_one = true, is_found = false;
    input_go_sp_begin(&sp, functions, function);
    while (is_one && input_go_sp_next(&sp)) {
        if (sp.start >= special->kept_end || sp.pc <= special->kept_start - 1)
            continue;
        is_one =
            sp.depth_bytes >= 0 && sp.depth_bytes <= DEPTH_BYTES_MAX && (!is_found || sp.depth_bytes == *kept_bytes);
        *kept_bytes = sp.depth_bytes;
        is_found = true;
    }
    return is_one && is_found;
}

// The row from `start` on. Code behind the function's return that has the whole frame was jumped to from where sp is
// kept (1.19: nanotime1, where there is no vdso).
static struct qut_rule kept_rule(const struct reader *reader, const struct input_go_function *function,
                                 const struct input_go_special *special, const struct input_go_sp *sp, uint64_t start,
                                 bool is_behind)
{
    bool is_kept = (start >= special->kept_start && start < special->kept_end) || is_behind;
    if (is_kept)
        return switch_at(reader->arch, special, sp->depth_bytes);
    return reader->part == CFI_GO_SPECIALS ? cfi_rule_hole()
                                           : rule_at(reader->arch, function, special, sp->depth_bytes);
}

static int put_kept(struct reader *reader, const struct input_go_functions *functions,
                    const struct input_go_function *function, const struct input_go_special *special,
                    int64_t kept_bytes, uint64_t *reached)
{
    const uint64_t cuts[] = {special->kept_start, special->kept_end};
    struct input_go_sp sp;
    bool has_returned = false;
    input_go_sp_begin(&sp, functions, function);
    while (input_go_sp_next(&sp) && sp.depth_bytes >= 0 && sp.depth_bytes <= DEPTH_BYTES_MAX) {
        has_returned |= sp.start >= special->kept_end && sp.depth_bytes < kept_bytes;
        bool is_behind = has_returned && sp.depth_bytes == kept_bytes;
        for (uint64_t start = sp.start, end; start < sp.pc; start = end) {
            end = sp.pc;
            for (unsigned i = 0; i < sizeof cuts / sizeof *cuts; i++)
                if (cuts[i] > start && cuts[i] < end)
                    end = cuts[i];
            struct qut_rule rule = kept_rule(reader, function, special, &sp, start, is_behind);
            if (put(reader, start, &rule) != 0)
                return -1;
        }
        *reached = sp.pc;
    }
    return 0;
}

// 0, or -1; what is malformed is a hole from there on.
static int read_function(struct reader *reader, const struct input_go_functions *functions,
                         const struct input_go_function *function, struct input_go_special *special, bool *is_malformed)
{
    const struct qut_rule hole = cfi_rule_hole();
    struct input_go_sp sp;
    uint64_t reached = function->start;
    int64_t kept_bytes = 0;
    bool is_kept = special->which == QUT_SWITCH_SAVED;
    if (is_kept && !kept_depth(functions, function, special, &kept_bytes)) {
        special->which = QUT_SWITCH_UNKNOWN;
        is_kept = false;
    }
    input_go_sp_begin(&sp, functions, function);
    if (is_kept && put_kept(reader, functions, function, special, kept_bytes, &reached) != 0)
        return -1;
    while (!is_kept && input_go_sp_next(&sp)) {
        if (sp.depth_bytes < 0 || sp.depth_bytes > DEPTH_BYTES_MAX)
            break;
        struct qut_rule rule = special->manner == INPUT_GO_SWITCHES
                                   ? switch_at(reader->arch, special, sp.depth_bytes)
                                   : rule_at(reader->arch, function, special, sp.depth_bytes);
        if (put(reader, sp.start, &rule) != 0)
            return -1;
        reached = sp.pc;
    }
    *is_malformed = reached != function->end && reached != function->start;
    return put(reader, reached, &hole);
}

// Other than .debug_frame says: that knows of no end of a stack, no other stack, and nothing that was interrupted.
static bool is_special(const struct input_go_function *function, const struct input_go_special *special)
{
    bool is_end = function->flags & INPUT_GO_TOP_FRAME && special->manner != INPUT_GO_ON_SIGNAL;
    return is_end || special->manner == INPUT_GO_SWITCHES || special->manner == INPUT_GO_INTERRUPTED;
}

int cfi_go_rows(const struct input_image *image, enum cfi_go_part part, uint64_t text_start, uint64_t text_end,
                struct cfi_rule_set *rules, struct cfi_row_list *rows, struct cfi_go_counts *counts,
                struct base_error *error)
{
    struct reader reader = {image->arch, part, rules, rows, text_start, text_end, error};
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
        struct input_go_special special;
        input_go_special(image, &functions, &function, &special);
        if (part == CFI_GO_SPECIALS && !is_special(&function, &special))
            continue;
        if (read_function(&reader, &functions, &function, &special, &is_malformed) != 0)
            return -1;
        reached = function.end;
        counts->functions++;
        counts->malformed += is_malformed;
    }
    return 0;
}
