// SPDX-License-Identifier: Apache-2.0
// Where a writer's bytes go: a file, compressed or not, or memory. Buffered. The first error is kept; what is written
// after it is dropped; sink_close tells.
#ifndef TRACER_EXPORT_SINK_SINK_H
#define TRACER_EXPORT_SINK_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sink;

// A new file beside `path`, which takes its place when all is written well (sink_close): a file that is there is never
// half a file. "-": standard output. NULL, *error filled: it cannot be made.
struct sink *sink_file(const char *path, struct base_error *error);
// Of a new file: it is on the disk before it has its name. The folder that holds it is the caller's.
void sink_sync(struct sink *sink);
// Gzip, into another one, which is closed with it (pprof wants that). NULL without memory.
struct sink *sink_gzip(struct sink *into);
// Memory; sink_memory gives the bytes, until sink_close.
struct sink *sink_in_memory(void);
const uint8_t *sink_memory(const struct sink *sink, size_t *size);
void sink_empty(struct sink *sink); // of one in memory: it begins anew

void sink_bytes(struct sink *sink, const void *bytes, size_t size);
void sink_text(struct sink *sink, const char *text);
void sink_number(struct sink *sink, uint64_t value); // decimal
// value / 10^decimals: 1234567 with 3: "1234.567"
void sink_fixed(struct sink *sink, int64_t value, unsigned decimals);
// A JSON string with its quotes. What is no UTF-8 becomes U+FFFD.
void sink_json_string(struct sink *sink, const char *text);

// What makes the bytes had no memory for them: as if they could not be written.
void sink_no_memory(struct sink *sink);
bool sink_failed(const struct sink *sink);
// 0; or -1, *error filled: the file is not there then, or what it was. `keep` false: as if it had failed, without an
// error.
int sink_close(struct sink *sink, bool keep, struct base_error *error);

#endif
