// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/art.h"

#include "formats/elf_wide_inline.h"
#include "qutc/cfi/oat_code.h"
#include "qutc/input/symbol_sections.h"

enum place {
    INTERPRETER,  // "mterp": handlers of bytecode, written in assembly, one behind another
    HANDLERS,     // the first of them; what comes before is the interpreter's prologue
    TRACING_EXIT, // where traced methods return to
    TRACING_CALL, // what that calls
    PLACE_COUNT,
};

static const struct {
    const char *name;
    size_t size; // with the 0
} names[PLACE_COUNT] = {
#define NAME(TEXT)                                                                                                     \
    {                                                                                                                  \
        TEXT, sizeof TEXT                                                                                              \
    }
    [INTERPRETER] = NAME("ExecuteMterpImpl"),
    [HANDLERS] = NAME("artMterpAsmInstructionStart"),
    [TRACING_EXIT] = NAME("art_quick_instrumentation_exit"),
    [TRACING_CALL] = NAME("artInstrumentationMethodExitFromCode"),
#undef NAME
};

struct places {
    struct input_range at[PLACE_COUNT]; // end 0: there is none
};

// ---- symbols

static bool is_libart(const char *name)
{
    static const char *const libraries[] = {"libart.so", "libart.so.0", "libartd.so"}; // .so.0: Debian's
    const char *base = name;
    for (const char *at = name; *at; at++)
        if (*at == '/' || *at == '!')
            base = at + 1;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(base, libraries[i]) == 0)
            return true;
    return false;
}

static void note_symbol(const struct input_image *image, struct base_bytes strings, uint32_t name_offset,
                        uint64_t value, uint64_t size_bytes, struct places *places)
{
    if (name_offset >= strings.size)
        return;
    const uint8_t *name = strings.data + name_offset;
    for (unsigned i = 0; i < PLACE_COUNT; i++) {
        if (names[i].size > strings.size - name_offset || memcmp(name, names[i].name, names[i].size) != 0)
            continue;
        uint64_t start = image->arch->has_thumb ? value & ~(uint64_t)1 : value;
        if (start && size_bytes <= UINT64_MAX - start)
            places->at[i] = (struct input_range){start, start + size_bytes};
    }
}

static void find_places(const struct input_image *image, struct places *places)
{
    struct input_symbol_section sections[INPUT_SYMBOL_SECTIONS_MAX];
    unsigned count = input_image_symbol_sections(image, 0, sections);
    for (unsigned i = 0; i < count; i++) {
        struct base_cursor cursor = base_cursor(sections[i].symbols);
        size_t symbol_bytes = elf_symbol_bytes(image->is_64);
        while (base_cursor_left(&cursor) >= symbol_bytes) {
            const Elf64_Sym symbol = elf_wide_symbol(base_read_bytes(&cursor, symbol_bytes).data, image->is_64);
            if (symbol.st_shndx != SHN_UNDEF)
                note_symbol(image, sections[i].names, symbol.st_name, symbol.st_value, symbol.st_size, places);
        }
    }
}

// ---- rows

struct rewriting {
    uint64_t text_start, text_end;
    struct cfi_rule_set *rules;
    struct cfi_row_list *rows;
    struct base_error *error;
};

// [*first, *end): the rows of a range, which begins and ends at a row afterwards. There is room for two rows.
static void cut_out(struct cfi_row_list *list, uint32_t start_rel, uint32_t end_rel, size_t *first, size_t *end)
{
    const uint32_t at[2] = {start_rel, end_rel};
    size_t found[2], i = 0;
    for (unsigned edge = 0; edge < 2; edge++) {
        while (i < list->count && list->rows[i].pc_rel < at[edge])
            i++;
        found[edge] = i;
        if (i < list->count && list->rows[i].pc_rel == at[edge])
            continue;
        uint32_t rule_id = i ? list->rows[i - 1].rule_id : CFI_RULE_HOLE_ID;
        memmove(&list->rows[i + 1], &list->rows[i], (list->count - i) * sizeof *list->rows);
        list->rows[i] = (struct cfi_row){at[edge], rule_id};
        list->count++;
    }
    *first = found[0];
    *end = found[1];
}

typedef bool rewrite(const struct input_image *image, struct qut_rule *rule); // false: the rule stays

