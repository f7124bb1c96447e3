// SPDX-License-Identifier: Apache-2.0
// Functions without symbols, by the unwind information: each begins where the symbol did that was stripped.
//
//   starts_test LIBRARY PROGRAM NO_TABLES UNSIZED     in C; in C++; in C without unwind tables; in assembly
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "tests/support/arm_elf.h"
#include "tests/support/elf_builder.h"
#include "tests/support/oat_writer.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/names/by_hand.h"
#include "tests/unit/tracer/names/expect.h"
#include "tests/unit/tracer/names/files.h"
#include "tracer/names/named_file.h"

enum { FUNCTIONS_MAX = 4096 };

struct function {
    uint64_t start, size;
    char name[256];
};

static char **paths;
static char *directory;
static struct trace trace;
static struct function functions[FUNCTIONS_MAX];

static void set_up(void)
{
    directory = build_directory();
    trace = by_hand_trace();
}

static void tear_down(void)
{
    by_hand_free(&trace);
    build_remove(directory);
}

static struct names *names_now(void)
{
    const struct names_options options = {.debug_root = directory};
    struct base_error error = {0};
    struct names *names = names_of(&trace, &options, &error);
    ck_assert_msg(names != NULL, "%s", error.detail);
    return names;
}

// Functions that have a size, by nm: crt's own few, in assembly, have none.
static size_t read_functions(const char *path)
{
    char command[4096], type;
    snprintf(command, sizeof command, "nm -S --defined-only '%s'", path);
    FILE *output = popen(command, "re");
    ck_assert(output != NULL);
    size_t count = 0;
    char line[8192];
    while (count < FUNCTIONS_MAX && fgets(line, sizeof line, output)) {
        unsigned long long start, size;
        struct function *function = &functions[count];
        if (sscanf(line, "%llx %llx %c %255s", &start, &size, &type, function->name) == 4 && strchr("tTwWi", type)) {
            function->start = start;
            function->size = size;
            count++;
        }
    }
    pclose(output);
    return count;
}

static bool is_name_at(uint64_t start, const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (functions[i].start == start && strncmp(functions[i].name, name, sizeof functions[i].name - 1) == 0)
            return true;
    return false;
}

// Asks at a function's first, middle and last byte. Returns how many functions have no name; of `without` names that
// contain it.
static size_t compare(const char *path, const char *without)
{
    size_t count = read_functions(path), unknown = 0;
    char *stripped = files_strip(directory, path, "stripped");
    uint32_t module = by_hand_module(&trace, stripped, path, 0);
    for (size_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < 3; k++)
            by_hand_node(&trace, module, functions[i].start + k * (functions[i].size - 1) / 2, QUT_TRACE_CLASS_CODE);
    struct names *names = names_now();
    for (size_t i = 0; i < 3 * count; i++) {
        const struct function *function = &functions[i / 3];
        const struct name *name = names_at(names, (uint32_t)i + 1, 0);
        char text[64];
        snprintf(text, sizeof text, "stripped+0x%llx", (unsigned long long)function->start);
        if (name->is_known)
            ck_assert_msg(is_name_at(function->start, name->mangled ? name->mangled : name->function, count),
                          "%s is not %s", name->function, function->name);
        else
            ck_assert_msg(strcmp(name->function, text) == 0, "%s is %s, not %s", function->name, name->function, text);
        ck_assert_uint_eq(name->id, names_at(names, (uint32_t)(i - i % 3 + 1), 0)->id);
        unknown += i % 3 == 0 && !name->is_known && strstr(function->name, without);
    }
    names_free(names);
    free(stripped);
    return unknown;
}

START_TEST(of_c)
{
    ck_assert_uint_eq(compare(paths[0], "names_"), 2);
}
END_TEST

START_TEST(of_cpp)
{
    ck_assert_uint_ge(compare(paths[1], ""), 20);
}
END_TEST

// A part that the compiler moved away begins by itself.
START_TEST(cold_parts)
{
    size_t parts = compare(paths[1], ".cold");
    if (parts == 0)
        printf("SKIP: this compiler makes no cold parts\n");
}
END_TEST

START_TEST(without_tables)
{
    char *path = files_strip(directory, paths[2], "lib.so"), text[64];
    uint64_t pc = files_address(paths[2], "names_inner");
    by_hand_node(&trace, by_hand_module(&trace, path, paths[2], 0), pc, QUT_TRACE_CLASS_CODE);
    struct names *names = names_now();
    snprintf(text, sizeof text, "lib.so+0x%llx", (unsigned long long)pc);
    expect_name(names, 1, text, false);
    expect_missing(names, 1, "stripped");
    names_free(names);
    free(path);
}
END_TEST

