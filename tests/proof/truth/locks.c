// SPDX-License-Identifier: Apache-2.0
// locks FILE HANDOVERS: which thread really let which go, written down by the threads. Lines of FILE:
//   graph WHAT WAITER HOLDER WAKER LOCK        a wait that was made by hand; HOLDER 0: there is none
//   mutex|condition|semaphore WAITER WAKER     a hand-over, in the order in which its waiter got through
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORKERS = 4, HOLD_US = 30000 };

static int tid_of_caller(void)
{
    return (int)syscall(SYS_gettid);
}

// Until that thread sleeps: in the only call that lets it, or on its way there if the time is up.
static void wait_until_asleep(int tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    for (int i = 0; i < 20000; i++) {
        FILE *file = fopen(path, "re");
        size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file)
            fclose(file);
        text[size] = 0;
        const char *end = strrchr(text, ')');
        if (end && end[2] == 'S')
            return;
        sched_yield();
    }
}

// ---- what was written down

struct line {
    const char *what;
    int waiter, holder, waker;
    const void *lock;
    bool is_graph;
};
static struct line *lines;
static atomic_uint line_count;

static void note(struct line line)
{
    lines[atomic_fetch_add(&line_count, 1)] = line;
}

// ---- the graph

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_int tids[WORKERS], holds, released_by;

static void *wait_for_first(void *index)
{
    atomic_store(&tids[(uintptr_t)index], tid_of_caller());
    int holder = atomic_load(&holds);
    pthread_mutex_lock(&first);
    note((struct line){"mutex", tid_of_caller(), holder, atomic_load(&released_by), &first, true});
    usleep(1000);
    atomic_store(&released_by, tid_of_caller());
    pthread_mutex_unlock(&first);
    return NULL;
}

// Holds the second one, and waits for the first.
static void *middle_of_chain(void *index)
{
    pthread_mutex_lock(&second);
    atomic_store(&tids[(uintptr_t)index], tid_of_caller());
    pthread_mutex_lock(&first);
    note((struct line){"chain", tid_of_caller(), atomic_load(&holds), atomic_load(&released_by), &first, true});
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    return NULL;
}

static void *end_of_chain(void *index)
{
    int holder = atomic_load(&tids[0]);
    atomic_store(&tids[(uintptr_t)index], tid_of_caller());
    pthread_mutex_lock(&second);
    note((struct line){"chain", tid_of_caller(), holder, holder, &second, true});
    pthread_mutex_unlock(&second);
    return NULL;
}

