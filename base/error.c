// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *base_reason_name(enum base_reason reason)
{
    static const char *const names[BASE_REASON_END] = {
        [BASE_OK] = "ok",
        [BASE_ERR_IO] = "cannot read or write",
        [BASE_ERR_NO_MEMORY] = "out of memory",
        [BASE_ERR_NOT_ELF] = "not an ELF file",
        [BASE_ERR_UNSUPPORTED] = "unsupported",
        [BASE_ERR_TRUNCATED] = "truncated",
        [BASE_ERR_MALFORMED] = "malformed",
        [BASE_ERR_LIMIT] = "over a limit",
        [BASE_ERR_COMPRESSION] = "does not decompress",
        [BASE_ERR_NO_UNWIND] = "no unwind information",
        [BASE_ERR_TABLE] = "table refused",
    };
    return (unsigned)reason < BASE_REASON_END ? names[reason] : "unknown reason";
}

int base_fail(struct base_error *error, enum base_reason reason, const char *section, uint64_t offset,
              const char *format, ...)
{
    if (!error || error->reason != BASE_OK)
        return -1;
    error->reason = reason;
    error->offset = offset;
    snprintf(error->section, sizeof error->section, "%s", section ? section : "");
    va_list args;
    va_start(args, format);
    vsnprintf(error->detail, sizeof error->detail, format, args);
    va_end(args);
    return -1;
}

int base_fail_errno(struct base_error *error, int number)
{
    return base_fail(error, number == ENOMEM ? BASE_ERR_NO_MEMORY : BASE_ERR_IO, "", 0, "%s", strerror(number));
}

int base_fail_as(struct base_error *error, const struct base_error *why)
{
    return base_fail(error, why->reason, why->section, why->offset, "%s", why->detail);
}

const char *base_error_text(const struct base_error *error, char *text, unsigned text_size)
{
    const char *why = base_reason_name(error->reason);
    const char *gap = error->detail[0] ? ": " : "";
    if (error->section[0])
        snprintf(text, text_size, "%s: %s+0x%" PRIx64 "%s%s", why, error->section, error->offset, gap, error->detail);
    else
        snprintf(text, text_size, "%s%s%s", why, gap, error->detail);
    return text;
}
