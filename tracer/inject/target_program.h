// SPDX-License-Identifier: Apache-2.0
// What must be known of a process before code can be run in it: which libc it has, and where functions are.
#ifndef TRACER_INJECT_TARGET_PROGRAM_H
#define TRACER_INJECT_TARGET_PROGRAM_H

#include <stdbool.h>

#include "base/error.h"
#include "libqut/target/opened_target.h"
#include "tracer/symbols/symbols.h"

enum inject_function {
    INJECT_ATTR_INIT,
    INJECT_ATTR_SETSTACK,
    INJECT_ATTR_SETDETACHSTATE,
    INJECT_CREATE,
    INJECT_DLOPEN,
    INJECT_DLSYM,
    INJECT_DLCLOSE,
    INJECT_DLERROR,
    INJECT_ERRNO,
    INJECT_FUNCTIONS,
};

struct inject_program {
    pid_t pid;
    struct qut_target *target;
    const struct target_image *libc, *linker;
    uint64_t function[INJECT_FUNCTIONS];
    uint64_t call_gadget;    // "syscall; ret"
    uint64_t return_gadget;  // what a handler returns to: rt_sigreturn
    uint64_t allocate;       // libc's posix_memalign, where libc's malloc is the program's; else 0
    struct symbols *symbols; // of libc
};

// Takes over the target, also when it fails. Refuses what cannot be done, with the reason: also where an agent is that
// should not be there, or none that should (has_agent).
int inject_program_open(struct inject_program *program, pid_t pid, struct qut_target *target, bool has_agent,
                        struct base_error *error);
void inject_program_close(struct inject_program *program);

// The image that a pc lies in, or NULL.
const struct target_image *inject_image_at(const struct inject_program *program, uint64_t pc);
// An exported function's address, or 0.
uint64_t inject_symbol(const struct inject_program *program, const struct target_image *image, const char *name);
// Whether all bytes could be read, written.
bool inject_read(const struct inject_program *program, uint64_t address, void *bytes, size_t size);
bool inject_write(const struct inject_program *program, uint64_t address, const void *bytes, size_t size);

#endif
