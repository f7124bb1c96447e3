// SPDX-License-Identifier: Apache-2.0
// The machine of tests/proof/art_live with its first thread interrupted as others here are: linked into its program,
// which then walks nothing itself.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interrupted_walks.h"

enum { WARM_UP_S = 3, SECONDS_DEFAULT = 8 }; // what the JIT makes, most of it

void art_walks_first_thread(void);

static void *measure(void *unused)
{
    const char *seconds = getenv("ART_WALKS_COST_SECONDS");
    sleep(WARM_UP_S);
    walks_measure(seconds ? (unsigned)atoi(seconds) : SECONDS_DEFAULT);
    _exit(0); // the machine is not asked to end: its threads run
    return unused;
}

void art_walks_first_thread(void)
{
    pthread_t thread;
    walks_join("art", false);
    if (pthread_create(&thread, NULL, measure, NULL) != 0) {
        fprintf(stderr, "no thread\n");
        exit(1);
    }
}
