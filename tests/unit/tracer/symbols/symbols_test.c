// SPDX-License-Identifier: Apache-2.0
// Names of functions: which one an address has, in files that are made for it, and in ones that lie.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tracer/symbols/symbols.h"

static const uint8_t code[0x400];
static const uint8_t frames[24] = {20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1};

enum { TEXT = 1, EH, SYMBOLS, NAMES }; // indexes of sections

struct spec {
    Elf64_Sym symbols[16];
    size_t count;
    char names[512];
    size_t names_size;
    bool is_arm;
    uint32_t names_index; // 0: NAMES
};

static Elf64_Sym *add(struct spec *spec, const char *name, uint64_t value, uint64_t size, unsigned bind, unsigned type)
{
    if (spec->count == 0) {
        spec->count = 1; // the null symbol
        spec->names_size = 1;
    }
    Elf64_Sym *symbol = &spec->symbols[spec->count++];
    *symbol = (Elf64_Sym){.st_name = (uint32_t)spec->names_size,
                          .st_info = (unsigned char)ELF64_ST_INFO(bind, type),
                          .st_shndx = TEXT,
                          .st_value = value,
                          .st_size = size};
    memcpy(spec->names + spec->names_size, name, strlen(name) + 1);
    spec->names_size += strlen(name) + 1;
    return symbol;
}

static Elf64_Sym *function(struct spec *spec, const char *name, uint64_t value, uint64_t size)
{
    return add(spec, name, value, size, STB_GLOBAL, STT_FUNC);
}

static void set_link(struct build_buffer *file, bool is_arm, uint32_t link)
{
    if (is_arm) {
        Elf32_Ehdr header;
        memcpy(&header, file->data, sizeof header);
        memcpy(file->data + header.e_shoff + SYMBOLS * sizeof(Elf32_Shdr) + offsetof(Elf32_Shdr, sh_link), &link, 4);
    } else {
        Elf64_Ehdr header;
        memcpy(&header, file->data, sizeof header);
        memcpy(file->data + header.e_shoff + SYMBOLS * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link), &link, 4);
    }
}

static struct symbols *read_file(struct build_buffer *file)
{
    struct base_error error = {0};
    struct input_image *image = build_open_bytes(file, &error);
    ck_assert_msg(image != NULL, "%s", error.detail);
    struct symbols *symbols = symbols_read(image, 0, &error);
    ck_assert_ptr_nonnull(symbols);
    return symbols;
}

static struct build_buffer make_file(struct spec *spec)
{
    Elf32_Sym narrow[16];
    for (size_t i = 0; i < spec->count; i++)
        narrow[i] = (Elf32_Sym){.st_name = spec->symbols[i].st_name,
                                .st_info = spec->symbols[i].st_info,
                                .st_shndx = spec->symbols[i].st_shndx,
                                .st_value = (uint32_t)spec->symbols[i].st_value,
                                .st_size = (uint32_t)spec->symbols[i].st_size};
    const void *symbols = spec->is_arm ? (const void *)narrow : spec->symbols;
    size_t symbol_bytes = spec->is_arm ? sizeof *narrow : sizeof *spec->symbols;
    struct build_buffer file = build_elf(&(struct build_elf){
        .is_32 = spec->is_arm,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16},
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x3000, frames, sizeof frames, 8},
                     {".symtab", SHT_SYMTAB, 0, 0, symbols, spec->count * symbol_bytes, 8},
                     {".strtab", SHT_STRTAB, 0, 0, spec->names, spec->names_size, 1}}});
    set_link(&file, spec->is_arm, spec->names_index ? spec->names_index : NAMES);
    return file;
}

static struct symbols *read_spec(struct spec *spec)
{
    struct build_buffer file = make_file(spec);
    struct symbols *symbols = read_file(&file);
    free(file.data);
    return symbols;
}

static void expect(const struct symbols *symbols, uint64_t vaddr, const char *name, uint64_t start)
{
    struct symbol symbol;
    bool found = symbols_find(symbols, vaddr, &symbol);
    ck_assert_msg(found == (name != NULL), "0x%jx: %s", (uintmax_t)vaddr, found ? "found" : "not found");
    if (!name)
        return;
    ck_assert_msg(symbol.name_length == strlen(name) && memcmp(symbol.name, name, symbol.name_length) == 0,
                  "0x%jx: %.*s, wanted %s", (uintmax_t)vaddr, (int)symbol.name_length, symbol.name, name);
    ck_assert_uint_eq(symbol.start_vaddr, start);
}

