// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_SUPPORT_OAT_SAMPLES_H
#define TESTS_SUPPORT_OAT_SAMPLES_H

#include "tests/support/oat_writer.h"

struct oat_sample {
    const uint8_t *code;
    uint32_t code_bytes;
    uint32_t body_at, body_end; // where the header's rule holds
    uint32_t frame_bytes, core_mask;
};

const struct oat_sample *oat_sample(const struct arch *arch, enum oat_code code);

#endif
