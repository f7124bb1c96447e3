// SPDX-License-Identifier: Apache-2.0
// A worker that dies takes nothing with it.
#include "qutc/cli/worker_pool.h"
#include "tests/support/run_suite.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES = 100, LONG_TEXT_BYTES = 3000000 };

struct seen {
    size_t taken;
    size_t died;
    size_t stop_after;
    uint64_t sum;
};

static void work(void *context, size_t index, FILE *output, FILE *errors, struct cli_tally *tally)
{
    (void)context;
    if (index % 10 == 3) {
        fprintf(output, "half a result");
        kill(getpid(), SIGKILL);
    }
    if (index % 10 == 7)
        _exit(5);
    if (index == 50)
        for (int i = 0; i < LONG_TEXT_BYTES; i++)
            fputc('x', output);
    else
        fprintf(output, "piece %zu", index);
    if (index % 2)
        fprintf(errors, "odd %zu", index);
    tally->numbers[0] = index;
    usleep(index % 5 ? 0 : 2000); // so that they end out of order
}

static bool take(void *context, const struct cli_pool_result *result)
{
    struct seen *seen = context;
    char text[32];
    ck_assert_uint_eq(result->index, seen->taken++);
    if (result->has_died) {
        seen->died++;
        ck_assert_str_eq(result->death, result->index % 10 == 3 ? "crashed: signal 9" : "crashed: exit status 5");
        return seen->taken != seen->stop_after;
    }
    seen->sum += result->tally.numbers[0];
    snprintf(text, sizeof text, "piece %zu", result->index);
    if (result->index == 50)
        ck_assert_uint_eq(strlen(result->output), LONG_TEXT_BYTES);
    else
        ck_assert_str_eq(result->output, text);
    snprintf(text, sizeof text, "odd %zu", result->index);
    ck_assert_str_eq(result->errors, result->index % 2 ? text : "");
    return seen->taken != seen->stop_after;
}

// Begun from the last to the first, so that none ends in the order in which it is taken.
static void run(unsigned jobs, size_t count, struct seen *seen)
{
    size_t order[PIECES];
    ck_assert_uint_le(count, PIECES);
    for (size_t i = 0; i < count; i++)
        order[i] = count - 1 - i;
    struct cli_pool pool = {.count = count, .jobs = jobs, .context = seen, .work = work, .take = take};
    pool.order = jobs % 2 ? NULL : order;
    ck_assert_int_eq(cli_pool_run(&pool), 0);
}

START_TEST(the_dead_cost_only_their_piece)
{
    static const unsigned jobs[] = {1, 2, 7, 200};
    struct seen seen = {0};
    run(jobs[_i], PIECES, &seen);
    ck_assert_uint_eq(seen.taken, PIECES);
    ck_assert_uint_eq(seen.died, PIECES / 5);
    uint64_t sum = 0;
    for (size_t i = 0; i < PIECES; i++)
        sum += i % 10 == 3 || i % 10 == 7 ? 0 : i;
    ck_assert_uint_eq(seen.sum, sum);
}
END_TEST

START_TEST(nothing_to_do)
{
    struct seen seen = {0};
    run(4, 0, &seen);
    ck_assert_uint_eq(seen.taken, 0);
}
END_TEST

START_TEST(the_taker_can_stop)
{
    struct seen seen = {.stop_after = 5};
    run(3, PIECES, &seen);
    ck_assert_uint_eq(seen.taken, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = tcase_create("pool");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, the_dead_cost_only_their_piece, 0, 4);
    tcase_add_test(tests, nothing_to_do);
    tcase_add_test(tests, the_taker_can_stop);
    return run_suite(suite);
}
