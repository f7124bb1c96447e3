// SPDX-License-Identifier: Apache-2.0
// What libart's symbols add to its unwind information: where the dex pc is, and where method tracing put its own return
// addresses.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/cfi/art.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

enum { TEXT = 0x10000, TEXT_BYTES = 0x1000, SYMBOLS_MAX = 8, NAMES_MAX = 512 };

// ---- an image with symbols, and rows for it

struct art {
    const struct arch *arch;
    const char *library;
    struct symbol {
        uint64_t value, size_bytes;
        uint16_t section;
        uint32_t name;
    } symbols[SYMBOLS_MAX];
    size_t symbol_count;
    char names[NAMES_MAX];
    size_t names_bytes;
    struct cfi_rule_set rules;
    struct cfi_row_list rows;
};

static struct art art;

static void begin(const struct arch *arch)
{
    memset(&art, 0, sizeof art);
    art.arch = arch;
    art.library = "/apex/com.android.art/lib64/libart.so";
    art.names_bytes = 1;
    ck_assert_int_eq(cfi_rule_set_init(&art.rules, NULL), 0);
    ck_assert_int_eq(cfi_row_list_reserve(&art.rows, 16, NULL), 0);
}

static void end(void)
{
    cfi_rule_set_free(&art.rules);
    cfi_row_list_free(&art.rows);
}

static void symbol(const char *name, uint64_t offset, uint64_t size_bytes)
{
    size_t name_bytes = strlen(name) + 1;
    ck_assert(art.symbol_count < SYMBOLS_MAX && art.names_bytes + name_bytes <= NAMES_MAX);
    memcpy(art.names + art.names_bytes, name, name_bytes);
    art.symbols[art.symbol_count++] = (struct symbol){TEXT + offset, size_bytes, 1, (uint32_t)art.names_bytes};
    art.names_bytes += name_bytes;
}

static void row(uint32_t offset, const struct qut_rule *rule)
{
    cfi_row_list_put(&art.rows, offset, cfi_rule_set_intern(&art.rules, rule));
}

static struct qut_rule frame(int32_t cfa_bytes)
{
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    rule.cfa.reg = art.arch->sp_reg;
    rule.cfa.offset_bytes = cfa_bytes;
    return rule;
}

static void frame_row(uint32_t offset, int32_t cfa_bytes)
{
    struct qut_rule rule = frame(cfa_bytes);
    row(offset, &rule);
}

static size_t put_symbols(Elf64_Sym *wide, Elf32_Sym *narrow)
{
    for (size_t i = 0; i < art.symbol_count; i++) {
        const struct symbol *s = &art.symbols[i];
        wide[i + 1] =
            (Elf64_Sym){.st_name = s->name, .st_value = s->value, .st_size = s->size_bytes, .st_shndx = s->section};
        narrow[i + 1] = (Elf32_Sym){.st_name = s->name,
                                    .st_value = (uint32_t)s->value,
                                    .st_size = (uint32_t)s->size_bytes,
                                    .st_shndx = s->section};
    }
    return (art.symbol_count + 1) * (art.arch->word_bytes == 8 ? sizeof *wide : sizeof *narrow);
}

static struct input_image *open_image(void)
{
    Elf64_Sym wide[SYMBOLS_MAX + 1] = {0};
    Elf32_Sym narrow[SYMBOLS_MAX + 1] = {0};
    size_t symbols_bytes = put_symbols(wide, narrow);
    bool is_32 = art.arch->word_bytes == 4;
    struct build_elf spec = {
        .is_32 = is_32,
        .machine = art.arch->elf_machine,
        .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, NULL, TEXT_BYTES, 16},
                     {".symtab", SHT_SYMTAB, 0, 0, is_32 ? (const void *)narrow : wide, symbols_bytes, 8},
                     {".strtab", SHT_STRTAB, 0, 0, art.names, art.names_bytes, 1}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}},
    };
    struct build_buffer file = build_elf(&spec);
    uint32_t names_index = 3;
    uint64_t headers = is_32 ? ((Elf32_Ehdr *)file.data)->e_shoff : ((Elf64_Ehdr *)file.data)->e_shoff;
    size_t link = is_32 ? 2 * sizeof(Elf32_Shdr) + offsetof(Elf32_Shdr, sh_link)
                        : 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link);
    memcpy(file.data + headers + link, &names_index, sizeof names_index);
    struct input_image *image = NULL;
    struct base_error error = {0};
    int result = input_image_open_memory((struct base_bytes){file.data, file.size}, art.library, NULL, &image, &error);
    ck_assert_msg(result == 0, "%s", error.detail);
    free(file.data);
    return image;
}

