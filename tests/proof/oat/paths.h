// SPDX-License-Identifier: Apache-2.0
// Where sp stands at each instruction of a method, found by going all ways through its code. What the library does in
// one pass from the first instruction to the last, which has to guess what holds behind a jump, is done here without
// guesses: that is what mismatches with frame programs are decided by.
#ifndef TESTS_PROOF_OAT_PATHS_H
#define TESTS_PROOF_OAT_PATHS_H

#include "qutc/cfi/oat_track.h"

enum { PATHS_NOT_REACHED = INT32_MIN };

// cfa_bytes[i]: caller's sp - sp before the instruction at offset i; PATHS_NOT_REACHED elsewhere. False where two ways
// to one instruction differ.
bool paths_follow(const struct arch *arch, struct base_bytes code, int32_t *cfa_bytes);

#endif
