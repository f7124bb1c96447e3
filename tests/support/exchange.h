// SPDX-License-Identifier: Apache-2.0
// Exchanges return addresses, as who traces calls does: a function returns to code of ours, which takes the true
// address from a shadow of the stack, a constant distance below it, and returns there. Its frame program says so.
#ifndef TESTS_SUPPORT_EXCHANGE_H
#define TESTS_SUPPORT_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

enum { EXCHANGE_LOG2 = 46 }; // of the distance

// Lies EXCHANGE_OFFSET bytes behind where the functions' one argument points.
enum { EXCHANGE_OFFSET = 24 };
struct exchange {
    void *target;          // what to enter
    uintptr_t true_return; // of the function that was entered last
};

// Enters the target: as its caller's call would have, but for the return address. exchange_twice as if the target were
// entered by a jump at the end of another such function.
extern const char exchange_enter[], exchange_twice[], exchange_exit[];

// Shadow for functions that are called from here. False: there is none to be had.
bool exchange_prepare(uintptr_t sp);

#endif
