// SPDX-License-Identifier: Apache-2.0
#include "tests/support/exchange.h"

const char exchange_enter[1], exchange_twice[1], exchange_exit[1];

bool exchange_prepare(uintptr_t sp)
{
    (void)sp;
    return false;
}
