// SPDX-License-Identifier: Apache-2.0
// In which order a warm-up compiles.
#ifndef QUTC_WARM_UP_ORDER_H
#define QUTC_WARM_UP_ORDER_H

#include "qutc/cache_keeper.h"
#include "qutc/input/inputs.h"

// Every stack goes through it: the loader, libc, ART, its boot images.
bool qutc_is_core(const char *name);

// Indexes of the inputs in order of need; the first mapped_count inputs are mapped by a process. What earlier runs died
// at comes last. Allocated; NULL for want of memory.
size_t *qutc_warm_up_order(const struct input_inputs *inputs, size_t mapped_count, const struct qutc_keeper *keeper);

#endif
