// SPDX-License-Identifier: Apache-2.0
// What an ELF file says of itself, in as few calls as it takes: before a program begins each is waited for.
#ifndef TRACER_RECORD_FILE_SAYS_H
#define TRACER_RECORD_FILE_SAYS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "libqut/arch/arch.h"

struct file_says {
    uint64_t file_bytes;
    const struct arch *arch;
    bool is_64;
    char interpreter[PATH_MAX]; // "": it asks for no loader
    uint32_t build_id_bytes;    // 0: it has none, or one that is too long
    uint8_t build_id[64];
};

// False: it is no ELF file of a machine that we know, or cannot be read.
bool record_file_says(const char *path, struct file_says *says);

#endif
