// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/fill.h"

#include <stdlib.h>

#include "qutc/code/inside.h"
#include "qutc/code/settle.h"

// Where less is in holes, or less than one byte in so many, what the described code calls is not looked for: what the
// linker's start files leave is found without, and looking takes several times what reading all frame programs does.
enum { WORK_BYTES_LEAST = 1024, WORK_SHARE = 8, GAP_ROUNDS_MAX = 4 };

// How many instructions are looked at in vain, beside as many as stand in what is followed: of Haskell's code nothing
// returns, of V8's built-in functions little. Without a bound shellcheck takes 15 s, with it 0.3 s.
enum { VAIN_INSTRUCTIONS_MAX = 1 << 19 };

struct filling {
    struct code_follower f;
    const struct cfi_row_list *stated;
    const struct cfi_rule_set *rules;
    struct code_fill_counts *counts;
    size_t row;           // of the hole that was found last: holes are asked for in ascending order
    size_t span_count;    // of all functions before the one that is being followed
    bool is_contradicted; // by what is stated for that one's calls
    enum code_fill_extent extent;
    uint64_t instructions_in_vain, instructions_followed; // of functions in gaps
    struct code_settling settling;
    bool no_memory;
};

// The next pc of code; the text's end where there is none.
static uint32_t next_code(const struct code_follower *f, uint32_t pc)
{
    uint64_t next = f->text_size;
    for (unsigned i = 0; i < f->image->code_count; i++) {
        const struct input_range *range = &f->image->code[i];
        if (range->end <= f->text_start + pc)
            continue;
        if (range->start <= f->text_start + pc)
            return pc;
        if (range->start - f->text_start < next)
            next = range->start - f->text_start;
    }
    return (uint32_t)next;
}

bool code_fill_refines(const struct qut_rule *stated)
{
    return (stated->kind == QUT_RULE_REFUSED && stated->reason == QUT_REFUSED_CANTUNWIND) ||
           (stated->kind == QUT_RULE_FRAME && stated->flags & QUT_RULE_BODY_ONLY);
}

static bool is_open(const struct filling *filling, uint32_t rule_id)
{
    return rule_id == CFI_RULE_HOLE_ID ||
           (filling->f.arch->has_exidx && code_fill_refines(&filling->rules->rules[rule_id]));
}

static bool is_in_hole(void *context, uint32_t pc)
{
    const struct filling *filling = context;
    return is_open(filling, cfi_row_list_at(filling->stated, pc));
}

// What is stated for a function's body is true at its calls.
static void compare_at_call(void *context, uint32_t pc, const struct code_instruction *in,
                            const struct code_machine *machine, const struct code_state *state)
{
    struct filling *filling = context;
    const struct qut_rule stated = filling->rules->rules[cfi_row_list_at(filling->stated, pc)];
    if (in->flow == CODE_CALL && stated.flags & QUT_RULE_BODY_ONLY && code_contradicts_body(machine, state, stated))
        filling->is_contradicted = true;
}

static void forget(void *context)
{
    struct filling *filling = context;
    filling->is_contradicted = false;
}

// The part of a hole from pc on that belongs to no function yet; false: there is none. `spans` are sorted.
struct gap {
    uint32_t start, end;
    bool is_thumb, pointed_only; // which instruction set it is of is not known
};

static uint32_t next_hole(struct filling *filling, uint32_t pc, uint32_t *end)
{
    const struct cfi_row_list *stated = filling->stated;
    uint32_t text_size = filling->f.text_size;
    size_t i = filling->row;
    if (i >= stated->count || stated->rows[i].pc_rel > pc)
        i = cfi_row_list_index(stated, pc);
    if (i == SIZE_MAX) { // before the first row
        *end = stated->count ? stated->rows[0].pc_rel : text_size;
        if (*end > pc)
            return pc;
        i = 0;
    }
    for (; i < stated->count; i++) {
        if (!is_open(filling, stated->rows[i].rule_id))
            continue;
        uint32_t start = stated->rows[i].pc_rel > pc ? stated->rows[i].pc_rel : pc;
        *end = i + 1 < stated->count ? stated->rows[i + 1].pc_rel : text_size;
        if (start < *end) {
            filling->row = i;
            return start;
        }
    }
    return text_size;
}

// What is shorter than an alignment and ends at one is taken for padding without a look at it: of a large library that
// is a hundred thousand holes, all over its text.
static bool is_surely_padding(uint32_t start, uint32_t end)
{
    return end - start < 16 && end % 16 == 0;
}

static uint64_t common_bytes(const struct input_range *range, uint64_t start, uint64_t end)
{
    start = start > range->start ? start : range->start;
    end = end < range->end ? end : range->end;
    return start < end ? end - start : 0;
}