START_TEST(symbols_without_size)
{
    static const char *const places[] = {"names_unsized", "names_local", "names_hole", "names_described",
                                         "names_inside"};
    char *path = files_strip(directory, paths[3], "lib.so"), text[64];
    uint32_t module = by_hand_module(&trace, path, paths[3], 0);
    for (size_t i = 0; i < 5; i++)
        by_hand_node(&trace, module, files_address(paths[3], places[i]), QUT_TRACE_CLASS_CODE);
    struct names *names = names_now();
    expect_name(names, 1, "names_unsized", true);
    snprintf(text, sizeof text, "lib.so+0x%llx", (unsigned long long)trace.nodes[2].pc - 1);
    expect_name(names, 2, text, false);
    snprintf(text, sizeof text, "lib.so+0x%llx", (unsigned long long)trace.nodes[3].pc);
    expect_name(names, 3, text, false); // a hole: the place itself
    expect_name(names, 4, "names_described", true);
    expect_name(names, 5, "names_described", true);
    expect_missing(names, 2, "stripped");
    names_free(names);
    free(path);
}
END_TEST

// Without section headers too, as the loader finds it.
START_TEST(without_section_headers)
{
    char *path = files_strip(directory, paths[0], "lib.so"), text[64];
    uint64_t pc = files_address(paths[0], "names_inner");
    FILE *file = fopen(path, "r+be");
    static const uint8_t none[8] = {0};
    ck_assert(file != NULL && sizeof(void *) == 8);
    ck_assert(fseek(file, 40, SEEK_SET) == 0 && fwrite(none, 8, 1, file) == 1); // e_shoff
    ck_assert(fseek(file, 60, SEEK_SET) == 0 && fwrite(none, 4, 1, file) == 1); // e_shnum, e_shstrndx
    fclose(file);
    by_hand_node(&trace, by_hand_module(&trace, path, NULL, 0), pc, QUT_TRACE_CLASS_CODE);
    struct names *names = names_now();
    snprintf(text, sizeof text, "lib.so+0x%llx", (unsigned long long)pc - 1);
    expect_name(names, 1, text, false);
    names_free(names);
    free(path);
}
END_TEST

START_TEST(read_only_where_needed)
{
    const struct names_options options = {.debug_root = directory};
    const struct trace_module module = {.path = paths[0]};
    struct names_file file = {.options = &options, .module = &module};
    struct symbol symbol;
    uint64_t start;
    ck_assert(names_file_symbol(&file, files_address(paths[0], "names_inner"), &symbol));
    ck_assert(!file.starts_are_read);
    ck_assert(!names_file_symbol(&file, 0, &symbol) && !names_file_start(&file, 0, &start));
    ck_assert(file.starts_are_read);
    names_file_close(&file);
}
END_TEST

static void expect_start(const struct names_starts *starts, uint64_t vaddr, uint64_t start)
{
    uint64_t found = 0;
    ck_assert_msg(names_starts_find(starts, vaddr, &found) == (start != 0), "0x%llx", (unsigned long long)vaddr);
    ck_assert_uint_eq(found, start);
}

// Entries of functions that cannot be unwound are put together by linkers: nothing is known of where those begin.
START_TEST(exidx)
{
    const uint32_t leaf = 0x80b0b0b0, move = 0x8001b0b0;
    struct arm_elf elf = arm_elf(0x10000, 0x10100);
    arm_elf_inline_entry(&elf, 0x10010, leaf);
    arm_elf_inline_entry(&elf, 0x10020, leaf);
    arm_elf_inline_entry(&elf, 0x10030, ARM_ELF_CANTUNWIND);
    arm_elf_inline_entry(&elf, 0x10040, move);
    struct input_image *image = arm_elf_open(&elf);
    struct names_starts starts = {0};
    names_starts_add(&starts, image);
    names_starts_sort(&starts);
    expect_start(&starts, 0x1000f, 0);
    expect_start(&starts, 0x10010, 0x10010);
    expect_start(&starts, 0x1001f, 0x10010);
    expect_start(&starts, 0x10022, 0x10020);
    expect_start(&starts, 0x10030, 0);
    expect_start(&starts, 0x1003f, 0);
    expect_start(&starts, 0x100ff, 0x10040);
    expect_start(&starts, 0x10100, 0);
    ck_assert(names_starts_between(&starts, 0x10010, 0x10020));
    ck_assert(!names_starts_between(&starts, 0x10010, 0x1001f));
    names_starts_free(&starts);
    input_image_close(image);
}
END_TEST

