// SPDX-License-Identifier: Apache-2.0
// Errors are values with context: what, in which section, at which offset. The file's name is the caller's.
#ifndef QUTC_BASE_ERROR_H
#define QUTC_BASE_ERROR_H

#include <stdint.h>

enum qutc_reason {
    QUTC_OK = 0,
    QUTC_ERR_IO,          // the operating system refused (errno's text in detail)
    QUTC_ERR_NO_MEMORY,   // an allocation failed
    QUTC_ERR_NOT_ELF,     // neither ELF nor an archive with ELF files in it
    QUTC_ERR_UNSUPPORTED, // well formed, but of a kind we do not read (relocatable, big-endian, unknown machine)
    QUTC_ERR_TRUNCATED,   // a structure ends past the end of its section or file
    QUTC_ERR_MALFORMED,   // contents contradict the format
    QUTC_ERR_LIMIT,       // a bound against hostile input was hit (detail names it)
    QUTC_ERR_COMPRESSION, // a compressed section does not unpack
    QUTC_ERR_NO_UNWIND,   // no unwind information at all
    QUTC_ERR_TABLE,       // a .qut or .qutz file was refused by its checker
    QUTC_REASON_END,
};

struct qutc_error {
    enum qutc_reason reason;
    char section[32]; // ".eh_frame", "zip directory", ... or ""
    uint64_t offset;  // in that section
    char detail[160];
};

const char *qutc_reason_name(enum qutc_reason reason); // "truncated", "no unwind information", ...

// Fills *error (may be NULL) and returns -1, so that `return qutc_fail(...)` reads well. Keeps the first error.
int qutc_fail(struct qutc_error *error, enum qutc_reason reason, const char *section, uint64_t offset,
              const char *format, ...) __attribute__((format(printf, 5, 6)));

// "truncated: .eh_frame+0x1f0: FDE length 0x9999" into text. Returns text.
const char *qutc_error_text(const struct qutc_error *error, char *text, unsigned text_size);

#endif
