// SPDX-License-Identifier: Apache-2.0
// Bytes inside a page: compressed where we can, base64, in blocks of data that no browser takes for a script.
#ifndef TRACER_REPORT_BLOB_H
#define TRACER_REPORT_BLOB_H

#include "tracer/export/sink/sink.h"
#include "tracer/report/bytes.h"

// In base64 as <script type="application/octet-stream" class="data">, several of them: to decode one of them takes the
// page a moment only.
void report_blob(struct sink *sink, const uint8_t *data, size_t size);

// zlib's format ("deflate" in browsers), added to *packed. False: not here, and the bytes go as they are;
// or no memory, and packed->has_failed.
bool report_deflate(const uint8_t *data, size_t size, struct bytes *packed);

#endif
