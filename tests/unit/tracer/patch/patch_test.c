// SPDX-License-Identifier: Apache-2.0
// Entries of functions become jumps, and are put back, while threads are in them: patch_test SUBJECT [ROUNDS |
// --measure].
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process_look.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/patch/session.h"

static const char *subject_path;
static unsigned rounds = 40, kills = 8;
enum { CASE_SECONDS = 100, BUSY_THREADS = 8, FILLER = 0x90 };

static const uint8_t work_ends[] = {1, 3, 6}, fault_ends[] = {1, 4, 7}, read_ends[] = {2, 4, 5},
                     read_end_ends[] = {1, 3, 5}, many_ends[] = {1, 4, 8};

static uint64_t all_calls(const struct session *session)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < SUBJECT_THREADS_MAX; i++)
        sum += session->state->calls[i];
    return sum;
}

START_TEST(test_busy_threads_never_notice)
{
    struct session session = session_begin(subject_path, "work", "8");
    char *maps = process_maps(session.pid);
    struct patch_site site = session_site(&session, session.state->work, work_ends, sizeof work_ends);
    unsigned long hash = process_code_hash(session.pid);
    struct patch_figures figures;
    unsigned moved_in = 0, moved_out = 0;
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t counted = session_read_u64(&session, session.state->counters);
        session_put_in(&session, &site, 1, &figures);
        ck_assert_uint_eq(site.state, PATCH_IN);
        ck_assert_uint_eq(figures.put_in, 1);
        moved_in += figures.moved_threads;
        // Many threads at once take turns on a few processors.
        if (i % 8 == 0)
            session_each_goes_on(&session, BUSY_THREADS);
        else
            usleep(100);
        session_take_out(&session, &figures);
        ck_assert_uint_eq(figures.taken_out, 1);
        moved_out += figures.moved_threads;
        if (i % 8 == 0)
            ck_assert_uint_gt(session_read_u64(&session, session.state->counters), counted);
        // One that cannot be moved back counts once more: it stands before that instruction.
        counted = session_read_u64(&session, session.state->counters) + figures.in_thunks;
        if (i % 8 == 0) {
            session_each_goes_on(&session, BUSY_THREADS);
            ck_assert_uint_le(session_read_u64(&session, session.state->counters), counted);
        }
    }
    printf("# %llu calls; %u threads moved in, %u out\n", (unsigned long long)all_calls(&session), moved_in, moved_out);
    ck_assert_uint_eq(process_code_hash(session.pid), hash);
    char *maps_after = process_maps(session.pid);
    ck_assert_str_eq(maps, maps_after);
    free(maps);
    free(maps_after);
    session_end(&session);
}
END_TEST

START_TEST(test_many_functions)
{
    static struct patch_site sites[SUBJECT_MANY];
    struct session session = session_begin(subject_path, "many", "8");
    struct patch_figures figures;
    for (unsigned i = 0; i < SUBJECT_MANY; i++)
        sites[SUBJECT_MANY - 1 - i] = session_site(&session, session.state->many + (uint64_t)i * SUBJECT_MANY_STRIDE,
                                                   many_ends, sizeof many_ends);
    unsigned long hash = process_code_hash(session.pid);
    session_put_in(&session, sites, SUBJECT_MANY, &figures);
    ck_assert_uint_eq(figures.put_in, SUBJECT_MANY);
    ck_assert_uint_eq(patch_site_count(session.process), SUBJECT_MANY);
    session_each_goes_on(&session, BUSY_THREADS);
    ck_assert_uint_gt(session_read_u64(&session, session.state->counters), 0);
    // What is in is in the way.
    session_put_in(&session, sites, 2, &figures);
    ck_assert_uint_eq(figures.refused, 2);
    ck_assert_uint_eq(sites[0].state, PATCH_OVERLAPS);
    // A few, then all others.
    uint64_t some[3] = {sites[5].address, sites[900].address, 1};
    struct base_error error = {0};
    ck_assert_int_eq(patch_take_out(session.process, some, 3, &figures, &error), 0);
    ck_assert_uint_eq(figures.taken_out, 2);
    ck_assert_uint_eq(patch_site_count(session.process), SUBJECT_MANY - 2);
    session_each_goes_on(&session, BUSY_THREADS);
    session_take_out(&session, &figures);
    ck_assert_uint_eq(figures.taken_out, SUBJECT_MANY - 2);
    ck_assert_uint_eq(process_code_hash(session.pid), hash);
    session_each_goes_on(&session, BUSY_THREADS);
    session_end(&session);
}
END_TEST

