// SPDX-License-Identifier: Apache-2.0
// What a thread's first call waits for.
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/calls/inside.h"
#include "tests/unit/agent/calls/account.h"

// One thread has begun to map what another one needs, and has no processor: the other one's calls are traced all the
// same.
static int calls_begun; // by the thread that needs it
static void *calls_on_its_stack(void *unused)
{
    __atomic_store_n(&calls_begun, 1, __ATOMIC_RELEASE);
    sink = leaf(1);
    return unused;
}

TEST(a_stack_that_another_thread_prepares)
{
    enum { STACK_BYTES = 1 << 20, LONG_US = 50000 };
    static const uint64_t granule_bytes = (uint64_t)1 << QUT_CALLS_GRANULE_LOG2;
    pthread_attr_t attributes;
    pthread_t thread;
    trace_begins(RING, 4);
    THUNKS_TRACE(leaf, LEAF);
    char *room =
        mmap(NULL, 2 * granule_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const uint64_t granule = ((uint64_t)(uintptr_t)room + granule_bytes - 1) / granule_bytes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, (void *)(uintptr_t)(granule * granule_bytes), STACK_BYTES);
    calls_granules[granule] = QUT_CALLS_GRANULE_BEGUN;
    CHECK(pthread_create(&thread, &attributes, calls_on_its_stack, NULL) == 0, "no thread");
    while (!__atomic_load_n(&calls_begun, __ATOMIC_ACQUIRE))
        usleep(100);
    usleep(LONG_US);
    __atomic_store_n(&calls_granules[granule], QUT_CALLS_GRANULE_UNKNOWN, __ATOMIC_RELEASE);
    CHECK(calls_map_granule(granule) == 0, "not mapped");
    pthread_join(thread, NULL);
    thunks_drain();
    check_whole(LEAF);
    CHECK(thunks_header()->passed_no_shadow == 0, "%lu passed", thunks_header()->passed_no_shadow);
}

int main(void)
{
    RUN_ALONE(a_stack_that_another_thread_prepares);
    return tap_finish();
}
