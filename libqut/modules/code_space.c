// SPDX-License-Identifier: Apache-2.0
#include "libqut/modules/code_space.h"

#include <stdlib.h>
#include <string.h>

// What tells a module from another, wherever it is loaded.
struct place {
    struct place *next;
    uint64_t base, code_bytes;
    uint64_t content_hash;
    uint32_t build_id_size;
    uint8_t build_id[ELF_BUILD_ID_MAX];
    uint8_t oat_identity[ART_OAT_IDENTITY_BYTES];
    uint64_t has_oat_identity;
    char name[];
};

static struct place *places; // for the process's life
static uint64_t next_base = MODULES_CODE_SPACE_FIRST;

static bool is_place_of(const struct place *place, const struct modules_identity *identity, const char *name)
{
    if (place->code_bytes != identity->end - identity->start || place->build_id_size != identity->build_id_size ||
        place->has_oat_identity != identity->has_oat_identity)
        return false;
    if (identity->build_id_size)
        return memcmp(place->build_id, identity->build_id, identity->build_id_size) == 0;
    if (identity->has_oat_identity)
        return memcmp(place->oat_identity, identity->oat_identity, sizeof place->oat_identity) == 0;
    // The program and the loader have no hash, and nothing ever takes their place.
    return place->content_hash == identity->content_hash && strcmp(place->name, name) == 0;
}

uint64_t modules_code_space_of(const struct modules_identity *identity, const char *name)
{
    for (const struct place *place = places; place; place = place->next)
        if (is_place_of(place, identity, name))
            return place->base;
    uint64_t code_bytes = identity->end - identity->start, space_end = (uint64_t)1 << MODULES_CODE_SPACE_BITS;
    if (code_bytes > space_end - MODULES_CODE_SPACE_ALIGNMENT - next_base)
        return 0;
    struct place *place = calloc(1, sizeof *place + strlen(name) + 1);
    if (!place)
        return 0;
    place->base = next_base;
    place->code_bytes = code_bytes;
    place->content_hash = identity->content_hash;
    place->build_id_size = identity->build_id_size;
    memcpy(place->build_id, identity->build_id, sizeof place->build_id);
    memcpy(place->oat_identity, identity->oat_identity, sizeof place->oat_identity);
    place->has_oat_identity = identity->has_oat_identity;
    memcpy(place->name, name, strlen(name) + 1);
    // One byte between modules at least: what lies right behind one belongs to none.
    next_base = (next_base + code_bytes + MODULES_CODE_SPACE_ALIGNMENT) & ~(uint64_t)(MODULES_CODE_SPACE_ALIGNMENT - 1);
    place->next = places;
    places = place;
    return place->base;
}
