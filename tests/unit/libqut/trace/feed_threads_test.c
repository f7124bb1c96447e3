// SPDX-License-Identifier: Apache-2.0
// Threads that come and go, forks, and a trace that is opened and closed while everybody appends.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <qut/qut.h>

#include "libqut/trace/feed.h"
#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"

enum { THREADS = 4, MIB = 1 << 20 };

static const struct qut_event event = {.kind = QUT_SAMPLE_OTHER};

static void open_trace(uint32_t flags, uint32_t thread_count)
{
    struct qut_trace_options options = {
        .size = sizeof options, .segment_bytes = 4 * MIB, .flags = flags, .thread_count = thread_count};
    int result = qut_trace_open(&options);
    CHECK(result == 0, "%d", result);
}

static struct qut_trace_counters_now counts_now(void)
{
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    return counts;
}

enum { PATIENCE_MS = 60000 };

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

// ---- beginning and end

static pid_t thread_tid;

static void *sample_once(void *registers)
{
    __atomic_store_n(&thread_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    prctl(PR_SET_NAME, "worker", 0, 0, 0);
    if (registers)
        qut_trace_thread_register();
    qut_trace_sample(NULL, &event);
    return NULL;
}

static void *sample_and_wait(void *until)
{
    sample_once(NULL);
    while (!__atomic_load_n((int *)until, __ATOMIC_ACQUIRE))
        pause_ms(1);
    return NULL;
}

TEST(a_registered_thread_says_that_it_ends)
{
    struct view view;
    pthread_t thread;
    open_trace(0, 0);
    view_open(&view);
    pthread_create(&thread, NULL, sample_once, &view);
    pthread_join(thread, NULL);
    const struct qut_trace_thread *slot = view_thread(&view, (uint32_t)thread_tid);
    if (CHECK(slot != NULL, "no slot")) {
        CHECK(slot->state == QUT_TRACE_THREAD_ENDED && slot->end_ns >= slot->start_ns, "state %u", slot->state);
        CHECK(strcmp(slot->name, "worker") == 0, "%s", slot->name);
    }
    view_close(&view);
    qut_trace_close();
}

TEST(the_end_of_others_is_found_out)
{
    struct view view;
    pthread_t thread;
    int until = 0;
    thread_tid = 0;
    open_trace(0, 0);
    view_open(&view);
    qut_trace_sample(NULL, &event);
    pthread_create(&thread, NULL, sample_and_wait, &until);
    const struct qut_trace_thread *slot = NULL;
    for (int i = 0; i < PATIENCE_MS && !(slot && slot->name[0] == 'w'); i++) {
        pause_ms(1);
        pid_t tid = __atomic_load_n(&thread_tid, __ATOMIC_ACQUIRE);
        slot = tid ? view_thread(&view, (uint32_t)tid) : NULL;
    }
    CHECK(slot && strcmp(slot->name, "worker") == 0, "its name");
    CHECK(slot && slot->state == QUT_TRACE_THREAD_LIVE, "it lives");
    __atomic_store_n(&until, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    for (int i = 0; i < PATIENCE_MS && slot && slot->state != QUT_TRACE_THREAD_ENDED; i++)
        pause_ms(1);
    CHECK(slot && slot->state == QUT_TRACE_THREAD_ENDED, "its end");
    CHECK(view_self(&view)->state == QUT_TRACE_THREAD_LIVE, "we live");
    view_close(&view);
    qut_trace_close();
}

// The kernel gives numbers again: the thread that had it before is dead, although a thread with that number lives.
TEST(of_two_with_one_number_the_later_lives)
{
    static struct feed feed;
    struct segment_options options = {.segment_bytes = MIB, .thread_count = 4, .node_bits = 10};
    int result = segment_create(&feed.segment, &options);
    if (!CHECK(result == 0, "%d", result))
        return;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    const struct qut_trace_thread *first = segment_thread_begin(&feed.segment, tid, "first", 1);
    const struct qut_trace_thread *later = segment_thread_begin(&feed.segment, tid, "later", 2);
    feed_look_at_threads(&feed);
    CHECK(first->state == QUT_TRACE_THREAD_ENDED && first->end_ns != 0, "first: %u", first->state);
    CHECK(later->state == QUT_TRACE_THREAD_LIVE, "later: %u", later->state);
    segment_close(&feed.segment);
}

// The thread that looks after things is woken where there is no slot, and finds the dead when it has a processor.
static void wait_for_a_slot(const struct view *view)
{
    uint32_t living = 0;
    for (int i = 0; i < PATIENCE_MS; i++) {
        living = 0;
        for (uint32_t slot = 0; slot < view->header->thread_count; slot++)
            living += __atomic_load_n(&view_thread_at(view, slot)->state, __ATOMIC_ACQUIRE) == QUT_TRACE_THREAD_LIVE;
        if (living < view->header->thread_count)
            return;
        pause_ms(1);
    }
    CHECK(false, "%u slots are of threads that have ended", living);
}

TEST(more_threads_than_slots)
{
    struct view view;
    open_trace(0, 8);
    view_open(&view);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, sample_once, i & 1 ? &thread : NULL);
        pthread_join(thread, NULL);
        if (i % 16 == 15)
            wait_for_a_slot(&view);
    }
    struct qut_trace_counters_now counts = counts_now();
    uint64_t lost = counts.lost[QUT_TRACE_LOST_THREADS];
    CHECK(counts.hits == 200 && counts.stored + counts.merged + lost == 200, "%d hits, %d stored, %d lost",
          (int)counts.hits, (int)counts.stored, (int)lost);
    CHECK(counts.stored + counts.merged >= 100, "%d lost", (int)lost);
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
    view_close(&view);
    qut_trace_close();
}