START_TEST(edges)
{
    struct spec spec = {0};
    function(&spec, "second", 0x1100, 0x10);
    function(&spec, "first", 0x1000, 0x20);
    add(&spec, "variable", 0x1050, 0x10, STB_GLOBAL, STT_OBJECT);
    function(&spec, "elsewhere", 0x1060, 0x10)->st_shndx = SHN_UNDEF;
    struct symbols *symbols = read_spec(&spec);
    ck_assert_uint_eq(symbols_count(symbols), 2);
    expect(symbols, 0xfff, NULL, 0);
    expect(symbols, 0x1000, "first", 0x1000);
    expect(symbols, 0x101f, "first", 0x1000);
    expect(symbols, 0x1020, NULL, 0);
    expect(symbols, 0x1055, NULL, 0);
    expect(symbols, 0x1065, NULL, 0);
    expect(symbols, 0x1100, "second", 0x1100);
    expect(symbols, 0x1110, NULL, 0);
    expect(symbols, UINT64_MAX, NULL, 0);
    symbols_free(symbols);
}
END_TEST

START_TEST(best_of_several)
{
    struct spec spec = {0};
    add(&spec, "local_name", 0x1000, 0x20, STB_LOCAL, STT_FUNC);
    add(&spec, "__write", 0x1000, 0x20, STB_GLOBAL, STT_FUNC);
    add(&spec, "write", 0x1000, 0x20, STB_WEAK, STT_FUNC);
    add(&spec, "_write", 0x1000, 0x20, STB_GLOBAL, STT_FUNC);
    add(&spec, "label", 0x1000, 0, STB_GLOBAL, STT_NOTYPE);
    function(&spec, "outer", 0x1100, 0x100);
    function(&spec, "inner", 0x1140, 0x10);
    add(&spec, "resolver", 0x1200, 0x10, STB_GLOBAL, STT_GNU_IFUNC);
    function(&spec, "memcpy@@GLIBC_2.14", 0x1210, 0x10);
    struct symbols *symbols = read_spec(&spec);
    expect(symbols, 0x1008, "write", 0x1000);
    expect(symbols, 0x1120, "outer", 0x1100);
    expect(symbols, 0x1148, "inner", 0x1140);
    expect(symbols, 0x1150, "outer", 0x1100);
    expect(symbols, 0x1200, "resolver", 0x1200);
    expect(symbols, 0x1218, "memcpy", 0x1210);
    symbols_free(symbols);
}
END_TEST

START_TEST(without_size)
{
    struct spec spec = {0};
    function(&spec, "sized", 0x1000, 0x40);
    add(&spec, "label_inside", 0x1010, 0, STB_LOCAL, STT_NOTYPE);
    add(&spec, "assembly", 0x1080, 0, STB_GLOBAL, STT_NOTYPE);
    add(&spec, "$x.1", 0x1084, 0, STB_LOCAL, STT_NOTYPE);
    add(&spec, ".L12", 0x1088, 0, STB_LOCAL, STT_NOTYPE);
    function(&spec, "next", 0x1100, 0x10);
    function(&spec, "last", 0x1200, 0);
    struct symbols *symbols = read_spec(&spec);
    expect(symbols, 0x1020, "sized", 0x1000);
    expect(symbols, 0x1090, "assembly", 0x1080);
    expect(symbols, 0x10ff, "assembly", 0x1080);
    expect(symbols, 0x1100, "next", 0x1100);
    expect(symbols, 0x1110, NULL, 0); // after one with a size comes nothing
    expect(symbols, 0x13ff, "last", 0x1200);
    expect(symbols, 0x1400, NULL, 0); // past the section
    symbols_free(symbols);
}
END_TEST

