// SPDX-License-Identifier: Apache-2.0
// Lives that end in all ways: threads that come and go by the thousand, more than there are slots; processes that fork
// while they append, with and without a segment for the child; that exec; that are killed. Every hit stays counted.
//
// Usage: lives_test [THREADS [FORKS [KILLS]]]
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qut/qut.h"
#include "qut/trace.h"
#include "tests/proof/store/hits.h"
#include "tests/proof/store/ticks.h"
#include "tests/support/tap.h"

enum { SPAWNERS = 4, THREADS_MAX = 20000, THREAD_EXTRA = 70 };

static uint32_t thread_count = 10000, fork_count = 100, kill_count = 20;
static char path[64];

#define SAME(is, wanted) CHECK((is) == (wanted), "%llu, %llu", (unsigned long long)(is), (unsigned long long)(wanted))

static int open_trace(uint64_t segment_bytes, uint32_t threads, uint32_t mode, uint32_t flags)
{
    snprintf(path, sizeof path, "/dev/shm/qut-lives-%d", (int)getpid());
    unlink(path);
    struct qut_trace_options options = {.size = sizeof options,
                                        .segment_bytes = segment_bytes,
                                        .path = path,
                                        .mode = mode,
                                        .flags = flags,
                                        .thread_count = threads};
    return qut_trace_open(&options);
}

// ---- threads

static uint32_t thread_next;
static qut_trace_u64 told_kept, told_lost;

