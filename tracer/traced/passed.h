// SPDX-License-Identifier: Apache-2.0
// Places of a ring that were passed over, since their writer had not come back to them: a handler had interrupted it.
// Most were left by a jump and are never written. One that is written after all is counted as lost, and not taken for
// an event of a later round. Of one ring; zeros at the beginning.
#ifndef TRACER_TRACED_PASSED_H
#define TRACER_TRACED_PASSED_H

#include "formats/qut_calls.h"

enum { TRACED_PASSED_MAX = 32 };

struct traced_passed {
    struct traced_passed_place {
        uint64_t at;    // of all events of its ring
        bool is_behind; // all writers of this round are: it may be come to again
    } places[TRACED_PASSED_MAX];
    unsigned count;
    uint64_t last_ticks;    // of the event that was read last
    uint64_t enters, exits; // written late, and not told yet
};

// Of more than there is room for the oldest is forgotten.
void traced_passed_add(struct traced_passed *passed, uint64_t at);

// Before readers say that all up to `tail` may be written anew, each time: what was written late is taken away.
// is_last: nobody writes any more.
void traced_passed_look(struct traced_passed *passed, struct qut_calls_event *places, uint64_t mask, uint64_t tail,
                        bool is_last);

// An event that was taken at `tail`: whether it is one of the round before, written late. Then there is none yet.
bool traced_passed_is_late(struct traced_passed *passed, const struct qut_calls_event *event, uint64_t mask,
                           uint64_t tail);

#endif
