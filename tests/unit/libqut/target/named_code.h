// SPDX-License-Identifier: Apache-2.0
// A child that sleeps, and whose made code others name.
#ifndef TESTS_TARGET_NAMED_CODE_H
#define TESTS_TARGET_NAMED_CODE_H

#include <stdint.h>
#include <sys/types.h>

// Begins the child, which calls `first` before it sleeps (NULL: nothing), and opens it as a target.
pid_t named_code_begin(void (*first)(void));
void named_code_end(void);
// What the code at an address is called; "" where nothing is known.
const char *named_code_at(uint64_t address);
// ... at a moment that has passed.
const char *named_code_of(uint64_t address, uint64_t monotonic_ns);
void named_code_kill(void);
// What it is called, within ten seconds: maps are read at most ten times a second.
const char *named_code_soon_at(uint64_t address);

#endif
