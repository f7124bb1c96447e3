// SPDX-License-Identifier: Apache-2.0
// A small segment with a good header, whose sections are any bytes.
#ifndef TESTS_PROOF_FUZZ_SEGMENT_INPUT_H
#define TESTS_PROOF_FUZZ_SEGMENT_INPUT_H

#include <stddef.h>

#include "formats/qut_trace.h"

struct qut_trace_header fuzz_segment_header(void);
// Bounds what a chunk's header says, and gives it the checksum that it has.
void fuzz_seal(struct qut_trace_chunk *chunk);
// Allocated, aligned to 64.
uint8_t *fuzz_segment(const uint8_t *data, size_t size, size_t *segment_bytes);

#endif
