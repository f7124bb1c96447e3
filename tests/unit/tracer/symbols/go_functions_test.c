// SPDX-License-Identifier: Apache-2.0
// Go's own table of functions: in its three forms, in an image without symbols, and where it lies.
#include <stdlib.h>
#include <string.h>

#include "qutc/input/go_functions.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tracer/symbols/symbols.h"

enum { TEXT = 0x1000, TABLE_BYTES_MAX = 512 };

struct table {
    uint8_t bytes[TABLE_BYTES_MAX];
    size_t size;
};

static const char *const names[] = {"runtime.rt0", "main.work", "main.(*T).Method"};
static const uint64_t starts[] = {0x00, 0x40, 0x100, 0x180}; // the last: the end
enum { COUNT = sizeof names / sizeof *names };

static const struct base_bytes none; // a program without .go.module

static void put(struct table *table, size_t at, uint64_t value, unsigned bytes)
{
    memcpy(table->bytes + at, &value, bytes);
    table->size = at + bytes > table->size ? at + bytes : table->size;
}

static struct table make(uint32_t magic, unsigned word)
{
    bool is_old = magic == 0xfffffffa;
    unsigned entry = is_old ? word : 4;
    struct table table = {.size = 8};
    put(&table, 0, magic, 4);
    put(&table, 6, 1, 1);
    put(&table, 7, word, 1);
    size_t words = is_old ? 7 : 8, names_at = 8 + words * word, name_bytes = 0;
    for (int i = 0; i < COUNT; i++)
        name_bytes += strlen(names[i]) + 1;
    size_t entries_at = (names_at + 1 + name_bytes + 7) / 8 * 8;
    const uint64_t old[] = {COUNT, 1, names_at, names_at + 1 + name_bytes, 0, 0, entries_at};
    const uint64_t new[] = {COUNT, 1, TEXT, names_at, names_at + 1 + name_bytes, 0, 0, entries_at};
    for (size_t i = 0; i < words; i++)
        put(&table, 8 + i * word, is_old ? old[i] : new[i], word);
    size_t details = (2 * COUNT + 1) * entry, name_at = 1; // the first name is the empty one
    for (unsigned i = 0; i <= COUNT; i++) {
        uint64_t pc = starts[i] + (is_old ? TEXT : 0);
        put(&table, entries_at + 2 * i * entry, pc, entry);
        if (i == COUNT)
            break;
        put(&table, entries_at + (2 * i + 1) * entry, details, entry);
        put(&table, entries_at + details, pc, entry);
        put(&table, entries_at + details + entry, name_at, 4);
        put(&table, entries_at + details + entry + 12, 0, 4); // nothing of sp
        put(&table, entries_at + details + entry + 36, 0, 4);
        details += entry + 40;
        strcpy((char *)table.bytes + names_at + name_at, names[i]);
        name_at += strlen(names[i]) + 1;
    }
    return table;
}

static const struct {
    uint32_t magic;
    unsigned word;
} forms[] = {{0xfffffffa, 8}, {0xfffffff0, 8}, {0xfffffff1, 8}, {0xfffffffa, 4}, {0xfffffff1, 4}};

START_TEST(each_form)
{
    struct table table = make(forms[_i].magic, forms[_i].word);
    struct input_go_functions functions;
    ck_assert(input_go_open(&functions, (struct base_bytes){table.bytes, table.size}, none));
    ck_assert_uint_eq(functions.count, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        struct input_go_function function;
        ck_assert(input_go_at(&functions, i, &function));
        ck_assert_uint_eq(function.start, TEXT + starts[i]);
        ck_assert_uint_eq(function.end, TEXT + starts[i + 1]);
        ck_assert_str_eq((const char *)functions.names.data + function.name_offset, names[i]);
    }
}
END_TEST

START_TEST(what_is_not_known)
{
    struct table table = make(0xfffffff1, 8);
    struct input_go_functions functions;
    put(&table, 0, 0xfffffff7, 4);
    ck_assert(!input_go_open(&functions, (struct base_bytes){table.bytes, table.size}, none));
    table = make(0xfffffff1, 8);
    put(&table, 8 + 2 * 8, 0, 8); // the text's beginning stands elsewhere
    ck_assert(!input_go_open(&functions, (struct base_bytes){table.bytes, table.size}, none));
}
END_TEST

