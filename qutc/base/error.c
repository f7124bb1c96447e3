// SPDX-License-Identifier: Apache-2.0
#include "qutc/base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *qutc_reason_name(enum qutc_reason reason)
{
    static const char *const names[QUTC_REASON_END] = {
        [QUTC_OK] = "ok",
        [QUTC_ERR_IO] = "cannot read or write",
        [QUTC_ERR_NO_MEMORY] = "out of memory",
        [QUTC_ERR_NOT_ELF] = "not an ELF file",
        [QUTC_ERR_UNSUPPORTED] = "unsupported",
        [QUTC_ERR_TRUNCATED] = "truncated",
        [QUTC_ERR_MALFORMED] = "malformed",
        [QUTC_ERR_LIMIT] = "over a limit",
        [QUTC_ERR_COMPRESSION] = "does not decompress",
        [QUTC_ERR_NO_UNWIND] = "no unwind information",
        [QUTC_ERR_TABLE] = "table refused",
    };
    return (unsigned)reason < QUTC_REASON_END ? names[reason] : "unknown reason";
}

int qutc_fail(struct qutc_error *error, enum qutc_reason reason, const char *section, uint64_t offset,
              const char *format, ...)
{
    if (!error || error->reason != QUTC_OK)
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

const char *qutc_error_text(const struct qutc_error *error, char *text, unsigned text_size)
{
    const char *why = qutc_reason_name(error->reason);
    const char *gap = error->detail[0] ? ": " : "";
    if (error->section[0])
        snprintf(text, text_size, "%s: %s+0x%" PRIx64 "%s%s", why, error->section, error->offset, gap, error->detail);
    else
        snprintf(text, text_size, "%s%s%s", why, gap, error->detail);
    return text;
}
