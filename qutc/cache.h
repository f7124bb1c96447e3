// SPDX-License-Identifier: Apache-2.0
// The cache: one directory of tables, each named by the architecture and identity of the file it was made for.
// Several processes may fill it at the same time; tables appear whole or not at all.
#ifndef QUTC_CACHE_H
#define QUTC_CACHE_H

#include <stdbool.h>

#include "base/error.h"
#include "qutc/input/image.h"

// $QUT_CACHE, else $XDG_CACHE_HOME/qut/tables, else ~/.cache/qut/tables. A variable that names another user's home, as
// sudo can leave it, does not count. -1 too where that is there and not safe. *path is allocated; nothing is created.
int qutc_cache_directory(char **path, struct base_error *error);

// -1: what is in the directory may come from somebody else, since it is another user's (but root's), or others may
// write to it. One that is not there yet is safe.
int qutc_cache_is_safe(const char *directory, struct base_error *error);

// Who says that a file is the one that its build-id names.
enum qutc_cache_proof {
    QUTC_CACHE_ITSELF, // for those who run it anyway
    // Its owner: a table of a file of root's, or of the user's who asks, is for all that claim its identity; one of
    // another user's file for that user's files only. For who looks at what others run.
    QUTC_CACHE_OWNER,
};
enum qutc_cache_proof qutc_cache_proof_by_user(void); // for files that are named: root takes nobody's word

// "DIRECTORY/x86_64-9f3c....qut", or "DIRECTORY/of-1000/..." for files of another user. -1 too where it is not known
// whose file it is. *path is allocated.
int qutc_cache_path(const char *directory, const struct input_image *image, enum qutc_cache_proof proof, char **path,
                    struct base_error *error);
// The same for who has no file at hand, and knows of another proof that the table is of what claims this identity.
int qutc_cache_path_named(const char *directory, const char *arch_name, const uint8_t *identity, size_t identity_size,
                          char **path, struct base_error *error);
// Of such a path, what it is called in the directory.
const char *qutc_cache_name(const char *directory, const char *path);
// Creates the directories above it.
int qutc_cache_make_room(const char *path, struct base_error *error);

// Whether a sound table for this image, with or without shared runs as asked for, is under the path already. -1 only
// where memory is missing to look.
int qutc_cache_holds(const char *path, const struct input_image *image, bool small, bool *holds,
                     struct base_error *error);

// Creates a directory and its parents where they are missing.
int qutc_make_directories(const char *path, struct base_error *error);

#endif