// Whether holes are as large as what `find_work` finds for much; the code itself is not read for that.
static bool may_be_much(struct filling *filling)
{
    const struct code_follower *f = &filling->f;
    uint64_t bytes = 0;
    uint32_t end = 0;
    for (uint32_t pc = 0; (pc = next_hole(filling, pc, &end)) < f->text_size; pc = end)
        for (unsigned i = 0; i < f->image->code_count && !is_surely_padding(pc, end); i++)
            bytes += common_bytes(&f->image->code[i], f->text_start + pc, f->text_start + end);
    filling->row = 0;
    return bytes >= f->text_size / WORK_SHARE;
}

// Bytes of code that nothing describes: of holes with more than padding.
static uint64_t find_work(struct filling *filling)
{
    const struct code_follower *f = &filling->f;
    uint64_t bytes = 0;
    uint32_t end = 0;
    for (uint32_t pc = 0; (pc = next_hole(filling, pc, &end)) < f->text_size; pc = end) {
        while (!is_surely_padding(pc, end) && (pc = next_code(f, pc)) < end) { // what lies between sections is data
            uint32_t start = code_behind_padding(f, pc, end);
            pc = start;
            while (pc < end && code_is_executable(f, pc))
                pc += 1u << f->arch->pc_shift;
            bytes += pc - start;
        }
    }
    return bytes;
}

// ---- functions that nothing names

// The end of what was just followed, from pc on without a gap.
static uint32_t followed_to(const struct code_follower *f, size_t first_span, uint32_t pc)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = first_span; i < f->spans.count; i++) {
            if (f->spans.items[i].pc <= pc && pc < f->spans.items[i].end) {
                pc = f->spans.items[i].end;
                found = true;
            }
        }
    }
    return pc;
}

static void end_function(void *context, const struct code_function *function, const struct code_walked *walked)
{
    struct filling *filling = context;
    if (filling->is_contradicted)
        filling->f.spans.count = filling->span_count;
    else if (walked->outcome == CODE_FOLLOWED &&
             code_settle_later(&filling->settling, function, filling->span_count, walked) != 0)
        filling->no_memory = true;
    filling->is_contradicted = false;
    filling->span_count = filling->f.spans.count;
    filling->counts->functions++;
    filling->counts->followed += walked->outcome == CODE_FOLLOWED;
    filling->counts->outcomes[walked->outcome]++;
    filling->counts->doubtful += walked->outcome == CODE_FOLLOWED ? walked->doubtful : 0;
}

// Behind the next instruction that goes on elsewhere; at most where a function may begin since its address is known.
static uint32_t behind_block(const struct code_follower *f, uint32_t pc, uint32_t end)
{
    struct code_instruction in = {.flow = CODE_NEXT};
    uint32_t start = pc;
    while (pc < end && in.flow != CODE_JUMP && in.flow != CODE_RETURN && in.flow != CODE_STOP) {
        if (code_read(f, pc, &in)) {
            pc += in.size_bytes;
        } else {
            pc += 1u << f->arch->pc_shift;
            break;
        }
    }
    return code_next_pointed(f, start + 1, pc < end ? pc : end);
}

static bool is_enough(const struct filling *filling)
{
    return filling->extent != CODE_FILL_ALL &&
           filling->instructions_in_vain > VAIN_INSTRUCTIONS_MAX + filling->instructions_followed;
}