// ---- places that the pc of a thread does not show

static const char *const handler_modes[] = {"handler", "handler_stack"};

static struct session begin_in_handler(const char *mode)
{
    struct session session = session_begin(subject_path, mode, NULL);
    while (!session.state->is_inside)
        usleep(100);
    return session;
}

static void end_handler(struct session *session)
{
    session->state->release = 1;
    session_await(session, &session->state->calls[0], 1);
    ck_assert_int_eq(session->state->result, 42);
    session_end(session);
}

START_TEST(test_a_handler_returns_into_the_copy)
{
    struct session session = begin_in_handler(handler_modes[_i]);
    struct patch_figures figures;
    struct patch_site site = session_site(&session, session.state->fault, fault_ends, sizeof fault_ends);
    memset(site.patched + 1, 0xcc, 1); // whoever came there would see
    session_put_in(&session, &site, 1, &figures);
    ck_assert_uint_eq(figures.moved_handlers, 1);
    ck_assert_uint_eq(figures.moved_threads, 0);
    end_handler(&session);
}
END_TEST

START_TEST(test_a_handler_returns_out_of_the_copy)
{
    struct session session = begin_in_handler(handler_modes[_i]);
    struct patch_figures figures;
    struct base_error error = {0};
    struct patch_site site = session_site(&session, session.state->fault, fault_ends, sizeof fault_ends);
    session_put_in(&session, &site, 1, &figures);
    session_take_out(&session, &figures);
    ck_assert_uint_eq(figures.moved_handlers, 1);
    ck_assert_uint_eq(figures.in_thunks, 0);
    // Nobody needs it.
    const uint8_t crash[64] = {0};
    ck_assert_int_eq(patch_write(session.process, site.thunk, crash, sizeof crash, &error), 0);
    end_handler(&session);
}
END_TEST

START_TEST(test_a_call_begins_anew_in_the_copy)
{
    struct session session = session_begin(subject_path, _i ? "read_end" : "read", NULL);
    struct patch_figures figures;
    session_await_sleep(&session);
    struct patch_site site = _i ? session_site(&session, session.state->read_end, read_end_ends, sizeof read_end_ends)
                                : session_site(&session, session.state->read, read_ends, sizeof read_ends);
    session_put_in(&session, &site, 1, &figures);
    ck_assert_uint_eq(figures.moved_threads, 1);
    session_await_sleep(&session);
    session_take_out(&session, &figures);
    ck_assert_uint_eq(figures.moved_threads, 1);
    session_put_in(&session, &site, 1, &figures);
    session.state->release = 1;
    session_await(&session, &session.state->calls[0], 1);
    ck_assert_int_eq(session.state->result, 3);
    session_end(&session);
}
END_TEST

START_TEST(test_a_wait_with_a_timeout_goes_on)
{
    struct session session = session_begin(subject_path, "epoll", NULL);
    struct patch_figures figures;
    session_await_sleep(&session);
    struct patch_site site = session_site(&session, session.state->work, work_ends, sizeof work_ends);
    session_put_in(&session, &site, 1, &figures);
    ck_assert_uint_eq(figures.asleep, 0);
    session_take_out(&session, &figures);
    session.state->release = 1;
    session_await(&session, &session.state->calls[0], 1);
    ck_assert_int_eq(session.state->result, 1);
    session_end(&session);
}
END_TEST

struct releasing {
    const struct session *session;
    const struct patch_figures *figures;
};

static void *release_after_an_attempt(void *context)
{
    const struct releasing *releasing = context;
    while (*(const volatile unsigned *)&releasing->figures->attempts < 3)
        usleep(100);
    releasing->session->state->release = 1;
    return NULL;
}

