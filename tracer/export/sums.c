// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/sums.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 1024 };

static size_t place_of(const struct sums *sums, uint32_t node, uint32_t kind)
{
    uint64_t hash = (node * 256ull + kind) * 0x9e3779b97f4a7c15u;
    size_t place = (size_t)(hash >> 32) & (sums->place_count - 1);
    while (sums->places[place]) {
        const struct sum *sum = &sums->items[sums->places[place] - 1];
        if (sum->node == node && sum->kind == kind)
            break;
        place = (place + 1) & (sums->place_count - 1);
    }
    return place;
}

static bool grow(struct sums *sums)
{
    size_t room = sums->room ? sums->room * 2 : ROOM_FIRST;
    struct sum *items = reallocarray(sums->items, room, sizeof *items);
    if (!items)
        return false;
    sums->items = items;
    uint32_t *places = calloc(room * 2, sizeof *places);
    if (!places)
        return false;
    free(sums->places);
    sums->places = places;
    sums->room = room;
    sums->place_count = room * 2;
    for (size_t i = 0; i < sums->count; i++)
        places[place_of(sums, items[i].node, items[i].kind)] = (uint32_t)i + 1;
    return true;
}

static struct sum *sum_of(struct sums *sums, uint32_t node, uint32_t kind)
{
    if (sums->count == sums->room && !grow(sums))
        return NULL;
    uint32_t *place = &sums->places[place_of(sums, node, kind)];
    if (!*place) {
        sums->items[sums->count++] = (struct sum){.node = node, .kind = kind};
        *place = (uint32_t)sums->count;
    }
    return &sums->items[*place - 1];
}

static void empty(struct sums *sums)
{
    if (sums->places)
        memset(sums->places, 0, sums->place_count * sizeof *sums->places);
    sums->count = 0;
}

int sums_of_thread(struct sums *sums, const struct trace *trace, const struct trace_thread *thread, bool by_kind)
{
    struct weights_walk walk;
    struct weights weights;
    const struct trace_sample *sample;
    empty(sums);
    weights_begin(&walk, trace, thread);
    while (weights_next(&walk, &sample, &weights)) {
        struct sum *sum = sum_of(sums, sample->node, by_kind ? sample->kind : 0);
        if (!sum)
            return -1;
        for (unsigned i = 0; i < EXPORT_WEIGHT_COUNT; i++)
            sum->of[i] += weights.of[i];
    }
    return 0;
}

void sums_free(struct sums *sums)
{
    free(sums->items);
    free(sums->places);
    *sums = (struct sums){0};
}
