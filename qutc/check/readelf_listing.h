// SPDX-License-Identifier: Apache-2.0
// What `readelf -u` prints of an Arm exception index, taken in: functions, and the steps of each. Everything here is
// read from binutils' words for the instructions, not from the instructions.
#ifndef QUTC_CHECK_READELF_LISTING_H
#define QUTC_CHECK_READELF_LISTING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "qutc/input/image.h"

enum check_readelf_do {
    CHECK_READELF_MOVE, // vsp = vsp + bytes
    CHECK_READELF_SET,  // vsp = r[reg]
    CHECK_READELF_POP,  // core registers under core_mask
    CHECK_READELF_FINISH,
    CHECK_READELF_REFUSE,  // "Refuse to unwind", "[cantunwind]"
    CHECK_READELF_UNKNOWN, // words that say no more than that they do not know; `reason`
};

struct check_readelf_step {
    enum check_readelf_do what;
    unsigned reg;
    unsigned core_mask;
    int64_t bytes;
    bool ra_auth_code; // among what was popped
    const char *reason;
};

struct check_readelf_function {
    uint32_t start; // without the Thumb bit
    size_t first_step;
    size_t step_count;
    uint32_t table_entry; // address in .ARM.extab, or 0
    bool named_only;      // a personality routine, and nothing of what it would be given
};

struct check_readelf_listing {
    BASE_VECTOR(struct check_readelf_function) functions;
    BASE_VECTOR(struct check_readelf_step) steps;
    bool in_section; // the lines now read belong to the section asked for
    bool section_seen;
    size_t functions_stated; // how many entries readelf says the section has
};

// Takes in one line of output, without its newline. `section_name` is the section asked for.
int check_readelf_line(struct check_readelf_listing *listing, const char *section_name, char *line,
                       struct base_error *error);
void check_readelf_listing_free(struct check_readelf_listing *listing);

// Runs readelf over the image and takes in all it prints of the section. Blocks until readelf ends.
int check_readelf_run(const struct input_image *image, const char *section_name, struct check_readelf_listing *listing,
                      struct base_error *error);

#endif
