// SPDX-License-Identifier: Apache-2.0
// Names of nodes in traces that are written down: which place has which.
//
//   names_test LIBRARY     a library with all symbols
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/inputs.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/names/by_hand.h"
#include "tests/unit/tracer/names/expect.h"
#include "tests/unit/tracer/names/files.h"

static const char *library;
static char *directory;
static struct trace trace;

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

static struct names *names_with(const struct names_options *options)
{
    struct base_error error = {0};
    struct names *names = names_of(&trace, options, &error);
    ck_assert_msg(names != NULL, "%s", error.detail);
    return names;
}

START_TEST(without_files)
{
    static const char why[] = "[no unwind information covers the code]";
    uint32_t jit = by_hand_module(&trace, "LSnap;->hot", NULL, QUT_TRACE_MODULE_JIT);
    uint32_t mangled = by_hand_module(&trace, "_ZN4shop5totalEl", NULL, QUT_TRACE_MODULE_JIT);
    by_hand_label(&trace, why, QUT_TRACE_CLASS_END);
    by_hand_label(&trace, "request 17", QUT_TRACE_CLASS_LABEL);
    by_hand_node(&trace, TRACE_NONE, 0x7f0012345678, QUT_TRACE_CLASS_RAW);
    by_hand_node(&trace, jit, 0x7f0012340000, QUT_TRACE_CLASS_JIT);
    by_hand_node(&trace, mangled, 0x7f0012340010, QUT_TRACE_CLASS_JIT);
    by_hand_node(&trace, jit, 0x7f0012340004, QUT_TRACE_CLASS_JIT);
    by_hand_label(&trace, "", QUT_TRACE_CLASS_LABEL);
    struct names *names = names_with(NULL);
    ck_assert_uint_eq(names_count(names, 0), 0);
    expect_name(names, 1, why, true);
    expect_name(names, 2, "request 17", true);
    expect_name(names, 3, "0x7f0012345678", false);
    expect_name(names, 4, "LSnap;->hot", true);
    expect_name(names, 5, "shop::total(long)", true);
    ck_assert_str_eq(names_at(names, 5, 0)->mangled, "_ZN4shop5totalEl");
    expect_name(names, 6, "LSnap;->hot", true);
    expect_name(names, 7, "[no name]", true);
    ck_assert_uint_eq(names_at(names, 4, 0)->id, names_at(names, 6, 0)->id);
    ck_assert_uint_eq(names_id_count(names), 6);
    for (uint32_t node = 1; node < trace.node_count; node++)
        ck_assert_str_eq(names_at(names, node, 0)->module, "");
    expect_missing(names, 1, "no module");
    const struct names_missing *missing;
    ck_assert_uint_eq(names_missing(names, &missing), 1);
    ck_assert_str_eq(missing->path, "[memory]");
    names_free(names);
}
END_TEST

START_TEST(empty_trace)
{
    struct names *names = names_with(NULL);
    ck_assert_uint_eq(names_id_count(names), 0);
    ck_assert_uint_eq(names_count(names, 0), 0);
    expect_missing(names, 0, "");
    names_free(names);
}
END_TEST

// The kernel's frame for a signal has no symbol in most libraries.
START_TEST(signal_frames)
{
    uint32_t module = by_hand_module(&trace, "/does/not/exist.so", NULL, 0);
    uint32_t real = by_hand_module(&trace, library, library, 0);
    by_hand_node(&trace, module, 0x1000, QUT_TRACE_CLASS_SIGNAL);
    by_hand_node(&trace, real, files_address(library, "names_inner"), QUT_TRACE_CLASS_SIGNAL);
    struct names *names = names_with(NULL);
    expect_name(names, 1, "[signal frame]", true);
    expect_name(names, 2, "names_inner", true);
    expect_missing(names, 0, "");
    names_free(names);
}
END_TEST

// Whatever a trace has many of: nodes at one place, loads of one file, functions of one name in two files.
START_TEST(same_things)
{
    char *path = files_copy(directory, library, "lib2.so");
    uint64_t pc = files_address(library, "names_inner");
    uint32_t one = by_hand_module(&trace, library, library, 0), again = by_hand_module(&trace, library, library, 0);
    uint32_t two = by_hand_module(&trace, path, library, 0);
    by_hand_node(&trace, one, pc, QUT_TRACE_CLASS_CODE);
    by_hand_node(&trace, one, pc, QUT_TRACE_CLASS_CODE);
    by_hand_node(&trace, again, pc + 1, QUT_TRACE_CLASS_CODE);
    by_hand_node(&trace, two, pc, QUT_TRACE_CLASS_CODE);
    by_hand_node(&trace, two, files_address(library, "names_second"), QUT_TRACE_CLASS_CODE);
    struct names *names = names_with(NULL);
    uint32_t id = names_at(names, 1, 0)->id;
    ck_assert_ptr_eq(names_at(names, 1, 0), names_at(names, 2, 0));
    ck_assert_uint_eq(names_at(names, 3, 0)->id, id);
    ck_assert_uint_ne(names_at(names, 4, 0)->id, id);
    expect_name(names, 4, "names_inner", true);
    ck_assert_str_eq(names_at(names, 4, 0)->module, "lib2.so");
    expect_name(names, 5, "names_second", true);
    ck_assert_uint_eq(names_id_count(names), 3);
    names_free(names);
    free(path);
}
END_TEST

