// SPDX-License-Identifier: Apache-2.0
// A method saves registers at fixed places, from the caller's sp downwards, and subtracts what its frame has in all.
// We follow what each instruction does to sp and to those places, from the first on:
//
//   prologue   until all registers of the header are saved and the frame has the header's size. That state is the
//              body's; on the way each instruction has an exact rule of its own.
//   body       may lower sp for the arguments of a native call, and raises it again.
//   epilogue   reloads registers and raises sp; at the return nothing may be left. Behind a return or a jump the body's
//              state holds again, or that of a branch to there: native stubs branch away between lowering sp and
//              raising it.
//
// Whatever does not fit this is not guessed. Before the body's state was reached, the header's rule stands alone, as
// true at calls only. Later, rows are refused from the last jump on: literals and tables behind the code end there.
#include "qutc/cfi/oat_track.h"

#include <string.h>

enum { NUMBERS = 32, ARGUMENT_BYTES_MAX = 1 << 16, PENDING_MAX = 16 };

// Between two instructions.
struct state {
    int32_t cfa_bytes; // caller's sp = sp + this
    uint32_t saved;    // registers in their places, by the instruction set's number
};

// Where a branch goes that is not taken in the body's state.
struct pending {
    uint32_t at;
    struct state state;
};

struct tracker {
    const struct arch *arch;
    struct cfi_rule_set *rules;
    struct cfi_row_list *rows;
    struct base_error *error;
    uint32_t pc_rel; // of the method
    size_t first_row;
    uint32_t frame_bytes;
    uint8_t place[NUMBERS]; // words below the caller's sp; 0: this register has none
    uint8_t ra;             // number of the return-address register, where calls do not push
    struct state entry, body, now;
    bool has_body;
    bool in_block;        // else the last instruction went on elsewhere
    uint32_t block_at;    // where the instructions begin that follow the last jump
    size_t rows_at_block; // how many rows there were
    struct pending pending[PENDING_MAX];
    unsigned pending_count;
    struct state last; // last rule made, its id
    uint32_t last_id;
};

// The return address is next to the caller's sp, below it the other registers, the highest number first.
static void assign_places(const struct arch *arch, uint32_t core_mask, uint8_t *place)
{
    unsigned ra = cfi_oat_arch(arch)->ra_number, words = 1;
    memset(place, 0, NUMBERS);
    place[ra] = 1;
    for (unsigned number = NUMBERS; number-- > 0;)
        if (number != ra && (core_mask >> number & 1))
            place[number] = (uint8_t)++words;
}

static struct qut_rule rule_of(const struct arch *arch, const uint8_t *place, struct state state, uint8_t flags)
{
    const struct cfi_oat_arch *oat = cfi_oat_arch(arch);
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .flags = flags, .dex_pc_reg = QUT_NO_REGISTER};
    rule.cfa.reg = arch->sp_reg;
    rule.cfa.offset_bytes = state.cfa_bytes;
    if (oat->lost_reg)
        rule.tracked[arch_slot(arch, oat->lost_reg)].how = QUT_REG_UNDEFINED;
    if (state.saved >> oat->ra_number & 1)
        rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -(int32_t)arch->word_bytes};
    for (unsigned number = 0; number < NUMBERS; number++) {
        unsigned dwarf_number = oat->low_dwarf_numbers && number < 8 ? oat->low_dwarf_numbers[number] : number;
        int slot = number == oat->ra_number ? -1 : arch_slot(arch, dwarf_number);
        if (slot >= 0 && (state.saved >> number & 1))
            rule.tracked[slot] =
                (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -(place[number] * arch->word_bytes)};
    }
    return rule;
}

static struct state entry_state(const struct arch *arch)
{
    bool pushed = !arch->ra_in_register;
    return (struct state){pushed ? arch->word_bytes : 0, pushed ? 1u << cfi_oat_arch(arch)->ra_number : 0};
}

static bool same(struct state a, struct state b)
{
    return a.cfa_bytes == b.cfa_bytes && a.saved == b.saved;
}

static bool is_leaf(const struct arch *arch, const struct cfi_oat_method *method)
{
    return method->frame_bytes <= (uint32_t)entry_state(arch).cfa_bytes;
}

static struct state body_state(const struct arch *arch, const struct cfi_oat_method *method)
{
    if (is_leaf(arch, method))
        return entry_state(arch);
    return (struct state){(int32_t)method->frame_bytes, method->core_mask | 1u << cfi_oat_arch(arch)->ra_number};
}

