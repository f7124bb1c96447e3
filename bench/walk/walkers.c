// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/walkers.h"

#include <pthread.h>
#include <string.h>

#include <qut/local.h>

_Thread_local struct bench_stack bench_stack;

static const struct bench_walker *const walkers[] = {
    &bench_walker_nothing,
    &bench_walker_chase,
    &bench_walker_chase_checked,
    &bench_walker_glibc,
    &bench_walker_libgcc,
    &bench_walker_nongnu_backtrace,
    &bench_walker_nongnu_step,
    &bench_walker_llvm_step,
    &bench_walker_aosp,
    &bench_walker_aosp_direct,
    &bench_walker_qut_table,
    &bench_walker_qut_linked,
    &bench_walker_qut,
    &bench_walker_signal_nothing,
    &bench_walker_signal_chase,
    &bench_walker_signal_qut_table,
    &bench_walker_signal_qut_linked,
    &bench_walker_signal_qut,
};

const struct bench_walker *bench_walker_at(size_t index)
{
    return index < sizeof walkers / sizeof *walkers ? walkers[index] : NULL;
}

const struct bench_walker *bench_walker(const char *name)
{
    for (size_t i = 0; bench_walker_at(i); i++)
        if (strcmp(bench_walker_at(i)->name, name) == 0)
            return bench_walker_at(i);
    return NULL;
}

void bench_walkers_thread(void)
{
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *low;
        size_t size_bytes;
        if (pthread_attr_getstack(&attributes, &low, &size_bytes) == 0)
            bench_stack = (struct bench_stack){(uintptr_t)low, (uintptr_t)low + size_bytes};
        pthread_attr_destroy(&attributes);
    }
    if (bench_qut_started())
        qut_thread_register();
}