START_TEST(oat_methods)
{
    static const struct arch *const architectures[] = {&arch_x86_64, &arch_aarch64, &arch_arm};
    struct oat_spec spec;
    struct base_error error = {0};
    oat_spec_init(&spec, architectures[_i], 195);
    spec.no_symbols = true;
    struct build_buffer bytes = oat_write(&spec);
    struct input_image *image = build_open_bytes(&bytes, &error);
    ck_assert_msg(image != NULL, "%s", error.detail);
    struct names_starts starts = {0};
    names_starts_add(&starts, image);
    names_starts_sort(&starts);
    ck_assert_uint_ge(spec.method_count, 2);
    for (unsigned i = 0; i < spec.method_count; i++) {
        const struct oat_method *method = &spec.methods[i];
        expect_start(&starts, method->vaddr, method->vaddr);
        expect_start(&starts, method->vaddr + method->code_bytes - 1, method->vaddr);
        expect_start(&starts, method->vaddr - 1, 0); // its header
    }
    names_starts_free(&starts);
    input_image_close(image);
    free(bytes.data);
}
END_TEST

// Functions in each other, more of them than anybody looks back over, and none at all.
START_TEST(nested)
{
    struct names_starts_range ranges[300] = {{.start = 0x2000, .end = 0x9000}, {.start = 0x1000, .end = 0x8000}};
    struct names_starts starts = {.items = ranges, .count = 300};
    for (size_t i = 2; i < 300; i++)
        ranges[i] = (struct names_starts_range){.start = 0x2000 + 16 * i, .end = 0x2008 + 16 * i};
    names_starts_sort(&starts);
    expect_start(&starts, 0xfff, 0);
    expect_start(&starts, 0x1fff, 0x1000);
    expect_start(&starts, 0x2000, 0x2000);
    expect_start(&starts, 0x2020, 0x2020);
    expect_start(&starts, 0x2028, 0x2000);
    expect_start(&starts, 0x8fff, 0); // too far away
    expect_start(&starts, 0x9000, 0);
    expect_start(&(struct names_starts){0}, 0x1000, 0);
}
END_TEST

// Whatever stands in the file: an answer, or none. The sanitizers say more.
static void ask(struct build_buffer *bytes, uint64_t seed)
{
    struct input_image *image = build_open_bytes(bytes, &(struct base_error){0});
    if (!image)
        return;
    struct names_starts starts = {0};
    struct names_plt plt = {0};
    names_starts_add(&starts, image);
    names_starts_sort(&starts);
    names_plt_read(&plt, image);
    for (unsigned i = 0; i < 200; i++, seed = base_hash_word(seed, i)) {
        uint64_t vaddr = image->exec_count ? image->exec[0].start + seed % 0x1000 : seed, start;
        if (names_starts_find(&starts, vaddr, &start))
            ck_assert(start <= vaddr && names_starts_between(&starts, start - 1, vaddr));
        struct base_bytes name = names_plt_find(&plt, image, vaddr);
        ck_assert_uint_le(name.size, bytes->size);
    }
    names_plt_free(&plt);
    names_starts_free(&starts);
    input_image_close(image);
}

START_TEST(spoiled)
{
    enum { TIMES = 400, SPOILED_MAX = 64 };
    char *path = files_strip(directory, paths[_i], "lib.so");
    FILE *file = fopen(path, "re");
    static uint8_t whole[1 << 20], copy[1 << 20];
    ck_assert(file != NULL);
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (uint64_t seed = 1; seed <= TIMES; seed++) {
        uint64_t random = base_hash_word(0, seed);
        struct build_buffer bytes = {.data = copy, .size = seed % 8 ? size : random % size};
        memcpy(copy, whole, size);
        for (unsigned i = 0, count = random % SPOILED_MAX; i < count; i++, random = base_hash_word(random, i))
            copy[64 + random % (size - 64)] = (uint8_t)(random >> 40);
        ask(&bytes, random);
    }
    free(path);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    paths = argv + 1;
    Suite *suite = suite_create("starts of functions");
    TCase *tests = tcase_create("starts of functions");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, of_c);
    tcase_add_test(tests, of_cpp);
    tcase_add_test(tests, cold_parts);
    tcase_add_test(tests, without_tables);
    tcase_add_test(tests, symbols_without_size);
    tcase_add_test(tests, without_section_headers);
    tcase_add_test(tests, read_only_where_needed);
    tcase_add_test(tests, exidx);
    tcase_add_loop_test(tests, oat_methods, 0, 3);
    tcase_add_test(tests, nested);
    tcase_add_loop_test(tests, spoiled, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
