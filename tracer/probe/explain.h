// SPDX-License-Identifier: Apache-2.0
// What a script will do, in plain words, before it does it.
#ifndef TRACER_PROBE_EXPLAIN_H
#define TRACER_PROBE_EXPLAIN_H

#include "tracer/probe/script.h"

struct probe_counts { // of a place
    uint32_t functions, callers;
};
// Of a script that was compiled. counts: how many each of its places means, in their order; NULL: not known. malloc's;
// NULL: no memory. What it says of instructions and of reads is of the image, and of the longest way through it: no run
// takes more.
char *probe_explain(const struct probe_script *script, const struct probe_counts *counts);

#endif
