// SPDX-License-Identifier: Apache-2.0
#include "qutc/base/codec.h"

int qutc_unzlib(struct qutc_bytes packed, uint8_t *to, size_t size, const char *section, struct qutc_error *error)
{
    (void)packed, (void)to, (void)size;
    return qutc_fail(error, QUTC_ERR_UNSUPPORTED, section, 0, "zlib data, and this program was built without zlib");
}
