// SPDX-License-Identifier: Apache-2.0
// Functions that do nothing, around each walk whose instructions are to be counted: the counter (a plugin
// of an emulator) looks for calls of them.
#ifndef QUT_BENCH_WALK_MARKS_H
#define QUT_BENCH_WALK_MARKS_H

void bench_count_on(void);
void bench_count_off(void);

#endif
