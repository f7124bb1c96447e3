// SPDX-License-Identifier: Apache-2.0
// The function behind the command, as a program that has it inside calls it.
#include <check.h>
#include <qutc/warm_up.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char cache[64];
static const char *const paths[] = {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"};

static void make_cache(void)
{
    strcpy(cache, "/tmp/qut-warm-up-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(cache));
}

static void remove_cache(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", cache);
    ck_assert_int_eq(system(command), 0);
}

struct told {
    size_t steps, end_after, total;
    uint64_t outcomes[QUTC_WARM_UP_OUTCOMES];
    const char *inner_cache; // a second warm-up, of this one, from inside the first
    enum qutc_warm_up_status inner_status;
};

static struct qutc_warm_up_options options_for(struct told *told, int (*step)(void *, const struct qutc_warm_up_step *))
{
    return (struct qutc_warm_up_options){.size = sizeof(struct qutc_warm_up_options),
                                         .cache_directory = cache,
                                         .paths = paths,
                                         .path_count = 2,
                                         .step = step,
                                         .step_context = told};
}

static int take_step(void *context, const struct qutc_warm_up_step *step)
{
    struct told *told = context;
    told->outcomes[step->outcome]++;
    told->steps++;
    told->total = step->total;
    ck_assert_uint_eq(step->done, told->steps);
    ck_assert_int_eq(*step->reason == '\0', step->outcome <= QUTC_WARM_UP_KEPT);
    if (told->inner_cache) {
        struct told inner = {0};
        struct qutc_warm_up_options options = options_for(&inner, take_step);
        options.cache_directory = told->inner_cache;
        struct qutc_warm_up_result result;
        char reason[128];
        told->inner_status = qutc_warm_up(&options, &result, reason, sizeof reason);
        ck_assert_uint_eq(inner.steps, told->inner_status == QUTC_WARM_UP_BUSY ? 0 : 2);
    }
    return told->steps == told->end_after;
}

START_TEST(ends_when_it_is_told_to_and_goes_on)
{
    struct told told = {.end_after = 1}, rest = {0};
    struct qutc_warm_up_options options = options_for(&told, take_step);
    struct qutc_warm_up_result result;
    char reason[128];
    ck_assert_int_eq(qutc_warm_up(&options, &result, reason, sizeof reason), QUTC_WARM_UP_PARTIAL);
    ck_assert_uint_eq(told.steps, 1);
    ck_assert_uint_eq(told.total, 2);
    ck_assert_uint_eq(result.left, 1);
    ck_assert_uint_eq(result.outcomes[QUTC_WARM_UP_COMPILED], 1);
    options = options_for(&rest, take_step);
    ck_assert_int_eq(qutc_warm_up(&options, &result, reason, sizeof reason), QUTC_WARM_UP_WHOLE);
    ck_assert_uint_eq(rest.outcomes[QUTC_WARM_UP_KEPT], 1);
    ck_assert_uint_eq(rest.outcomes[QUTC_WARM_UP_COMPILED], 1);
    ck_assert_uint_eq(result.left, 0);
    ck_assert_str_eq(reason, "");
}
END_TEST

// Not even the same process may be there twice.
START_TEST(one_at_a_time)
{
    struct told told = {.inner_cache = cache};
    struct qutc_warm_up_options options = options_for(&told, take_step);
    struct qutc_warm_up_result result;
    char reason[128];
    ck_assert_int_eq(qutc_warm_up(&options, &result, reason, sizeof reason), QUTC_WARM_UP_WHOLE);
    ck_assert_int_eq(told.inner_status, QUTC_WARM_UP_BUSY);
}
END_TEST

// What a caller does not know is as if it were zero.
START_TEST(callers_that_know_fewer_options)
{
    struct told told = {0};
    struct qutc_warm_up_options options = options_for(&told, take_step);
    options.size = offsetof(struct qutc_warm_up_options, memory_bytes);
    options.memory_bytes = 1;
    struct qutc_warm_up_result result;
    ck_assert_int_eq(qutc_warm_up(&options, &result, NULL, 0), QUTC_WARM_UP_WHOLE);
    ck_assert_uint_eq(told.steps, 0);
    ck_assert_uint_eq(result.outcomes[QUTC_WARM_UP_COMPILED], 2);
}
END_TEST

// A named pipe in a file's place must not block it.
START_TEST(what_is_no_file)
{
    char pipe[128];
    snprintf(pipe, sizeof pipe, "%s/pipe", cache);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    const char *const only[] = {pipe};
    struct told told = {0};
    struct qutc_warm_up_options options = options_for(&told, take_step);
    options.paths = only;
    options.path_count = 1;
    struct qutc_warm_up_result result;
    char reason[128];
    ck_assert_int_eq(qutc_warm_up(&options, &result, reason, sizeof reason), QUTC_WARM_UP_STUCK);
    ck_assert_uint_eq(told.outcomes[QUTC_WARM_UP_FAILED], 1);
    ck_assert_str_ne(reason, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("warm_up");
    TCase *test_case = tcase_create("warm_up");
    tcase_add_checked_fixture(test_case, make_cache, remove_cache);
    tcase_add_test(test_case, ends_when_it_is_told_to_and_goes_on);
    tcase_add_test(test_case, one_at_a_time);
    tcase_add_test(test_case, callers_that_know_fewer_options);
    tcase_add_test(test_case, what_is_no_file);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
