// SPDX-License-Identifier: Apache-2.0
// The parts of the program that tells what it sees.
#ifndef TESTS_UNIT_AGENT_SUBJECT_H
#define TESTS_UNIT_AGENT_SUBJECT_H

void subject_spin_ms(long ms); // of this thread's processor time

void *subject_work(void *argument); // a short life: gives the argument back
void subject_threads(void);

// This thread ends; the process goes on with one that runs `last`.
void subject_end_with(void *(*last)(void *argument)) __attribute__((noreturn));
void *subject_end_last(void *argument);
void *subject_end_last_late(void *argument);

#endif
