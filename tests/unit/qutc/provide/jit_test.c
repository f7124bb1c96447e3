// SPDX-License-Identifier: Apache-2.0
// Symbol files of just-in-time compilers, in each form that one writes: a table for the addresses of the process, or a
// named reason; and nothing of it in a cache.
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include <qutc/provide.h>

#include "qutc/table_file.h"
#include "tests/support/frame_asm.h"
#include "tests/support/run_suite.h"

enum { CODE_BYTES = 0x200, FUNCTION_BYTES = 0x40, FUNCTIONS = CODE_BYTES / FUNCTION_BYTES };

static const struct arch *const arches[] = {&arch_x86_64, &arch_aarch64, &arch_arm, &arch_x86, &arch_riscv64};
enum { ARCHES = sizeof arches / sizeof *arches };

static int compile_flags(const struct build_buffer *file, uint32_t flags, const char *cache, void **table, size_t *size,
                         char reason[256])
{
    const struct qutc_provide_options options = {.size = sizeof options, .cache_directory = cache};
    const struct qut_compile_request request = {
        .path = "", .memory = file->data, .memory_size = file->size, .flags = flags};
    *table = NULL;
    *reason = '\0';
    return qutc_compile_for_qut((void *)&options, &request, table, size, reason, 256);
}

// Takes the file over.
static void expect_reason(struct build_buffer file, uint32_t flags, const char *wanted)
{
    void *table;
    size_t size;
    char reason[256];
    ck_assert_int_eq(compile_flags(&file, flags, NULL, &table, &size, reason), -1);
    ck_assert_msg(strstr(reason, wanted) != NULL, "\"%s\" instead of \"%s\"", reason, wanted);
    ck_assert_ptr_null(table);
    free(file.data);
}

// Takes the file over. Function n has a frame of 16 * (n + 1) bytes behind its first 8.
static void expect_functions(struct build_buffer file, const struct arch *arch)
{
    void *bytes;
    size_t size;
    char reason[256];
    struct qut_table table;
    struct qut_rule rule;
    int result = compile_flags(&file, QUT_COMPILE_JIT, NULL, &bytes, &size, reason);
    ck_assert_msg(result == 0, "%s: %s", arch->name, reason);
    ck_assert_int_eq(qutc_table_attach(&table, bytes, size, NULL), 0);
    int pushed = arch->ra_in_register ? 0 : (int)arch->word_bytes;
    for (int n = 0; n < FUNCTIONS; n++) {
        for (unsigned at = 0; at < FUNCTION_BYTES; at += 4) {
            runtime_table_rule(&table, FRAME_TEXT + (uint64_t)n * FUNCTION_BYTES + at, &rule);
            ck_assert_msg(rule.kind == QUT_RULE_FRAME && rule.cfa.offset_bytes == (at < 8 ? pushed : 16 * (n + 1)),
                          "%s, function %d + %u: kind %d, cfa + %d", arch->name, n, at, rule.kind,
                          rule.cfa.offset_bytes);
        }
    }
    runtime_table_rule(&table, FRAME_TEXT + CODE_BYTES, &rule);
    ck_assert_int_eq(rule.kind, QUT_RULE_HOLE);
    free(bytes);
    free(file.data);
}

static struct frame_asm functions(const struct arch *arch, enum input_frame_kind kind, struct frame_cie *cie)
{
    struct frame_asm a = frame_asm(arch, kind);
    a.text_size = CODE_BYTES;
    // Factored as compilers do: advance 8 bytes, def_cfa_offset 16 * (n + 1).
    cie->code_align = 1;
    frame_add_cie(&a, cie);
    for (unsigned n = 0; n < FUNCTIONS; n++) {
        const uint8_t program[] = {CFA_ADVANCE_LOC | 8, CFA_DEF_CFA_OFFSET, (uint8_t)(16 * (n + 1) & 0x7f), 0};
        const uint8_t long_program[] = {CFA_ADVANCE_LOC | 8, CFA_DEF_CFA_OFFSET, 0x80, 1};
        frame_add_fde(&a, &(struct frame_fde){.cie = cie,
                                              .start = n * FUNCTION_BYTES,
                                              .size = FUNCTION_BYTES,
                                              .program = n == 7 ? long_program : program,
                                              .program_size = 4});
    }
    return a;
}

#define TEXT(BYTES)                                                                                                    \
    {                                                                                                                  \
        ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, NULL, BYTES, 16                                    \
    }

// ART's CIE stands in .debug_frame, with the augmentation of .eh_frame.
static struct frame_asm art_functions(const struct arch *arch)
{
    struct frame_cie cie = {.augmentation = "zR", .pointer_encoding = arch->word_bytes == 8 ? PE_UDATA8 : PE_UDATA4};
    return functions(arch, INPUT_FRAME_DEBUG, &cie);
}

static struct build_buffer art_file(const struct arch *arch)
{
    struct frame_asm a = art_functions(arch);
    struct build_elf spec = {
        .is_32 = arch->word_bytes == 4,
        .machine = arch->elf_machine,
        .sections = {TEXT(CODE_BYTES), {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8}}};
    struct build_buffer file = build_elf(&spec);
    frame_free(&a);
    return file;
}

