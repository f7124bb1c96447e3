// SPDX-License-Identifier: Apache-2.0
// Which ELF file is mapped where in the emulated program, each with the table that qutc makes of it.
#ifndef TESTS_PROOF_ORACLE_MODULES_H
#define TESTS_PROOF_ORACLE_MODULES_H

#include "libqut/runtime/walk.h"
#include "tests/proof/oracle/guest.h"

struct oracle_file {
    char *path;
    bool has_table;
    char reason[160]; // why not
    struct qut_table table;
    uint64_t entry_vaddr;
    struct oracle_file *next;
};

struct oracle_module {
    uint64_t start, end; // addresses of executable bytes
    uint64_t load_bias;
    const struct oracle_file *file;
};

struct oracle_modules {
    struct guest *guest;
    struct oracle_file *files;
    struct oracle_module *items;
    size_t count, capacity;
    const struct oracle_module *last; // found
    bool stale;                       // something may have been mapped or unmapped since
};

void modules_open(struct oracle_modules *modules, struct guest *guest);

// NULL where no ELF file's code is mapped. Valid until the next call that finds the list stale; its `file` stays.
const struct oracle_module *modules_find(struct oracle_modules *modules, uint64_t address);

#endif
