// SPDX-License-Identifier: Apache-2.0
// The compressions that a build may be without (options zlib and zstd): then each function fails, and says so. xz is
// always there, see input/unpack.h.
#ifndef QUTC_BASE_CODEC_H
#define QUTC_BASE_CODEC_H

#include "qutc/base/cursor.h"
#include "qutc/base/error.h"

// Unpack to exactly size bytes, or fail.
int qutc_unzlib(struct qutc_bytes packed, uint8_t *to, size_t size, const char *section, struct qutc_error *error);
int qutc_unzstd(struct qutc_bytes packed, uint8_t *to, size_t size, const char *section, struct qutc_error *error);

// Whether the bytes are one whole zstd frame that says it unpacks to this size. Cheap: asked before memory is.
int qutc_zstd_check(struct qutc_bytes packed, uint64_t unpacked_bytes, const char *section, struct qutc_error *error);

// Room that packing this many bytes may need, and how many it took.
size_t qutc_zstd_bound(size_t size);
int qutc_zstd_pack(struct qutc_bytes bytes, int level, uint8_t *to, size_t room, size_t *packed_bytes,
                   struct qutc_error *error);

#endif
