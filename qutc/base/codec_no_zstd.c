// SPDX-License-Identifier: Apache-2.0
#include "qutc/base/codec.h"

static int absent(const char *section, struct qutc_error *error)
{
    return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 0, "zstd data, and this program was built without zstd");
}

int qutc_unzstd(struct qutc_bytes packed, uint8_t *to, size_t size, const char *section, struct qutc_error *error)
{
    (void)packed, (void)to, (void)size;
    return absent(section, error);
}

int qutc_zstd_check(struct qutc_bytes packed, uint64_t unpacked_bytes, const char *section, struct qutc_error *error)
{
    (void)packed, (void)unpacked_bytes;
    return absent(section, error);
}

size_t qutc_zstd_bound(size_t size)
{
    return size;
}

int qutc_zstd_pack(struct qutc_bytes bytes, int level, uint8_t *to, size_t room, size_t *packed_bytes,
                   struct qutc_error *error)
{
    (void)bytes, (void)level, (void)to, (void)room, (void)packed_bytes;
    return absent("", error);
}
