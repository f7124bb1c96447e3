// SPDX-License-Identifier: Apache-2.0
// Where there is no C++ compiler.
#include "tests/proof/storm/storm.h"

void storm_exceptions(unsigned round)
{
    (void)round;
}
