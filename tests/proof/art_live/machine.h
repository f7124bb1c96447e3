// SPDX-License-Identifier: Apache-2.0
// The virtual machine, and the rig's program in it.
#ifndef TESTS_ART_LIVE_MACHINE_H
#define TESTS_ART_LIVE_MACHINE_H

#include <stdbool.h>

#include "judge.h"

enum { MACHINE_THREADS = 3, MACHINE_SHADOW_BYTES = 4096 };

// What the program calls.
struct machine_natives {
    void *cb, *sort, *spin, *fast, *critical, *here;
};

struct machine {
    JavaVM *vm;
    jclass worker, threads;
    jmethodID called_from_native, called_by_sort;
    struct shadow *shadows; // of each thread, MACHINE_SHADOW_BYTES apart; below 2 GiB: the program writes there
};
extern struct machine machine;

// jar: of the boot class path's classes, where it is NULL. Gives up where something fails.
JNIEnv *machine_start(char **options, int option_count, const char *jar, const struct machine_natives *natives);
struct shadow *machine_shadow(unsigned thread);
// Runs the program in all threads until is_over, and a little longer. begin: once the other threads run, in this one;
// NULL: nothing. is_over is asked in a thread of its own. Gives up where the program throws.
void machine_run(JNIEnv *env, void (*begin)(void), bool (*is_over)(void));

#endif
