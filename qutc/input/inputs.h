// SPDX-License-Identifier: Apache-2.0
// What the user named, expanded into single ELF images: files, APKs, directories, a live process, the whole system.
#ifndef QUTC_INPUT_INPUTS_H
#define QUTC_INPUT_INPUTS_H

#include "base/vector.h"
#include "qutc/input/image.h"

struct input {
    char *path;               // file to open
    char *name;               // how to call it in messages
    uint64_t offset_bytes;    // inside an archive; 0
    uint64_t size_bytes;      // inside an archive; 0: the whole file
    struct base_bytes memory; // instead of a file (a vdso); owned by the list
};

struct input_inputs_seen;

struct input_inputs {
    BASE_VECTOR(struct input);
    // What was passed over while expanding directories, archives, processes and the system:
    size_t skipped_not_elf;     // neither ELF nor archives with ELF in them
    size_t skipped_unsupported; // ELF, but relocatable, big-endian or of an unknown machine (named files are kept, and
                                // fail with that reason when they are opened)
    size_t skipped_compressed;  // libraries stored compressed in an archive: no loader can map them there
    size_t skipped_unreadable;  // files and directories that could not be opened or read

    struct input_inputs_seen *seen; // which files are in the list, by device, inode and offset
};

void input_inputs_init(struct input_inputs *inputs);
void input_inputs_free(struct input_inputs *inputs);

// A file named by the user: must be ELF or an APK with at least one stored ELF, else an error. A directory: recursive,
// symbolic links inside it are not followed, other files are counted and passed over. Order is deterministic; an image
// that was reached already (same device and inode) is not added again.
int input_inputs_add_path(struct input_inputs *inputs, const char *path, struct base_error *error);

// Every ELF image mapped executable in a live process, its vdso included (read from its memory).
int input_inputs_add_process(struct input_inputs *inputs, int pid, struct base_error *error);

// What ld.so's cache and directories and $PATH reach, and the vdso of the running kernel.
int input_inputs_add_system(struct input_inputs *inputs, struct base_error *error);

// The vdso of the running kernel.
int input_inputs_add_vdso(struct input_inputs *inputs, struct base_error *error);
// Whether these are its bytes, or the first of them. Another process can have changed its copy.
bool input_is_own_vdso(struct base_bytes elf);

int input_open(const struct input *input, const struct input_image_options *options, struct input_image **image,
               struct base_error *error);

#endif
