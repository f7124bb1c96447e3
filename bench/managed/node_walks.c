// SPDX-License-Identifier: Apache-2.0
// The addon that Walks.js loads. JavaScript runs in the one thread that loads it, so another one measures, and ends the
// program. What is used of Node-API is declared here: its headers come with no package of nodejs.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "interrupted_walks.h"

enum { WARM_UP_S = 5 };

void *napi_register_module_v1(void *env, void *exports);

static void *measure(void *unused)
{
    const char *seconds = getenv("WALKS_SECONDS");
    (void)unused;
    sleep(WARM_UP_S); // until the functions have their last code
    walks_measure(seconds ? (unsigned)strtoul(seconds, NULL, 10) : 1);
    _exit(0);
}

void *napi_register_module_v1(void *env, void *exports)
{
    pthread_t thread;
    (void)env;
    walks_join("node", true); // nothing else leads through V8's code
    if (pthread_create(&thread, NULL, measure, NULL) != 0)
        exit(1);
    return exports;
}