static struct build_buffer packed_art_file(const struct arch *arch)
{
    struct build_buffer inner = art_file(arch);
    struct build_buffer packed = build_xz(inner.data, inner.size);
    struct build_elf spec = {
        .is_32 = arch->word_bytes == 4,
        .machine = arch->elf_machine,
        .sections = {TEXT(CODE_BYTES), {".gnu_debugdata", SHT_PROGBITS, 0, 0, packed.data, packed.size, 8}}};
    struct build_buffer file = build_elf(&spec);
    free(inner.data);
    free(packed.data);
    return file;
}

// QEMU's has a program header too, over a buffer of which the file has no byte.
static struct build_buffer qemu_file(const struct arch *arch)
{
    struct frame_cie cie = {0};
    struct frame_asm a = functions(arch, INPUT_FRAME_DEBUG, &cie);
    struct build_elf spec = {
        .is_32 = arch->word_bytes == 4,
        .machine = arch->elf_machine,
        .type = ET_EXEC,
        .sections = {TEXT(CODE_BYTES), {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8}},
        .segments = {{PT_LOAD, PF_X, ".text", 0}}};
    struct build_buffer file = build_elf(&spec);
    frame_free(&a);
    return file;
}

// libLLVM's, as loaded: addresses in the section headers, .debug_frame not loaded and so not relocated.
static struct build_buffer llvm_file(const struct arch *arch, bool is_loaded)
{
    static const uint8_t code[CODE_BYTES];
    struct frame_cie cie = {.pointer_encoding = PE_PCREL | PE_SDATA4};
    struct frame_asm a = functions(arch, INPUT_FRAME_EH, &cie);
    struct frame_cie other_cie = {0};
    struct frame_asm unrelocated = frame_asm(arch, INPUT_FRAME_DEBUG);
    frame_add_cie(&unrelocated, &other_cie);
    frame_add_fde(&unrelocated, &(struct frame_fde){.cie = &other_cie, .size = CODE_BYTES});
    struct build_elf spec = {
        .is_32 = arch->word_bytes == 4,
        .machine = arch->elf_machine,
        .type = ET_REL,
        .sections = {
            {".text.unlikely", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, code, 16, 16},
            {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, is_loaded ? FRAME_TEXT : 0, code, sizeof code, 16},
            {".debug_frame", SHT_PROGBITS, 0, 0, unrelocated.bytes.data, unrelocated.bytes.size, 8},
            {".eh_frame", SHT_PROGBITS, SHF_ALLOC, is_loaded ? FRAME_VADDR : 0, a.bytes.data, a.bytes.size, 8}}};
    struct build_buffer file = build_elf(&spec);
    frame_free(&a);
    frame_free(&unrelocated);
    return file;
}

START_TEST(every_form)
{
    expect_functions(art_file(arches[_i]), arches[_i]);
    expect_functions(packed_art_file(arches[_i]), arches[_i]);
    expect_functions(qemu_file(arches[_i]), arches[_i]);
    expect_functions(llvm_file(arches[_i], true), arches[_i]);
}
END_TEST

START_TEST(relocatable_files)
{
    // A reader that did not load it cannot say where it is, nor that it is relocated.
    expect_reason(llvm_file(arches[_i], false), QUT_COMPILE_JIT, "relocatable object: no section was loaded");
    expect_reason(llvm_file(arches[_i], true), 0, "relocatable object: not linked");
}
END_TEST

