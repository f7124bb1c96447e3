// SPDX-License-Identifier: Apache-2.0
// Calls a function at an address that is known to its tracer: CALLS times, some of them in another thread and some in a
// child, which are not to be seen.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/agent/calls/channel_subject.h"
#include "tests/unit/agent/calls/thunks.h"

TRACED __attribute__((section(CHANNEL_SUBJECT_SECTION))) int channel_subject_function(int n);

int channel_subject_function(int n)
{
    return n + 1;
}

static int call(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum = channel_subject_function(sum);
    return sum;
}

static void *in_thread(void *sum)
{
    *(int *)sum = call(CHANNEL_SUBJECT_THREAD_CALLS);
    return NULL;
}

int main(void)
{
    int in_other = 0, status = -1;
    pthread_t thread;
    int sum = call(CHANNEL_SUBJECT_CALLS);
    if (pthread_create(&thread, NULL, in_thread, &in_other) != 0)
        return 1;
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(call(CHANNEL_SUBJECT_CHILD_CALLS));
    waitpid(child, &status, 0);
    printf("%d %d %d\n", sum, in_other, WEXITSTATUS(status));
    return 0;
}