struct qut_rule cfi_oat_body_rule(const struct arch *arch, const struct cfi_oat_method *method)
{
    uint8_t place[NUMBERS];
    assign_places(arch, method->core_mask, place);
    return rule_of(arch, place, body_state(arch, method), 0);
}

static int put_rule(struct tracker *t, uint32_t pc_rel, const struct qut_rule *rule)
{
    uint32_t id = cfi_rule_set_intern(t->rules, rule);
    if (id == CFI_RULE_NO_MEMORY)
        return base_fail(t->error, BASE_ERR_NO_MEMORY, "oatexec", pc_rel, "rules");
    if (cfi_row_list_reserve(t->rows, 2, t->error) != 0)
        return -1;
    cfi_row_list_put(t->rows, pc_rel, id);
    return 0;
}

static int put_state(struct tracker *t, uint32_t pc_rel)
{
    const struct cfi_row_list *rows = t->rows;
    bool is_known = t->last_id != CFI_RULE_HOLE_ID && same(t->last, t->now);
    if (is_known && rows->rows[rows->count - 1].rule_id == t->last_id) // most instructions change nothing
        return 0;
    struct qut_rule rule = rule_of(t->arch, t->place, t->now, 0);
    if (put_rule(t, pc_rel, &rule) != 0)
        return -1;
    t->last = t->now;
    t->last_id = rows->rows[rows->count - 1].rule_id;
    return 0;
}

static struct state usual_state(const struct tracker *t)
{
    return t->has_body ? t->body : t->entry;
}

// At the start of an instruction. False where it is reached in two ways that contradict each other.
static bool arrive(struct tracker *t, uint32_t at)
{
    bool is_new_block = !t->in_block;
    if (is_new_block) {
        t->now = usual_state(t);
        t->block_at = at;
        t->rows_at_block = t->rows->count;
        t->in_block = true;
    }
    for (unsigned i = 0; i < t->pending_count; i++) {
        if (t->pending[i].at != at)
            continue;
        if (is_new_block)
            t->now = t->pending[i].state;
        else if (!same(t->now, t->pending[i].state))
            return false;
        is_new_block = false;
    }
    return true;
}

// Whether what holds now is what the rows say of an instruction that was met before.
static bool held_at(const struct tracker *t, uint32_t at)
{
    size_t low = t->first_row, high = t->rows->count; // code can be made of such branches
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->rows->rows[middle].pc_rel <= t->pc_rel + at)
            low = middle + 1;
        else
            high = middle;
    }
    struct qut_rule now = rule_of(t->arch, t->place, t->now, 0);
    return low > t->first_row && memcmp(&t->rules->rules[t->rows->rows[low - 1].rule_id], &now, sizeof now) == 0;
}

static bool remember_branch(struct tracker *t, const struct art_instruction *in, uint32_t at)
{
    if (!in->branches || same(t->now, usual_state(t)))
        return true;
    if (in->branch_bytes <= 0)
        return (uint32_t)-in->branch_bytes <= at && held_at(t, at - (uint32_t)-in->branch_bytes);
    if (t->pending_count == PENDING_MAX)
        return false;
    t->pending[t->pending_count++] = (struct pending){at + (uint32_t)in->branch_bytes, t->now};
    return true;
}

// False where the code contradicts its header: it stores a register that it has not saved, so that it is saving it.
static bool move_words(struct tracker *t, const struct art_instruction *in)
{
    for (unsigned i = 0; i < in->access_count; i++) {
        unsigned reg = in->access[i].reg;
        if (reg >= NUMBERS)
            continue;
        if (!t->place[reg] && !in->loads && (cfi_oat_arch(t->arch)->callee_saves >> reg & 1))
            return false;
        if (!t->place[reg] || in->access[i].offset_bytes != t->now.cfa_bytes - t->place[reg] * t->arch->word_bytes)
            continue;
        if (in->loads)
            t->now.saved &= ~(1u << reg);
        else
            t->now.saved |= 1u << reg;
    }
    return true;
}