static void change(void)
{
    struct input_image *image = open_image();
    struct base_error error = {0};
    ck_assert_int_eq(cfi_art_rows(image, TEXT, TEXT + TEXT_BYTES, &art.rules, &art.rows, &error), 0);
    input_image_close(image);
}

static const struct qut_rule *rule_at(uint32_t offset)
{
    uint32_t rule_id = CFI_RULE_HOLE_ID;
    for (size_t i = 0; i < art.rows.count && art.rows.rows[i].pc_rel <= offset; i++) {
        ck_assert(i == 0 || art.rows.rows[i - 1].pc_rel < art.rows.rows[i].pc_rel);
        rule_id = art.rows.rows[i].rule_id;
    }
    return &art.rules.rules[rule_id];
}

// ---- the dex pc

static void interpreter_of_android_7(const struct arch *arch)
{
    begin(arch);
    frame_row(0x100, 16);
    frame_row(0x110, 32);
    row(0x300, &(struct qut_rule){.dex_pc_reg = QUT_NO_REGISTER});
    symbol("ExecuteMterpImpl", 0x100, 0x180);
    symbol("artMterpAsmInstructionStart", 0x140, 0);
}

START_TEST(handlers_of_bytecode_know_its_address)
{
    static const struct {
        const struct arch *arch;
        uint8_t reg;
    } cases[] = {{&arch_arm, 4}, {&arch_aarch64, 20}, {&arch_x86, 6}, {&arch_x86_64, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        interpreter_of_android_7(cases[i].arch);
        change();
        ck_assert_uint_eq(rule_at(0x100)->dex_pc_reg, QUT_NO_REGISTER);
        ck_assert_uint_eq(rule_at(0x13f)->dex_pc_reg, QUT_NO_REGISTER); // the prologue
        ck_assert_uint_eq(rule_at(0x140)->dex_pc_reg, cases[i].reg);
        ck_assert_int_eq(rule_at(0x140)->cfa.offset_bytes, 32);
        ck_assert_uint_eq(rule_at(0x27f)->dex_pc_reg, cases[i].reg);
        ck_assert_uint_eq(rule_at(0x280)->dex_pc_reg, QUT_NO_REGISTER);
        ck_assert_uint_eq(rule_at(0x300)->kind, QUT_RULE_HOLE);
        struct input_image *image = open_image(); // the same, said for one address
        ck_assert(!cfi_art_has_dex_pc(image, TEXT + 0x13f, cases[i].reg));
        ck_assert(cfi_art_has_dex_pc(image, TEXT + 0x140, cases[i].reg));
        ck_assert(!cfi_art_has_dex_pc(image, TEXT + 0x140, cases[i].reg + 1));
        ck_assert(!cfi_art_has_dex_pc(image, TEXT + 0x280, cases[i].reg));
        input_image_close(image);
        end();
    }
}
END_TEST

static void expect_unchanged(void)
{
    size_t row_count = art.rows.count;
    struct cfi_row before[16];
    memcpy(before, art.rows.rows, row_count * sizeof *before);
    change();
    ck_assert_uint_eq(art.rows.count, row_count);
    ck_assert_mem_eq(art.rows.rows, before, row_count * sizeof *before);
    end();
}

START_TEST(nothing_is_added_where_nothing_is_known)
{
    interpreter_of_android_7(&arch_x86_64);
    art.library = "/system/lib64/libartbase.so";
    expect_unchanged();

    interpreter_of_android_7(&arch_x86_64);
    art.symbol_count = 1; // without the handlers' beginning
    expect_unchanged();

    interpreter_of_android_7(&arch_x86_64);
    art.symbols[1].value = TEXT + 0x280; // behind the interpreter
    expect_unchanged();

    interpreter_of_android_7(&arch_x86_64);
    art.symbols[0].size_bytes = TEXT_BYTES; // beyond the text
    expect_unchanged();

    interpreter_of_android_7(&arch_x86_64);
    art.symbols[0].section = SHN_UNDEF;
    expect_unchanged();

    interpreter_of_android_7(&arch_riscv64); // never had this interpreter
    expect_unchanged();

    interpreter_of_android_7(&arch_x86_64);
    art.symbols[0].name = 0xffffff;
    expect_unchanged();

    interpreter_of_android_7(&arch_x86_64); // Android 9: one row has its mark
    struct qut_rule marked = frame(32);
    marked.dex_pc_reg = 12;
    row(0x310, &(struct qut_rule){.dex_pc_reg = QUT_NO_REGISTER});
    art.rows.rows[1].rule_id = cfi_rule_set_intern(&art.rules, &marked);
    expect_unchanged();
}
END_TEST

START_TEST(library_is_known_by_its_base_name)
{
    static const char *const libraries[] = {"libart.so", "/system/lib/libartd.so", "libart.so.0", "base.apk!libart.so"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        interpreter_of_android_7(&arch_aarch64);
        art.library = libraries[i];
        change();
        ck_assert_uint_eq(rule_at(0x140)->dex_pc_reg, 20);
        end();
    }
}
END_TEST

// ---- method tracing

static void expect_refused(uint32_t offset, bool is_refused)
{
    const struct qut_rule *rule = rule_at(offset);
    bool is = rule->kind == QUT_RULE_REFUSED && rule->reason == QUT_REFUSED_INSTRUMENTED;
    ck_assert_msg(is == is_refused, "0x%x: %s", offset, is ? "refused" : "not refused");
}

START_TEST(return_addresses_of_method_tracing_are_refused)
{
    static const struct arch *const archs[] = {&arch_x86_64, &arch_x86, &arch_aarch64, &arch_arm};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        begin(archs[i]);
        uint32_t unit_bytes = 1u << archs[i]->pc_shift;
        frame_row(0x100, 16); // its neighbour, up to the last byte
        frame_row(0x200, 32);
        frame_row(0x240, 64);
        frame_row(0x280, 16);
        symbol("art_quick_instrumentation_exit", 0x200 + (archs[i]->has_thumb ? 1 : 0), 0x80);
        change();
        expect_refused(0x200 - unit_bytes - 1, false);
        expect_refused(0x200 - unit_bytes, true);
        expect_refused(0x200 - 1, true); // where a return address of 0x200 is looked up
        expect_refused(0x200, true);
        expect_refused(0x27f, true);
        expect_refused(0x280, false);
        end();
    }
}
END_TEST

