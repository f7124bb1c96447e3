// SPDX-License-Identifier: Apache-2.0
// Adding to a list of inputs: shared by the ways of finding them, each in its own file.
#ifndef QUTC_INPUT_INPUTS_LIST_H
#define QUTC_INPUT_INPUTS_LIST_H

#include "qutc/input/file_map.h"
#include "qutc/input/inputs.h"

struct input_file { // a file, and how to call it
    const char *path;
    const char *name;
    uint64_t device;
    uint64_t inode;
};

enum input_file_kind {
    INPUT_FILE_OTHER = 0,
    INPUT_FILE_ELF,
    INPUT_FILE_ELF_UNSUPPORTED, // relocatable, big-endian, ...
    INPUT_FILE_ARCHIVE,         // begins as a zip
    INPUT_FILE_UNREADABLE,
};

// Looks at a regular file's first bytes. follow: through symbolic links. Fills *file's device and inode.
enum input_file_kind input_file_kind(struct input_file *file, bool follow, struct base_error *error);

// Adds, unless it is there already. size_bytes 0: the whole file.
int input_inputs_add_file(struct input_inputs *inputs, const struct input_file *file, const char *member,
                          uint64_t offset_bytes, uint64_t size_bytes, struct base_error *error);

// Takes over the allocated bytes, also when it fails.
int input_inputs_add_memory(struct input_inputs *inputs, uint8_t *data, size_t size, const char *name,
                            struct base_error *error);

// A file that the user did not name: added if it is ELF, looked into if it is an archive, else counted. Fails only for
// want of memory.
int input_inputs_add_found(struct input_inputs *inputs, struct input_file *file, bool follow, struct base_error *error);

// apk.c: the ELF files stored in an archive. With only_offset, just the one that holds that offset of the archive.
enum { INPUT_ARCHIVE_ALL = -1 };
int input_inputs_add_archive(struct input_inputs *inputs, const struct input_file *file, int64_t only_offset,
                             size_t *found, struct base_error *error);

#endif