START_TEST(test_a_child_of_vfork_is_waited_for)
{
    struct session session = session_begin(subject_path, "vfork", NULL);
    struct patch_figures figures = {0};
    struct releasing releasing = {&session, &figures};
    pthread_t thread;
    while (!session.state->is_inside)
        usleep(100);
    struct patch_site site = session_site(&session, session.state->work, work_ends, sizeof work_ends);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_after_an_attempt, &releasing), 0);
    session_put_in(&session, &site, 1, &figures);
    pthread_join(thread, NULL);
    ck_assert_uint_ge(figures.attempts, 3);
    session_await(&session, &session.state->calls[0], 1);
    session_end(&session);
}
END_TEST

// ---- what is not as it was thought

START_TEST(test_what_others_wrote_is_left)
{
    struct session session = session_begin(subject_path, "work", "1");
    struct patch_figures figures;
    struct base_error error = {0};
    const uint8_t others[1] = {FILLER};
    uint8_t first;
    struct patch_site sites[3] = {
        session_site(&session, session.state->fault, fault_ends, sizeof fault_ends),
        session_site(&session, session.state->read, read_ends, sizeof read_ends),
        session_site(&session, session.state->read_end, read_end_ends, sizeof read_end_ends),
    };
    first = sites[0].original[0];
    ck_assert_int_eq(patch_write(session.process, session.state->fault, others, 1, &error), 0);
    sites[1].partner = 1; // not without the first
    session_put_in(&session, sites, 3, &figures);
    ck_assert_uint_eq(sites[0].state, PATCH_ANOTHERS);
    ck_assert_uint_eq(sites[1].state, PATCH_ANOTHERS);
    ck_assert_uint_eq(sites[2].state, PATCH_IN);
    ck_assert_uint_eq(figures.refused, 2);
    ck_assert_int_eq(patch_write(session.process, session.state->read_end, others, 1, &error), 0);
    session_take_out(&session, &figures);
    ck_assert_uint_eq(figures.lost, 1);
    ck_assert_uint_eq(session_read_u64(&session, session.state->read_end) & 0xff, FILLER);
    ck_assert_uint_eq(session_read_u64(&session, session.state->read) & 0xff, sites[1].original[0]);
    ck_assert_int_eq(patch_write(session.process, session.state->fault, &first, 1, &error), 0);
    struct patch_site nowhere = sites[1];
    nowhere.address = session.state->counters;
    nowhere.partner = 0;
    session_put_in(&session, &nowhere, 1, &figures);
    ck_assert_uint_eq(nowhere.state, PATCH_NOT_MAPPED);
    session_end(&session);
}
END_TEST

START_TEST(test_a_module_that_has_gone)
{
    struct session session = session_begin(subject_path, "mapped", NULL);
    struct patch_figures figures;
    struct patch_site site = session_site(&session, session.state->mapped, work_ends, sizeof work_ends);
    for (unsigned i = 0; i < 2; i++) {
        session_put_in(&session, &site, 1, &figures);
        ck_assert_uint_eq(site.state, PATCH_IN);
        session_command(&session, SUBJECT_MAP_AGAIN);
        ck_assert_uint_eq(session_read_u64(&session, site.address) & 0xff, site.original[0]);
        session_take_out(&session, &figures);
        ck_assert_uint_eq(figures.lost, 1);
        ck_assert_uint_eq(patch_site_count(session.process), 0);
    }
    session_put_in(&session, &site, 1, &figures);
    session_command(&session, SUBJECT_UNMAP);
    session_take_out(&session, &figures);
    ck_assert_uint_eq(figures.lost, 1);
    session_end(&session);
}
END_TEST

// What the kernel does not let us write: nothing is changed.
START_TEST(test_all_or_nothing)
{
    struct session session = session_begin(subject_path, "mapped", NULL);
    struct patch_figures figures;
    struct base_error error = {0};
    struct patch_site sites[2] = {session_site(&session, session.state->work, work_ends, sizeof work_ends)};
    unsigned long hash = process_code_hash(session.pid);
    sites[1] = sites[0];
    sites[1].address = session.state->shared;
    ck_assert_uint_gt(sites[1].address, sites[0].address); // written later
    ck_assert_int_eq(patch_put_in(session.process, sites, 2, &figures, &error), -1);
    ck_assert_ptr_nonnull(strstr(error.detail, "cannot be written"));
    ck_assert_uint_eq(sites[0].state, PATCH_OUT);
    ck_assert_uint_eq(patch_site_count(session.process), 0);
    ck_assert_uint_eq(process_code_hash(session.pid), hash);
    session_end(&session);
}
END_TEST

