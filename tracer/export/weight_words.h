// SPDX-License-Identifier: Apache-2.0
// What samples count for (tracer/analysis/weights.h), and what that is called in exports.
#ifndef TRACER_EXPORT_WEIGHT_WORDS_H
#define TRACER_EXPORT_WEIGHT_WORDS_H

#include "base/quantity.h"
#include "tracer/analysis/weights.h"
#include "tracer/export/export.h"

const char *export_weights_unit(unsigned weight); // "samples", "nanoseconds", "bytes", "allocations", "faults"
const char *
export_weights_name(unsigned weight); // "samples", "time", "cpu", "bytes", "blocked", "allocations", "faults"

// For people: "320 ms", "3.40 MB", "12 faults", "290".
struct base_quantity export_weights_amount(unsigned weight, uint64_t amount);

#endif
