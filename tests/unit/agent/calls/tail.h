// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_AGENT_CALLS_TAIL_H
#define TESTS_UNIT_AGENT_CALLS_TAIL_H

int tail_a(int n); // ends in a jump to tail_b
int tail_b(int n);

#endif
