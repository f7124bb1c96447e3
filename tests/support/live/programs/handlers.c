// SPDX-License-Identifier: Apache-2.0
// Signal handlers on an alternate stack: one sent to itself, one for a fault, one for a fault in the handler of
// another.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int sink;
static char *volatile unmapped;

static __attribute__((noinline)) void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void on_usr1(int number)
{
    (void)number;
    wait_for_ever();
    sink = 1;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    wait_for_ever();
    sink = 2;
}

static void on_usr2(int number)
{
    (void)number;
    *unmapped = 1;
    sink = 3;
}

static __attribute__((noinline)) void recurse(int depth, int signal_number)
{
    volatile char room[100];
    room[0] = (char)depth;
    if (depth > 0)
        recurse(depth - 1, signal_number);
    else if (signal_number == SIGSEGV)
        *unmapped = 1;
    else
        raise(signal_number);
    sink = room[0];
}

static void *in_thread(void *signal_number)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    recurse(10, *(int *)signal_number);
    return NULL;
}

int main(void)
{
    static int numbers[] = {SIGUSR1, SIGSEGV, SIGUSR2};
    unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_usr2;
    sigaction(SIGUSR2, &action, NULL);
    action.sa_sigaction = on_fault;
    action.sa_flags |= SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_thread, &numbers[i]) != 0)
            return 1;
    }
    sleep(1);
    puts("ready");
    fflush(stdout);
    wait_for_ever();
}
