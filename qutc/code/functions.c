// SPDX-License-Identifier: Apache-2.0
// Where a file's functions begin: its symbols, its unwind information, what calls them.
#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/cfi/frame_section.h"
#include "qutc/code/inside.h"
#include "qutc/input/symbol_sections.h"

static int by_pc(const void *a, const void *b)
{
    const struct code_function *x = a, *y = b;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

static bool add(struct code_follower *f, uint64_t vaddr, uint64_t size_bytes, unsigned found, unsigned marks)
{
    if (f->arch->has_thumb && vaddr & 1) {
        vaddr &= ~(uint64_t)1;
        marks |= CODE_MARK_MODE;
    }
    if (vaddr < f->text_start || vaddr - f->text_start >= f->text_size)
        return true;
    uint32_t pc = (uint32_t)(vaddr - f->text_start);
    if (code_is_left_out(f, pc))
        return true;
    struct code_function *function = BASE_ADD(&f->functions);
    if (!function)
        return false;
    *function = (struct code_function){.pc = pc, .found = (uint8_t)found};
    if (size_bytes && size_bytes <= f->text_size - pc)
        function->end = pc + (uint32_t)size_bytes;
    if (f->marks[pc] & CODE_MARK_WHOLE)
        function->found |= CODE_FOUND_STATED;
    if (f->marks[pc] & CODE_MARK_KEPT && !(f->marks[pc] & CODE_MARK_START)) {
        uint32_t *place = BASE_ADD(&f->disturbed);
        if (!place)
            return false;
        *place = pc;
    }
    f->marks[pc] = (uint16_t)(f->marks[pc] | CODE_MARK_START | marks);
    return true;
}

// Of several names for one function the one with fewest leading underscores, then the shortest, is the one to be told.
static bool is_better_name(const struct code_function *a, const struct code_function *b)
{
    unsigned a_underscores = 0, b_underscores = 0;
    while (a_underscores < a->name_length && a->name[a_underscores] == '_')
        a_underscores++;
    while (b_underscores < b->name_length && b->name[b_underscores] == '_')
        b_underscores++;
    if (a->name_length == 0 || b->name_length == 0)
        return a->name_length > 0;
    return a_underscores != b_underscores ? a_underscores < b_underscores : a->name_length < b->name_length;
}

// Sorted, each pc once.
static void tidy(struct code_follower *f)
{
    size_t count = 0;
    if (f->functions.count)
        qsort(f->functions.items, f->functions.count, sizeof *f->functions.items, by_pc);
    for (size_t i = 0; i < f->functions.count; i++) {
        struct code_function *function = &f->functions.items[i];
        struct code_function *last = count ? &f->functions.items[count - 1] : NULL;
        if (!last || last->pc != function->pc) {
            f->functions.items[count++] = *function;
            continue;
        }
        bool is_called_now = (last->found ^ function->found) & CODE_FOUND_CALL;
        last->found |= function->found;
        last->end = last->end ? last->end : function->end;
        if (is_better_name(function, last)) {
            last->name = function->name;
            last->name_length = function->name_length;
        }
        last->is_followed |= function->is_followed;
        last->is_seen |= function->is_seen;
        if (is_called_now && code_is_open_yet(last)) // when it was walked nothing said that it is one
            last->is_seen = false;
        last->is_done |= function->is_done;
        last->never_returns |= function->never_returns;
        last->ends_by_name |= function->ends_by_name;
        last->comes_back |= function->comes_back;
        last->loses |= function->loses;
        last->without |= function->without;
        last->keeps |= function->keeps;
        last->kept = last->kept ? last->kept : function->kept;
    }
    f->functions.count = count;
}

// The first function at pc or behind it.
static size_t index_from(const struct code_follower *f, uint32_t pc)
{
    size_t low = 0, high = f->functions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->functions.items[middle].pc < pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct code_function *code_function_at(struct code_follower *f, uint32_t pc)
{
    size_t i = index_from(f, pc);
    return i < f->functions.count && f->functions.items[i].pc == pc ? &f->functions.items[i] : NULL;
}

uint32_t code_next_start(const struct code_follower *f, uint32_t pc)
{
    size_t i = index_from(f, pc + 1);
    return i < f->functions.count ? f->functions.items[i].pc : f->text_size;
}

uint32_t code_start_at_most(const struct code_follower *f, uint32_t pc)
{
    size_t i = index_from(f, pc + 1);
    return i ? f->functions.items[i - 1].pc : 0;
}

// gcc splits what is seldom run from functions, "name.cold": it is jumped to.
static bool is_cold(const char *name, size_t length)
{
    static const char part[] = ".cold";
    size_t part_length = sizeof part - 1;
    for (size_t i = 0; i + part_length <= length; i++)
        if (memcmp(name + i, part, part_length) == 0)
            return true;
    return false;
}

static bool add_symbols(struct code_follower *f)
{
    struct input_symbol_section sections[INPUT_SYMBOL_SECTIONS_MAX];
    unsigned count = input_image_symbol_sections(f->image, 0, sections);
    for (unsigned i = 0; i < count; i++) {
        struct base_cursor c = base_cursor(sections[i].symbols);
        size_t bytes = elf_symbol_bytes(f->image->is_64);
        while (base_cursor_left(&c) >= bytes) {
            const Elf64_Sym symbol = elf_wide_symbol(base_read_bytes(&c, bytes).data, f->image->is_64);
            unsigned type = ELF64_ST_TYPE(symbol.st_info);
            if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
                continue;
            struct base_bytes names = sections[i].names;
            bool has_name = symbol.st_name < names.size;
            const char *name = has_name ? (const char *)names.data + symbol.st_name : NULL;
            size_t length = has_name ? strnlen(name, names.size - symbol.st_name) : 0;
            size_t before = f->functions.count;
            if (!add(f, symbol.st_value, symbol.st_size, CODE_FOUND_SYMBOL,
                     is_cold(name, length) ? CODE_MARK_FRAGMENT : 0))
                return false;
            if (f->functions.count > before && length) {
                f->functions.items[before].name = name;
                f->functions.items[before].name_length = (uint16_t)(length < UINT16_MAX ? length : UINT16_MAX);
                f->functions.items[before].ends_by_name =
                    ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && code_name_ends(name, length);
            }
        }
    }
    return true;
}

// A frame program that begins with another rule than a function's entry has belongs to a part of one.
static bool is_entry_rule(const struct code_follower *f, const struct cfi_row_list *rows, uint32_t pc)
{
    const struct qut_rule *rule = &f->rules->rules[cfi_row_list_at(rows, pc)];
    int32_t word = f->arch->ra_in_register ? 0 : f->arch->word_bytes;
    return rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG && rule->cfa.reg == f->arch->sp_reg &&
           rule->cfa.offset_bytes == word && rule->ra.how != QUT_REG_UNDEFINED && !(rule->flags & QUT_RULE_SIGNAL);
}

// A part of a function that gcc moved away begins with a nop, for which nothing is stated yet: in libstdc++.
static bool begins_with_padding(const struct code_follower *f, const struct cfi_row_list *rows, uint32_t pc)
{
    struct code_instruction in;
    return code_read(f, pc, &in) && in.is_padding && pc + in.size_bytes < f->text_size &&
           cfi_row_list_at(rows, pc) != cfi_row_list_at(rows, pc + in.size_bytes);
}

// .ARM.exidx says where functions begin, not of which instruction set they are: nothing before them goes on there.
static void mark_bodies(struct code_follower *f, const struct cfi_row_list *rows)
{
    bool was_body = false;
    for (size_t i = 0; i < rows->count; i++) {
        bool is_body = f->rules->rules[rows->rows[i].rule_id].flags & QUT_RULE_BODY_ONLY;
        if ((is_body || was_body) && rows->rows[i].pc_rel < f->text_size)
            f->marks[rows->rows[i].pc_rel] |= is_body ? CODE_MARK_START | CODE_MARK_WHOLE : CODE_MARK_START;
        was_body = is_body;
    }
}

static int add_stated(struct code_follower *f, const struct cfi_row_list *rows)
{
    for (unsigned i = 0; i < f->image->frame_count; i++) {
        if (f->image->frame[i].kind == INPUT_FRAME_EXIDX)
            continue;
        struct cfi_frame_records records = {0};
        bool good = cfi_frame_records_read(f->image, &f->image->frame[i], f->text_start, f->text_start + f->text_size,
                                           &records, f->error) == 0;
        for (size_t k = 0; k < records.fde_count && good; k++) {
            const struct cfi_fde *fde = &records.fdes[k];
            bool is_entry = is_entry_rule(f, rows, fde->start_rel) && !begins_with_padding(f, rows, fde->start_rel);
            good = add(f, f->text_start + fde->start_rel, fde->end_rel - fde->start_rel,
                       is_entry ? CODE_FOUND_STATED : 0, is_entry ? CODE_MARK_WHOLE : CODE_MARK_FRAGMENT);
        }
        cfi_frame_records_free(&records);
        if (!good)
            return -1;
    }
    return 0;
}

static bool add_entry(struct code_follower *f)
{
    struct base_cursor c = base_cursor(input_image_elf(f->image));
    base_cursor_skip(&c, offsetof(Elf64_Ehdr, e_entry)); // the same in both classes
    uint64_t entry = base_read_uint(&c, f->image->is_64 ? 8 : 4);
    return c.failed || !entry || add(f, entry, 0, CODE_FOUND_ENTRY, 0);
}

int code_follower_init(struct code_follower *f, const struct input_image *image, uint64_t text_start, uint64_t text_end,
                       const struct cfi_row_list *rows, struct cfi_rule_set *rules, struct base_error *error)
{
    const struct code_wanted all = {0};
    return code_follower_init_wanted(f, image, text_start, text_end, rows, rules, &all, error);
}

int code_follower_init_wanted(struct code_follower *f, const struct input_image *image, uint64_t text_start,
                              uint64_t text_end, const struct cfi_row_list *rows, struct cfi_rule_set *rules,
                              const struct code_wanted *wanted, struct base_error *error)
{
    *f = (struct code_follower){.image = image,
                                .arch = image->arch,
                                .code = code_arch(image->arch),
                                .text_start = text_start,
                                .text_size = (uint32_t)(text_end - text_start),
                                .rules = rules,
                                .stated = rows,
                                .is_wanted = wanted->is,
                                .wanted_only = wanted->only,
                                .wanted_context = wanted->context,
                                .error = error};
    f->marks = calloc((size_t)f->text_size + 1, sizeof *f->marks);
    f->walk = calloc(1, sizeof *f->walk);
    if (f->marks && f->arch->has_exidx)
        mark_bodies(f, rows);
    if (!f->marks || !f->walk || !add_symbols(f) || !add_entry(f) || (!f->wanted_only && add_stated(f, rows) != 0)) {
        code_follower_free(f);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    }
    // Only now: where functions begin decides what instructions are.
    f->decoded = calloc(1, sizeof *f->decoded);
    if (!f->decoded) {
        code_follower_free(f);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    }
    f->walk->f = f;
    f->walk->machine.arch = f->arch;
    f->walk->machine.code = f->code;
    f->walk->machine.image = image;
    f->walk->machine.has_literals = code_stays_as_filed(f);
    tidy(f);
    return 0;
}

void code_follower_free(struct code_follower *f)
{
    struct code_walk *w = f->walk;
    if (w) {
        base_vector_free(&w->machine.tables.vector);
        base_vector_free(&w->touched.vector);
        base_vector_free(&w->to_scan.vector);
        base_vector_free(&w->leaders.vector);
        base_vector_free(&w->queue.vector);
        base_vector_free(&w->edges.vector);
        base_vector_free(&w->parts.vector);
        base_vector_free(&w->ways.vector);
        base_vector_free(&w->jumps.vector);
        base_hash_free(&w->jump_index);
        base_vector_free(&w->targets.vector);
        base_vector_free(&w->no_elements.vector);
        base_vector_free(&w->spans.vector);
        base_vector_free(&w->left_for.vector);
        base_vector_free(&w->assumed.vector);
        base_hash_free(&w->leader_index);
    }
    base_vector_free(&f->functions.vector);
    base_vector_free(&f->spans.vector);
    base_vector_free(&f->called.vector);
    base_vector_free(&f->relocated.vector);
    base_vector_free(&f->slots.vector);
    base_vector_free(&f->data.vector);
    base_vector_free(&f->learned.vector);
    base_hash_free(&f->learned_index);
    base_vector_free(&f->kept.vector);
    base_vector_free(&f->assumed.vector);
    base_vector_free(&f->disturbed.vector);
    free(f->marks);
    free(f->decoded);
    free(w);
    f->marks = NULL;
    f->decoded = NULL;
    f->walk = NULL;
}

static bool add_called(struct code_follower *f)
{
    bool good = true;
    for (size_t i = 0; i < f->called.count && good; i++)
        good = add(f, f->text_start + f->called.items[i], 0, CODE_FOUND_CALL, 0);
    f->called.count = 0;
    tidy(f);
    return good;
}

// A function that something calls is no part of another. What the kernel enters is not looked at for its own sake.
static bool is_function(const struct code_follower *f, const struct code_function *function)
{
    unsigned proven = f->visit ? CODE_FOUND_CALL : CODE_FOUND_CALL | CODE_FOUND_ENTRY;
    return !(f->marks[function->pc] & CODE_MARK_FRAGMENT) || function->found & proven;
}

int code_follower_run(struct code_follower *f, void (*done)(void *context, const struct code_function *function,
                                                            const struct code_walked *walked))
{
    struct code_walked walked;
    // What functions call, and what they do to their callers' registers, is learned first.
    bool is_new = true;
    while (is_new) {
        is_new = false;
        for (size_t i = 0; i < f->functions.count; i++) {
            struct code_function *function = &f->functions.items[i];
            if (function->is_seen || !is_function(f, function))
                continue;
            function->is_seen = is_new = true;
            bool is_wanted = !f->is_wanted || f->is_wanted(f->wanted_context, function->pc);
            // What the kernel enters says where main is.
            if (!is_wanted && !(function->found & CODE_FOUND_ENTRY) ? code_find_calls(f, function)
                                                                    : code_follow(f, function, &walked) != 0)
                return -1;
        }
        if (!add_called(f))
            return base_fail(f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    }
    f->is_final = true;
    do {
        f->is_open = false;
        for (size_t i = 0; i < f->functions.count; i++) {
            struct code_function *function = &f->functions.items[i];
            bool is_wanted = !f->is_wanted || f->is_wanted(f->wanted_context, function->pc);
            if (!is_function(f, function) || !is_wanted || function->is_done)
                continue;
            function->is_done = true;
            const struct code_walked *kept = code_kept(f, function);
            if (!kept) {
                function->kept = 0;
                if (code_follow(f, function, &walked) != 0)
                    return -1;
            }
            if (done)
                done(f->context, function, kept ? kept : &walked);
        }
    } while (f->is_open);
    return 0;
}

const char *code_outcome_name(enum code_outcome outcome)
{
    static const char *const names[CODE_OUTCOME_END] = {
        [CODE_FOLLOWED] = "followed",
        [CODE_UNPROVEN] = "nothing calls it and it does not return",
        [CODE_BAD_INSTRUCTION] = "an instruction that is not known",
        [CODE_BAD_RETURN] = "returns with something left on the stack",
        [CODE_BAD_LEAVE] = "leaves with something left on the stack",
        [CODE_OPEN_JUMP] = "a jump to what is not known",
        [CODE_TOO_LARGE] = "too large",
    };
    return names[outcome];
}
