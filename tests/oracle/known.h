// SPDX-License-Identifier: Apache-2.0
// Mistakes in the unwind information of others' binaries, by name: known_mistakes.txt.
#ifndef QUT_TESTS_ORACLE_KNOWN_H
#define QUT_TESTS_ORACLE_KNOWN_H

struct oracle;
struct judged_pc;

// The symbol whose unwind information is known to be wrong there, or NULL.
const char *known_mistake(struct oracle *oracle, const struct judged_pc *at);

#endif
