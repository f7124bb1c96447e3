// SPDX-License-Identifier: Apache-2.0
// The operands of a command, expanded: tables by their first bytes, everything else as libqutc finds images in it.
#ifndef QUTC_CLI_OPERANDS_H
#define QUTC_CLI_OPERANDS_H

#include "base/vector.h"
#include "qutc/cli/options.h"
#include "qutc/input/inputs.h"

struct cli_input {
    const char *name;  // for messages
    const char *table; // path of a table, or NULL
    size_t elf;        // else: index into elfs.items
    bool is_named;     // by the user, itself; else found in a directory, an archive, a process or the system
};

// An operand that led to nothing; said on stderr already.
struct cli_failure {
    char name[128];
    char why[256];
};

struct cli_inputs {
    BASE_VECTOR(struct cli_input);
    struct input_inputs elfs;
    BASE_VECTOR(struct cli_failure) failures;
    size_t failed; // the same, but for those that memory did not suffice for
    bool is_batch; // more than single files was asked for
};

// Errors are reported, counted and passed over. Returns an enum cli_status: CLI_BAD where nothing is left.
int cli_inputs_expand(const struct cli_options *options, bool take_tables, struct cli_inputs *inputs);
void cli_inputs_free(struct cli_inputs *inputs);

// Whether a file says it is a table (also one that is damaged), or is named like one.
bool cli_is_table(const char *path);
// ... or a bundle.
bool cli_is_bundle(const char *path);

#endif
