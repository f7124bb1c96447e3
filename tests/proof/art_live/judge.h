// SPDX-License-Identifier: Apache-2.0
// A walk against the calls that the rig's program keeps account of.
#ifndef TESTS_ART_LIVE_JUDGE_H
#define TESTS_ART_LIVE_JUDGE_H

#include <jni.h>
#include <stdint.h>

#include <qut/frame.h>

// The program's own account: which of its methods are called, by their numbers. It is behind in each method's first
// and last instructions, and while an exception is delivered.
struct shadow {
    volatile uint32_t depth, stop, ids[254];
};

// In a handler of the thread that is walked. The first frame is the innermost.
void judge_walk(const struct qut_frame *frames, unsigned count, const struct qut_end *end, const struct shadow *shadow);

// Where walks met the program: which ArtMethod its methods have, and where their bytecode is mapped.
void judge_print_methods(void); // after the next: one line of JSON, [[id, ArtMethod, bytecode, its end], ...]
void judge_place_methods(JNIEnv *env, const char *jar, const char *dex_path);
// Of the boot class path, or of the jar and its odex.
jclass judge_find_class(JNIEnv *env, const char *jar, const char *name);

// One line of JSON.
void judge_report(unsigned stack_bytes);
void judge_give_up(const char *why) __attribute__((noreturn));

#endif
