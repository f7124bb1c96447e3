// SPDX-License-Identifier: Apache-2.0
// The files whose tables are compared by default, where this machine has them.
#ifndef BENCH_COMPILE_SIZE_FILES_H
#define BENCH_COMPILE_SIZE_FILES_H

struct bench_file {
    const char *name;
    const char *package;     // Debian 12's
    const char *patterns[3]; // where it can be; the first match counts
};

enum { BENCH_FILES = 9 };
extern const struct bench_file bench_files[BENCH_FILES];

// The file's path (free()), or NULL where the machine does not have it.
char *bench_file_find(const struct bench_file *file);

#endif
