// SPDX-License-Identifier: Apache-2.0
// What a command will be, before it is started: which file, and whether an agent can be preloaded into it.
#ifndef TRACER_RECORD_COMMAND_FILE_H
#define TRACER_RECORD_COMMAND_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { PROGRAM_NOT_FOUND = 127, PROGRAM_NOT_EXECUTABLE = 126 }; // exit statuses, as shells have them

struct program {
    char path[PATH_MAX];        // what is executed
    char image[PATH_MAX];       // what the kernel loads then: of a script, its interpreter
    char interpreter[PATH_MAX]; // the loader that image asks for; "": it is static
    bool is_64;
    bool is_known;           // an ELF file of a machine that we know
    bool is_privileged;      // set-user-id, set-group-id or with capabilities: nothing is preloaded into it
    unsigned arch;           // enum arch
    uint32_t build_id_bytes; // 0: it has none, or one that is too long
    uint8_t build_id[64];
};

// Finds it as execvp does. 0; or one of the statuses above, *error says why.
int record_program_find(struct program *program, const char *name, struct base_error *error);
// The running program itself, which the agent was built with, as its memory says: of no path.
void record_program_self(struct program *program);
// Whether what is built like *self can be preloaded; else why not, in words.
const char *record_program_refuses_agent(const struct program *program, const struct program *self);

#endif
