// SPDX-License-Identifier: Apache-2.0
// Machines on which nobody may exchange what other threads run. On x86-64 a jump is longer than what is sure to be read
// as one: threads have to stand still, which a process cannot ask of its own.
#include "agent/own/inside.h"

const struct own_machine own_machine = {.place = NULL};
