// SPDX-License-Identifier: Apache-2.0
// The cache: one directory of tables, each named by the architecture and identity of the file it was made for.
// Several processes may fill it at the same time; tables appear whole or not at all.
#ifndef QUTC_CACHE_H
#define QUTC_CACHE_H

#include <stdbool.h>

#include "base/error.h"
#include "qutc/input/image.h"

// $QUT_CACHE, else $XDG_CACHE_HOME/qut, else ~/.cache/qut. *path is allocated; nothing is created.
int qutc_cache_directory(char **path, struct base_error *error);

// "DIRECTORY/x86_64-9f3c....qut". *path is allocated.
int qutc_cache_path(const char *directory, const struct input_image *image, char **path, struct base_error *error);

// Whether a sound table for this image, with or without shared runs as asked for, is under the path already. -1 only
// where memory is missing to look.
int qutc_cache_holds(const char *path, const struct input_image *image, bool small, bool *holds,
                     struct base_error *error);

// Creates a directory and its parents where they are missing.
int qutc_make_directories(const char *path, struct base_error *error);

#endif
