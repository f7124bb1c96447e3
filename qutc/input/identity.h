// SPDX-License-Identifier: Apache-2.0
// What an image is known by: its build-id, or, where the linker gave it none, a hash of the file.
#ifndef QUTC_INPUT_IDENTITY_H
#define QUTC_INPUT_IDENTITY_H

#include "qutc/input/elf_file.h"

// The NT_GNU_BUILD_ID note's description (size 0: there is none).
struct qutc_bytes qutc_build_id(const struct qutc_elf *elf);

// 256 bits over all bytes. Tells different files apart, not forged ones: it is no cryptographic hash. Takes little memory
// where the file is read by need.
void qutc_content_hash(const struct qutc_elf *elf, uint8_t hash[32]);

#endif