START_TEST(a_section_for_each_function)
{
    struct frame_cie cie = {.pointer_encoding = PE_PCREL | PE_SDATA4};
    struct frame_asm a = functions(&arch_x86_64, INPUT_FRAME_EH, &cie);
    struct build_elf spec = {
        .type = ET_REL,
        .sections = {{".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAME_VADDR, a.bytes.data, a.bytes.size, 8}}};
    for (unsigned i = 1; i < BUILD_SECTIONS_MAX; i++)
        spec.sections[i] = (struct build_section)TEXT(4);
    for (unsigned i = 1; i < BUILD_SECTIONS_MAX; i++) // gaps between all of them
        spec.sections[i].vaddr += CODE_BYTES / BUILD_SECTIONS_MAX * i;
    spec.sections[1].vaddr = FRAME_TEXT;
    spec.sections[2].vaddr = FRAME_TEXT + CODE_BYTES - 4;
    ck_assert_int_gt(BUILD_SECTIONS_MAX, INPUT_EXEC_RANGES_MAX + 1);
    expect_functions(build_elf(&spec), &arch_x86_64);
    frame_free(&a);
}
END_TEST

START_TEST(files_that_say_nothing)
{
    struct build_elf no_frames = {.sections = {TEXT(CODE_BYTES)}};
    struct build_elf no_code = {.sections = {{".debug_frame", SHT_PROGBITS, 0, 0, "", 1, 8}}};
    struct build_buffer beam = {0};
    static const char beam_text[] = "\0\0\0\1lists:map/2";
    build_add(&beam, beam_text, sizeof beam_text);
    expect_reason(build_elf(&no_frames), QUT_COMPILE_JIT, "no .eh_frame");
    expect_reason(build_elf(&no_code), QUT_COMPILE_JIT, "no executable code");
    expect_reason(beam, QUT_COMPILE_JIT, "no ELF magic");
    expect_reason((struct build_buffer){calloc(1, 1), 0}, QUT_COMPILE_JIT, "neither a file nor memory");
    // More than a table can hold.
    struct frame_asm a = art_functions(&arch_x86_64);
    struct build_elf wide = {
        .sections = {TEXT(UINT64_C(1) << 33), {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8}}};
    expect_reason(build_elf(&wide), QUT_COMPILE_JIT, "text spans over 4 GiB");
    frame_free(&a);
}
END_TEST

static unsigned files_in(const char *directory)
{
    DIR *open = opendir(directory);
    unsigned count = 0;
    ck_assert_ptr_nonnull(open);
    for (const struct dirent *entry; (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

// With a build-id any other file would be put there; of the same bytes as a library that is.
START_TEST(not_in_the_cache)
{
    static const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4};
    struct frame_asm a = art_functions(&arch_x86_64);
    struct build_elf spec = {.sections = {TEXT(CODE_BYTES),
                                          {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8},
                                          {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0, note, sizeof note, 4}}};
    struct build_buffer file = build_elf(&spec);
    char *cache = build_directory();
    void *table;
    size_t size;
    char reason[256];
    ck_assert_int_eq(compile_flags(&file, QUT_COMPILE_JIT, cache, &table, &size, reason), 0);
    free(table);
    ck_assert_uint_eq(files_in(cache), 0);
    build_remove(cache);
    free(file.data);
    frame_free(&a);
}
END_TEST

// ---- hostile ones

static void compile_spoiled(const struct build_buffer *file, unsigned *made)
{
    void *bytes;
    size_t size;
    char reason[256];
    struct qut_table table;
    if (compile_flags(file, QUT_COMPILE_JIT, NULL, &bytes, &size, reason) == 0) {
        ck_assert_int_eq(qutc_table_attach(&table, bytes, size, NULL), 0);
        free(bytes);
        ++*made;
    } else {
        ck_assert_str_ne(reason, "");
    }
}

// In memory that ends with the file: a read beyond it is seen by the sanitizer.
static void spoil(const struct build_buffer *file, unsigned seed)
{
    unsigned made = 0, tried = 0;
    for (size_t size = 1; size < file->size; size += 1 + file->size / 200, tried++) {
        struct build_buffer cut = {malloc(size), size};
        memcpy(cut.data, file->data, size);
        compile_spoiled(&cut, &made);
        free(cut.data);
    }
    for (unsigned i = 0; i < 300; i++, tried++) {
        struct build_buffer spoiled = {malloc(file->size), file->size};
        memcpy(spoiled.data, file->data, file->size);
        for (unsigned n = 0; n <= i % 4; n++) {
            seed = seed * 1103515245 + 12345;
            // Half of them in the ELF header and the section headers at the end, where little goes a long way.
            size_t where = seed >> 8;
            where = n % 2 ? where % file->size : where % 2 ? where % 64 : file->size - 1 - where % 320;
            spoiled.data[where % file->size] ^= (uint8_t)(1 << (seed >> 5 & 7));
        }
        compile_spoiled(&spoiled, &made);
        free(spoiled.data);
    }
    ck_assert_uint_gt(made, 0);
    ck_assert_uint_lt(made, tried);
}

START_TEST(spoiled_files)
{
    struct build_buffer files[] = {art_file(arches[_i]), packed_art_file(arches[_i]), qemu_file(arches[_i]),
                                   llvm_file(arches[_i], true)};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        spoil(&files[i], (unsigned)(_i * 16) + (unsigned)i + 1);
        free(files[i].data);
    }
}
END_TEST

START_TEST(spoiled_real_files)
{
    static const char *const names[] = {"jit/android11_packed/packed-168312-173600.elf",
                                        "jit/android11_packed/unpacked-18776.elf",
                                        "jit/android_v1/jit_debug_arm_jit3.data.elf", "jit/art11_x86_64/0000.elf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = corpus_path(names[i]);
        struct build_buffer file = {0};
        if (!path)
            return;
        ck_assert_int_eq(qutc_read_file(path, SIZE_MAX, &file.data, &file.size, NULL), 0);
        spoil(&file, (unsigned)i + 100);
        free(file.data);
        free(path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit");
    TCase *tests = tcase_create("jit");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, every_form, 0, ARCHES);
    tcase_add_loop_test(tests, relocatable_files, 0, ARCHES);
    tcase_add_test(tests, a_section_for_each_function);
    tcase_add_test(tests, files_that_say_nothing);
    tcase_add_test(tests, not_in_the_cache);
    tcase_add_loop_test(tests, spoiled_files, 0, ARCHES);
    tcase_add_test(tests, spoiled_real_files);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
