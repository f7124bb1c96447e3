// SPDX-License-Identifier: Apache-2.0
// What the parts of a core target share.
#ifndef QUT_TARGET_CORE_H
#define QUT_TARGET_CORE_H

#include "libqut/target/opened_target.h"

struct target_core_load {
    uint64_t start, end;           // addresses
    uint64_t offset, stored_bytes; // in the core file; what was not dumped is not there
    bool readable, writable, executable;
};

struct target_core_file { // of NT_FILE: what was mapped
    uint64_t start, end, offset;
    const char *path; // in the notes
};

struct target_core {
    const char *path; // of the core, for messages; during opening
    int fd;
    uint64_t size;
    char *exe_path;    // given by the caller; NULL: none
    char *program_map; // path as in the maps that exe_path stands for; NULL: not known
    struct target_core_load *loads;
    size_t load_count; // ascending by start
    struct target_core_file *files;
    size_t file_count;
    uint8_t *notes; // ends with a NUL behind its size
    size_t notes_size;
    uint64_t vdso, program_headers; // addresses; 0: not known
    char name[17];                  // of the program
    pid_t pid;
    bool truncated;
};

// ---- core_notes.c

// Threads, mapped files, auxiliary vector.
int target_core_take_notes(struct qut_target *target, struct qut_target_error *error);

// ---- core_maps.c

// Mappings, from the segments and the list of files.
int target_core_take_maps(struct qut_target *target, struct qut_target_error *error);

#endif
