// SPDX-License-Identifier: Apache-2.0
// Names from symbol files of just-in-time compilers: addresses are those of the process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/file_map.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tracer/symbols/symbols.h"

static struct symbols *read_jit(struct base_bytes bytes)
{
    const struct input_image_options options = {.jit = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (input_image_open_memory(bytes, "jit", &options, &image, &error) != 0)
        ck_abort_msg("%s", error.detail);
    struct symbols *symbols = symbols_read(image, 0, &error);
    ck_assert_ptr_nonnull(symbols);
    return symbols;
}

static void expect(const struct symbols *symbols, uint64_t address, const char *name, uint64_t start)
{
    struct symbol symbol;
    bool found = symbols_find(symbols, address, &symbol);
    ck_assert_msg(found == (name != NULL), "0x%jx: %s", (uintmax_t)address, found ? "found" : "not found");
    if (!name)
        return;
    ck_assert_msg(symbol.name_length == strlen(name) && memcmp(symbol.name, name, symbol.name_length) == 0,
                  "0x%jx: %.*s, wanted %s", (uintmax_t)address, (int)symbol.name_length, symbol.name, name);
    ck_assert_uint_eq(symbol.start_vaddr, start);
}

// As LLVM writes it: two sections of code, which were loaded far from each other, and values that count from them.
START_TEST(relocatable)
{
    static const uint8_t code[0x40];
    static const char names[] = "\0one\0two";
    const Elf64_Sym values[] = {{0},
                                {1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0x10, 0x20},
                                {5, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 2, 0x10, 0x20}};
    struct build_buffer file = build_elf(&(struct build_elf){
        .type = ET_REL,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x7fda47560000, code, sizeof code, 16},
                     {".text.two", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x7fda47570000, code, sizeof code, 16},
                     {".symtab", SHT_SYMTAB, 0, 0, values, sizeof values, 8},
                     {".strtab", SHT_STRTAB, 0, 0, names, sizeof names, 1}}});
    Elf64_Ehdr header;
    const uint32_t link = 4;
    memcpy(&header, file.data, sizeof header);
    memcpy(file.data + header.e_shoff + 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link), &link, sizeof link);
    struct symbols *symbols = read_jit((struct base_bytes){file.data, file.size});
    expect(symbols, 0x7fda47560010, "one", 0x7fda47560010);
    expect(symbols, 0x7fda4756002f, "one", 0x7fda47560010);
    expect(symbols, 0x7fda47560030, NULL, 0);
    expect(symbols, 0x7fda47570018, "two", 0x7fda47570010);
    expect(symbols, 0x10, NULL, 0);
    symbols_free(symbols);
    free(file.data);
}
END_TEST

// Of real ARTs: one method, in Thumb code, with a trampoline; many, packed with xz.
START_TEST(art)
{
    static const struct {
        const char *file;
        size_t count;
        uint64_t address;
        const char *name;
        uint64_t start;
    } expected[] = {
        {"jit/android_v1/jit_debug_arm_jit0.data.elf", 1, 0xe27a7cb0, "boolean Main.bar(boolean)", 0xe27a7c68},
        {"jit/art11_x86_64/0000.elf", 1, 0x423401c0 + 298, "art_jni_trampoline", 0x423401c0},
        {"jit/android11_packed/unpacked-18776.elf", 1, 0x54c05060,
         "com.example.simpleperf.simpleperfexampleofkotlin.SleepActivity$createRunSleepThread$1.callFunction",
         0x54c05060},
        {"jit/android11_packed/packed-240880-244344.elf", 82, 0x9bde03d0 + 2563,
         "androidx.recyclerview.widget.RecyclerView$Recycler.getScrapOrHiddenOrCachedHolderForPosition", 0x9bde03d0},
        {"jit/android11_packed/packed-168312-173600.elf", 132, 0x9be20b20,
         "android.view.ViewGroup.shouldBlockFocusForTouchscreen", 0x9be20b20},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *path = corpus_path(expected[i].file);
        if (!path)
            continue;
        struct input_file_map map;
        ck_assert_int_eq(input_file_map_open(&map, path, 0, 0, INPUT_FILE_MAPPED, NULL), 0);
        struct symbols *symbols = read_jit(map.bytes);
        ck_assert_uint_eq(symbols_count(symbols), expected[i].count);
        expect(symbols, expected[i].address, expected[i].name, expected[i].start);
        expect(symbols, expected[i].start - 1, NULL, 0);
        symbols_free(symbols);
        input_file_map_close(&map);
        free(path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit symbols");
    TCase *tests = tcase_create("jit symbols");
    tcase_add_test(tests, relocatable);
    tcase_add_test(tests, art);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