// As many as make some of the hashes equal.
START_TEST(many_things)
{
    enum { COUNT = 300000 };
    static char labels[COUNT][16];
    uint32_t module = by_hand_module(&trace, "/does/not/exist.so", NULL, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(labels[i], sizeof labels[i], "label %u", i);
        by_hand_label(&trace, labels[i], QUT_TRACE_CLASS_LABEL);
        by_hand_node(&trace, module, (uint64_t)i * 4096, QUT_TRACE_CLASS_CODE);
    }
    by_hand_node(&trace, module, 0, QUT_TRACE_CLASS_CODE);
    struct names *names = names_with(NULL);
    ck_assert_uint_eq(names_id_count(names), 2 * COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_str_eq(names_at(names, 1 + 2 * i, 0)->function, labels[i]);
    expect_missing(names, COUNT + 1, "No such file");
    names_free(names);
}
END_TEST

// Offsets of a file are no addresses of code, even where it has some.
START_TEST(mapped_files)
{
    uint32_t module = by_hand_module(&trace, library, library, QUT_TRACE_MODULE_FILE);
    by_hand_node(&trace, module, files_address(library, "names_inner"), QUT_TRACE_CLASS_CODE);
    struct names *names = names_with(NULL);
    ck_assert(!names_at(names, 1, 0)->is_known);
    expect_missing(names, 1, "not a loaded one");
    names_free(names);
}
END_TEST

START_TEST(vdso)
{
    struct input_inputs inputs;
    input_inputs_init(&inputs);
    if (input_inputs_add_vdso(&inputs, NULL) != 0) {
        printf("SKIP: no vdso\n");
        return;
    }
    char *path = build_file(directory, "vdso.so", inputs.items[0].memory.data, inputs.items[0].memory.size);
    uint32_t own = by_hand_module(&trace, "[vdso]", path, QUT_TRACE_MODULE_VDSO);
    uint32_t foreign = by_hand_module(&trace, "[vdso]", library, QUT_TRACE_MODULE_VDSO);
    uint64_t pc = files_dynamic_address(path, "__vdso_clock_gettime");
    by_hand_node(&trace, own, pc, QUT_TRACE_CLASS_CODE);
    by_hand_node(&trace, foreign, pc, QUT_TRACE_CLASS_CODE);
    struct names *names = names_with(NULL);
    const struct name *name = names_at(names, 1, 0);
    ck_assert_msg(strstr(name->function, "clock_gettime") != NULL, "%s", name->function);
    ck_assert_str_eq(name->module, "[vdso]");
    ck_assert(!names_at(names, 2, 0)->is_known);
    expect_missing(names, 1, "another kernel");
    names_free(names);
    input_inputs_free(&inputs);
    free(path);
}
END_TEST

START_TEST(plt)
{
    const struct input_image_options options = {.read_files = true};
    struct input_image *image = NULL;
    ck_assert_int_eq(input_image_open(library, NULL, 0, 0, &options, &image, NULL), 0);
    ck_assert_uint_gt(image->plt_count, 0);
    uint32_t module = by_hand_module(&trace, library, library, 0);
    for (unsigned i = 0; i < image->plt_count; i++)
        for (uint64_t pc = image->plt[i].start; pc < image->plt[i].end; pc++)
            by_hand_node(&trace, module, pc, QUT_TRACE_CLASS_CODE);
    input_image_close(image);
    struct names *names = names_with(NULL);
    size_t calls = 0;
    for (uint32_t node = 1; node < trace.node_count; node++) {
        const struct name *name = names_at(names, node, 0);
        size_t length = strlen(name->function);
        ck_assert(name->is_known);
        ck_assert_msg(strcmp(name->function, "[plt]") == 0 ||
                          (length > 4 && strcmp(name->function + length - 4, "@plt") == 0),
                      "%s", name->function);
        calls += strcmp(name->function, "qsort@plt") == 0;
    }
    ck_assert_uint_ge(calls, 8);
    expect_missing(names, 0, "");
    names_free(names);
}
END_TEST

static void note(void *context, size_t done, size_t all)
{
    size_t *last = context;
    ck_assert_uint_gt(done, last[0]);
    ck_assert_uint_le(done, all);
    last[0] = done;
    last[1] = all;
}

START_TEST(progress)
{
    size_t last[2] = {0};
    uint32_t module = by_hand_module(&trace, library, library, 0);
    for (uint64_t i = 0; i < 20000; i++)
        by_hand_node(&trace, module, 0x1000 + i, QUT_TRACE_CLASS_CODE);
    const struct names_options options = {.progress = note, .progress_context = last};
    names_free(names_with(&options));
    ck_assert_uint_eq(last[1], 20000);
    ck_assert_uint_eq(last[0], last[1]);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    library = argv[1];
    Suite *suite = suite_create("names");
    TCase *tests = tcase_create("names");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, without_files);
    tcase_add_test(tests, empty_trace);
    tcase_add_test(tests, signal_frames);
    tcase_add_test(tests, same_things);
    tcase_add_test(tests, many_things);
    tcase_add_test(tests, mapped_files);
    tcase_add_test(tests, vdso);
    tcase_add_test(tests, plt);
    tcase_add_test(tests, progress);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
