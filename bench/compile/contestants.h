// SPDX-License-Identifier: Apache-2.0
// Ways to get all rows of one ELF file's .eh_frame, each as a function to be timed.
#ifndef BENCH_COMPILE_CONTESTANTS_H
#define BENCH_COMPILE_CONTESTANTS_H

#include <libelf.h>
#include <stdbool.h>

#include "bench/compile/pure_decode.h"
#include "qutc/input/image.h"

// One file, opened once; what the contestants share.
struct bench_subject {
    const char *path;
    struct input_image *image;                  // held open: its bytes are mapped and warm
    const struct input_frame_section *eh_frame; // of the image
    Elf *elf;                                   // for the libraries
    struct pure_decode_counts counts;           // what decoding it must come to
    uint64_t *row_starts;                       // ascending: what the libraries are asked for
    size_t row_count;
};

// x86-64 with .eh_frame of the usual kind only.
int bench_subject_open(const char *path, struct bench_subject *subject, struct base_error *error);
void bench_subject_close(struct bench_subject *subject);

// Each does the whole work once, from what is in the page cache, and says how many rows it came to; -1 where it failed.
// What it must free is freed after *end_ns was taken.
typedef int bench_contestant(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns);
bench_contestant bench_run_pure, bench_run_checked, bench_run_qutc, bench_run_libdw, bench_run_libdw_facts,
    bench_run_libdwarf, bench_run_libdwarf_least;

// Fills row_starts: where libdw sees a row begin.
int bench_libdw_rows(struct bench_subject *subject, struct base_error *error);

#endif
