// SPDX-License-Identifier: Apache-2.0
// What the recorder cannot do without is tried before anything is begun: filters of containers deny single system
// calls, and a recorder that finds out later keeps its command waiting for answers that cannot come.
#ifndef TRACER_RECORD_PROBE_H
#define TRACER_RECORD_PROBE_H

#include "base/error.h"

// 0; or -1, *error names the first call that is denied. Leaves nothing behind.
int record_probe(struct base_error *error);

#endif