static void *short_life(void *argument)
{
    uint64_t number = (uintptr_t)argument;
    if (number % 3 == 0 && qut_trace_thread_register() != 0 && errno == 0)
        return NULL;
    uint32_t node = qut_trace_label_node(0, "a short life");
    for (uint64_t i = 0; i < 1 + number % 5; i++) {
        struct qut_extra extra = {THREAD_EXTRA, 0, number};
        struct qut_event event = {.extras = &extra, .extra_count = 1};
        int result = qut_trace_append_node(node, &event);
        __atomic_fetch_add(result < 0 ? &told_lost : &told_kept, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *spawner(void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    for (;;) {
        uint32_t number = __atomic_fetch_add(&thread_next, 1, __ATOMIC_RELAXED);
        pthread_t thread;
        if (number >= thread_count)
            break;
        if (pthread_create(&thread, &attributes, short_life, (void *)(uintptr_t)number) != 0)
            abort();
        pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&attributes);
    return argument;
}

struct lives {
    struct decoder *decoder;
    uint32_t uid_of[THREADS_MAX];
    uint32_t thread_of[3 * THREADS_MAX]; // by uid; + 1
    uint32_t threads, records;
};

static void visit_life(void *context, const struct decoded_record *record)
{
    struct lives *lives = context;
    lives->records++;
    if (record->extra_count != 1 || record->extras[0].key != THREAD_EXTRA || record->extras[0].value >= THREADS_MAX ||
        record->thread_uid >= 3 * THREADS_MAX) {
        decoder_fault(lives->decoder, "a record of thread %u", record->thread_uid);
        return;
    }
    uint32_t number = (uint32_t)record->extras[0].value;
    if (lives->uid_of[number] == 0) {
        lives->uid_of[number] = record->thread_uid;
        lives->threads++;
        if (lives->thread_of[record->thread_uid] != 0)
            decoder_fault(lives->decoder, "uid %u is of threads %u and %u", record->thread_uid,
                          lives->thread_of[record->thread_uid] - 1, number);
        lives->thread_of[record->thread_uid] = number + 1;
    }
    if (lives->uid_of[number] != record->thread_uid)
        decoder_fault(lives->decoder, "thread %u is %u and %u", number, lives->uid_of[number], record->thread_uid);
}

static void thread_storm(bool refreshes)
{
    static struct lives lives;
    thread_next = 0;
    told_kept = told_lost = 0;
    memset(&lives, 0, sizeof lives);
    struct qut_options watch = {.size = sizeof watch};
    int opened = refreshes ? qut_start(&watch) : 0;
    CHECK(opened == 0, "%d", opened);
    opened = open_trace(4 << 20, 64, QUT_TRACE_KEEP_NEWEST, 0);
    if (!CHECK(opened == 0, "%d", opened))
        return;
    pthread_t spawners[SPAWNERS];
    for (int i = 0; i < SPAWNERS; i++)
        pthread_create(&spawners[i], NULL, spawner, NULL);
    while (refreshes && __atomic_load_n(&thread_next, __ATOMIC_RELAXED) < thread_count) {
        struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
        qut_refresh();
    }
    for (int i = 0; i < SPAWNERS; i++)
        pthread_join(spawners[i], NULL);
    struct qut_trace_counters_now now;
    qut_trace_get_counts(&now, sizeof now);
    qut_trace_close();
    SAME(now.hits, told_kept + told_lost);
    SAME(now.stored + now.merged, told_kept);
    SAME(now.lost[QUT_TRACE_LOST_THREADS], told_lost);
    struct decoder decoder;
    struct decoded_totals totals;
    lives.decoder = &decoder;
    if (CHECK(decoder_file(path, &decoder, visit_life, &lives, &totals), "%s", decoder.fault)) {
        SAME(totals.sum.hits, now.hits);
        SAME(totals.sum.stored + totals.sum.merged, told_kept);
        SAME(totals.overwritten, now.overwritten);
        SAME(lives.records + totals.overwritten, told_kept);
    }
    printf(
        "# %u threads, %llu hits, kept %llu, for want of a slot lost %llu, overwritten %llu; %u threads still there, "
        "slots in use %u\n",
        thread_count, (unsigned long long)now.hits, (unsigned long long)told_kept, (unsigned long long)told_lost,
        (unsigned long long)now.overwritten, lives.threads, totals.threads);
    CHECK(!refreshes || told_lost < told_kept, "most of it was lost");
    unlink(path);
}

TEST(threads_come_and_go)
{
    thread_storm(true);
}

// No thread looks for threads that ended without a word: their slots are not given again, and that is counted.
TEST(threads_come_and_go_unseen)
{
    thread_storm(false);
}

// ---- forks

static bool is_over;
static struct drain *drain;
static struct hits *counted;

static void *appender(void *argument)
{
    hits_begin(counted, (uint32_t)(uintptr_t)argument);
    struct ticks ticks;
    ticks_start(&ticks, 97000 + (uintptr_t)argument * 1000, 61000);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        hits_one(hits_mine);
    ticks_stop(&ticks);
    hits_mine = NULL;
    return NULL;
}

enum { CHILD_HITS = 100 };

// In a child: what it must see depends on whether it has a segment of its own. Returns the exit status.
static int child_life(bool follows, bool opens)
{
    struct qut_trace_counters_now now;
    if (!follows) {
        if (qut_trace_append_node(drain->nodes[0], &(struct qut_event){.kind = 1}) != QUT_STORED_NO_TRACE)
            return 2;
        if (qut_trace_fd() != -1)
            return 3;
        if (!opens)
            return 0;
        int opened = open_trace(1 << 20, 4, QUT_TRACE_KEEP_NEWEST, 0);
        if (opened != 0)
            return 4;
    }
    qut_trace_get_counts(&now, sizeof now);
    uint64_t before = now.hits;
    uint32_t node = qut_trace_label_node(0, "child");
    for (int i = 0; i < CHILD_HITS; i++)
        if (qut_trace_append_node(node, &(struct qut_event){.kind = 1}) < 0)
            return 5;
    qut_trace_get_counts(&now, sizeof now);
    if (now.hits != before + CHILD_HITS || now.stored + now.merged != CHILD_HITS)
        return 6;
    if (opens) {
        char own_path[80];
        if (follows)
            snprintf(own_path, sizeof own_path, "%s.%d", path, (int)getpid());
        else
            snprintf(own_path, sizeof own_path, "%s", path);
        qut_trace_close();
        if (unlink(own_path) != 0)
            return 7;
    }
    return 0;
}

static void sum_hits(struct hits *sum)
{
    memset(sum, 0, sizeof *sum);
    for (int i = 0; i < DRAIN_THREADS; i++) {
        sum->hits += counted[i].hits;
        sum->stored += counted[i].stored;
        sum->merged += counted[i].merged;
        sum->not_stored += counted[i].not_stored;
        sum->skipped += counted[i].skipped;
        tally_add(&sum->told, &counted[i].told);
    }
}

static void fork_storm(bool follows)
{
    if (fork_count == 0)
        SKIP("no forks with threads here (the emulator does not survive them)");
    memset(counted, 0, DRAIN_THREADS * sizeof *counted);
    __atomic_store_n(&is_over, false, __ATOMIC_RELAXED);
    int opened = open_trace(4 << 20, 16, QUT_TRACE_KEEP_NEWEST, follows ? QUT_TRACE_FOLLOW_FORK : 0);
    if (!CHECK(opened == 0, "%d", opened) || !CHECK(drain_nodes(drain), "nodes"))
        return;
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, appender, (void *)i);
    hits_begin(counted, 2);
    struct ticks ticks;
    ticks_start(&ticks, 83000, 71000);
    char parent_path[64], child_path[80];
    memcpy(parent_path, path, sizeof path);
    uint64_t child_hits = 0;
    for (uint32_t i = 0; i < fork_count; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            hits_mine = NULL;
            _exit(child_life(follows, i % 2));
        }
        int status;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (!CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %u ended with %#x", i, status))
            break;
        for (int j = 0; j < 100; j++)
            hits_one(hits_mine);
        if (!follows || i % 2)
            continue;
        snprintf(child_path, sizeof child_path, "%s.%d", parent_path, (int)pid);
        struct decoder decoder;
        struct decoded_totals totals;
        if (CHECK(decoder_file(child_path, &decoder, NULL, NULL, &totals), "%s", decoder.fault)) {
            SAME(decoder.header.pid, (uint32_t)pid);
            SAME(decoder.header.parent_pid, (uint32_t)getpid());
            SAME(totals.in_chunks + totals.in_runs, CHILD_HITS);
            SAME(totals.sum.under_way, 0);
            child_hits += totals.sum.hits;
        }
        unlink(child_path);
    }
    ticks_stop(&ticks);
    hits_mine = NULL;
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    struct qut_trace_counters_now now;
    qut_trace_get_counts(&now, sizeof now);
    qut_trace_close();
    struct hits sum;
    sum_hits(&sum);
    uint64_t lost = 0;
    for (int i = 0; i < 8; i++)
        lost += now.lost[i];
    SAME(now.hits, sum.hits);
    SAME(now.stored + now.merged, sum.stored + sum.merged);
    SAME(now.throttled + lost, sum.skipped + sum.not_stored);
    struct decoder decoder;
    struct decoded_totals totals;
    if (CHECK(decoder_file(parent_path, &decoder, NULL, NULL, &totals), "%s", decoder.fault))
        SAME(totals.in_chunks + totals.in_runs + totals.overwritten, sum.stored + sum.merged);
    printf("# %u forks, %llu hits of the parent, lost while it forked %llu; of children %llu\n", fork_count,
           (unsigned long long)now.hits, (unsigned long long)now.lost[QUT_TRACE_LOST_FORK],
           (unsigned long long)child_hits);
    unlink(parent_path);
}

TEST(children_have_no_trace)
{
    fork_storm(false);
}

TEST(children_have_their_own)
{
    fork_storm(true);
}

// ---- exec, SIGKILL

static const char *program;

TEST(a_program_that_is_replaced)
{
    fflush(stdout);
    snprintf(path, sizeof path, "/dev/shm/qut-lives-exec-%d", (int)getpid());
    pid_t pid = fork();
    if (pid == 0) {
        struct qut_trace_options options = {.size = sizeof options, .segment_bytes = 1 << 20, .thread_count = 4};
        options.path = path;
        if (qut_trace_open(&options) != 0)
            _exit(2);
        uint32_t node = qut_trace_label_node(0, "before");
        for (int i = 0; i < CHILD_HITS; i++)
            qut_trace_append_node(node, &(struct qut_event){.kind = 1});
        char fd[16];
        snprintf(fd, sizeof fd, "%d", qut_trace_fd());
        execl("/proc/self/exe", program, "after-exec", fd, (char *)NULL);
        _exit(77);
    }
    int status;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        unlink(path);
        SKIP("programs cannot replace themselves here (an emulator)");
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the new program ended with %#x", status);
    struct decoder decoder;
    struct decoded_totals totals;
    if (CHECK(decoder_file(path, &decoder, NULL, NULL, &totals), "%s", decoder.fault)) {
        SAME(totals.in_chunks + totals.in_runs, CHILD_HITS);
        SAME(totals.sum.under_way, 0);
    }
    unlink(path);
}

static int after_exec(const char *fd)
{
    if (qut_trace_append_node(1, &(struct qut_event){.kind = 1}) != QUT_STORED_NO_TRACE || qut_trace_fd() != -1)
        return 10;
    return fcntl(atoi(fd), F_GETFD) != -1 ? 11 : 0; // the descriptor must be gone
}

// As kill_test, through the public functions: what was told to be kept is there.
TEST(processes_are_killed)
{
    uint64_t hits = 0, under_way = 0;
    for (uint32_t i = 0; i < kill_count; i++) {
        memset(counted, 0, DRAIN_THREADS * sizeof *counted);
        memset(&drain->tally, 0, sizeof drain->tally);
        unlink(drain->path);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            struct qut_trace_options options = {.size = sizeof options, .segment_bytes = 4 << 20, .thread_count = 8};
            options.path = drain->path;
            options.mode = i % 2;
            if (qut_trace_open(&options) != 0 || !drain_nodes(drain))
                _exit(2);
            pthread_t thread;
            for (uintptr_t j = 0; j < 4; j++)
                pthread_create(&thread, NULL, appender, (void *)j);
            for (;;)
                pause();
        }
        struct timespec pause = {.tv_nsec = 1000000 + (long)i * 7919 % 23 * 600000};
        int status;
        for (int j = 0; j < 2000 && __atomic_load_n(&counted[0].hits, __ATOMIC_RELAXED) == 0; j++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        nanosleep(&pause, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        struct hits sum;
        sum_hits(&sum);
        struct decoded_totals totals;
        if (access(drain->path, R_OK) != 0 || sum.hits == 0)
            continue; // killed before it had begun
        if (!CHECK(drain_rest(drain, &totals), "process %u: %s", i, drain->fault))
            break;
        uint64_t kept = sum.stored + sum.merged, found = tally_samples(&drain->tally) + totals.overwritten;
        enum { UNDER_WAY_MAX = 4 * (QUT_TRACE_LEVELS + 2) };
        CHECK(found >= kept && found <= kept + UNDER_WAY_MAX, "found %llu, told %llu", (unsigned long long)found,
              (unsigned long long)kept);
        CHECK(totals.sum.hits <= sum.hits && totals.sum.hits + UNDER_WAY_MAX >= sum.hits, "%llu hits, begun %llu",
              (unsigned long long)totals.sum.hits, (unsigned long long)sum.hits);
        for (uint32_t at = 0; at < DRAIN_PLACES && totals.overwritten == 0; at++)
            CHECK(drain->tally.samples[at] >= sum.told.samples[at], "node %u: %llu, told %llu", at,
                  (unsigned long long)drain->tally.samples[at], (unsigned long long)sum.told.samples[at]);
        hits += totals.sum.hits;
        under_way += totals.sum.under_way;
    }
    printf("# %u processes, %llu hits, under way %llu\n", kill_count, (unsigned long long)hits,
           (unsigned long long)under_way);
    CHECK(hits > 0 || kill_count == 0, "none had begun");
    unlink(drain->path);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 2 && strcmp(argv[1], "after-exec") == 0)
        return after_exec(argv[2]);
    uint32_t *numbers[] = {&thread_count, &fork_count, &kill_count};
    for (int i = 0; i < 3 && i + 1 < argc; i++)
        *numbers[i] = (uint32_t)atoi(argv[i + 1]);
    thread_count = thread_count < THREADS_MAX ? thread_count : THREADS_MAX;
    drain = drain_create("lives");
    counted = hits_create();
    if (!drain || !counted)
        return 1;
    hits_are_of(drain);
    ticks_handle(hits_on_tick);
    RUN(processes_are_killed);
    RUN(a_program_that_is_replaced);
    RUN(threads_come_and_go);
    RUN(threads_come_and_go_unseen);
    RUN(children_have_no_trace);
    RUN(children_have_their_own);
    drain_destroy(drain);
    return tap_finish();
}
