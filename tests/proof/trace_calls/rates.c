// SPDX-License-Identifier: Apache-2.0
// Functions that are called as often as can be, until each is entered in another way than at first, which is seen at
// its thunk, and for a while then. usage: RATES CASE [ROUNDS]
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/proof/trace_calls/account.h"

#define FUNCTIONS(X)     X(leaf) X(outer) X(first) X(second) X(jumps) X(jumper) X(child_leaf)
#define DEFINE(function) static struct account account_##function = {.name = "traced_" #function};
FUNCTIONS(DEFINE)
#define POINT(function) &account_##function,
static const struct account *const accounts[] = {FUNCTIONS(POINT) NULL};

static TRACED uint64_t traced_leaf(uint64_t x)
{
    ENTER(leaf);
    uint64_t result = x * 3 + 1;
    LEAVE(leaf);
    return result;
}

// In children alone, which have an account of their own.
static TRACED uint64_t traced_child_leaf(uint64_t x)
{
    ENTER(child_leaf);
    uint64_t result = x * 5 + 1;
    LEAVE(child_leaf);
    return result;
}

static TRACED uint64_t traced_second(uint64_t x)
{
    ENTER(second);
    uint64_t result = traced_leaf(x) + 1;
    LEAVE(second);
    return result;
}

static TRACED uint64_t traced_first(uint64_t x)
{
    ENTER(first);
    TAIL(first);
    return traced_second(x + 1);
}

static TRACED void traced_jumper(jmp_buf *target)
{
    ENTER(jumper);
    UNWOUND(jumper);
    longjmp(*target, 1);
}

static TRACED uint64_t traced_jumps(uint64_t x)
{
    jmp_buf target;
    ENTER(jumps);
    if (setjmp(target) == 0)
        traced_jumper(&target);
    LEAVE(jumps);
    return x + 1;
}

static TRACED uint64_t traced_outer(uint64_t x)
{
    ENTER(outer);
    uint64_t result = traced_leaf(x) + traced_first(x) + traced_leaf(x + 1) + traced_jumps(x);
    LEAVE(outer);
    return result;
}

static bool is_wrong(uint64_t x)
{
    return traced_outer(x) != (x * 3 + 1) + ((x + 1) * 3 + 2) + ((x + 1) * 3 + 1) + (x + 1);
}

// ---- how it is entered

enum { JUMP = 0xe9, JUMP_BYTES = 5, LANDING_PAD_BYTES = 4 };

// Where a jump leads; NULL: there is none.
static const uint8_t *behind_jump(const uint8_t *at)
{
    int32_t distance;
    if (*(const volatile uint8_t *)at != JUMP)
        return NULL;
    memcpy(&distance, at + 1, sizeof distance);
    return at + JUMP_BYTES + distance;
}

static const uint8_t *thunk_of(uint64_t (*function)(uint64_t))
{
    const uint8_t *at = (const uint8_t *)(uintptr_t)function;
    return behind_jump(memcmp(at, "\xf3\x0f\x1e\xfa", LANDING_PAD_BYTES) == 0 ? at + LANDING_PAD_BYTES : at);
}

static bool is_switched(uint64_t (*function)(uint64_t))
{
    const uint8_t *thunk = thunk_of(function);
    return thunk && behind_jump(thunk);
}

// Not traced: it is as if it were.
static bool are_all_switched(void)
{
    return !thunk_of(traced_leaf) ||
           (is_switched(traced_leaf) && is_switched(traced_outer) && is_switched(traced_first) &&
            is_switched(traced_second) && is_switched(traced_jumps));
}

static uint64_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

static uint64_t rush(unsigned rounds)
{
    enum { PATIENCE_S = 100, BETWEEN = 256 };
    const uint64_t until_s = now_s() + PATIENCE_S;
    uint64_t wrong = 0;
    for (unsigned i = 0; i % BETWEEN || (!are_all_switched() && now_s() < until_s); i++)
        wrong += is_wrong(i);
    for (unsigned i = 0; i < rounds; i++)
        wrong += is_wrong(i);
    return wrong + !are_all_switched();
}

// ---- cases

static unsigned thread_rounds;
static uint64_t sum_wrong;
static void *thread(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&sum_wrong, rush(thread_rounds), __ATOMIC_RELAXED);
    return NULL;
}

static uint64_t threads(unsigned rounds)
{
    enum { COUNT = 4 };
    pthread_t ids[COUNT];
    thread_rounds = rounds;
    for (unsigned i = 0; i < COUNT; i++)
        if (pthread_create(&ids[i], NULL, thread, NULL) != 0)
            abort();
    for (unsigned i = 0; i < COUNT; i++)
        pthread_join(ids[i], NULL);
    return sum_wrong;
}

// A child goes on in code that is switched, and tells its own account.
static uint64_t forks(unsigned rounds)
{
    uint64_t wrong = rush(rounds);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        for (const struct account *const *account = accounts; *account; account++) {
            struct account *mine = (struct account *)(uintptr_t)*account;
            *mine = (struct account){.name = mine->name};
        }
        wrong = 0;
        for (unsigned i = 0; i < rounds; i++)
            wrong += is_wrong(i) | (traced_child_leaf(i) != i * UINT64_C(5) + 1);
        account_write("child", accounts, wrong);
        _exit(wrong != 0);
    }
    int status = 1;
    return wrong + (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0);
}

static const struct which {
    const char *name;
    uint64_t (*run)(unsigned rounds);
} cases[] = {{"rush", rush}, {"threads", threads}, {"forks", forks}};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "rush";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        if (!account_wait_for_patch((const void *)(uintptr_t)traced_leaf))
            return 3;
        const uint64_t wrong = cases[i].run(rounds);
        account_write(name, accounts, wrong);
        account_linger();
        return wrong != 0;
    }
    return 2;
}
