// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>
#include <zstd_errors.h>

#include "base/codec.h"

struct base_unzstd_room *base_unzstd_room_new(void)
{
    return (struct base_unzstd_room *)ZSTD_createDCtx();
}

void base_unzstd_room_free(struct base_unzstd_room *room)
{
    ZSTD_freeDCtx((ZSTD_DCtx *)room);
}

int base_unzstd(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error)
{
    return base_unzstd_in(NULL, packed, to, size, section, error);
}

int base_unzstd_in(struct base_unzstd_room *room, struct base_bytes packed, uint8_t *to, size_t size,
                   const char *section, struct base_error *error)
{
    size_t got = room ? ZSTD_decompressDCtx((ZSTD_DCtx *)room, to, size, packed.data, packed.size)
                      : ZSTD_decompress(to, size, packed.data, packed.size);
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return base_fail(error, BASE_ERR_NO_MEMORY, section, 0, "zstd decoder");
    if (ZSTD_isError(got))
        return base_fail(error, BASE_ERR_COMPRESSION, section, 0, "zstd data does not unpack to 0x%zx bytes: %s", size,
                         ZSTD_getErrorName(got));
    return got == size
               ? 0
               : base_fail(error, BASE_ERR_COMPRESSION, section, 0, "zstd data does not unpack to 0x%zx bytes", size);
}

int base_zstd_check(struct base_bytes packed, uint64_t unpacked_bytes, const char *section, struct base_error *error)
{
    if (ZSTD_findFrameCompressedSize(packed.data, packed.size) != packed.size)
        return base_fail(error, BASE_ERR_COMPRESSION, section, 0, "not one whole zstd frame");
    if (ZSTD_getFrameContentSize(packed.data, packed.size) != unpacked_bytes)
        return base_fail(error, BASE_ERR_COMPRESSION, section, 0, "the zstd frame states another size than 0x%jx bytes",
                         (uintmax_t)unpacked_bytes);
    return 0;
}

size_t base_zstd_bound(size_t size)
{
    return ZSTD_compressBound(size);
}

struct base_zstd_room *base_zstd_room_new(void)
{
    return (struct base_zstd_room *)ZSTD_createCCtx();
}

void base_zstd_room_free(struct base_zstd_room *work)
{
    ZSTD_freeCCtx((ZSTD_CCtx *)work);
}

int base_zstd_pack(struct base_bytes bytes, int level, uint8_t *to, size_t room, size_t *packed_bytes,
                   struct base_error *error)
{
    return base_zstd_pack_in(NULL, bytes, level, to, room, packed_bytes, error);
}

int base_zstd_pack_in(struct base_zstd_room *work, struct base_bytes bytes, int level, uint8_t *to, size_t room,
                      size_t *packed_bytes, struct base_error *error)
{
    size_t packed = work ? ZSTD_compressCCtx((ZSTD_CCtx *)work, to, room, bytes.data, bytes.size, level)
                         : ZSTD_compress(to, room, bytes.data, bytes.size, level);
    if (ZSTD_getErrorCode(packed) == ZSTD_error_memory_allocation)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "zstd encoder");
    if (ZSTD_isError(packed))
        return base_fail(error, BASE_ERR_COMPRESSION, "", 0, "zstd: %s", ZSTD_getErrorName(packed));
    *packed_bytes = packed;
    return 0;
}