// False where the instruction does what we do not follow.
static bool follow(struct tracker *t, const struct art_instruction *in, uint32_t at)
{
    bool ra_in_register = t->arch->ra_in_register && !(t->now.saved >> t->ra & 1);
    if (in->size_bytes == 0 || in->effect == ART_SP_LOST)
        return false;
    if (ra_in_register && (in->effect == ART_CALL || in->effect == ART_RA_LOST))
        return false;
    if (!move_words(t, in))
        return false;
    t->now.cfa_bytes -= in->sp_change_bytes;
    if (t->now.cfa_bytes < t->entry.cfa_bytes || (uint32_t)t->now.cfa_bytes > t->frame_bytes + ARGUMENT_BYTES_MAX)
        return false;
    if (!t->has_body && same(t->now, t->body))
        t->has_body = true;
    // A frame that is partly taken down is so for a return.
    bool in_epilogue = t->has_body && t->now.cfa_bytes < t->body.cfa_bytes;
    switch (in->effect) {
    case ART_CALL: return t->has_body && !in_epilogue;
    case ART_RETURN: t->in_block = false; return t->has_body && same(t->now, t->entry);
    case ART_LEAVES:
        t->in_block = false;
        if (!same(t->now, t->entry) && (!t->has_body || in_epilogue))
            return false;
        break;
    default: break;
    }
    return remember_branch(t, in, at);
}

// Without a prologue that we know, the header's rule may still be relied on where calls return, if sp is not lowered
// for one. Linear: what is found too much only costs the rule.
static bool lowers_sp_in_body(const struct arch *arch, struct base_bytes code)
{
    cfi_oat_read_fn read = cfi_oat_arch(arch)->read;
    bool has_called = false;
    for (size_t at = 0; at < code.size;) {
        struct art_instruction in;
        cfi_oat_read(read, (struct base_bytes){code.data + at, code.size - at}, &in);
        if (in.size_bytes == 0)
            return true;
        if (has_called && in.sp_change_bytes < 0)
            return true;
        has_called |= in.effect == ART_CALL;
        at += in.size_bytes;
    }
    return false;
}

static int give_up(struct tracker *t, const struct cfi_oat_method *method, struct base_bytes code)
{
    struct qut_rule refused = cfi_rule_refused(QUT_REFUSED_OAT_CODE);
    if (t->has_body && (t->block_at || is_leaf(t->arch, method))) {
        t->rows->count = t->rows_at_block;
        return put_rule(t, t->pc_rel + t->block_at, &refused) ? -1 : t->block_at ? CFI_OAT_PARTLY : CFI_OAT_REFUSED;
    }
    t->rows->count = t->first_row;
    if (lowers_sp_in_body(t->arch, code))
        return put_rule(t, t->pc_rel, &refused) ? -1 : CFI_OAT_REFUSED;
    struct qut_rule rule = rule_of(t->arch, t->place, body_state(t->arch, method), QUT_RULE_BODY_ONLY);
    return put_rule(t, t->pc_rel, &rule) ? -1 : CFI_OAT_BODY_ONLY;
}

int cfi_oat_method_rows(const struct arch *arch, const struct cfi_oat_method *method, struct base_bytes code,
                        uint32_t pc_rel, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                        struct base_error *error)
{
    struct tracker t = {.arch = arch,
                        .rules = rules,
                        .rows = rows,
                        .error = error,
                        .pc_rel = pc_rel,
                        .first_row = rows->count,
                        .frame_bytes = method->frame_bytes,
                        .ra = cfi_oat_arch(arch)->ra_number,
                        .entry = entry_state(arch),
                        .body = body_state(arch, method),
                        .has_body = is_leaf(arch, method)};
    cfi_oat_read_fn read = cfi_oat_arch(arch)->read;
    int certainty = CFI_OAT_EXACT;
    assign_places(arch, method->core_mask, t.place);
    for (uint32_t at = 0; at < code.size && certainty == CFI_OAT_EXACT;) {
        struct art_instruction in;
        bool good = arrive(&t, at);
        if (good && put_state(&t, pc_rel + at) != 0)
            return -1;
        cfi_oat_read(read, (struct base_bytes){code.data + at, code.size - at}, &in);
        if (!good || !follow(&t, &in, at))
            certainty = give_up(&t, method, code);
        at += in.size_bytes;
    }
    if (certainty == CFI_OAT_EXACT && !t.has_body)
        certainty = give_up(&t, method, code);
    if (certainty < 0 || cfi_row_list_reserve(rows, 1, error) != 0)
        return -1;
    cfi_row_list_put(rows, pc_rel + (uint32_t)code.size, CFI_RULE_HOLE_ID);
    return certainty;
}
