// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive, and where stored (uncompressed) entries have their bytes.
#ifndef QUTC_INPUT_ZIP_H
#define QUTC_INPUT_ZIP_H

#include "base/cursor_inline.h"
#include "base/error.h"

enum {
    INPUT_ZIP_TAIL_BYTES_MAX = 22 + 0xffff + 20 + 56, // what input_zip_open reads, from the end of the file on
    INPUT_ZIP_LOCAL_BYTES_MAX = 30 + 2 * 0xffff,      // what stands in front of an entry's bytes
};

struct input_zip {
    struct base_bytes file;
    uint64_t directory_offset, directory_size;
    uint64_t entry_count;
    uint64_t next;              // the number of the entry that is read next
    struct base_cursor entries; // in the directory
};

struct input_zip_entry {
    uint16_t flags;
    uint16_t method;
    uint64_t packed_bytes;
    uint64_t size_bytes;
    uint64_t local_offset;
    struct base_bytes name;
};

extern const char input_zip_directory_name[]; // for messages

// Finds the directory. Reads nothing but the last INPUT_ZIP_TAIL_BYTES_MAX bytes, unless a zip64 record stands
// elsewhere.
int input_zip_open(struct input_zip *zip, struct base_bytes file, struct base_error *error);
// 1: *entry is the next one; 0: there are no more; -1: *error.
int input_zip_next(struct input_zip *zip, struct input_zip_entry *entry, struct base_error *error);
// Whether an entry is stored as it is.
bool input_zip_is_stored(const struct input_zip_entry *entry);
// Where a stored entry's bytes are; false where they are not inside the file.
bool input_zip_find_data(struct base_bytes file, const struct input_zip_entry *entry, uint64_t *offset);

#endif
