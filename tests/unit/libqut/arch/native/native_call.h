// SPDX-License-Identifier: Apache-2.0
// What each folder's call.S offers: functions of which every register and address is known.
#ifndef TESTS_UNIT_LIBQUT_ARCH_NATIVE_NATIVE_CALL_H
#define TESTS_UNIT_LIBQUT_ARCH_NATIVE_NATIVE_CALL_H

#include <stdint.h>

#include "formats/qut_rule.h"

// Words that call.S reads and writes at fixed places.
struct native_call {
    uintptr_t tracked[QUT_TRACKED_MAX]; // put into the tracked registers before the call
    uintptr_t arguments[3];             // passed
    uintptr_t return_address;           // set: of the call, without Thumb bit
    uintptr_t sp;                       // set: at the call
};

// Calls `function` and returns what it returned.
uintptr_t native_call(void (*function)(void), struct native_call *call);

// Its first instruction stores at the address in the second tracked register; it uses no stack.
void native_store(void);

#endif
