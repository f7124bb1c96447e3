// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_JAVASCRIPT_INSIDE_H
#define QUT_JAVASCRIPT_INSIDE_H

#include <qut/local.h>

#include "libqut/javascript/javascript.h"
#include "libqut/modules/registry.h"
#include "libqut/v8/known.h"

#pragma GCC visibility push(hidden)

enum { JAVASCRIPT_FUNCTIONS_MAX = 1 << 15 };

// V8, as our thread found it. Replaced as a whole; freed when no walk can look at it.
struct javascript_known {
    struct modules_retired retired;
    struct v8_layout layout;
    uint8_t canary[MODULES_CANARY_BYTES]; // of its module's build-id: what is mapped a second time has the same
};

// What a thread works with while it takes its functions.
struct javascript_room {
    struct functions_room room;
    size_t place_count;
    struct v8_place places[V8_PLACES_MAX];
    uint8_t frame_bytes[V8_ASKED_MAX][V8_FRAME_BYTES];
    uint64_t pointers[V8_ASKED_MAX];
    struct qut_frame native[WALK_NOTED_MAX];
    struct v8_known known;
};

// ---- numbers.c

extern struct functions_table javascript_functions;
// The number of a function; 0: there is no room. Signal-safe.
uint32_t javascript_number_of(const struct v8_function *function);

// ---- own_stack.c

extern struct functions_rooms javascript_rooms;

#pragma GCC visibility pop

#endif
