// SPDX-License-Identifier: Apache-2.0
#include "base/codec.h"

static int absent(const char *section, struct base_error *error)
{
    return base_fail(error, BASE_ERR_UNSUPPORTED, section, 0, "zstd data, and this program was built without zstd");
}

struct base_unzstd_room *base_unzstd_room_new(void)
{
    return NULL;
}

void base_unzstd_room_free(struct base_unzstd_room *room)
{
    (void)room;
}

int base_unzstd(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error)
{
    return base_unzstd_in(NULL, packed, to, size, section, error);
}

int base_unzstd_in(struct base_unzstd_room *room, struct base_bytes packed, uint8_t *to, size_t size,
                   const char *section, struct base_error *error)
{
    (void)room;
    (void)packed, (void)to, (void)size;
    return absent(section, error);
}

int base_zstd_check(struct base_bytes packed, uint64_t unpacked_bytes, const char *section, struct base_error *error)
{
    (void)packed, (void)unpacked_bytes;
    return absent(section, error);
}

size_t base_zstd_bound(size_t size)
{
    return size;
}

int base_zstd_pack(struct base_bytes bytes, int level, uint8_t *to, size_t room, size_t *packed_bytes,
                   struct base_error *error)
{
    (void)bytes, (void)level, (void)to, (void)room, (void)packed_bytes;
    return absent("", error);
}

struct base_zstd_room *base_zstd_room_new(void)
{
    return NULL;
}

void base_zstd_room_free(struct base_zstd_room *work)
{
    (void)work;
}

int base_zstd_pack_in(struct base_zstd_room *work, struct base_bytes bytes, int level, uint8_t *to, size_t room,
                      size_t *packed_bytes, struct base_error *error)
{
    (void)work;
    return base_zstd_pack(bytes, level, to, room, packed_bytes, error);
}
