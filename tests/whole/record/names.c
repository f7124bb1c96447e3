// SPDX-License-Identifier: Apache-2.0
// What changes its name after it has begun, and lives for moments.
//     names threads COUNT    COUNT threads, one after the other, each of which calls itself "short-N"
//     names titles COUNT     COUNT children that write "server: client N" over their arguments, as PostgreSQL's do, and
//                            call themselves "client-N"; every other one ends by _exit
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char *title;
static size_t title_bytes;

static void *call_itself(void *number)
{
    char name[32];
    snprintf(name, sizeof name, "short-%d", *(int *)number);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    return NULL;
}

static int threads(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, call_itself, &i) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}

static int titles(int count)
{
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char name[32];
            snprintf(name, sizeof name, "client-%d", i);
            prctl(PR_SET_NAME, name, 0, 0, 0);
            memset(title, 0, title_bytes);
            snprintf(title, title_bytes, "server: client %d", i);
            if (i & 1)
                _exit(0);
            exit(0);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    title = argv[0];
    title_bytes = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    int count = atoi(argv[2]);
    return strcmp(argv[1], "threads") == 0 ? threads(count) : titles(count);
}
