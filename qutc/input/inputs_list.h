// SPDX-License-Identifier: Apache-2.0
// Adding to a list of inputs: shared by the ways of finding them, each in its own file.
#ifndef QUTC_INPUT_INPUTS_LIST_H
#define QUTC_INPUT_INPUTS_LIST_H

#include "qutc/input/file_map.h"
#include "qutc/input/inputs.h"

struct qutc_input_file { // a file, and how to call it
    const char *path;
    const char *name;
    uint64_t device;
    uint64_t inode;
};

enum qutc_file_kind {
    QUTC_FILE_OTHER = 0,
    QUTC_FILE_ELF,
    QUTC_FILE_ELF_UNSUPPORTED, // relocatable, big-endian, ...
    QUTC_FILE_ARCHIVE,         // begins as a zip
    QUTC_FILE_UNREADABLE,
};

// Looks at a regular file's first bytes. follow: through symbolic links. Fills *file's device and inode.
enum qutc_file_kind qutc_file_kind(struct qutc_input_file *file, bool follow, struct qutc_error *error);

// Adds, unless it is there already. size_bytes 0: the whole file.
int qutc_inputs_add_file(struct qutc_inputs *inputs, const struct qutc_input_file *file, const char *member,
                         uint64_t offset_bytes, uint64_t size_bytes, struct qutc_error *error);

// Takes over the allocated bytes, also when it fails.
int qutc_inputs_add_memory(struct qutc_inputs *inputs, uint8_t *data, size_t size, const char *name,
                           struct qutc_error *error);

// A file that the user did not name: added if it is ELF, looked into if it is an archive, else counted. Fails only for
// want of memory.
int qutc_inputs_add_found(struct qutc_inputs *inputs, struct qutc_input_file *file, bool follow,
                          struct qutc_error *error);

// apk.c: the ELF files stored in an archive. With only_offset, just the one that holds that offset of the archive.
enum { QUTC_ARCHIVE_ALL = -1 };
int qutc_inputs_add_archive(struct qutc_inputs *inputs, const struct qutc_input_file *file, int64_t only_offset,
                            size_t *found, struct qutc_error *error);

#endif
