// SPDX-License-Identifier: Apache-2.0
// What the user named, expanded into single ELF images: files, APKs, directories, a live process, the whole system.
#ifndef QUTC_INPUT_INPUTS_H
#define QUTC_INPUT_INPUTS_H

#include "qutc/input/image.h"

struct qutc_input {
    char *path;               // file to open
    char *name;               // how to call it in messages
    uint64_t offset_bytes;    // inside an archive; 0
    uint64_t size_bytes;      // inside an archive; 0: the whole file
    struct qutc_bytes memory; // instead of a file (a vdso); owned by the list
};

struct qutc_inputs_seen;

struct qutc_inputs {
    struct qutc_input *items;
    size_t count;
    size_t capacity;
    // What was passed over while expanding directories, archives, processes and the system:
    size_t skipped_not_elf;     // neither ELF nor archives with ELF in them
    size_t skipped_unsupported; // ELF, but relocatable, big-endian or of an unknown machine (named files are kept, and
                                // fail with that reason when they are opened)
    size_t skipped_compressed;  // libraries stored compressed in an archive: no loader can map them there
    size_t skipped_unreadable;  // files and directories that could not be opened or read

    struct qutc_inputs_seen *seen; // which files are in the list, by device, inode and offset
};

void qutc_inputs_init(struct qutc_inputs *inputs);
void qutc_inputs_free(struct qutc_inputs *inputs);

// A file named by the user: must be ELF or an APK with at least one stored ELF, else an error. A directory: recursive,
// symbolic links inside it are not followed, other files are counted and passed over. Order is deterministic; an image
// that was reached already (same device and inode) is not added again.
int qutc_inputs_add_path(struct qutc_inputs *inputs, const char *path, struct qutc_error *error);

// Every ELF image mapped executable in a live process, its vdso included (read from its memory).
int qutc_inputs_add_process(struct qutc_inputs *inputs, int pid, struct qutc_error *error);

// What ld.so's cache and directories and $PATH reach, and the vdso of the running kernel.
int qutc_inputs_add_system(struct qutc_inputs *inputs, struct qutc_error *error);

// The vdso of the running kernel.
int qutc_inputs_add_vdso(struct qutc_inputs *inputs, struct qutc_error *error);

int qutc_input_open(const struct qutc_input *input, const struct qutc_image_options *options, struct qutc_image **image,
                    struct qutc_error *error);

#endif
