// SPDX-License-Identifier: Apache-2.0
// The compressions that a build may be without (options zlib and zstd): then each function fails, and says so. xz is
// always there, see input/unpack.h.
#ifndef BASE_CODEC_H
#define BASE_CODEC_H

#include "base/cursor_inline.h"
#include "base/error.h"

// Unpack to exactly size bytes, or fail.
int base_unzlib(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error);
int base_ungzip(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error);
int base_unzstd(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error);

// What unpacking works in, for who unpacks many small pieces: each by itself asks the processor anew what it can, which
// takes ten times as long as the rest. NULL: each by itself.
struct base_unzstd_room;
struct base_unzstd_room *base_unzstd_room_new(void);
void base_unzstd_room_free(struct base_unzstd_room *room);
int base_unzstd_in(struct base_unzstd_room *room, struct base_bytes packed, uint8_t *to, size_t size,
                   const char *section, struct base_error *error);

// Whether the bytes are one whole zstd frame that says it unpacks to this size. Cheap: asked before memory is.
int base_zstd_check(struct base_bytes packed, uint64_t unpacked_bytes, const char *section, struct base_error *error);

// Room that packing this many bytes may need, and how many it took.
size_t base_zstd_bound(size_t size);
int base_zstd_pack(struct base_bytes bytes, int level, uint8_t *to, size_t room, size_t *packed_bytes,
                   struct base_error *error);

// What packing works in, a megabyte and more, for who packs one piece after the other: each by itself maps and clears
// it anew, which takes longer than what is done in it. NULL: each by itself.
struct base_zstd_room;
struct base_zstd_room *base_zstd_room_new(void);
void base_zstd_room_free(struct base_zstd_room *work);
int base_zstd_pack_in(struct base_zstd_room *work, struct base_bytes bytes, int level, uint8_t *to, size_t room,
                      size_t *packed_bytes, struct base_error *error);

#endif
