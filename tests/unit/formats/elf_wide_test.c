// SPDX-License-Identifier: Apache-2.0
// Each field of a 32-bit structure has a value of its own, and is the same one in the 64-bit structure.
#include "formats/elf_wide_inline.h"

#include <check.h>
#include <stdint.h>

#include "tests/support/run_suite.h"

// At an odd address.
static const uint8_t *number_words(uint8_t bytes[128])
{
    for (unsigned i = 0; i < 127; i++)
        bytes[1 + i] = (uint8_t)(i + 1);
    return bytes + 1;
}

#define SAME(FIELD) (wide.FIELD == narrow.FIELD)

START_TEST(headers)
{
    uint8_t bytes[128];
    Elf32_Ehdr narrow;
    const Elf64_Ehdr wide = elf_wide_header(number_words(bytes), false), whole = elf_wide_header(bytes + 1, true);
    memcpy(&narrow, bytes + 1, sizeof narrow);
    ck_assert_mem_eq(wide.e_ident, narrow.e_ident, EI_NIDENT);
    ck_assert(SAME(e_type) && SAME(e_machine) && SAME(e_version) && SAME(e_entry) && SAME(e_phoff) && SAME(e_shoff) &&
              SAME(e_flags) && SAME(e_ehsize) && SAME(e_phentsize) && SAME(e_phnum) && SAME(e_shentsize) &&
              SAME(e_shnum) && SAME(e_shstrndx));
    ck_assert_mem_eq(&whole, bytes + 1, sizeof whole);
}
END_TEST

START_TEST(sections)
{
    uint8_t bytes[128];
    Elf32_Shdr narrow;
    const Elf64_Shdr wide = elf_wide_section(number_words(bytes), false), whole = elf_wide_section(bytes + 1, true);
    memcpy(&narrow, bytes + 1, sizeof narrow);
    ck_assert(SAME(sh_name) && SAME(sh_type) && SAME(sh_flags) && SAME(sh_addr) && SAME(sh_offset) && SAME(sh_size) &&
              SAME(sh_link) && SAME(sh_info) && SAME(sh_addralign) && SAME(sh_entsize));
    ck_assert_mem_eq(&whole, bytes + 1, sizeof whole);
}
END_TEST

START_TEST(segments)
{
    uint8_t bytes[128];
    Elf32_Phdr narrow;
    const Elf64_Phdr wide = elf_wide_segment(number_words(bytes), false), whole = elf_wide_segment(bytes + 1, true);
    memcpy(&narrow, bytes + 1, sizeof narrow);
    ck_assert(SAME(p_type) && SAME(p_flags) && SAME(p_offset) && SAME(p_vaddr) && SAME(p_paddr) && SAME(p_filesz) &&
              SAME(p_memsz) && SAME(p_align));
    ck_assert_mem_eq(&whole, bytes + 1, sizeof whole);
}
END_TEST

START_TEST(symbols)
{
    uint8_t bytes[128];
    Elf32_Sym narrow;
    const Elf64_Sym wide = elf_wide_symbol(number_words(bytes), false), whole = elf_wide_symbol(bytes + 1, true);
    memcpy(&narrow, bytes + 1, sizeof narrow);
    ck_assert(SAME(st_name) && SAME(st_info) && SAME(st_other) && SAME(st_shndx) && SAME(st_value) && SAME(st_size));
    ck_assert_mem_eq(&whole, bytes + 1, sizeof whole);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elf_wide");
    TCase *tests = tcase_create("elf_wide");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, headers);
    tcase_add_test(tests, sections);
    tcase_add_test(tests, segments);
    tcase_add_test(tests, symbols);
    return run_suite(suite);
}