START_TEST(thumb)
{
    struct spec spec = {.is_arm = true};
    function(&spec, "thumb", 0x1001, 0x10);
    add(&spec, "$t", 0x1000, 0, STB_LOCAL, STT_NOTYPE);
    function(&spec, "arm", 0x1010, 0x10);
    add(&spec, "$a", 0x1010, 0, STB_LOCAL, STT_NOTYPE);
    struct symbols *symbols = read_spec(&spec);
    expect(symbols, 0x1000, "thumb", 0x1000);
    expect(symbols, 0x100f, "thumb", 0x1000);
    expect(symbols, 0x1010, "arm", 0x1010);
    symbols_free(symbols);
}
END_TEST

START_TEST(hostile_symbols)
{
    struct spec spec = {0};
    function(&spec, "huge", 0x1000, UINT64_MAX);
    function(&spec, "name_outside", 0x1100, 0x10)->st_name = 0x7fffffff;
    function(&spec, "at_the_end", UINT64_MAX, UINT64_MAX);
    function(&spec, "section_outside", 0x1200, 0)->st_shndx = 0x7777;
    function(&spec, "cut", 0x1300, 0x10);
    spec.names_size -= 2; // no NUL behind the last name
    struct symbols *symbols = read_spec(&spec);
    expect(symbols, 0x1100, "huge", 0x1000);
    expect(symbols, 0x1308, "cu", 0x1300);
    symbols_free(symbols);
    const uint32_t links[] = {SYMBOLS, TEXT, 0x7fffffff, UINT32_MAX};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        spec.names_index = links[i];
        symbols = read_spec(&spec);
        ck_assert_uint_eq(symbols_count(symbols), 0);
        expect(symbols, 0x1000, NULL, 0);
        symbols_free(symbols);
    }
}
END_TEST

// Each single byte of the file is spoiled, several ways: answers may change, nothing else may happen.
START_TEST(spoiled_bytes)
{
    struct spec spec = {0};
    function(&spec, "one", 0x1000, 0x10);
    add(&spec, "two", 0x1010, 0, STB_GLOBAL, STT_NOTYPE);
    struct build_buffer file = make_file(&spec);
    for (size_t i = 0; i < file.size; i++) {
        if (i == 0x400)
            i += sizeof code - 0x100; // the code itself is not looked at
        uint8_t old = file.data[i];
        const uint8_t values[] = {0, 0xff, (uint8_t)(old ^ 0x80), (uint8_t)(old + 1)};
        for (size_t k = 0; k < sizeof values; k++) {
            file.data[i] = values[k];
            struct base_error error = {0};
            struct input_image *image = build_open_bytes(&file, &error);
            struct symbols *symbols = image ? symbols_read(image, 0, &error) : NULL;
            struct symbol symbol;
            for (uint64_t vaddr = 0xff0; symbols && vaddr < 0x1440; vaddr += 8)
                if (symbols_find(symbols, vaddr, &symbol))
                    ck_assert_uint_le(symbol.name_length, file.size);
            symbols_free(symbols);
        }
        file.data[i] = old;
    }
    free(file.data);
}
END_TEST

START_TEST(from_gnu_debugdata)
{
    struct spec spec = {0};
    function(&spec, "hidden", 0x1000, 0x10);
    struct build_buffer inner = make_file(&spec);
    struct build_buffer packed = build_xz(inner.data, inner.size);
    struct build_buffer file = build_elf(&(struct build_elf){
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16},
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x3000, frames, sizeof frames, 8},
                     {".gnu_debugdata", SHT_PROGBITS, 0, 0, packed.data, packed.size, 1}}});
    struct symbols *symbols = read_file(&file);
    expect(symbols, 0x1008, "hidden", 0x1000);
    symbols_free(symbols);
    free(inner.data);
    free(packed.data);
    free(file.data);
}
END_TEST

