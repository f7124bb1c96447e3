// SPDX-License-Identifier: Apache-2.0
// What an image is known by: its build-id; of an OAT file to which nobody gave one, what libqut/art/oat_identity.h
// says; of all others a hash of the file.
#ifndef QUTC_INPUT_IDENTITY_H
#define QUTC_INPUT_IDENTITY_H

#include "qutc/input/elf_file.h"
#include "qutc/input/image.h"

// The NT_GNU_BUILD_ID note's description (size 0: there is none).
struct qutc_bytes qutc_build_id(const struct qutc_elf *elf);

// Only the hash of the file needs all of its bytes, and takes little memory where the file is read by need.
enum qutc_identity_kind qutc_identify(const struct qutc_elf *elf, uint8_t identity[QUTC_IDENTITY_MAX], uint8_t *size);

#endif
