// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_COLLECT_FILE_COPY_H
#define TRACER_COLLECT_FILE_COPY_H

#include <stdint.h>

#include "base/error.h"

// Copies all from `from` to the end of fd's file to `to` in to_fd's. They may be one file, if what is copied begins
// behind where it comes to end.
int collect_file_copy(int to_fd, uint64_t to, int fd, uint64_t from, struct base_error *error);

#endif