static int rewrite_range(const struct rewriting *w, const struct input_image *image, struct input_range range,
                         rewrite *change)
{
    if (range.start < w->text_start || range.end > w->text_end || range.start >= range.end)
        return 0;
    if (cfi_row_list_reserve(w->rows, 2, w->error) != 0)
        return -1;
    size_t first, end;
    cut_out(w->rows, (uint32_t)(range.start - w->text_start), (uint32_t)(range.end - w->text_start), &first, &end);
    for (size_t i = first; i < end; i++) {
        struct qut_rule rule = w->rules->rules[w->rows->rows[i].rule_id];
        if (!change(image, &rule))
            continue;
        uint32_t rule_id = cfi_rule_set_intern(w->rules, &rule);
        if (rule_id == CFI_RULE_NO_MEMORY)
            return base_fail(w->error, BASE_ERR_NO_MEMORY, "", 0, "rules");
        w->rows->rows[i].rule_id = rule_id;
    }
    return 0;
}

// ---- the dex pc

static bool add_dex_pc(const struct input_image *image, struct qut_rule *rule)
{
    if (rule->kind != QUT_RULE_FRAME)
        return false;
    rule->dex_pc_reg = cfi_oat_arch(image->arch)->dex_pc_reg;
    return true;
}

static bool is_marked(const struct rewriting *w, struct input_range range)
{
    for (size_t i = 0; i < w->rows->count; i++) {
        uint64_t pc = w->text_start + w->rows->rows[i].pc_rel;
        const struct qut_rule *rule = &w->rules->rules[w->rows->rows[i].rule_id];
        if (pc >= range.start && pc < range.end && rule->kind == QUT_RULE_FRAME && rule->dex_pc_reg != QUT_NO_REGISTER)
            return true;
    }
    return false;
}

// From the first handler on; empty where that is not known.
static struct input_range interpreting(const struct input_image *image, const struct places *places)
{
    struct input_range whole = places->at[INTERPRETER];
    uint64_t handlers = places->at[HANDLERS].start;
    if (cfi_oat_arch(image->arch)->dex_pc_reg == QUT_NO_REGISTER || handlers < whole.start || handlers >= whole.end)
        return (struct input_range){0};
    return (struct input_range){handlers, whole.end};
}

static int mark_interpreter(const struct rewriting *w, const struct input_image *image, const struct places *places)
{
    struct input_range range = interpreting(image, places);
    return is_marked(w, places->at[INTERPRETER]) ? 0 : rewrite_range(w, image, range, add_dex_pc);
}

bool cfi_art_is_mended(const struct input_image *image, uint64_t vaddr, const struct qut_rule *rule)
{
    return is_libart(image->name) && cfi_art_is_proven(image, vaddr, rule);
}

bool cfi_art_has_dex_pc(const struct input_image *image, uint64_t vaddr, uint8_t reg)
{
    if (!is_libart(image->name) || reg != cfi_oat_arch(image->arch)->dex_pc_reg)
        return false;
    struct places places = {0};
    find_places(image, &places);
    struct input_range range = interpreting(image, &places);
    return vaddr >= range.start && vaddr < range.end;
}

// ---- method tracing

static bool refuse(const struct input_image *image, struct qut_rule *rule)
{
    (void)image;
    *rule = cfi_rule_refused(QUT_REFUSED_INSTRUMENTED);
    return true;
}

// A traced method returns to the first instruction of this function. No call stands before it, so what is looked up
// for such a return address, the code before, is a neighbour's. Nor can the function itself be left by its unwind
// information: the true return address is on a stack of the runtime's own. Of x86-64 the rows up to its `ret` say where
// that is missing, and walks know what a return address of 0 means there.
static int refuse_tracing(const struct rewriting *w, const struct input_image *image, const struct places *places)
{
    struct input_range exit = places->at[TRACING_EXIT];
    uint64_t unit_bytes = (uint64_t)1 << image->arch->pc_shift;
    if (exit.end == 0 || exit.start < unit_bytes || exit.start % unit_bytes || exit.end % unit_bytes)
        return 0;
    struct input_range before = {exit.start - unit_bytes, exit.end};
    uint64_t body_end = cfi_art_tracing_body(image, w->text_start, w->rules, w->rows, exit);
    if (body_end) {
        before.end = exit.start;
        const struct input_range behind = {body_end, exit.end};
        if (rewrite_range(w, image, behind, refuse) != 0)
            return -1;
    }
    return rewrite_range(w, image, before, refuse);
}

int cfi_art_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end, struct cfi_rule_set *rules,
                 struct cfi_row_list *rows, struct base_error *error)
{
    if (!is_libart(image->name))
        return 0;
    struct places places = {0};
    find_places(image, &places);
    if (!places.at[TRACING_EXIT].end)
        places.at[TRACING_EXIT] = cfi_art_tracing_exit(image, text_start, rules, rows, places.at[TRACING_CALL].start);
    if (cfi_art_mend_rows(image, text_start, rules, rows, error) != 0)
        return -1;
    struct rewriting w = {text_start, text_end, rules, rows, error};
    return mark_interpreter(&w, image, &places) != 0 || refuse_tracing(&w, image, &places) != 0 ? -1 : 0;
}
