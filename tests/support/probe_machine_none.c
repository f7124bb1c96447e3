// SPDX-License-Identifier: Apache-2.0
// For machines without a translator.
#include <stddef.h>

#include "tests/support/probe_machine.h"

probe_machine_enter_fn *const probe_machine_enter = NULL;
