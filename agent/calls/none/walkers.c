// SPDX-License-Identifier: Apache-2.0
// Where no program is known that has such a place.
#include "agent/calls/inside.h"

void calls_help_walkers(void) {}

void calls_leave_walkers(void) {}
