// SPDX-License-Identifier: Apache-2.0
// Inlined functions and lines: from wherever the debug information is, and from such as lies.
//
//   debug_info_test PROGRAM [ROUNDS]     ROUNDS: how often it is spoiled
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/image_store.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/names/by_hand.h"
#include "tests/unit/tracer/names/files.h"

static const char *program;
static unsigned rounds = 60;
static char *directory;
static struct trace trace;
static struct names *truth;

static void add_places(const char *path, uint64_t step)
{
    const struct input_image_options options = {.read_files = true};
    struct input_image *image = NULL;
    ck_assert_int_eq(input_image_open(program, NULL, 0, 0, &options, &image, NULL), 0);
    uint32_t module = by_hand_module(&trace, path, program, 0);
    for (unsigned i = 0; i < image->exec_count; i++)
        for (uint64_t pc = image->exec[i].start; pc < image->exec[i].end; pc += step)
            by_hand_node(&trace, module, pc, QUT_TRACE_CLASS_CODE);
    input_image_close(image);
}

static struct names *names_with(const char *path, const struct names_options *options, uint64_t step)
{
    by_hand_free(&trace);
    trace = by_hand_trace();
    add_places(path, step);
    struct names *names = names_of(&trace, options, NULL);
    ck_assert(names != NULL);
    return names;
}

static void set_up(void)
{
    directory = build_directory();
    truth = names_with(program, &(struct names_options){.inlined = true, .lines = true}, 16);
}

static void tear_down(void)
{
    names_free(truth);
    by_hand_free(&trace);
    build_remove(directory);
}

static bool is_equal(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static void expect_truth(const struct names *names)
{
    size_t inlined = 0;
    for (uint32_t node = 1; node < trace.node_count; node++) {
        ck_assert_uint_eq(names_count(names, node), names_count(truth, node));
        for (size_t i = 0; i < names_count(names, node); i++) {
            const struct name *name = names_at(names, node, i), *right = names_at(truth, node, i);
            if (name->is_known)
                ck_assert_str_eq(name->function, right->function);
            ck_assert_msg(is_equal(name->file, right->file), "%s", name->file);
            ck_assert_uint_eq(name->line, right->line);
            ck_assert(name->is_inlined == (i + 1 < names_count(names, node)));
            inlined += name->is_inlined;
        }
    }
    ck_assert_uint_gt(inlined, 100);
}

START_TEST(debug_files)
{
    const struct names_options options = {.inlined = true, .lines = true, .debug_root = directory};
    char *stripped = files_strip(directory, program, "program"), *debug = files_debug(directory, program);
    struct names *names = names_with(stripped, &options, 16);
    expect_truth(names);
    names_free(names);
    names = names_with("/does/not/exist", &options, 16);
    expect_truth(names);
    names_free(names);
    files_run("objcopy --compress-debug-sections=zlib '%s'", debug);
    names = names_with(stripped, &options, 16);
    expect_truth(names);
    names_free(names);
    // Symbols, but no debug information.
    files_run("cp '%s' '%s' && objcopy --strip-debug '%s'", program, stripped, stripped);
    names = names_with(stripped, &options, 16);
    expect_truth(names);
    names_free(names);
    free(stripped);
    free(debug);
}
END_TEST

START_TEST(in_archive)
{
    const struct names_options options = {.inlined = true, .lines = true, .debug_root = directory};
    char *path = files_archive(directory, "base.apk", program, "lib/libx.so", "/dev/null", "empty");
    struct names *names = names_with(path, &options, 16);
    expect_truth(names);
    names_free(names);
    free(path);
}
END_TEST

START_TEST(one_of_the_two)
{
    const struct names_options lines = {.lines = true}, inlined = {.inlined = true};
    struct names *with_lines = names_with(program, &lines, 16);
    struct names *with_inlined = names_with(program, &inlined, 16);
    for (uint32_t node = 1; node < trace.node_count; node++) {
        size_t count = names_count(truth, node);
        ck_assert_uint_eq(names_count(with_lines, node), 1);
        ck_assert_uint_eq(names_count(with_inlined, node), count);
        const struct name *last = names_at(truth, node, count - 1), *only = names_at(with_lines, node, 0);
        ck_assert_str_eq(only->function, last->function);
        ck_assert(is_equal(only->file, last->file) && only->line == last->line && !only->is_inlined);
        for (size_t i = 0; i < count; i++) {
            const struct name *name = names_at(with_inlined, node, i);
            ck_assert_str_eq(name->function, names_at(truth, node, i)->function);
            ck_assert(!name->file && name->line == 0);
        }
    }
    // Without lines the same function in two places is one.
    ck_assert_uint_lt(names_id_count(with_inlined), names_id_count(truth) + 1);
    names_free(with_lines);
    names_free(with_inlined);
}
END_TEST

// Compilers give destructors that are inlined no linker's name.
START_TEST(declared_in)
{
    size_t qualified = 0, all = 0;
    for (uint32_t id = 0; id < names_id_count(truth); id++) {
        const char *function = names_by_id(truth, id)->function;
        const char *found = strstr(function, "~Counter");
        all += found != NULL;
        qualified += found && strncmp(function, "(anonymous namespace)::Counter::~Counter", 40) == 0;
    }
    ck_assert_uint_gt(all, 0);
    ck_assert_uint_eq(qualified, all);
}
END_TEST

static void spoil(const char *path, unsigned seed)
{
    static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists",
                                           ".debug_str",  ".debug_info",   ".debug_addr"};
    struct input_image *image = NULL;
    ck_assert_int_eq(input_image_open(path, NULL, 0, 0, NULL, &image, NULL), 0);
    FILE *file = fopen(path, "r+e");
    srandom(seed);
    for (unsigned i = 0; i < 1 + seed % 40; i++) {
        const struct input_elf_section *section =
            input_elf_find(&image->store->elf, sections[(unsigned)random() % (sizeof sections / sizeof *sections)]);
        if (!section || !section->size_bytes)
            continue;
        uint64_t at = section->offset_bytes + (uint64_t)random() % section->size_bytes;
        ck_assert_int_eq(fseek(file, (long)at, SEEK_SET), 0);
        fputc(random() % 3 ? (int)(random() & 0xff) : (seed & 1 ? 0xff : 0), file);
    }
    fclose(file);
    input_image_close(image);
}

// Any answer will do, if it comes: names of symbols, at least.
START_TEST(spoiled)
{
    const struct names_options options = {.inlined = true, .lines = true};
    for (unsigned seed = 0; seed < rounds; seed++) {
        char *path = files_copy(directory, program, "spoiled");
        spoil(path, seed);
        struct names *names = names_with(path, &options, 64);
        for (uint32_t node = 1; node < trace.node_count; node++)
            ck_assert_uint_ge(names_count(names, node), 1);
        names_free(names);
        free(path);
    }
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    program = argv[1];
    rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : rounds;
    Suite *suite = suite_create("debug information");
    TCase *tests = tcase_create("debug information");
    tcase_set_timeout(tests, argc > 2 ? 3600 : 100);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, debug_files);
    tcase_add_test(tests, in_archive);
    tcase_add_test(tests, one_of_the_two);
    tcase_add_test(tests, declared_in);
    tcase_add_test(tests, spoiled);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
