// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_stacks.h"

void agent_probe_stacks_begin(void) {}
