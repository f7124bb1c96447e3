// SPDX-License-Identifier: Apache-2.0
// Functions that are put in with the agent's stub behind them: traced_test SUBJECT [ROUNDS].
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "tests/support/process_look.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/patch/session.h"

static const char *subject_path;
static unsigned rounds = 10;
enum { CASE_SECONDS = 100, BUSY_THREADS = 8 };

static const uint8_t nop_ends[] = {1, 2, 3, 4, 5};

// Each call that was told has its exit told, or its return address put back; also of coroutines that stand still.
START_TEST(test_traced_calls_add_up)
{
    struct session session = session_begin(subject_path, "traced", "8");
    const struct qut_calls_header *header = session_map_calls(&session);
    struct patch_site sites[2] = {
        session_traced_site(&session, session.state->fib, nop_ends, sizeof nop_ends, 1),
        session_traced_site(&session, session.state->coroutine, nop_ends, sizeof nop_ends, 2),
    };
    unsigned long hash = process_code_hash(session.pid);
    struct patch_figures figures;
    uint64_t restored = 0, enters = 0, exits;
    char *maps_before = NULL;
    for (unsigned i = 0; i < rounds; i++) {
        session_put_in(&session, sites, 2, &figures);
        ck_assert_uint_eq(figures.put_in, 2);
        if (i % 8 == 0)
            session_each_goes_on(&session, BUSY_THREADS);
        else
            usleep(200);
        session_take_out(&session, &figures);
        ck_assert_uint_eq(figures.taken_out, 2);
        ck_assert_uint_eq(figures.in_thunks, 0);
        restored += figures.restored_returns;
        session_count_calls(header, &enters, &exits);
        ck_assert_uint_eq(enters, exits + restored);
        ck_assert_uint_eq(process_code_hash(session.pid), hash);
        // What the stubs made of shadows and tables stays while the agent does: it is there after the first time.
        char *maps = process_maps(session.pid);
        if (maps_before)
            ck_assert_str_eq(maps, maps_before);
        free(maps_before);
        maps_before = maps;
    }
    free(maps_before);
    ck_assert_uint_gt(restored, 0);
    ck_assert_uint_gt(enters, BUSY_THREADS);
    printf("# %llu enters, %llu returns put back\n", (unsigned long long)enters, (unsigned long long)restored);
    session_command(&session, SUBJECT_UNMAP_BLOCK);
    session_each_goes_on(&session, BUSY_THREADS);
    session_end(&session);
}
END_TEST

// Calls that were running are taken, outermost first, once their stack has a shadow; and told, or put back.
START_TEST(test_calls_that_are_running)
{
    struct session session = session_begin(subject_path, "running", NULL);
    struct base_error error = {0};
    const struct qut_calls_header *header = session_map_calls(&session);
    struct qutc_provide_options provide = {.size = sizeof provide};
    struct patch_site sites[2] = {
        session_traced_site(&session, session.state->inner, nop_ends, sizeof nop_ends, 1),
        session_traced_site(&session, session.state->outer, nop_ends, sizeof nop_ends, 2),
    };
    struct patch_running running;
    struct patch_figures figures;
    uint64_t enters, exits;
    while (!session.state->is_inside)
        usleep(100);
    ck_assert_int_eq(patch_allow_walks(session.process, NULL, qutc_compile_for_qut, &provide, &error), 0);
    session_put_in(&session, sites, 2, &figures);
    ck_assert_int_eq(patch_take_running(session.process, &running, &figures, &error), 0);
    ck_assert_uint_eq(running.count, 0);
    ck_assert_uint_eq(running.missing_count, 1);
    ck_assert_uint_eq(running.walks, 1);
    session.state->stack_begin = running.missing[0].begin;
    session.state->stack_end = running.missing[0].end;
    patch_free_running(&running);
    session_command(&session, SUBJECT_SHADOW);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(patch_take_running(session.process, &running, &figures, &error), 0);
        ck_assert_uint_eq(running.count, i ? 0 : 2); // once
        if (!i) {
            ck_assert_uint_eq(running.calls[0].id, 2);
            ck_assert_uint_eq(running.calls[1].id, 1);
            ck_assert_uint_gt(running.calls[0].slot, running.calls[1].slot);
        }
        patch_free_running(&running);
    }
    if (_i) {
        session_take_out(&session, &figures);
        ck_assert_uint_eq(figures.restored_returns, 2);
    }
    session.state->release = 1;
    session_await(&session, &session.state->calls[0], 1);
    ck_assert_int_eq(session.state->result, 9);
    session_count_calls(header, &enters, &exits);
    ck_assert_uint_eq(enters, 0);
    ck_assert_uint_eq(exits, _i ? 0 : 2);
    session_end(&session);
}
END_TEST

// What a handler returns to is found where the handler's own return address is exchanged.
START_TEST(test_a_handler_that_is_traced)
{
    static const uint8_t fault_ends[] = {1, 4, 7};
    struct session session = session_begin(subject_path, "traced_handler", NULL);
    const struct qut_calls_header *header = session_map_calls(&session);
    struct patch_site handler = session_traced_site(&session, session.state->handler, nop_ends, sizeof nop_ends, 1),
                      fault = session_traced_site(&session, session.state->fault, fault_ends, sizeof fault_ends, 2);
    struct patch_figures figures;
    uint64_t enters, exits;
    session_put_in(&session, &handler, 1, &figures);
    session.state->command = SUBJECT_GO;
    while (!session.state->is_inside)
        usleep(100);
    session_put_in(&session, &fault, 1, &figures);
    ck_assert_uint_eq(figures.moved_handlers, 1);
    session.state->release = 1;
    session_await(&session, &session.state->calls[0], 1);
    ck_assert_int_eq(session.state->result, 42);
    session_count_calls(header, &enters, &exits);
    ck_assert_uint_eq(enters, 1);
    ck_assert_uint_eq(exits, 1);
    session_end(&session);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    subject_path = argv[1];
    if (argc > 2)
        rounds = (unsigned)atoi(argv[2]);
    Suite *suite = suite_create("traced");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, CASE_SECONDS);
    tcase_add_test(cases, test_traced_calls_add_up);
    tcase_add_loop_test(cases, test_calls_that_are_running, 0, 2);
    tcase_add_test(cases, test_a_handler_that_is_traced);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
