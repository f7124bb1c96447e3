// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_PROOF_FUZZ_WALK_TARGET_H
#define TESTS_PROOF_FUZZ_WALK_TARGET_H

#include <qut/target.h>

// Walks threads, asks for modules, memory, symbol files; and closes the target.
void fuzz_walk_target(struct qut_target *target);

#endif
