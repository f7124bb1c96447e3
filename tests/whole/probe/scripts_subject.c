// SPDX-License-Identifier: Apache-2.0
// Does what the scripts of the library ask about, so often as it was told:
//
//     probe_scripts_subject small N | large N | kinds N | hold N | wait N | quick-lock N | open PATH N | miss PATH N |
//     try N | slow N | quick N ...
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

int probe_try(int n);
long probe_wait(long number, long ms);
void probe_takes_small(long n);
void probe_takes_large(long n);
void probe_takes_all_kinds(long n);
void probe_holds(long n, long ms);
void probe_waits(long n);
void probe_looks_for(const char *path, long n);
void probe_retries(long n);

// Every third time it fails, with one of two values.
APART int probe_try(int n)
{
    __asm__ volatile("" : "+r"(n) : : "memory");
    return n % 3 ? n : n % 2 ? -11 : -4;
}

APART long probe_wait(long number, long ms)
{
    const struct timespec nap = {.tv_nsec = ms * 1000000};
    if (ms)
        nanosleep(&nap, NULL);
    return number * 2;
}

static void *volatile kept;

APART void probe_takes_small(long n)
{
    for (long i = 0; i < n; i++) {
        kept = malloc(24);
        free(kept);
    }
}

APART void probe_takes_large(long n)
{
    for (long i = 0; i < n; i++) {
        kept = malloc(100000);
        free(kept);
    }
}

// Of 100 bytes each: eight, of which one is of no more use when the next one comes.
APART void probe_takes_all_kinds(long n)
{
    for (long i = 0; i < n; i++) {
        void *aligned = NULL;
        kept = malloc(100);
        kept = realloc(kept, 100);
        free(kept);
        kept = realloc(NULL, 100);
        free(kept);
        kept = calloc(25, 4);
        free(kept);
        kept = aligned_alloc(64, 100);
        free(kept);
        kept = memalign(64, 100);
        free(kept);
        if (posix_memalign(&aligned, 64, 100) == 0)
            kept = aligned;
        free(kept);
        kept = reallocarray(NULL, 5, 20);
        free(kept);
        free(NULL);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

APART void probe_holds(long n, long ms)
{
    for (long i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        if (pthread_mutex_trylock(&lock) == 0) // fails
            exit(1);
        probe_wait(i, ms);
        pthread_mutex_unlock(&lock);
    }
    __asm__ volatile("" : : : "memory");
}

// The lock is held twice: until it waits, and from then on.
APART void probe_waits(long n)
{
    for (long i = 0; i < n; i++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        pthread_mutex_lock(&lock);
        pthread_cond_timedwait(&never, &lock, &until);
        pthread_mutex_unlock(&lock);
    }
    __asm__ volatile("" : : : "memory");
}

APART void probe_looks_for(const char *path, long n)
{
    for (long i = 0; i < n; i++) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
}

APART void probe_retries(long n)
{
    for (long i = 0; i < n; i++)
        probe_try((int)i);
    __asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *what = argv[i];
        const long n = atol(argv[i + 1]);
        if (strcmp(what, "small") == 0)
            probe_takes_small(n);
        else if (strcmp(what, "large") == 0)
            probe_takes_large(n);
        else if (strcmp(what, "kinds") == 0)
            probe_takes_all_kinds(n);
        else if (strcmp(what, "hold") == 0)
            probe_holds(n, 20);
        else if (strcmp(what, "quick-lock") == 0)
            probe_holds(n, 0);
        else if (strcmp(what, "wait") == 0)
            probe_waits(n);
        else if (strcmp(what, "try") == 0)
            probe_retries(n);
        else if (strcmp(what, "slow") == 0)
            probe_wait(n, 20);
        else if (strcmp(what, "quick") == 0)
            probe_wait(n, 0);
        else
            probe_looks_for(what, n); // a path
    }
    return 7;
}
