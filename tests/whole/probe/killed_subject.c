// SPDX-License-Identifier: Apache-2.0
// Calls a function from several threads and checks what it returns, until its standard input ends.
//
//     killed_subject THREADS       prints "ready"; for each line that it reads "child PID", of a child that does the
//                                  same until it is killed; at the end "rounds N wrong N"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

long killed_work(long number, long depth);

// Its callees return through it as well: many calls are open at any time.
__attribute__((noinline)) long killed_work(long number, long depth)
{
    __asm__ volatile("" : "+r"(number) : : "memory");
    return depth ? killed_work(number + 1, depth - 1) + 1 : number * 3;
}

static volatile bool is_over;
static long rounds, wrong;

static void *run(void *unused)
{
    enum { DEPTH = 7 };
    long own = 0, own_wrong = 0;
    for (; !is_over; own++)
        own_wrong += killed_work(own, DEPTH) != (own + DEPTH) * 3 + DEPTH;
    __atomic_fetch_add(&rounds, own, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, own_wrong, __ATOMIC_RELAXED);
    return unused;
}

static void make_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(NULL);
        _exit(0);
    }
    printf("child %d\n", (int)child);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    enum { THREADS_MAX = 16 };
    pthread_t threads[THREADS_MAX];
    char line[64];
    const int count = argc == 2 ? atoi(argv[1]) : 0;
    if (count < 1 || count > THREADS_MAX)
        return 2;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            return 2;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        make_child();
    is_over = true;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("rounds %ld wrong %ld\n", rounds, wrong);
    return wrong != 0;
}
