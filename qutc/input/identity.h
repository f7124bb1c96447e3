// SPDX-License-Identifier: Apache-2.0
// What an image is known by: its build-id; of an OAT file without one, what libqut/art/oat_identity.h
// says; of all others a hash of the file.
#ifndef QUTC_INPUT_IDENTITY_H
#define QUTC_INPUT_IDENTITY_H

#include <limits.h>

#include "qutc/input/elf_file.h"
#include "qutc/input/image.h"

// The NT_GNU_BUILD_ID note's description (size 0: there is none).
struct base_bytes input_build_id(const struct input_elf *elf);

// Where the debug file of that build is: "ROOT/.build-id/9f/3c...debug". False: no such path can be.
bool input_debug_path(const char *root, struct base_bytes build_id, char path[PATH_MAX]);

// Only the hash of the file needs all of its bytes, and takes little memory where the file is read by need.
enum input_identity_kind input_identify(const struct input_elf *elf, uint8_t identity[INPUT_IDENTITY_MAX],
                                        uint8_t *size);

#endif
