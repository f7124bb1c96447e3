// SPDX-License-Identifier: Apache-2.0
// What `readelf -u` prints of an Arm exception index, taken in: functions, and the steps of each. Everything here is
// read from binutils' words for the instructions, not from the instructions.
#ifndef QUTC_CHECK_READELF_LISTING_H
#define QUTC_CHECK_READELF_LISTING_H

#include <stddef.h>
#include <stdint.h>

#include "qutc/base/error.h"
#include "qutc/input/image.h"

enum qutc_readelf_do {
    QUTC_READELF_MOVE, // vsp = vsp + bytes
    QUTC_READELF_SET,  // vsp = r[reg]
    QUTC_READELF_POP,  // core registers under core_mask
    QUTC_READELF_FINISH,
    QUTC_READELF_REFUSE,  // "Refuse to unwind", "[cantunwind]"
    QUTC_READELF_UNKNOWN, // words that say no more than that they do not know; `reason`
};

struct qutc_readelf_step {
    enum qutc_readelf_do what;
    unsigned reg;
    unsigned core_mask;
    int64_t bytes;
    bool ra_auth_code; // among what was popped
    const char *reason;
};

struct qutc_readelf_function {
    uint32_t start; // without the Thumb bit
    size_t first_step;
    size_t step_count;
    uint32_t table_entry; // address in .ARM.extab, or 0
    bool named_only;      // a personality routine, and nothing of what it would be given
};

struct qutc_readelf_listing {
    struct qutc_readelf_function *functions;
    size_t function_count, function_capacity;
    struct qutc_readelf_step *steps;
    size_t step_count, step_capacity;
    bool in_section; // the lines now read belong to the section asked for
    bool section_seen;
    size_t functions_stated; // how many entries readelf says the section has
};

// Takes in one line of output, without its newline. `section_name` is the section asked for.
int qutc_readelf_line(struct qutc_readelf_listing *listing, const char *section_name, char *line,
                      struct qutc_error *error);
void qutc_readelf_listing_free(struct qutc_readelf_listing *listing);

// Runs readelf over the image and takes in all it prints of the section. Blocks until readelf ends.
int qutc_readelf_run(const struct qutc_image *image, const char *section_name, struct qutc_readelf_listing *listing,
                     struct qutc_error *error);

#endif
