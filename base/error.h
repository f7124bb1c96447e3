// SPDX-License-Identifier: Apache-2.0
// Errors are values with context: what, in which section, at which offset. The file's name is the caller's.
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdint.h>

enum base_reason {
    BASE_OK = 0,
    BASE_ERR_IO,          // the operating system refused (errno's text in detail)
    BASE_ERR_NO_MEMORY,   // an allocation failed: it says nothing of the input, and is never taken for damage
    BASE_ERR_NOT_ELF,     // neither ELF nor an archive with ELF files in it
    BASE_ERR_UNSUPPORTED, // well formed, but of a kind we do not read (relocatable, big-endian, unknown machine)
    BASE_ERR_TRUNCATED,   // a structure ends past the end of its section or file
    BASE_ERR_MALFORMED,   // contents contradict the format
    BASE_ERR_LIMIT,       // a bound against hostile input was hit (detail names it)
    BASE_ERR_COMPRESSION, // a compressed section does not unpack
    BASE_ERR_NO_UNWIND,   // no unwind information at all
    BASE_ERR_TABLE,       // a .qut or .qutz file was refused by its checker
    BASE_REASON_END,
};

struct base_error {
    enum base_reason reason;
    char section[32]; // a place in the file: ".eh_frame", "zip directory", ...; or ""
    uint64_t offset;  // in that section
    char detail[160];
};

const char *base_reason_name(enum base_reason reason); // "truncated", "no unwind information", ...

// Fills *error (may be NULL) and returns -1, so that `return base_fail(...)` reads well. Keeps the first error.
int base_fail(struct base_error *error, enum base_reason reason, const char *section, uint64_t offset,
              const char *format, ...) __attribute__((format(printf, 5, 6)));
// What the system says, by errno's number: that it has no memory is BASE_ERR_NO_MEMORY, all else BASE_ERR_IO.
int base_fail_errno(struct base_error *error, int number);
// The same with what another error says.
int base_fail_as(struct base_error *error, const struct base_error *why);

// "truncated: .eh_frame+0x1f0: FDE length 0x9999" into text. Returns text.
const char *base_error_text(const struct base_error *error, char *text, unsigned text_size);

#endif
