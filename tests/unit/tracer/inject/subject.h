// SPDX-License-Identifier: Apache-2.0
// What the test and the program that it works on share: memory behind descriptor SUBJECT_FD.
#ifndef TESTS_UNIT_TRACER_INJECT_SUBJECT_H
#define TESTS_UNIT_TRACER_INJECT_SUBJECT_H

#include <stdatomic.h>
#include <stdint.h>

enum { SUBJECT_FD = 9 };

struct subject_state {
    _Atomic uint32_t stop;
    _Atomic uint64_t calls; // that the program made, or rounds of its loop
    _Atomic uint64_t eintr; // that returned EINTR
    _Atomic uint64_t wrong; // whose result was not what it had to be
};

#endif