// ---- fork

static int status_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

static int in_child_without(void)
{
    uintptr_t pc = 1;
    if (qut_trace_sample(NULL, &event) != QUT_STORED_NO_TRACE || qut_trace_fd() != -1 ||
        qut_trace_append(&pc, 1, NULL, 0, &event) != QUT_STORED_NO_TRACE)
        return 1;
    struct qut_trace_options options = {.size = sizeof options, .segment_bytes = 4 * MIB};
    if (qut_trace_open(&options) != 0 || qut_trace_sample(NULL, &event) != QUT_STORED || counts_now().hits != 1)
        return 2;
    qut_trace_close();
    return counts_now().hits == 1 ? 0 : 3;
}

static struct qut_trace_counters_now before;

static void check_untouched(int status)
{
    struct qut_trace_counters_now after = counts_now();
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 66))
        SKIP("qemu and ThreadSanitizer end a child that starts a thread");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child: %x", (unsigned)status);
    CHECK(after.hits == before.hits && after.stored == before.stored && after.node_count == before.node_count,
          "%d hits, not %d", (int)after.hits, (int)before.hits);
    int stored = qut_trace_sample(NULL, &event);
    CHECK(stored >= 0, "the parent goes on: %d", stored);
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
}

TEST(a_child_has_no_trace)
{
    open_trace(0, 0);
    qut_trace_sample(NULL, &event);
    before = counts_now();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child_without());
    check_untouched(status_of(child));
    qut_trace_close();
}

// No handler of libc's runs: the page that names the trace is empty all the same.
TEST(nor_has_one_that_was_cloned)
{
    open_trace(QUT_TRACE_FOLLOW_FORK, 0);
    qut_trace_sample(NULL, &event);
    before = counts_now();
    fflush(stdout);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        uintptr_t pc = 1;
        syscall(SYS_exit_group, qut_trace_append(&pc, 1, NULL, 0, &event) == QUT_STORED_NO_TRACE ? 0 : 7);
    }
    int status = status_of(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 7) {
        qut_trace_close();
        SKIP("this kernel (or qemu) has no MADV_WIPEONFORK");
    }
    check_untouched(status);
    qut_trace_close();
}

static int in_child_with(pid_t parent, const char *path)
{
    struct view view;
    if (qut_trace_sample(NULL, &event) != QUT_STORED || !view_open(&view))
        return 1;
    if (view.header->pid != (uint32_t)getpid() || view.header->parent_pid != (uint32_t)parent)
        return 2;
    if (view.header->module_count == 0 || counts_now().hits != 1 || view_imbalance() != 0)
        return 3;
    struct view_frame frames[64];
    if (view_stack(&view, view_last_node(view_self(&view), 0), frames, 64) < 2 || !frames[0].module)
        return 4;
    if (qut_trace_own_kind("mine") != 64)
        return 5;
    if (path && access(path, R_OK) != 0)
        return 6;
    qut_trace_close();
    return 0;
}

TEST(a_child_that_is_followed_has_its_own)
{
    pid_t parent = getpid();
    open_trace(QUT_TRACE_FOLLOW_FORK, 0);
    CHECK(qut_trace_own_kind("mine") == 64, "a kind");
    qut_trace_sample(NULL, &event);
    before = counts_now();
    for (int i = 0; i < 3; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(in_child_with(parent, NULL));
        check_untouched(status_of(child));
        before = counts_now();
    }
    qut_trace_close();
}

TEST(its_file_has_its_number)
{
    char path[64], child_path[80];
    snprintf(path, sizeof path, "/dev/shm/qut-feed-%d", (int)getpid());
    struct qut_trace_options options = {
        .size = sizeof options, .segment_bytes = 4 * MIB, .flags = QUT_TRACE_FOLLOW_FORK, .path = path};
    int result = qut_trace_open(&options);
    if (result == -ENOENT || result == -EMEDIUMTYPE || result == -EACCES)
        SKIP("no /dev/shm");
    CHECK(result == 0, "%d", result);
    CHECK(qut_trace_own_kind("mine") == 64, "a kind");
    pid_t parent = getpid();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        snprintf(child_path, sizeof child_path, "%s.%d", path, (int)getpid());
        _exit(in_child_with(parent, child_path));
    }
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child: %x", (unsigned)status);
    snprintf(child_path, sizeof child_path, "%s.%d", path, (int)child);
    CHECK(access(child_path, R_OK) == 0, "%s stays", child_path);
    unlink(child_path);
    qut_trace_close();
    CHECK(access(path, R_OK) == 0, "%s stays", path);
    unlink(path);
}