static int no_memory(struct code_follower *f)
{
    return base_fail(f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
}

// Compilers align functions, or something has their addresses. What begins so, and returns with the stack as it found
// it, is one, or a part of one in which the stack is as at its entry. What may be walked in vain is bounded by the
// gap's size.
static int try_gap(struct filling *filling, struct gap gap)
{
    struct code_follower *f = &filling->f;
    uint32_t alignment = f->arch->pc_shift ? 1u << f->arch->pc_shift : 16;
    uint64_t instructions_left = 4 * (uint64_t)(gap.end - gap.start) + CODE_INSTRUCTIONS_MAX;
    for (uint32_t pc = gap.start; pc < gap.end;) {
        if (is_enough(filling)) {
            filling->counts->is_cut = true;
            break;
        }
        pc = gap.pointed_only ? code_next_pointed(f, pc, gap.end) : code_behind_padding(f, pc, gap.end);
        bool has_mode = f->arch->has_thumb && !gap.pointed_only;
        bool is_pointed = pc < gap.end && f->marks[pc] & CODE_MARK_POINTED && !has_mode;
        // What a function may go on in is no other's begin: where that returned, the first would not have been
        // followed.
        bool is_left_out = pc < gap.end && f->marks[pc] & CODE_MARK_LEFT_OUT;
        if ((pc % alignment && !is_pointed) || is_left_out) {
            pc = behind_block(f, pc, gap.end);
            continue;
        }
        uint32_t code = next_code(f, pc);
        if (code != pc) {
            pc = code;
            continue;
        }
        if (pc >= gap.end)
            break;
        if (has_mode)
            f->marks[pc] = (uint16_t)((f->marks[pc] & ~CODE_MARK_MODE) | (gap.is_thumb ? CODE_MARK_MODE : 0));
        size_t first_span = f->spans.count, first_called = f->called.count;
        struct code_function function = {.pc = pc, .found = CODE_FOUND_GAP};
        struct code_walked walked;
        if (code_follow(f, &function, &walked) != 0)
            return -1;
        uint32_t to = walked.outcome == CODE_FOLLOWED ? followed_to(f, first_span, pc) : pc;
        end_function(filling, &function, &walked);
        pc = to > pc ? to : behind_block(f, pc, gap.end);
        if (walked.outcome == CODE_FOLLOWED) {
            if (!code_learn(f, &function))
                return no_memory(f);
            filling->instructions_followed += walked.scanned;
            continue;
        }
        code_forget_calls(f, first_called);
        filling->instructions_in_vain += walked.scanned;
        if (walked.scanned >= instructions_left)
            break;
        instructions_left -= walked.scanned;
    }
    return 0;
}

// What stands between two functions of one instruction set is of that, too. `next` is the span behind the gap.
static bool knows_mode(const struct code_follower *f, size_t next, size_t span_count, bool *is_thumb)
{
    if (!f->arch->has_thumb)
        return true;
    if (next == 0 || next >= span_count)
        return false;
    unsigned before = f->marks[f->spans.items[next - 1].pc], behind = f->marks[f->spans.items[next].pc];
    *is_thumb = before & CODE_MARK_MODE;
    return !((before ^ behind) & CODE_MARK_MODE);
}

// pointed_only: only where something holds an address.
static int try_gaps(struct filling *filling, bool pointed_only)
{
    struct code_follower *f = &filling->f;
    if (!code_sort_spans(f))
        return no_memory(f);
    size_t span_count = f->spans.count, i = 0; // what is found is appended behind them
    uint32_t end = 0;
    for (uint32_t pc = 0; (pc = next_hole(filling, pc, &end)) < f->text_size;) {
        for (; i < span_count && f->spans.items[i].end <= pc; i++)
            ;
        struct gap gap = {.start = pc, .end = end};
        if (i < span_count && f->spans.items[i].pc <= pc) {
            pc = f->spans.items[i].end;
            continue;
        }
        if (i < span_count && f->spans.items[i].pc < end)
            gap.end = f->spans.items[i].pc;
        gap.pointed_only = !knows_mode(f, i, span_count, &gap.is_thumb) || pointed_only;
        if (!is_surely_padding(pc, gap.end) && try_gap(filling, gap) != 0)
            return -1;
        pc = gap.end;
    }
    return 0;
}

int code_fill(const struct input_image *image, uint64_t text_start, uint64_t text_end, enum code_fill_extent extent,
              const struct cfi_row_list *stated, struct cfi_rule_set *rules, struct cfi_row_list *rows,
              struct code_fill_counts *counts, struct base_error *error)
{
    struct filling filling = {.stated = stated, .rules = rules, .counts = counts, .extent = extent};
    // Behind a call to a function that may have popped, where sp is cannot be proven yet: seen in i686's libc, whose
    // functions that return structures do so, 1,500 instructions of their callers.
    if (!code_arch(image->arch)->read || code_arch(image->arch)->callees_pop)
        return 0;
    filling.f = (struct code_follower){.image = image,
                                       .arch = image->arch,
                                       .code = code_arch(image->arch),
                                       .text_start = text_start,
                                       .text_size = (uint32_t)(text_end - text_start)};
    if (extent == CODE_FILL_IF_MUCH && !may_be_much(&filling))
        return 0;
    uint64_t work_bytes = find_work(&filling);
    if (!work_bytes)
        return 0;
    struct code_follower *f = &filling.f;
    bool is_little = work_bytes < WORK_BYTES_LEAST || work_bytes < f->text_size / WORK_SHARE;
    const struct code_wanted wanted = {is_in_hole, is_little, &filling};
    if (code_follower_init_wanted(f, image, text_start, text_end, stated, rules, &wanted, error) != 0)
        return -1;
    f->context = &filling;
    filling.settling =
        (struct code_settling){.f = f, .is_contradicted = &filling.is_contradicted, .doubtful = &counts->doubtful};
    if (f->arch->has_exidx) {
        f->made = compare_at_call;
        f->forget = forget;
    }
    if (!code_find_relocated(f, is_little)) {
        code_follower_free(f);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    }
    int result = code_follower_run(f, end_function);
    if (!is_little)
        code_find_pointed(f);
    // What is found so calls others, and has the addresses of others. What something has the address of comes first: in
    // the rest much may be looked at in vain.
    for (unsigned round = is_little; round < GAP_ROUNDS_MAX && result == 0; round++) {
        if (round > 1 && !f->has_more_pointed && (is_little || !f->has_learned))
            break;
        f->has_more_pointed = f->has_learned = false;
        result = try_gaps(&filling, round != 1);
        if (result == 0)
            result = code_follower_run(f, end_function);
        if (result == 0)
            result = filling.no_memory ? -1 : code_settle(&filling.settling);
        filling.span_count = f->spans.count;
    }
    if (result == 0)
        result = code_spans_to_rows(f, rows);
    if (result == 0)
        counts->data_bytes = code_data_bytes(f, rows);
    code_settling_free(&filling.settling);
    code_follower_free(f);
    return result;
}
