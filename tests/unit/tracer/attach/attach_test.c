// SPDX-License-Identifier: Apache-2.0
// Processes that are sampled from outside: what the trace says of them, and that they notice nothing.
//     attach_test SUBJECT CENSUS STATIC_SUBJECT I386_SUBJECT|- [KILLS [SECONDS]]
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/attach/recording.h"

enum { KILLS = 8, SPAN_BYTES = 600 };

static const char *subject_path, *census_path, *static_path, *i386_path;
static unsigned kills = KILLS;

// Where a frame is: the last of these that begins before it.
static unsigned long function_at(const struct trace *trace, uint32_t node, const struct subject *subject)
{
    const struct trace_node *frame = &trace->nodes[node];
    const unsigned long starts[] = {subject->three, subject->one, subject->hold};
    unsigned long best = 0;
    if (frame->module == TRACE_NONE)
        return 0;
    const struct trace_module *module = &trace->modules[frame->module];
    uint64_t pc = frame->pc + module->start - module->start_vaddr;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (starts[i] <= pc && pc - starts[i] < SPAN_BYTES && starts[i] > best)
            best = starts[i];
    return best;
}

static void expect_shares(struct subject *subject, struct recording *recording, unsigned depth)
{
    const struct trace *trace = &recording->trace;
    uint64_t three = 0, one = 0, all = 0;
    for (size_t i = 0; i < trace->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[i];
        all += sample->count;
        three += function_at(trace, sample->node, subject) == subject->three ? sample->count : 0;
        one += function_at(trace, sample->node, subject) == subject->one ? sample->count : 0;
        ck_assert_uint_ge(trace->nodes[sample->node].depth, depth);
    }
    double of_two = (double)(three + one), share = (double)three / of_two;
    printf("%llu samples, %.1f %% in spin_three; stopped %llu us (median), %llu us (99 %%)\n", (unsigned long long)all,
           100 * share, (unsigned long long)(recording->result.stop_median_ns / 1000),
           (unsigned long long)(recording->result.stop_p99_ns / 1000));
    ck_assert_uint_gt(all, 0);
    ck_assert_double_gt(of_two, 0.9 * (double)all);
    // 4.5 standard deviations of as many independent samples.
    ck_assert_double_lt(fabs(share - 0.75), 4.5 * sqrt(0.75 * 0.25 / of_two));
    ck_assert_uint_ge(recording->result.roots * 1000, recording->result.taken * 995);
}

static void shares_of(const char *path)
{
    struct subject subject;
    struct recording recording;
    begin(&subject, path, "shares", "30");
    char *maps = read_file(subject.pid, "maps");
    prepare(&recording, subject.pid, 1000, false);
    record(&recording);
    ck_assert_int_eq(recording.result.end, ATTACH_END_DURATION);
    expect_shares(&subject, &recording, 30);
    done(&recording);
    ck_assert_int_eq(status_number(subject.pid, "TracerPid:"), 0);
    char *after = read_file(subject.pid, "maps");
    ck_assert_str_eq(maps, after);
    free(maps);
    free(after);
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}

// Of a thread that never sleeps, what is neither time on a processor nor time that it waited for one is our stops.
static uint64_t stood_still_ns(pid_t pid, uint64_t *delay_ns)
{
    char *text = read_file(pid, "schedstat"), *at = text;
    struct timespec now;
    uint64_t cpu_ns = strtoull(at, &at, 10);
    *delay_ns = strtoull(at, NULL, 10);
    free(text);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - cpu_ns - *delay_ns;
}

// Its times are as of the moment at which it stopped. Between that and our look we may have waited for a processor.
static uint64_t stood_still_when_stopped_ns(pid_t pid, uint64_t *slack_ns)
{
    uint64_t delay_ns, own_before_ns, own_ns;
    stood_still_ns(getpid(), &own_before_ns);
    kill(pid, SIGSTOP);
    while (state_of(pid) != 'T')
        sched_yield();
    uint64_t still_ns = stood_still_ns(pid, &delay_ns);
    stood_still_ns(getpid(), &own_ns);
    *slack_ns += own_ns - own_before_ns;
    return still_ns;
}