// The one that patches dies at any moment.
START_TEST(test_a_killed_tracer)
{
    for (unsigned i = 0; i < kills; i++) {
        struct session session = session_begin(subject_path, "work", "4");
        struct patch_site site = session_site(&session, session.state->work, work_ends, sizeof work_ends);
        pid_t tracer = fork();
        ck_assert(tracer >= 0);
        if (tracer == 0) {
            struct patch_figures figures;
            struct base_error error = {0};
            struct patch_process *own = patch_open(session.pid, &error);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (own && patch_put_in(own, &site, 1, &figures, &error) == 0 &&
                   patch_take_out(own, NULL, 0, &figures, &error) == 0)
                continue;
            _exit(1);
        }
        usleep(5000 + i * 777);
        kill(tracer, SIGKILL);
        int status;
        waitpid(tracer, &status, 0);
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        session_each_goes_on(&session, 4);
        session_end(&session);
    }
}
END_TEST

// ---- figures

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void measure(unsigned functions, const char *threads)
{
    enum { TIMES = 60 };
    static struct patch_site sites[SUBJECT_MANY];
    static uint64_t in_ns[TIMES], out_ns[TIMES];
    struct session session = session_begin(subject_path, "many", threads);
    struct patch_figures figures = {0};
    for (unsigned i = 0; i < functions; i++)
        sites[i] = session_site(&session, session.state->many + (uint64_t)i * SUBJECT_MANY_STRIDE, many_ends,
                                sizeof many_ends);
    for (unsigned i = 0; i < TIMES; i++) {
        session_put_in(&session, sites, functions, &figures);
        in_ns[i] = figures.stopped_ns;
        usleep(2000);
        session_take_out(&session, &figures);
        out_ns[i] = figures.stopped_ns;
        usleep(2000);
    }
    uint64_t first_ns = in_ns[0];
    qsort(in_ns, TIMES, sizeof *in_ns, by_number);
    qsort(out_ns, TIMES, sizeof *out_ns, by_number);
    printf(
        "%4u functions, %2u threads: stopped us, in: first %llu, median %llu, p95 %llu; out: median %llu, p95 %llu\n",
        functions, figures.threads, (unsigned long long)first_ns / 1000, (unsigned long long)in_ns[TIMES / 2] / 1000,
        (unsigned long long)in_ns[TIMES * 95 / 100] / 1000, (unsigned long long)out_ns[TIMES / 2] / 1000,
        (unsigned long long)out_ns[TIMES * 95 / 100] / 1000);
    session_end(&session);
}

START_TEST(measure_all)
{
    measure(1, "1");
    measure(1, "8");
    measure(1, "60");
    measure(SUBJECT_MANY, "8");
    measure(SUBJECT_MANY, "60");
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    subject_path = argv[1];
    bool is_measure = argc > 2 && strcmp(argv[2], "--measure") == 0;
    if (argc > 2 && !is_measure)
        rounds = kills = (unsigned)atoi(argv[2]);
    Suite *suite = suite_create("patch");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, CASE_SECONDS);
    if (is_measure) {
        tcase_add_test(cases, measure_all);
        suite_add_tcase(suite, cases);
        return run_suite(suite);
    }
    tcase_add_test(cases, test_busy_threads_never_notice);
    tcase_add_test(cases, test_many_functions);
    tcase_add_loop_test(cases, test_a_handler_returns_into_the_copy, 0, 2);
    tcase_add_loop_test(cases, test_a_handler_returns_out_of_the_copy, 0, 2);
    tcase_add_loop_test(cases, test_a_call_begins_anew_in_the_copy, 0, 2);
    tcase_add_test(cases, test_a_wait_with_a_timeout_goes_on);
    tcase_add_test(cases, test_a_child_of_vfork_is_waited_for);
    tcase_add_test(cases, test_what_others_wrote_is_left);
    tcase_add_test(cases, test_a_module_that_has_gone);
    tcase_add_test(cases, test_all_or_nothing);
    tcase_add_test(cases, test_a_killed_tracer);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
