// SPDX-License-Identifier: Apache-2.0
// Caches that hold other things.
#ifndef QUT_BENCH_WALK_COLD_H
#define QUT_BENCH_WALK_COLD_H

// Reads so much other memory that a level-2 cache holds nothing else...
void bench_cool_l2(void);
// ... that no cache does.
void bench_cool_all(void);

#endif
