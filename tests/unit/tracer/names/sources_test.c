// SPDX-License-Identifier: Apache-2.0
// Names of nodes in traces that are written down: which files they are taken from, and which not.
//
//   sources_test LIBRARY OTHER     a library with all symbols, and another build of it
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/names/by_hand.h"
#include "tests/unit/tracer/names/expect.h"
#include "tests/unit/tracer/names/files.h"

static const char *library, *other;
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

// A trace with two places: in a function that others use, and in one that only the library knows.
static struct names *two_places(const char *path, const char *build_of, const struct names_options *options)
{
    uint32_t module = by_hand_module(&trace, path, build_of, 0);
    by_hand_node(&trace, module, files_address(library, "names_exported"), QUT_TRACE_CLASS_CODE);
    by_hand_node(&trace, module, files_address(library, "names_inner"), QUT_TRACE_CLASS_CODE);
    return names_with(options);
}

// Both functions, and nothing missing.
static void expect_both(const char *path, const char *build_of, const struct names_options *options)
{
    struct names *names = two_places(path, build_of, options);
    expect_name(names, 1, "names_exported", true);
    expect_name(names, 2, "names_inner", true);
    expect_missing(names, 0, "");
    names_free(names);
    by_hand_free(&trace);
    trace = by_hand_trace();
}

// No names: module+0x...
static void expect_none(const char *path, const char *build_of, const struct names_options *options, const char *why)
{
    struct names *names = two_places(path, build_of, options);
    const char *slash = strrchr(path, '/');
    for (uint32_t node = 1; node <= 2; node++) {
        char text[256];
        snprintf(text, sizeof text, "%s+0x%llx", slash && slash[1] ? slash + 1 : path,
                 (unsigned long long)trace.nodes[node].pc);
        expect_name(names, node, text, false);
    }
    expect_missing(names, 2, why);
    names_free(names);
    by_hand_free(&trace);
    trace = by_hand_trace();
}

START_TEST(all_symbols)
{
    expect_both(library, library, NULL);
    expect_both(library, NULL, NULL); // nothing says which build it is
}
END_TEST

START_TEST(stripped)
{
    char *path = files_strip(directory, library, "lib.so");
    const struct names_options options = {.debug_root = directory};
    struct names *names = two_places(path, library, &options);
    expect_name(names, 1, "names_exported", true);
    ck_assert(!names_at(names, 2, 0)->is_known);
    expect_missing(names, 1, "stripped: only exported");
    names_free(names);
    free(path);
}
END_TEST

START_TEST(debug_file)
{
    char *path = files_strip(directory, library, "lib.so"), *debug = files_debug(directory, library);
    const struct names_options options = {.debug_root = directory};
    expect_both(path, library, &options);
    // The file is gone, or was replaced: the debug file is still its own.
    expect_both("/does/not/exist.so", library, &options);
    expect_both(other, library, &options);
    // It is found by what the trace says; without a build-id there is nothing to find it by.
    expect_none("/does/not/exist.so", NULL, &options, "No such file");
    free(path);
    free(debug);
}
END_TEST

START_TEST(debug_file_of_another)
{
    char *path = files_strip(directory, library, "lib.so"), *debug = files_debug(directory, library);
    files_run("objcopy --only-keep-debug '%s' '%s'", other, debug);
    const struct names_options options = {.debug_root = directory};
    expect_none("/does/not/exist.so", library, &options, "No such file");
    struct names *names = two_places(path, library, &options);
    ck_assert(!names_at(names, 2, 0)->is_known);
    names_free(names);
    free(path);
    free(debug);
}
END_TEST

START_TEST(mini_debug_info)
{
    char *path = files_mini(directory, library, "lib.so");
    const struct names_options options = {.debug_root = directory};
    expect_both(path, library, &options);
    free(path);
}
END_TEST

START_TEST(another_build)
{
    const struct names_options options = {.debug_root = directory};
    expect_none(other, library, &options, "another build");
    char *path = files_copy(directory, library, "lib.so");
    files_run("objcopy --remove-section .note.gnu.build-id '%s'", path);
    expect_none(path, library, &options, "no build-id");
    free(path);
}
END_TEST

START_TEST(no_file)
{
    const struct names_options options = {.debug_root = directory};
    expect_none("/does/not/exist.so", library, &options, "No such file");
    expect_none("[heap]", NULL, &options, "in no file");
    expect_none(directory, NULL, &options, "not a regular file");
    char *text = build_file(directory, "text", "no ELF file\n", 12), inside[4096];
    expect_none(text, NULL, &options, "ELF");
    snprintf(inside, sizeof inside, "%s!/lib.so", directory);
    expect_none(inside, NULL, &options, "No such file");
    files_run("mkfifo '%s/fifo'", directory);
    snprintf(inside, sizeof inside, "%s/fifo", directory);
    expect_none(inside, library, &options, "not a regular file");
    free(text);
}
END_TEST

START_TEST(roots_and_suffixes)
{
    char *path = files_copy(directory, library, "usr/lib/lib.so"), deleted[4096];
    const struct names_options options = {.system_root = directory, .debug_root = directory};
    expect_both("/usr/lib/lib.so", library, &options);
    expect_none(path, library, &options, "No such file"); // the root is put before it once more
    snprintf(deleted, sizeof deleted, "%s (deleted)", path);
    expect_both(deleted, library, &(struct names_options){.debug_root = directory});
    free(path);
}
END_TEST

