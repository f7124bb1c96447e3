// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_JAVASCRIPT_INSIDE_H
#define QUT_JAVASCRIPT_INSIDE_H

#include <qut/local.h>

#include "libqut/javascript/javascript.h"
#include "libqut/modules/registry.h"
#include "libqut/v8/known.h"

#pragma GCC visibility push(hidden)

enum {
    JAVASCRIPT_ROOMS = 16, // threads that take their functions at the same moment
    JAVASCRIPT_FUNCTIONS_MAX = 1 << 15,
};

// V8, as our thread found it. Replaced as a whole; freed when no walk can look at it.
struct javascript_known {
    struct modules_retired retired;
    struct v8_layout layout;
    uint8_t canary[MODULES_CANARY_BYTES]; // of its module's build-id: what is mapped a second time has the same
};

// What a thread works with while it takes its functions.
struct javascript_room {
    _Atomic uint32_t is_taken;
    struct qut_cursor cursor;
    size_t place_count;
    struct v8_place places[V8_PLACES_MAX];
    uint8_t frame_bytes[V8_ASKED_MAX][V8_FRAME_BYTES];
    uint64_t pointers[V8_ASKED_MAX];
    struct qut_frame native[WALK_NOTED_MAX];
    struct v8_known known;
};

// ---- numbers.c

bool javascript_numbers_prepare(void);
void javascript_numbers_forget(void);
void javascript_numbers_after_fork(void);
// The number of a function; 0: there is no room. Signal-safe.
uint32_t javascript_number_of(const struct v8_function *function);
// It was met for the trace with that mark. Signal-safe.
void javascript_meet(uint32_t number, uint32_t mark);

// ---- own_stack.c

bool javascript_rooms_prepare(void);
void javascript_rooms_forget(void);

#pragma GCC visibility pop

#endif
