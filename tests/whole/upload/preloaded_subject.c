// SPDX-License-Identifier: Apache-2.0
// A program that was not made for us, and knows its own processor time.
//     preloaded_subject HOW FIRST_MS SECOND_MS THREADS
// Each of THREADS spends FIRST_MS of processor time in first_work and SECOND_MS in second_work. HOW: plain; fork (a
// child does the same beside it); exec (it begins itself anew as plain, afterwards); forever (until it is killed); held
// (each thread waits for a byte of the standard input before it works).
// Prints a line "PID NANOSECONDS" for each process, all of its processor time.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t first_ns, second_ns;
static int is_held;
static atomic_uint sink;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void spin(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        atomic_fetch_add_explicit(&sink, i, memory_order_relaxed);
}

__attribute__((noinline)) void first_work(uint64_t ns);
__attribute__((noinline)) void second_work(uint64_t ns);

void first_work(uint64_t ns)
{
    const uint64_t end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
        spin(2000);
    spin(1);
}

void second_work(uint64_t ns)
{
    const uint64_t end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
        spin(2000);
    spin(2);
}

static void *work(void *unused)
{
    char *byte = malloc(1); // so that the thread has its part of the heap before it waits
    if (!byte || (is_held && read(STDIN_FILENO, byte, 1) != 1))
        exit(2);
    free(byte);
    first_work(first_ns);
    second_work(second_ns);
    return unused;
}

static void run(unsigned thread_count)
{
    enum { THREADS_MAX = 16 };
    pthread_t threads[THREADS_MAX];
    unsigned begun = 1;
    while (begun < thread_count && begun < THREADS_MAX && pthread_create(&threads[begun], NULL, work, NULL) == 0)
        begun++;
    work(NULL);
    for (unsigned i = 1; i < begun; i++)
        pthread_join(threads[i], NULL);
}

static void tell(void)
{
    printf("%d %llu\n", (int)getpid(), (unsigned long long)now_ns(CLOCK_PROCESS_CPUTIME_ID));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    first_ns = strtoull(argv[2], NULL, 10) * 1000000;
    second_ns = strtoull(argv[3], NULL, 10) * 1000000;
    const unsigned thread_count = (unsigned)atoi(argv[4]);
    is_held = strcmp(argv[1], "held") == 0;
    const pid_t child = strcmp(argv[1], "fork") == 0 ? fork() : -1;
    do
        run(thread_count);
    while (strcmp(argv[1], "forever") == 0);
    tell();
    if (strcmp(argv[1], "exec") == 0) {
        execl("/proc/self/exe", argv[0], "plain", argv[2], argv[3], argv[4], (char *)NULL);
        return 2;
    }
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        return 2;
    return 0;
}