static void *read_behind_writer(void *index)
{
    atomic_store(&tids[(uintptr_t)index], tid_of_caller());
    pthread_rwlock_rdlock(&rwlock);
    note((struct line){"rwlock", tid_of_caller(), atomic_load(&holds), atomic_load(&released_by), &rwlock, true});
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

static void *write_behind_reader(void *index)
{
    atomic_store(&tids[(uintptr_t)index], tid_of_caller());
    pthread_rwlock_wrlock(&rwlock);
    note((struct line){"rwlock", tid_of_caller(), 0, atomic_load(&released_by), &rwlock, true});
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

static void *wait_at_barrier(void *index)
{
    atomic_store(&tids[(uintptr_t)index], tid_of_caller());
    pthread_barrier_wait(&barrier);
    note((struct line){"barrier", tid_of_caller(), 0, atomic_load(&released_by), &barrier, true});
    return NULL;
}

static void start(pthread_t *thread, unsigned index, void *(*function)(void *))
{
    atomic_store(&tids[index], 0);
    if (pthread_create(thread, NULL, function, (void *)(uintptr_t)index) != 0)
        exit(2);
    while (atomic_load(&tids[index]) == 0)
        usleep(100);
    wait_until_asleep(atomic_load(&tids[index]));
    usleep(HOLD_US);
}

static void make_graph(void)
{
    pthread_t threads[2];
    atomic_store(&holds, tid_of_caller());
    atomic_store(&released_by, tid_of_caller());
    pthread_mutex_lock(&first); // two behind one
    start(&threads[0], 0, wait_for_first);
    start(&threads[1], 1, wait_for_first);
    pthread_mutex_unlock(&first);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    atomic_store(&released_by, tid_of_caller());
    pthread_mutex_lock(&first); // a chain
    start(&threads[0], 0, middle_of_chain);
    start(&threads[1], 1, end_of_chain);
    pthread_mutex_unlock(&first);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    pthread_rwlock_wrlock(&rwlock);
    start(&threads[0], 0, read_behind_writer);
    pthread_rwlock_unlock(&rwlock);
    pthread_join(threads[0], NULL);
    pthread_rwlock_rdlock(&rwlock);
    start(&threads[0], 0, write_behind_reader);
    pthread_rwlock_unlock(&rwlock);
    pthread_join(threads[0], NULL);
    pthread_barrier_init(&barrier, NULL, 2);
    start(&threads[0], 0, wait_at_barrier);
    pthread_barrier_wait(&barrier);
    pthread_join(threads[0], NULL);
}

// ---- hand-overs: a token goes from a worker to another, chosen by chance; a worker without one waits for it

static struct {
    sem_t semaphore;
    pthread_cond_t condition;
    pthread_mutex_t mutex;
    bool has_token;
    atomic_int tid, giver, waits;
} workers[WORKERS];
static atomic_uint handovers_left;
static const char *mechanism;

static void give(unsigned to)
{
    while (!atomic_load(&workers[to].waits))
        sched_yield();
    wait_until_asleep(atomic_load(&workers[to].tid));
    atomic_store(&workers[to].waits, 0);
    atomic_store(&workers[to].giver, tid_of_caller());
    if (strcmp(mechanism, "semaphore") == 0) {
        sem_post(&workers[to].semaphore);
        return;
    }
    pthread_mutex_lock(&workers[to].mutex);
    workers[to].has_token = true;
    pthread_cond_signal(&workers[to].condition);
    pthread_mutex_unlock(&workers[to].mutex);
}

static void take(unsigned self)
{
    atomic_store(&workers[self].waits, 1);
    if (strcmp(mechanism, "semaphore") == 0) {
        while (sem_wait(&workers[self].semaphore) != 0)
            abort();
        return;
    }
    pthread_mutex_lock(&workers[self].mutex);
    while (!workers[self].has_token)
        pthread_cond_wait(&workers[self].condition, &workers[self].mutex);
    workers[self].has_token = false;
    pthread_mutex_unlock(&workers[self].mutex);
}

static void *work(void *index)
{
    unsigned self = (unsigned)(uintptr_t)index, seed = self + 1;
    atomic_store(&workers[self].tid, tid_of_caller());
    for (;;) {
        take(self);
        if (atomic_load(&handovers_left) == 0) // only the worker that has the token changes it
            return NULL;
        note((struct line){mechanism, tid_of_caller(), 0, atomic_load(&workers[self].giver), NULL, false});
        if (atomic_fetch_sub(&handovers_left, 1) > 1) {
            give((self + 1 + (unsigned)rand_r(&seed) % (WORKERS - 1)) % WORKERS);
            continue;
        }
        for (unsigned to = 0; to < WORKERS; to++)
            if (to != self)
                give(to);
        return NULL;
    }
}

static void pass_token(const char *by, unsigned handovers)
{
    pthread_t threads[WORKERS];
    mechanism = by;
    atomic_store(&handovers_left, handovers);
    for (uintptr_t i = 0; i < WORKERS; i++) {
        sem_init(&workers[i].semaphore, 0, 0);
        pthread_mutex_init(&workers[i].mutex, NULL);
        pthread_cond_init(&workers[i].condition, NULL);
        workers[i].has_token = false;
        atomic_store(&workers[i].waits, 0);
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            exit(2);
    }
    give(0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

// ---- a mutex: two threads with one each want that of the other in turn

static pthread_mutex_t ring[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int ring_tid[2], ring_wants[2], let_go_by[2];
static unsigned ring_rounds;

static void want(unsigned self, unsigned lock)
{
    atomic_store(&ring_wants[self], 1);
    pthread_mutex_lock(&ring[lock]);
    note((struct line){"mutex", tid_of_caller(), 0, atomic_load(&let_go_by[lock]), NULL, false});
    atomic_store(&ring_wants[self], 0);
}

static void let_go(unsigned self, unsigned lock)
{
    while (!atomic_load(&ring_wants[!self]))
        sched_yield();
    wait_until_asleep(atomic_load(&ring_tid[!self]));
    atomic_store(&let_go_by[lock], tid_of_caller());
    pthread_mutex_unlock(&ring[lock]);
    while (atomic_load(&ring_wants[!self])) // a thread that wants it back at once could get it
        sched_yield();
}

static void *turn(void *index)
{
    unsigned self = (unsigned)(uintptr_t)index, mine = self;
    atomic_store(&ring_tid[self], tid_of_caller());
    pthread_mutex_lock(&ring[mine]);
    while (!atomic_load(&ring_tid[!self]))
        sched_yield();
    usleep(HOLD_US); // the other one has its own by now
    if (self == 1)
        want(1, 0);
    for (unsigned i = 0; i < ring_rounds; i++) {
        // The second one has both, but for a moment. Each lets go of one, and wants the one that the other has then.
        let_go(self, mine);
        if (self == 0 || i + 1 < ring_rounds)
            want(self, self == 0 ? !mine : mine);
        mine = !mine;
    }
    return NULL;
}

static void pass_mutex(unsigned handovers)
{
    pthread_t threads[2];
    ring_rounds = handovers / 2;
    for (uintptr_t i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, turn, (void *)i) != 0)
            exit(2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    unsigned handovers = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    lines = calloc(handovers * 4 + 100, sizeof *lines);
    if (!handovers || !lines)
        return 2;
    make_graph();
    pass_token("semaphore", handovers);
    pass_token("condition", handovers);
    pass_mutex(handovers);
    FILE *file = fopen(argv[1], "we");
    if (!file)
        return 2;
    for (unsigned i = 0; i < atomic_load(&line_count); i++) {
        const struct line *line = &lines[i];
        if (line->is_graph)
            fprintf(file, "graph %s %d %d %d %llu\n", line->what, line->waiter, line->holder, line->waker,
                    (unsigned long long)(uintptr_t)line->lock);
        else
            fprintf(file, "%s %d %d\n", line->what, line->waiter, line->waker);
    }
    return fclose(file) == 0 ? 0 : 2;
}
