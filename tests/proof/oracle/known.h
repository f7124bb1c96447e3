// SPDX-License-Identifier: Apache-2.0
// Mistakes in the unwind information of others' binaries, by name: known_mistakes.txt.
#ifndef TESTS_PROOF_ORACLE_KNOWN_H
#define TESTS_PROOF_ORACLE_KNOWN_H

#include "tests/proof/oracle/modules.h"

enum { KNOWN_MISTAKES_MAX = 64, KNOWN_CODE_MAX = 16 };

// A piece of code, known by its module's name ("*": any) and its first bytes: the libraries are stripped, and addresses
// differ from build to build.
struct known_mistake {
    char module[64], symbol[64];
    uint64_t size_bytes;
    uint8_t code[KNOWN_CODE_MAX];
    unsigned code_bytes;
};

struct known_mistakes {
    struct guest *guest;
    unsigned count;
    struct known_mistake items[KNOWN_MISTAKES_MAX];
};

// Without a path there are none.
void known_open(struct known_mistakes *known, struct guest *guest, const char *path);

// The symbol whose unwind information is known to be wrong at pc, or NULL.
const char *known_mistake(const struct known_mistakes *known, const struct oracle_file *file, uint64_t pc);

#endif
