// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/passed.h"

#include <string.h>

enum { NEAR = 8 }; // more than handlers are in each other between two instructions

static void forget(struct traced_passed *passed, unsigned index)
{
    passed->count--;
    memmove(&passed->places[index], &passed->places[index + 1], (passed->count - index) * sizeof passed->places[0]);
}

static void note_late(struct traced_passed *passed, const struct qut_calls_event *event)
{
    *(qut_calls_word_is_exit(event->word) ? &passed->exits : &passed->enters) += 1;
}

void traced_passed_add(struct traced_passed *passed, uint64_t at)
{
    if (passed->count == TRACED_PASSED_MAX)
        forget(passed, 0);
    passed->places[passed->count++] = (struct traced_passed_place){.at = at};
}

// Whether a writer of the next round may have come to the place: then it has been at those before it.
static bool is_near(const struct qut_calls_event *places, uint64_t mask, uint64_t tail, uint64_t at)
{
    if (tail + NEAR > at + mask + 1)
        return true;
    for (unsigned i = 1; i <= NEAR; i++)
        if (__atomic_load_n(&places[(at - i) & mask].word, __ATOMIC_ACQUIRE) != 0)
            return true;
    return false;
}

// Whether nothing that is at the place can be of another round than its own.
static bool is_late(const struct traced_passed_place *place, const struct qut_calls_event *places, uint64_t mask,
                    uint64_t tail, bool is_last)
{
    // Looked at before those before it.
    if (__atomic_load_n(&places[place->at & mask].word, __ATOMIC_ACQUIRE) == 0)
        return false;
    return !place->is_behind || is_last || !is_near(places, mask, tail, place->at);
}

void traced_passed_look(struct traced_passed *passed, struct qut_calls_event *places, uint64_t mask, uint64_t tail,
                        bool is_last)
{
    for (unsigned i = 0; i < passed->count;) { // the first ones first: they stand before others
        struct traced_passed_place *place = &passed->places[i];
        struct qut_calls_event event;
        if (tail > place->at + mask + 1) { // it was read in the next round
            forget(passed, i);
            continue;
        }
        if (is_late(place, places, mask, tail, is_last) && qut_calls_event_take(&places[place->at & mask], &event)) {
            note_late(passed, &event);
            forget(passed, i);
            continue;
        }
        place->is_behind = tail - place->at > QUT_CALLS_SPARE_EVENTS;
        i++;
    }
}

bool traced_passed_is_late(struct traced_passed *passed, const struct qut_calls_event *event, uint64_t mask,
                           uint64_t tail)
{
    bool is_late = false;
    for (unsigned i = passed->count; i-- > 0;) {
        if (passed->places[i].at + mask + 1 != tail)
            continue;
        is_late = event->time_ticks < passed->last_ticks; // that of this round is later than those before it
        forget(passed, i);
        break;
    }
    if (is_late)
        note_late(passed, event);
    else
        passed->last_ticks = event->time_ticks;
    return is_late;
}