START_TEST(tracing_exit_behind_a_hole)
{
    begin(&arch_aarch64);
    frame_row(0x200, 16);
    frame_row(0x240, 32);
    row(0x300, &(struct qut_rule){.dex_pc_reg = QUT_NO_REGISTER});
    symbol("art_quick_instrumentation_exit", 0x200, 0); // of unknown size
    change();
    expect_refused(0x1f8, false);
    expect_refused(0x1fc, true);
    expect_refused(0x200, false);
    ck_assert_int_eq(rule_at(0x200)->cfa.offset_bytes, 16);
    end();
}
END_TEST

START_TEST(tracing_exit_that_is_nowhere)
{
    static const uint64_t offsets[] = {(uint64_t)0 - TEXT, 0, TEXT_BYTES, UINT64_MAX - TEXT - 0x3f, 0x203};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        begin(&arch_aarch64);
        frame_row(0, 16);
        symbol("art_quick_instrumentation_exit", offsets[i], 0x40);
        expect_unchanged();
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        handlers_of_bytecode_know_its_address,
        nothing_is_added_where_nothing_is_known,
        library_is_known_by_its_base_name,
        return_addresses_of_method_tracing_are_refused,
        tracing_exit_behind_a_hole,
        tracing_exit_that_is_nowhere,
    };
    Suite *suite = suite_create("cfi_art");
    TCase *tcase = tcase_create("cfi_art");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
