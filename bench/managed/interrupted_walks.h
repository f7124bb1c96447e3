// SPDX-License-Identifier: Apache-2.0
// See interrupted_walks.c.
#ifndef QUT_BENCH_MANAGED_INTERRUPTED_WALKS_H
#define QUT_BENCH_MANAGED_INTERRUPTED_WALKS_H

#include <stdbool.h>

// The calling thread has the managed frames. `name`: of the runtime; lives on. may_guess: walks with a guess count,
// too. Ends the program where libqut does not start.
void walks_join(const char *name, bool may_guess);
// For so long, from another thread. Prints a line for each of the two: "java FRAMES WALKS FIRST-MEDIAN FIRST-P10
// FIRST-P90 AGAIN-MEDIAN", in cycles. Ends the program where too few walks come to the root.
void walks_measure(unsigned seconds);

#endif