// Each processor has more to do than it can: who waits for one does not stand still, and nobody stands still for us to
// get one.
START_TEST(stops_are_what_they_are_said_to_be)
{
    enum { SPINNERS_MAX = 64, SLACK_NS = 20000000 };
    struct subject subject;
    struct recording recording;
    pid_t spinners[SPINNERS_MAX], parent = getpid();
    uint64_t slack_ns = SLACK_NS;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = processors < SPINNERS_MAX / 2 ? 2 * (size_t)processors : SPINNERS_MAX;
    begin(&subject, subject_path, "shares", "30");
    for (size_t i = 0; i < count; i++)
        if ((spinners[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile unsigned long round = 0; getppid() == parent || round == 0; round = round + 1)
                for (volatile int j = 0; j < 100000; j++)
                    ;
            _exit(0);
        }
    prepare(&recording, subject.pid, 500, false);
    uint64_t before_ns = stood_still_when_stopped_ns(subject.pid, &slack_ns);
    kill(subject.pid, SIGCONT);
    record(&recording);
    uint64_t truth_ns = stood_still_when_stopped_ns(subject.pid, &slack_ns) - before_ns;
    kill(subject.pid, SIGCONT);
    for (size_t i = 0; i < count; i++) {
        kill(spinners[i], SIGKILL);
        waitpid(spinners[i], NULL, 0);
    }
    uint64_t said_ns = recording.result.stopped_ns;
    printf("%llu stops, %llu us (median): said to be %llu us in all, were %llu us; +- %llu us\n",
           (unsigned long long)recording.result.stops, (unsigned long long)(recording.result.stop_median_ns / 1000),
           (unsigned long long)(said_ns / 1000), (unsigned long long)(truth_ns / 1000),
           (unsigned long long)(slack_ns / 1000));
    ck_assert_uint_gt(recording.result.stops, 0);
    ck_assert_uint_le(said_ns, truth_ns + slack_ns);
    ck_assert_uint_le(truth_ns, said_ns + slack_ns);
    done(&recording);
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}
END_TEST

START_TEST(shares_of_time_are_given_back)
{
    shares_of(subject_path);
}
END_TEST

START_TEST(of_a_static_program)
{
    shares_of(static_path);
}
END_TEST

// A kernel may be without 32-bit programs, and says so then.
static bool kernel_runs(const char *path)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, "none", (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && !(WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

START_TEST(of_a_32_bit_program)
{
    if (strcmp(i386_path, "-") == 0)
        printf("SKIP: no compiler for i386\n");
    else if (!kernel_runs(i386_path))
        printf("SKIP: a kernel without 32-bit programs\n");
    else
        shares_of(i386_path);
}
END_TEST

static void census(unsigned hz, bool wall)
{
    struct subject subject;
    struct recording recording;
    char text[4096], name[32];
    unsigned long long calls, bad, late;
    int number, size, count = 0;
    begin(&subject, census_path, NULL, NULL);
    prepare(&recording, subject.pid, hz, wall);
    recording.options.duration_ns *= 2;
    record(&recording);
    done(&recording);
    ck_assert_int_eq(finish(&subject, text, sizeof text), 0);
    for (char *at = text; sscanf(at, "%31s %llu %llu %llu %d\n%n", name, &calls, &bad, &late, &number, &size) == 5;
         at += size) {
        ck_assert_msg(bad == 0, "%s: %llu of %llu went wrong: %s\n%s", name, bad, calls, strerror(number), text);
        ck_assert_uint_gt(calls, 0);
        count++;
    }
    ck_assert_int_ge(count, 13);
    printf("%d kinds of calls undisturbed; %llu restarted\n", count, (unsigned long long)recording.result.restarted);
}

START_TEST(no_call_ends_early)
{
    census(1000, false);
}
END_TEST

START_TEST(no_call_ends_early_by_time)
{
    census(500, true);
}
END_TEST

// ---- life and death

static void storm(const char *mode, const char *argument, bool wall)
{
    struct subject subject;
    struct recording recording;
    begin(&subject, subject_path, mode, argument);
    prepare(&recording, subject.pid, 1000, wall);
    record(&recording);
    ck_assert_uint_gt(recording.result.taken, 0);
    printf("%s: %llu threads, %llu samples\n", mode, (unsigned long long)recording.result.threads,
           (unsigned long long)recording.result.taken);
    done(&recording);
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}

START_TEST(threads_come_and_go)
{
    storm("threads", "3", false);
    storm("threads", "3", true);
}
END_TEST

START_TEST(children_come_and_go)
{
    storm("forks", "3", false);
}
END_TEST

START_TEST(it_becomes_another_program)
{
    struct subject subject;
    struct recording recording;
    begin(&subject, subject_path, "execs", "8");
    prepare(&recording, subject.pid, 1000, false);
    recording.options.duration_ns = 0;
    record(&recording);
    ck_assert_int_eq(recording.result.end, ATTACH_END_PROCESS);
    ck_assert_uint_gt(recording.result.execs, 0);
    done(&recording);
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}
END_TEST

static void *record_in_thread(void *context)
{
    struct recording *recording = context;
    recording->status = attach_record(&recording->options, &recording->result, &recording->error);
    return NULL;
}

static _Atomic int progress_calls;
static void count_progress(void *context, const struct attach_result *now)
{
    (void)context;
    progress_calls += now->taken > 0;
}

static void start_recording(struct recording *recording, pthread_t *thread)
{
    progress_calls = 0;
    recording->options.progress = count_progress;
    recording->options.duration_ns = 0;
    ck_assert_int_eq(pthread_create(thread, NULL, record_in_thread, recording), 0);
    while (progress_calls < 1)
        usleep(1000);
}

START_TEST(it_is_killed)
{
    struct subject subject;
    struct recording recording;
    pthread_t thread;
    begin(&subject, subject_path, "shares", "5");
    prepare(&recording, subject.pid, 1000, false);
    start_recording(&recording, &thread);
    kill(subject.pid, SIGKILL);
    pthread_join(thread, NULL);
    read_back(&recording);
    ck_assert_int_eq(recording.result.end, ATTACH_END_PROCESS);
    ck_assert_uint_gt(recording.trace.present_samples, 0);
    done(&recording);
    int status = finish(&subject, NULL, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
END_TEST

static void stays_stopped(bool wall)
{
    struct subject subject;
    struct recording recording;
    pthread_t thread;
    int stop = (int)syscall(SYS_eventfd2, 0, O_CLOEXEC);
    const uint64_t one = 1;
    begin(&subject, subject_path, "shares", "5");
    prepare(&recording, subject.pid, 1000, wall);
    recording.options.stop_fd = stop;
    start_recording(&recording, &thread);
    kill(subject.pid, SIGSTOP);
    while (state_of(subject.pid) != 'T')
        usleep(100);
    int calls = progress_calls;
    while (progress_calls < calls + 2) {
        ck_assert_int_eq(state_of(subject.pid), 'T');
        usleep(1000);
    }
    ck_assert_int_eq((int)write(stop, &one, sizeof one), (int)sizeof one);
    pthread_join(thread, NULL);
    close(stop);
    read_back(&recording);
    ck_assert_int_eq(recording.result.end, ATTACH_END_STOPPED);
    done(&recording);
    ck_assert_int_eq(state_of(subject.pid), 'T');
    kill(subject.pid, SIGCONT);
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}

START_TEST(who_is_stopped_stays_so)
{
    stays_stopped(false);
    stays_stopped(true);
}
END_TEST

// The recorder dies at any moment: whom it had stopped goes on.
START_TEST(the_recorder_is_killed)
{
    struct subject subject;
    char line[64];
    begin(&subject, subject_path, "gaps", "30");
    for (unsigned i = 0; i < kills; i++) {
        pid_t recorder = fork();
        ck_assert(recorder >= 0);
        if (recorder == 0) {
            struct recording recording;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prepare(&recording, subject.pid, 5000, i % 2);
            recording.options.duration_ns = 0;
            attach_record(&recording.options, &recording.result, &recording.error);
            _exit(9);
        }
        usleep(20000 + (i * 7919) % 30011);
        kill(recorder, SIGKILL);
        int status;
        ck_assert_int_eq(waitpid(recorder, &status, 0), recorder);
        ck_assert(WIFSIGNALED(status));
        // It answers, so it runs.
        struct pollfd answer = {subject.out, POLLIN, 0};
        ck_assert_int_eq((int)write(subject.in, "?\n", 2), 2);
        ck_assert_msg(poll(&answer, 1, 10000) == 1, "kill %u: state %c", i, state_of(subject.pid));
        ck_assert_int_gt((int)read(subject.out, line, sizeof line), 0);
        ck_assert_int_eq(status_number(subject.pid, "TracerPid:"), 0);
    }
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}
END_TEST

// ---- who waits

START_TEST(waits_for_a_lock_say_who_has_it)
{
    struct subject subject;
    struct recording recording;
    uint64_t lock_ns = 0, lock, owner, duration, intervals = 0, end_ns;
    begin(&subject, subject_path, "locks", "3");
    prepare(&recording, subject.pid, 1000, true);
    record(&recording);
    const struct trace *trace = &recording.trace;
    for (size_t t = 0; t < trace->thread_count; t++)
        for (size_t i = 0; i < trace->threads[t].sample_count; i++) {
            const struct trace_sample *sample = &trace->samples[trace->threads[t].first_sample + i];
            if (sample->kind != QUT_TRACE_KIND_LOCK ||
                !trace_extra(trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration))
                continue;
            ck_assert(trace_extra(trace, sample, QUT_TRACE_EXTRA_LOCK, &lock) && lock != 0);
            ck_assert(trace_extra(trace, sample, QUT_TRACE_EXTRA_OWNER_TID, &owner));
            // A thread that waits does so for the other one; the main thread holds it nearly always.
            ck_assert_uint_ne(owner, trace->threads[t].tid);
            lock_ns += trace->threads[t].tid != (uint32_t)subject.pid ? duration : 0;
            intervals++;
            end_ns = sample->last_ns;
            ck_assert_uint_ge(end_ns, duration);
        }
    printf("%llu waits for a lock, %.2f of %.2f s\n", (unsigned long long)intervals, (double)lock_ns / 1e9,
           recording_seconds);
    // 20 of 22 ms or so; a busy machine takes its share.
    ck_assert_double_gt((double)lock_ns / 1e9, 0.5 * recording_seconds);
    ck_assert_double_lt((double)lock_ns / 1e9, 1.01 * recording_seconds);
    done(&recording);
    ck_assert_int_eq(finish(&subject, NULL, 0), 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    subject_path = argv[1];
    census_path = argv[2];
    static_path = argv[3];
    i386_path = argv[4];
    kills = argc > 5 ? (unsigned)atoi(argv[5]) : KILLS;
    recording_seconds = argc > 6 ? atof(argv[6]) : 1;
    Suite *suite = suite_create("attach");
    TCase *tests = tcase_create("attach");
    tcase_set_timeout(tests, 60 + 10 * recording_seconds + kills);
    tcase_add_test(tests, shares_of_time_are_given_back);
    tcase_add_test(tests, stops_are_what_they_are_said_to_be);
    tcase_add_test(tests, of_a_static_program);
    tcase_add_test(tests, of_a_32_bit_program);
    tcase_add_test(tests, no_call_ends_early);
    tcase_add_test(tests, no_call_ends_early_by_time);
    tcase_add_test(tests, threads_come_and_go);
    tcase_add_test(tests, children_come_and_go);
    tcase_add_test(tests, it_becomes_another_program);
    tcase_add_test(tests, it_is_killed);
    tcase_add_test(tests, who_is_stopped_stays_so);
    tcase_add_test(tests, the_recorder_is_killed);
    tcase_add_test(tests, waits_for_a_lock_say_who_has_it);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
