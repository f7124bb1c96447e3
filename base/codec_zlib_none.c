// SPDX-License-Identifier: Apache-2.0
#include "base/codec.h"

int base_unzlib(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error)
{
    (void)packed, (void)to, (void)size;
    return base_fail(error, BASE_ERR_UNSUPPORTED, section, 0, "zlib data, and this program was built without zlib");
}

int base_ungzip(struct base_bytes packed, uint8_t *to, size_t size, const char *section, struct base_error *error)
{
    return base_unzlib(packed, to, size, section, error);
}
