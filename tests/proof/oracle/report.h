// SPDX-License-Identifier: Apache-2.0
// What a run of the oracle found, as lines of words for tests/proof/oracle/run.
#ifndef TESTS_PROOF_ORACLE_REPORT_H
#define TESTS_PROOF_ORACLE_REPORT_H

#include <stdio.h>

#include "tests/proof/oracle/judge.h"
#include "tests/proof/oracle/whole_walk.h"

struct oracle {
    struct guest guest;
    struct shadow shadow;
    struct oracle_modules modules;
    struct judge judge;
    struct whole_walks walks;
    uint64_t other_threads; // instructions of threads that were not judged
    struct known_mistakes known;
};

void report(struct oracle *oracle, FILE *out);

#endif
