// SPDX-License-Identifier: Apache-2.0
// Plans are kept, and what is kept is believed only where it is a plan of that file.
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tracer/calls/plan.h"

static const char *subject_path;
static char *directory;

static void make_directory(void)
{
    directory = build_directory();
}

static void remove_directory(void)
{
    build_remove(directory);
}

// Whether it came from the cache.
static bool get(const char *name, uint32_t *functions)
{
    struct calls_plan_cache cache = {.directory = directory};
    struct calls_plan *plan;
    struct base_error error = {0};
    char text[256];
    ck_assert_msg(calls_plan_get(subject_path, name, &cache, &plan, &error) == 0, "%s",
                  base_error_text(&error, text, sizeof text));
    *functions = plan->header->function_count - plan->kind_count[QUT_PLAN_REFUSED];
    calls_plan_free(plan);
    return cache.was_cached;
}

static char *find_file(void)
{
    char *pattern;
    glob_t found;
    ck_assert_int_gt(asprintf(&pattern, "%s/*.plan", directory), 0);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    char *path = strdup(found.gl_pathv[0]);
    globfree(&found);
    free(pattern);
    return path;
}

START_TEST(a_plan_is_made_once)
{
    uint32_t first, second;
    ck_assert(!get(NULL, &first));
    ck_assert(get(NULL, &second));
    ck_assert_uint_eq(first, second);
    ck_assert_uint_gt(first, 20);
}
END_TEST

// A change at each of some places: made anew, and put right.
START_TEST(a_spoiled_plan_is_made_anew)
{
    uint32_t first, again;
    get(NULL, &first);
    char *path = find_file();
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    const long places[] = {0, 8, 12, 36, 88, 96, 200, 2000, (long)status.st_size - 9};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        FILE *file = fopen(path, "r+");
        ck_assert_ptr_nonnull(file);
        fseek(file, places[i], SEEK_SET);
        int byte = fgetc(file);
        fseek(file, places[i], SEEK_SET);
        fputc(byte ^ 4, file);
        fclose(file);
        ck_assert_msg(!get(NULL, &again), "%ld", places[i]);
        ck_assert_uint_eq(again, first);
        ck_assert(get(NULL, &again));
    }
    free(path);
}
END_TEST

START_TEST(a_module_that_is_denied_is_never_cached)
{
    uint32_t functions;
    ck_assert(!get("libgcc_s.so.1", &functions));
    ck_assert_uint_eq(functions, 0);
    ck_assert(!get(NULL, &functions));
    ck_assert(!get("libgcc_s.so.1", &functions));
    ck_assert_uint_eq(functions, 0);
    ck_assert(get(NULL, &functions));
}
END_TEST

START_TEST(a_directory_that_others_write_to_is_not_used)
{
    uint32_t functions;
    get(NULL, &functions);
    ck_assert_int_eq(chmod(directory, 0777), 0);
    ck_assert(!get(NULL, &functions));
    ck_assert_int_eq(chmod(directory, 0700), 0);
    ck_assert(get(NULL, &functions));
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    subject_path = argv[1];
    Suite *suite = suite_create("cached");
    TCase *tests = tcase_create("cached");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, a_plan_is_made_once);
    tcase_add_test(tests, a_spoiled_plan_is_made_anew);
    tcase_add_test(tests, a_module_that_is_denied_is_never_cached);
    tcase_add_test(tests, a_directory_that_others_write_to_is_not_used);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