// Hits of the thread that forks, while the runtime's handlers run, are lost: handlers that were registered before these
// run inside.
static int prepare_result, parent_result, fork_hits;

static void in_prepare(void)
{
    if (fork_hits)
        prepare_result = qut_trace_sample(NULL, &event);
}

static void in_parent(void)
{
    if (fork_hits)
        parent_result = qut_trace_sample(NULL, &event);
}

TEST(hits_in_a_fork_are_lost_and_counted)
{
    open_trace(0, 0);
    before = counts_now();
    fork_hits = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    fork_hits = 0;
    status_of(child);
    struct qut_trace_counters_now after = counts_now();
    CHECK(prepare_result == QUT_STORED_NOT && parent_result == QUT_STORED_NOT, "%d %d", prepare_result, parent_result);
    CHECK(after.lost[QUT_TRACE_LOST_FORK] == 2 && after.hits == before.hits + 2, "%d lost, %d hits",
          (int)after.lost[QUT_TRACE_LOST_FORK], (int)(after.hits - before.hits));
    CHECK(view_imbalance() == 0, "%ld", (long)view_imbalance());
    qut_trace_close();
}

// ---- everybody at once

static int stop;
static uint64_t attempts[THREADS];

static void *append_until_stopped(void *context)
{
    uint64_t *count = context;
    uintptr_t pcs[20];
    for (size_t i = 0; i < 20; i++)
        pcs[i] = 0x1000 + i;
    if ((count - attempts) & 1)
        qut_thread_register();
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pcs[0] = (uintptr_t)*count;
        if (*count & 1)
            qut_trace_append(pcs, 20, NULL, 0, &event);
        else
            qut_trace_sample(NULL, &event);
        if (*count % 7 == 0) {
            qut_trace_mark(QUT_MARK_INSTANT, *count, "mark");
            qut_trace_add(0, 1);
            qut_trace_skip();
            qut_trace_append_node(qut_trace_node(0, pcs[0], 0), &event);
        }
        ++*count;
    }
    return NULL;
}

TEST(open_and_close_while_everybody_appends)
{
    const char *times = getenv("QUT_FEED_OPENS");
    int opens = times ? atoi(times) : 100, unbalanced = 0;
    pthread_t threads[THREADS];
    stop = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, append_until_stopped, &attempts[i]);
    uint64_t hits = 0;
    for (int i = 0; i < opens; i++) {
        struct qut_trace_options options = {.size = sizeof options, .segment_bytes = MIB};
        int result = qut_trace_open(&options);
        if (!CHECK(result == 0, "%d: %d", i, result))
            break;
        for (int j = 0; j < i % 5; j++)
            sched_yield();
        qut_trace_close();
        unbalanced += view_imbalance() != 0 || counts_now().under_way != 0;
        hits += counts_now().hits;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(unbalanced == 0, "%d of %d", unbalanced, opens);
    CHECK(hits > 0, "nobody came in between");
    printf("# %d times, %llu hits\n", opens, (unsigned long long)hits);
}

TEST(forks_while_everybody_appends)
{
    pthread_t threads[THREADS];
    stop = 0;
    open_trace(QUT_TRACE_FOLLOW_FORK, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, append_until_stopped, &attempts[i]);
    for (int i = 0; i < 20; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int stored = qut_trace_sample(NULL, &event);
            _exit(stored == QUT_STORED && counts_now().hits == 1 ? 0 : 1);
        }
        int status = status_of(child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "fork %d: %x", i, (unsigned)status);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(view_imbalance() == 0 && counts_now().under_way == 0, "%ld", (long)view_imbalance());
    qut_trace_close();
}

int main(void)
{
    pthread_atfork(in_prepare, in_parent, NULL); // before libqut's: inside
    if (!discipline_start())
        return 1;
    RUN(a_registered_thread_says_that_it_ends);
    RUN(the_end_of_others_is_found_out);
    RUN(of_two_with_one_number_the_later_lives);
    RUN(more_threads_than_slots);
    RUN(a_child_has_no_trace);
    RUN(nor_has_one_that_was_cloned);
    RUN(a_child_that_is_followed_has_its_own);
    RUN(its_file_has_its_number);
    RUN(hits_in_a_fork_are_lost_and_counted);
    RUN(open_and_close_while_everybody_appends);
    RUN(forks_while_everybody_appends);
    return tap_finish();
}
