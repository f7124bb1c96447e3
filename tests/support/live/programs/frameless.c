// SPDX-License-Identifier: Apache-2.0
// Built with -fomit-frame-pointer: frames of every size, some of a size known at run time only. One thread waits, one
// never does: wherever it is frozen, in prologues and epilogues as well.
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int sink;
static volatile int depth_of_waiter = 40;

static int down(int depth, int wait);

static __attribute__((noinline)) int leaf(int number)
{
    return number * 3 + sink;
}

static __attribute__((noinline)) int with_alloca(int depth, int wait)
{
    char *room = alloca((size_t)(depth * 37 + 1));
    memset(room, depth, (size_t)(depth * 37 + 1));
    return down(depth - 1, wait) + room[depth];
}

static __attribute__((noinline)) int with_registers(int depth, int wait)
{
    int a = leaf(depth), b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);
    int result = down(depth - 1, wait);
    return result + a + b + c + d + e + f;
}

static __attribute__((noinline)) int with_array(int depth, int wait)
{
    volatile char room[5000];
    room[depth] = (char)depth;
    return down(depth - 1, wait) + room[depth];
}

static __attribute__((noinline)) int down(int depth, int wait)
{
    if (depth <= 0) {
        while (wait)
            pause();
        return leaf(depth);
    }
    switch (depth % 3) {
    case 0: return with_alloca(depth, wait) + 1;
    case 1: return with_registers(depth, wait) + 2;
    default: return with_array(depth, wait) + 3;
    }
}

static void *in_thread(void *wait)
{
    do
        sink = down(depth_of_waiter, wait != NULL) & 1;
    while (depth_of_waiter);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, (void *)&sink) != 0 ||
        pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_create(&thread, NULL, in_thread, NULL) != 0)
        return 1;
    sleep(1);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