START_TEST(archives)
{
    const struct names_options options = {.debug_root = directory};
    char inside[4096];
    char *path =
        files_archive(directory, "base.apk", library, "lib/x86_64/libsubject.so", other, "lib/arm64/libsubject.so");
    expect_both(path, library, &options);
    snprintf(inside, sizeof inside, "%s!/lib/x86_64/libsubject.so", path);
    expect_both(inside, library, &options);
    expect_both(inside, NULL, &options);
    snprintf(inside, sizeof inside, "%s!libsubject.so", path);
    expect_both(inside, library, &options);
    expect_none(inside, NULL, &options, "no such library"); // which of the two?
    free(path);
    path = files_archive(directory, "base.apk", library, "lib/x86_64/libsubject.so", other, "lib/x86_64/libother.so");
    expect_both(inside, NULL, &options);
    snprintf(inside, sizeof inside, "%s!libwrong.so", path);
    expect_both(inside, library, &options);
    expect_none(inside, NULL, &options, "no such library");
    free(path);
}
END_TEST

START_TEST(archive_without_it)
{
    const struct names_options options = {.debug_root = directory};
    char *path = files_archive(directory, "base.apk", other, "lib/libsubject.so", other, "lib/libother.so");
    expect_none(path, library, &options, "nothing in the archive");
    free(path);
}
END_TEST

// A root of another system has debug files of its own.
START_TEST(debug_files_of_root)
{
    char *path = files_strip(directory, library, "lib.so"), root[4096];
    const struct names_options options = {.system_root = directory};
    snprintf(root, sizeof root, "%s/usr/lib/debug", directory);
    char *debug = files_debug(root, library);
    expect_both("/lib.so", library, &options);
    free(path);
    free(debug);
}
END_TEST

// The client library is one of the test's: it answers with the file that NAMES_TEST_DEBUGINFO names.
START_TEST(debuginfod)
{
    if (!getenv("NAMES_TEST_DEBUGINFOD"))
        return;
    char *path = files_strip(directory, library, "lib.so");
    const struct names_options options = {.debug_root = directory, .debuginfod = true};
    unsetenv("DEBUGINFOD_URLS");
    expect_none("/does/not/exist.so", library, &options, "$DEBUGINFOD_URLS");
    setenv("DEBUGINFOD_URLS", "http://localhost:1", 1);
    expect_none("/does/not/exist.so", library, &options, "do not have it");
    setenv("NAMES_TEST_DEBUGINFO", library, 1);
    expect_both("/does/not/exist.so", library, &options);
    expect_both(path, library, &options);
    expect_none("/does/not/exist.so", library, &(struct names_options){.debug_root = directory}, "No such file");
    // A server that gives something else is not believed.
    setenv("NAMES_TEST_DEBUGINFO", other, 1);
    expect_none("/does/not/exist.so", library, &options, "No such file");
    setenv("NAMES_TEST_DEBUGINFO", "dead", 1);
    expect_none("/does/not/exist.so", library, &options, "do not answer");
    free(path);
}
END_TEST

// Each question to servers that are away may take as long as the client waits: there are few.
START_TEST(debuginfod_away)
{
    if (!getenv("NAMES_TEST_DEBUGINFOD"))
        return;
    static const char *const paths[] = {"/does/not/exist.so", "/does/not/exist2.so", "/does/not/exist3.so"};
    const struct names_options options = {.debug_root = directory, .debuginfod = true};
    setenv("DEBUGINFOD_URLS", "http://localhost:1", 1);
    setenv("NAMES_TEST_DEBUGINFO", library, 1);
    setenv("NAMES_TEST_DEBUGINFO_AWAY", "3", 1); // three questions long
    for (size_t i = 0; i < 3; i++)
        by_hand_node(&trace, by_hand_module(&trace, paths[i], library, 0), files_address(library, "names_inner"),
                     QUT_TRACE_CLASS_CODE);
    struct names *names = names_with(&options);
    for (uint32_t node = 1; node <= 3; node++)
        ck_assert(!names_at(names, node, 0)->is_known);
    names_free(names);
    setenv("NAMES_TEST_DEBUGINFO_AWAY", "2", 1);
    names = names_with(&options);
    ck_assert(names_at(names, 3, 0)->is_known);
    names_free(names);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    library = argv[1];
    other = argv[2];
    Suite *suite = suite_create("sources of names");
    TCase *tests = tcase_create("sources of names");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, all_symbols);
    tcase_add_test(tests, stripped);
    tcase_add_test(tests, debug_file);
    tcase_add_test(tests, debug_file_of_another);
    tcase_add_test(tests, mini_debug_info);
    tcase_add_test(tests, another_build);
    tcase_add_test(tests, no_file);
    tcase_add_test(tests, roots_and_suffixes);
    tcase_add_test(tests, archives);
    tcase_add_test(tests, archive_without_it);
    tcase_add_test(tests, debug_files_of_root);
    tcase_add_test(tests, debuginfod);
    tcase_add_test(tests, debuginfod_away);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
