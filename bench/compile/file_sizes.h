// SPDX-License-Identifier: Apache-2.0
// One file's tables, in bytes: what it has, what QUT makes of it, what others would.
#ifndef BENCH_COMPILE_FILE_SIZES_H
#define BENCH_COMPILE_FILE_SIZES_H

#include "bench/compile/peer_sizes.h"

struct file_sizes {
    uint64_t text_bytes; // executable, as far as the tables speak of it
    uint64_t eh_bytes;   // .eh_frame + .eh_frame_hdr
    uint64_t functions, rows, rules;
    uint64_t qut_bytes, small_bytes;
    uint64_t sframe_section_bytes; // its own .sframe, where it has one
    struct peer_sizes peers;
};

// x86-64 ELF files with .eh_frame only: what the peers' formulas are for.
int bench_file_sizes(const char *path, struct file_sizes *sizes, struct base_error *error);

#endif