// As the loader leaves it: no section headers, and in glibc addresses in memory where the file has its own.
static struct build_buffer dynamic_file(const struct spec *spec, uint64_t load_bias, bool gnu_hash, uint32_t claimed)
{
    const uint32_t hash[] = {1, claimed, 0, 0};
    // 1 bucket, first index 1, 1 word of filter, shift, the filter; the bucket, then the chain
    const uint32_t buckets[] = {1, 1, 1, 0, 0, 0, 1, 2, 4, claimed};
    const Elf64_Dyn dynamic[] = {{DT_SYMTAB, {0x2000 + load_bias}},
                                 {DT_STRTAB, {0x2800 + load_bias}},
                                 {DT_STRSZ, {spec->names_size}},
                                 {gnu_hash ? DT_GNU_HASH : DT_HASH, {0x2c00 + load_bias}},
                                 {DT_NULL, {0}}};
    const void *table = gnu_hash ? buckets : hash;
    return build_elf(&(struct build_elf){
        .no_section_headers = true,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16},
                     {".dynsym", SHT_DYNSYM, SHF_ALLOC, 0x2000, spec->symbols, spec->count * sizeof(Elf64_Sym), 8},
                     {".dynstr", SHT_STRTAB, SHF_ALLOC, 0x2800, spec->names, spec->names_size, 8},
                     {".hash", SHT_HASH, SHF_ALLOC, 0x2c00, table, gnu_hash ? sizeof buckets : sizeof hash, 8},
                     {".dynamic", SHT_DYNAMIC, SHF_ALLOC, 0x3000, dynamic, sizeof dynamic, 8}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0},
                     {PT_LOAD, PF_R, ".dynsym", 0},
                     {PT_LOAD, PF_R, ".dynstr", 0},
                     {PT_LOAD, PF_R, ".hash", 0},
                     {PT_DYNAMIC, PF_R, ".dynamic", 0}}});
}

START_TEST(without_sections)
{
    struct spec spec = {0};
    function(&spec, "one", 0x1000, 0x10);
    function(&spec, "two", 0x1010, 0x10);
    function(&spec, "three", 0x1020, 0x10);
    for (int i = 0; i < 4; i++) {
        const uint64_t load_bias = i & 1 ? 0x7f0000000000 : 0;
        // A chain ends at an odd hash, a table of buckets at its last symbol.
        struct build_buffer file = dynamic_file(&spec, load_bias, i & 2, i & 2 ? 7 : (uint32_t)spec.count);
        struct base_error error = {0};
        struct input_image *image = build_open_bytes(&file, &error);
        ck_assert_msg(image != NULL, "%s", error.detail);
        struct symbols *symbols = symbols_read(image, load_bias, &error);
        ck_assert_uint_eq(symbols_count(symbols), 3);
        expect(symbols, 0x1008, "one", 0x1000);
        expect(symbols, 0x102f, "three", 0x1020);
        symbols_free(symbols);
        free(file.data);
        // More symbols than there are bytes, and a chain that does not end.
        file = dynamic_file(&spec, load_bias, i & 2, i & 2 ? 6 : 0x7fffffff);
        symbols = read_file(&file);
        ck_assert_uint_eq(symbols_count(symbols), 0);
        symbols_free(symbols);
        free(file.data);
    }
}
END_TEST

START_TEST(data)
{
    struct spec spec = {0};
    function(&spec, "code", 0x1000, 16);
    add(&spec, "lock", 0x2000, 40, STB_LOCAL, STT_OBJECT);
    add(&spec, "queue", 0x2028, 64, STB_GLOBAL, STT_OBJECT);
    add(&spec, "_edata", 0x2068, 0, STB_GLOBAL, STT_NOTYPE);
    add(&spec, "of_thread", 0x2070, 8, STB_GLOBAL, STT_TLS); // counts from elsewhere
    struct build_buffer file = make_file(&spec);
    struct base_error error = {0};
    struct input_image *image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    struct symbols *symbols = symbols_read_data(image, 0, &error);
    ck_assert_ptr_nonnull(symbols);
    ck_assert_uint_eq(symbols_count(symbols), 2);
    expect(symbols, 0x2000, "lock", 0x2000);
    expect(symbols, 0x2027, "lock", 0x2000);
    expect(symbols, 0x2050, "queue", 0x2028);
    expect(symbols, 0x2068, NULL, 0);
    expect(symbols, 0x2070, NULL, 0);
    expect(symbols, 0x1000, NULL, 0);
    symbols_free(symbols);
    free(file.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("symbols");
    TCase *tests = tcase_create("symbols");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, edges);
    tcase_add_test(tests, data);
    tcase_add_test(tests, best_of_several);
    tcase_add_test(tests, without_size);
    tcase_add_test(tests, thumb);
    tcase_add_test(tests, hostile_symbols);
    tcase_add_test(tests, spoiled_bytes);
    tcase_add_test(tests, from_gnu_debugdata);
    tcase_add_test(tests, without_sections);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
