// SPDX-License-Identifier: Apache-2.0
// Names of code that comes and goes, asked for later than it ran: told where nothing else can have been there.
#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "libqut/arch/native.h"
#include "tests/support/elf_builder.h"
#include "tests/support/fake_jit_list.h"
#include "tests/support/run_suite.h"
#include "tracer/managed/jit_at.h"

enum { CODE = 0x40000000, CODE_BYTES = 0x40, SYMFILE_STRIDE = 0x400, SYMFILES_MAX = 8 };

static struct fake_list list;
static struct managed_jit jit;

static void set_up(void)
{
    fake_init(&list, &arch_native_arch, ART_JIT_ANDROID2);
    jit = (struct managed_jit){0};
    managed_jit_add_list(&jit, FAKE_DESCRIPTOR);
}

static void tear_down(void)
{
    managed_jit_free(&jit);
}

// As ART writes it: code that is elsewhere, at an absolute address.
static void add(unsigned index, uint64_t code, const char *name)
{
    char names[64] = "";
    strcpy(names + 1, name);
    const Elf64_Sym symbols[] = {{0}, {1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, code, CODE_BYTES}};
    struct build_buffer file = build_elf(
        &(struct build_elf){.machine = arch_native_arch.elf_machine,
                            .sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, code, NULL, CODE_BYTES, 16},
                                         {".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof symbols, 8},
                                         {".strtab", SHT_STRTAB, 0, 0, names, strlen(name) + 2, 1}}});
    Elf64_Ehdr header;
    const uint32_t link = 3;
    memcpy(&header, file.data, sizeof header);
    memcpy(file.data + header.e_shoff + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link), &link, sizeof link);
    uint64_t at = FAKE_SYMFILES + (uint64_t)index % SYMFILES_MAX * SYMFILE_STRIDE;
    ck_assert_uint_le(file.size, SYMFILE_STRIDE);
    memcpy(list.bytes + (at - FAKE_BASE), file.data, file.size);
    fake_add(&list, index, at, file.size);
    free(file.data);
}

static void expect(uint64_t address, uint64_t since_ns, const char *name)
{
    struct managed_jit_name found;
    bool is_found = managed_jit_at(&jit, &list.memory, address, since_ns, &found);
    ck_assert_msg(is_found == (name != NULL), "0x%jx: %s", (uintmax_t)address, is_found ? "found" : "not found");
    if (!name)
        return;
    ck_assert_msg(found.length == strlen(name) && memcmp(found.text, name, found.length) == 0, "%.*s, wanted %s",
                  (int)found.length, found.text, name);
    ck_assert(address >= found.start && address < found.end);
}

// Nothing was ever removed: what is there was there.
START_TEST(code_that_comes)
{
    add(0, CODE, "W.one");
    expect(CODE + 5, 0, "W.one");
    expect(CODE + CODE_BYTES, 0, NULL);
    add(1, CODE + CODE_BYTES, "W.two");
    expect(CODE + CODE_BYTES, 0, "W.two");
    expect(CODE, 0, "W.one");
}
END_TEST

START_TEST(code_in_the_place_of_other_code)
{
    add(0, CODE, "W.one");
    expect(CODE, 0, "W.one");
    const uint64_t before_ns = base_clock_now_ns();
    fake_remove(&list, 0);
    add(1, CODE, "W.two");
    expect(CODE, before_ns - 1000000000u, NULL); // either may have run
    expect(CODE, base_clock_now_ns(), "W.two");
    fake_remove(&list, 1);
    expect(CODE, base_clock_now_ns(), NULL);
}
END_TEST

// The files of many methods are put together: the code is the same.
START_TEST(packed)
{
    add(0, CODE, "W.one");
    expect(CODE, 0, "W.one");
    const uint64_t before_ns = base_clock_now_ns();
    add(1, CODE, "W.one");
    fake_remove(&list, 0);
    expect(CODE, before_ns, "W.one");
    expect(CODE, 0, "W.one");
}
END_TEST

// Something came and went between two looks: nobody knows where.
START_TEST(unseen)
{
    add(0, CODE + CODE_BYTES, "W.old");
    expect(CODE + CODE_BYTES, 0, "W.old");
    add(1, CODE, "W.one");
    fake_remove(&list, 1);
    add(2, CODE, "W.two");
    fake_set(&list, fake_entry_at(2), FAKE_TIME, base_clock_now_ns());
    expect(CODE, 2000, NULL);
    expect(CODE + CODE_BYTES, 2000, "W.old"); // older than the time that is asked for
    expect(CODE, base_clock_now_ns(), "W.two");
}
END_TEST

// Before the first look, too: the list counts its changes.
START_TEST(unseen_before)
{
    add(0, CODE, "W.one");
    fake_remove(&list, 0);
    add(1, CODE, "W.two");
    expect(CODE, 0, NULL);
    expect(CODE, 2000, "W.two");
}
END_TEST

START_TEST(the_process_has_ended)
{
    add(0, CODE, "W.one");
    expect(CODE, 0, "W.one");
    list.hole = FAKE_DESCRIPTOR;
    expect(CODE, 0, "W.one");
    expect(CODE + CODE_BYTES, 0, NULL);
    managed_jit_drop_lists(&jit); // it has become another program
    expect(CODE, 0, NULL);
    managed_jit_add_list(&jit, FAKE_DESCRIPTOR);
    expect(CODE, 0, "W.one");
}
END_TEST

// No answer is asked for: memory that changes at random, between looks and while one is made.
static void spoil(struct fake_list *of, size_t read)
{
    uint32_t *random = of->data;
    (void)read;
    *random = *random * 1664525u + 1013904223u;
    if (*random >> 28 == 0)
        of->bytes[(*random >> 8) % FAKE_BYTES] ^= (uint8_t)(*random >> 20);
}

START_TEST(hostile_memory)
{
    enum { ROUNDS = 400 };
    uint32_t random = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        set_up();
        list.data = &random;
        for (unsigned i = 0; i < SYMFILES_MAX; i++)
            add(i, CODE + i * CODE_BYTES, "W.any");
        list.before_read = spoil;
        for (unsigned i = 0; i < SYMFILES_MAX; i++) {
            struct managed_jit_name found;
            if (managed_jit_at(&jit, &list.memory, CODE + i * CODE_BYTES + 7, i & 1 ? 0 : UINT64_MAX, &found))
                ck_assert_uint_le(strnlen(found.text, found.length), found.length);
        }
        managed_jit_free(&jit);
    }
    // A list that leads to itself, and one whose entries are everywhere.
    set_up();
    add(0, CODE, "W.one");
    fake_set(&list, fake_entry_at(0), FAKE_NEXT, fake_entry_at(0));
    expect(CODE, 0, NULL);
    memset(list.bytes + (FAKE_ENTRIES - FAKE_BASE), 0xff, 0x800);
    expect(CODE, 0, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit_at");
    TCase *tcase = tcase_create("jit_at");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, code_that_comes);
    tcase_add_test(tcase, code_in_the_place_of_other_code);
    tcase_add_test(tcase, packed);
    tcase_add_test(tcase, unseen);
    tcase_add_test(tcase, unseen_before);
    tcase_add_test(tcase, the_process_has_ended);
    tcase_add_test(tcase, hostile_memory);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
