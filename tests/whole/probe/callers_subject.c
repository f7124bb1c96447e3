// SPDX-License-Identifier: Apache-2.0
// Calls one function from many, and says how often each did.
//
//     callers_subject LIBRARY THREADS CALLS     prints "NAME calls N retvals SUM" for each, then ends
//     callers_subject wait                      prints "ready"; callers_one and callers_two call in turn; ends with its
//                                               standard input, and prints how often
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 60000, LOADS = 3, THREADS_MAX = 64 };

#define APART __attribute__((noinline))

long callers_target(long number);
void callers_leave(void);
void callers_one(long count), callers_two(long count), callers_through(long count), callers_between(long count);
void callers_leaves_last(void);
void callers_complains(void);
long callers_rarely(long number);
long callers_tail(long number);
void callers_of_tail(long count), callers_allocates(long count), callers_child(long count);

struct account {
    const char *name;
    long calls, retvals;
};
static struct account one = {"one", 0, 0}, two = {"two", 0, 0}, through = {"through", 0, 0},
                      between = {"between", 0, 0}, of_tail = {"of_tail", 0, 0}, leaves = {"leaves", 0, 0},
                      allocates = {"allocates", 0, 0}, library = {"library", 0, 0}, rarely = {"rarely", 0, 0},
                      child = {"child", 0, 0};

static void account(struct account *account, long retval)
{
    __atomic_fetch_add(&account->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&account->retvals, retval, __ATOMIC_RELAXED);
}

APART long callers_target(long number)
{
    __asm__ volatile("" : "+r"(number) : : "memory");
    return number * 3 + 1;
}

APART void callers_one(long count)
{
    for (long i = 0; i < count; i++)
        account(&one, callers_target(i));
}

static long (*volatile by_pointer)(long) = callers_target;

APART void callers_two(long count)
{
    for (long i = 0; i < count; i++)
        account(&two, by_pointer(i));
}

APART void callers_between(long count)
{
    for (long i = 0; i < count; i++)
        account(&between, callers_target(i));
}

// Its own calls are one for each; those of what it calls are not its own.
APART void callers_through(long count)
{
    for (long i = 0; i < count; i++) {
        callers_between(2);
        account(&through, callers_target(i));
    }
}

// The call is a jump: who is returned to is the caller's caller.
APART long callers_tail(long number)
{
    __asm__ volatile("" : "+r"(number) : : "memory");
    return callers_target(number);
}

APART void callers_of_tail(long count)
{
    for (long i = 0; i < count; i++)
        account(&of_tail, callers_tail(i));
}

static jmp_buf place;

__attribute__((noinline, noreturn)) void callers_leave(void)
{
    account(&leaves, 0);
    longjmp(place, 1);
}

// The call is its last instruction: it returns to what stands behind the function.
APART void callers_leaves_last(void)
{
    __asm__ volatile("" : : : "memory");
    callers_leave();
}

__attribute__((noinline, cold)) void callers_complains(void)
{
    __asm__ volatile("" : : : "memory");
}

// What begins with a call of something cold, compilers put elsewhere: callers_rarely.cold.
APART long callers_rarely(long number)
{
    if (number % 5 == 0) {
        callers_complains();
        account(&rarely, callers_target(number));
    }
    return number * 2;
}

APART void callers_allocates(long count)
{
    for (long i = 0; i < count; i++) {
        void *volatile memory = malloc((size_t)i + 100);
        account(&allocates, i + 100);
        free(memory);
    }
}

APART void callers_child(long count)
{
    for (long i = 0; i < count; i++)
        callers_target(i);
}

// ---- a library that comes and goes

static bool is_probed(void (*function)(void))
{
    const volatile unsigned char *code = (const volatile unsigned char *)(uintptr_t)function;
    const unsigned at = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e ? 4 : 0;
    return code[at] == 0xe9 || code[at] == 0xeb;
}

static bool call_library(const char *path, long count)
{
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
        return false;
    long (*calls)(long (*)(long), long) = (long (*)(long (*)(long), long))dlsym(loaded, "callers_library_calls");
    void (*noticed)(void) = (void (*)(void))dlsym(loaded, "callers_library_noticed");
    for (unsigned tries = 0; calls && noticed && !is_probed(noticed); tries++) {
        if (tries == TRIES)
            return false;
        usleep(1000);
    }
    library.retvals += calls(callers_target, count);
    library.calls += count;
    dlclose(loaded);
    callers_two(count); // where it was nothing is, or something else
    return true;
}

// ---- all

static long calls_each;

static void *run(void *unused)
{
    (void)unused;
    callers_one(calls_each);
    callers_two(calls_each);
    callers_through(calls_each);
    callers_of_tail(calls_each);
    callers_allocates(calls_each);
    for (long i = 0; i < calls_each; i++)
        callers_rarely(i);
    return NULL;
}

static void show(const struct account *account)
{
    printf("%s calls %ld retvals %ld\n", account->name, account->calls, account->retvals);
}

static int wait_for_end(void)
{
    char end;
    fd_set input;
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timeval nap = {.tv_usec = 100};
        FD_ZERO(&input);
        FD_SET(STDIN_FILENO, &input);
        if (select(STDIN_FILENO + 1, &input, NULL, NULL, &nap) != 0 && read(STDIN_FILENO, &end, 1) <= 0)
            break;
        callers_one(7);
        callers_two(5);
    }
    show(&one);
    show(&two);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "wait") == 0)
        return wait_for_end();
    if (argc != 4)
        return 2;
    const long threads = atol(argv[2]);
    pthread_t ids[THREADS_MAX];
    calls_each = atol(argv[3]);
    for (long i = 0; i < threads && i < THREADS_MAX; i++)
        if (pthread_create(&ids[i], NULL, run, NULL) != 0)
            return 1;
    for (long i = 0; i < threads && i < THREADS_MAX; i++)
        pthread_join(ids[i], NULL);
    for (long i = 0; i < calls_each; i++)
        if (setjmp(place) == 0)
            callers_leaves_last();
    for (unsigned i = 0; i < LOADS; i++)
        if (!call_library(argv[1], calls_each))
            return 3;
    const pid_t forked = fork();
    if (forked == 0) {
        callers_child(calls_each);
        _exit(0);
    }
    waitpid(forked, NULL, 0);
    child.calls = calls_each;
    child.retvals = calls_each * (calls_each - 1) / 2 * 3 + calls_each;
    const struct account *const all[] = {&one,    &two,       &through, &between, &of_tail,
                                         &leaves, &allocates, &library, &rarely,  &child};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        show(all[i]);
    return 7;
}