START_TEST(text_in_the_module)
{
    enum { FIELDS = 8, END = 0x180 };
    struct input_go_functions functions;
    struct input_go_function function;
    for (unsigned word = 4; word <= 8; word += 4) {
        struct table table = make(0xfffffff1, word);
        put(&table, 8 + 2 * word, 0, word);
        // What else stands there must not be taken for it: a pc twice, distances of the wrong sign.
        const uint64_t fields[FIELDS] = {TEXT, TEXT, TEXT + END, TEXT, TEXT, TEXT + END, TEXT, TEXT + END};
        struct table module = {.size = 0};
        for (unsigned i = 0; i < FIELDS; i++)
            put(&module, i * word, fields[i], word);
        const struct base_bytes whole = {table.bytes, table.size}, bytes = {module.bytes, module.size};
        ck_assert(input_go_open(&functions, whole, bytes));
        ck_assert_uint_eq(functions.text_start, TEXT);
        ck_assert(input_go_at(&functions, 1, &function));
        ck_assert_uint_eq(function.start, TEXT + starts[1]);
        // Cut before the three are whole; and not filled in.
        ck_assert(!input_go_open(&functions, whole, (struct base_bytes){module.bytes, 3 * word + 1}));
        memset(module.bytes, 0, module.size);
        ck_assert(!input_go_open(&functions, whole, bytes));
    }
}
END_TEST

static void read_all(const uint8_t *bytes, size_t size)
{
    struct input_go_functions functions;
    struct input_go_function function;
    uint8_t *exact = malloc(size + 1); // so that a sanitizer sees a byte too much
    memcpy(exact, bytes, size);
    if (input_go_open(&functions, (struct base_bytes){exact, size}, none))
        for (uint64_t i = 0; i < functions.count; i++)
            if (input_go_at(&functions, i, &function)) {
                ck_assert(function.end > function.start);
                ck_assert_uint_lt(function.name_offset, functions.names.size);
            }
    free(exact);
}

START_TEST(spoiled)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct table table = make(forms[_i].magic, forms[_i].word);
    for (size_t size = 0; size <= table.size; size++)
        read_all(table.bytes, size);
    for (size_t at = 0; at < table.size; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t before = table.bytes[at];
            table.bytes[at] = values[v];
            read_all(table.bytes, table.size);
            table.bytes[at] = before;
        }
}
END_TEST

START_TEST(of_an_image_without_symbols)
{
    static const uint8_t code[0x200], frames[24] = {20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1};
    struct table table = make(0xfffffff1, 8);
    struct build_buffer file = build_elf(&(struct build_elf){
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof code, 16},
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x3000, frames, sizeof frames, 8},
                     {".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x4000, table.bytes, table.size, 32}}});
    struct base_error error = {0};
    struct input_image *image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert(symbols_has_go_functions(image));
    struct symbols *symbols = symbols_read(image, 0, &error);
    struct symbol symbol;
    ck_assert(symbols_find(symbols, TEXT + 0x55, &symbol));
    ck_assert_uint_eq(symbol.start_vaddr, TEXT + 0x40);
    ck_assert_uint_eq(symbol.name_length, strlen("main.work"));
    ck_assert_int_eq(memcmp(symbol.name, "main.work", symbol.name_length), 0);
    ck_assert(!symbols_find(symbols, TEXT + 0x180, &symbol));
    symbols_free(symbols);
    free(file.data);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("go_functions");
    tcase_add_loop_test(tests, each_form, 0, sizeof forms / sizeof *forms);
    tcase_add_test(tests, what_is_not_known);
    tcase_add_test(tests, text_in_the_module);
    tcase_add_loop_test(tests, spoiled, 0, sizeof forms / sizeof *forms);
    tcase_add_test(tests, of_an_image_without_symbols);
    Suite *suite = suite_create("go_functions");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
