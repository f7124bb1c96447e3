// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include "qutc/base/codec.h"

int qutc_unzstd(struct qutc_bytes packed, uint8_t *to, size_t size, const char *section, struct qutc_error *error)
{
    size_t got = ZSTD_decompress(to, size, packed.data, packed.size);
    if (ZSTD_isError(got))
        return qutc_fail(error, QUTC_ERR_COMPRESSION, section, 0, "zstd data does not unpack to 0x%zx bytes: %s", size,
                         ZSTD_getErrorName(got));
    return got == size
               ? 0
               : qutc_fail(error, QUTC_ERR_COMPRESSION, section, 0, "zstd data does not unpack to 0x%zx bytes", size);
}

int qutc_zstd_check(struct qutc_bytes packed, uint64_t unpacked_bytes, const char *section, struct qutc_error *error)
{
    if (ZSTD_findFrameCompressedSize(packed.data, packed.size) != packed.size)
        return qutc_fail(error, QUTC_ERR_COMPRESSION, section, 0, "not one whole zstd frame");
    if (ZSTD_getFrameContentSize(packed.data, packed.size) != unpacked_bytes)
        return qutc_fail(error, QUTC_ERR_COMPRESSION, section, 0, "the zstd frame states another size than 0x%jx bytes",
                         (uintmax_t)unpacked_bytes);
    return 0;
}

size_t qutc_zstd_bound(size_t size)
{
    return ZSTD_compressBound(size);
}

int qutc_zstd_pack(struct qutc_bytes bytes, int level, uint8_t *to, size_t room, size_t *packed_bytes,
                   struct qutc_error *error)
{
    size_t packed = ZSTD_compress(to, room, bytes.data, bytes.size, level);
    if (ZSTD_isError(packed))
        return qutc_fail(error, QUTC_ERR_COMPRESSION, "", 0, "zstd: %s", ZSTD_getErrorName(packed));
    *packed_bytes = packed;
    return 0;
}
