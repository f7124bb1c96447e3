// SPDX-License-Identifier: Apache-2.0
// storm SECONDS LIBRARY: threads that come and go, fork, exec, load and unload LIBRARY, send each other signals, jump
// out of handlers, are cancelled, and allocate all the while; each checks its own results. Exit status 0: all right.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *library_path, *own_path;
static atomic_bool is_over;
static atomic_uint mistakes, rounds[8];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t guarded; // by it
static atomic_uint_fast64_t should_be;
static atomic_uint handled;

static void expect(bool is_so, const char *what)
{
    if (!is_so && atomic_fetch_add(&mistakes, 1) < 10)
        fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
}

static void allocate(unsigned *seed)
{
    size_t size = 1 + (unsigned)rand_r(seed) % 20000;
    unsigned char *bytes = malloc(size);
    expect(bytes != NULL, "malloc");
    memset(bytes, 0x5a, size);
    bytes = realloc(bytes, size + 5000);
    expect(bytes && bytes[0] == 0x5a && bytes[size - 1] == 0x5a, "realloc keeps what was there");
    free(bytes);
    unsigned char *zeroes = calloc(size, 1);
    expect(zeroes && zeroes[0] == 0 && zeroes[size - 1] == 0, "calloc");
    free(zeroes);
    void *pages = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(pages != MAP_FAILED, "mmap");
    memset(pages, 1, 16384);
    munmap(pages, 16384);
}

static void add_with_lock(void)
{
    pthread_mutex_lock(&mutex);
    guarded++;
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&should_be, 1);
}

// ---- threads that come and go; some are cancelled

static void unlock(void *argument)
{
    free(argument);
}

static void *short_life(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    allocate(&seed);
    add_with_lock();
    return argument;
}

static void *long_wait(void *unused)
{
    (void)unused;
    pthread_cleanup_push(unlock, malloc(100));
    for (;;)
        usleep(100000);
    pthread_cleanup_pop(1);
    return NULL;
}

static void come_and_go(unsigned *seed)
{
    pthread_t threads[4], waiter;
    void *result;
    for (uintptr_t i = 0; i < 4; i++)
        expect(pthread_create(&threads[i], NULL, short_life, (void *)(i + 1)) == 0, "pthread_create");
    expect(pthread_create(&waiter, NULL, long_wait, NULL) == 0, "pthread_create");
    for (uintptr_t i = 0; i < 4; i++)
        expect(pthread_join(threads[i], &result) == 0 && result == (void *)(i + 1), "pthread_join");
    pthread_cancel(waiter);
    expect(pthread_join(waiter, &result) == 0 && result == PTHREAD_CANCELED, "cancelled");
    allocate(seed);
}

// ---- children

static void have_children(unsigned *seed)
{
    int status = 0, wanted = rand_r(seed) % 100;
    char text[16];
    snprintf(text, sizeof text, "%d", wanted);
    pid_t child = fork();
    if (child == 0) {
        allocate(seed);
        if (wanted % 2)
            execl(own_path, own_path, "child", text, (char *)NULL);
        _exit(wanted);
    }
    pid_t ended;
    do
        ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR); // of the signals that it sends itself
    expect(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == wanted, "a child's status");
}

// ---- libraries

static void load(unsigned *seed)
{
    uint64_t (*part)(uint64_t);
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    expect(library != NULL, "dlopen");
    if (!library)
        return;
    *(void **)&part = dlsym(library, "library_part");
    expect(part && part(1000) == part(1000), "a function of the library");
    expect(dlclose(library) == 0, "dlclose");
    allocate(seed);
}

// ---- signals

static _Thread_local sigjmp_buf way_out;
static _Thread_local volatile sig_atomic_t may_jump;

static void handle(int number)
{
    int saved_errno = errno;
    atomic_fetch_add(&handled, 1);
    if (number == SIGUSR2 && may_jump) {
        may_jump = 0;
        siglongjmp(way_out, 1);
    }
    errno = saved_errno;
}

static void jump(unsigned *seed)
{
    volatile unsigned jumped = 0;
    for (volatile unsigned i = 0; i < 20; i++) {
        if (sigsetjmp(way_out, 1) == 0) {
            may_jump = 1;
            pthread_kill(pthread_self(), i % 2 ? SIGUSR1 : SIGUSR2);
            may_jump = 0;
        } else {
            jumped++;
        }
    }
    expect(jumped == 10, "jumps out of handlers");
    allocate(seed);
    add_with_lock();
}

static void spin(unsigned *seed)
{
    volatile uint64_t sum = 0;
    for (unsigned i = 0; i < 3000000; i++)
        sum += i;
    expect(sum == 4499998500000u, "a sum");
    allocate(seed);
}

// ----

static void (*const works[])(unsigned *) = {come_and_go, have_children, load, jump, spin};
enum { WORKS = sizeof works / sizeof *works };

static void *work(void *index)
{
    unsigned number = (unsigned)(uintptr_t)index, seed = number;
    while (!atomic_load(&is_over)) {
        works[number](&seed);
        atomic_fetch_add(&rounds[number], 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKS];
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "child") == 0)
        return atoi(argv[2]);
    own_path = "/proc/self/exe";
    library_path = argv[2];
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    for (uintptr_t i = 0; i < WORKS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 2;
    struct timespec end, now;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += atoi(argv[1]);
    do {
        pthread_kill(threads[4], SIGUSR1);
        usleep(1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    atomic_store(&is_over, true);
    for (int i = 0; i < WORKS; i++)
        pthread_join(threads[i], NULL);
    expect(guarded == atomic_load(&should_be), "what the lock guards");
    expect(atomic_load(&handled) > 0, "signals");
    for (int i = 0; i < WORKS; i++)
        expect(atomic_load(&rounds[i]) > 0, "each did something");
    printf("%u %u %u %u %u rounds\n", rounds[0], rounds[1], rounds[2], rounds[3], rounds[4]);
    return atomic_load(&mistakes) != 0;
}
