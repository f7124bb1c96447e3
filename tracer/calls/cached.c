// SPDX-License-Identifier: Apache-2.0
// Plans beside the tables of the cache: "x86_64-9f3c....plan". As with tables, whose file it is decides where one lies,
// and a directory that others may write to is not believed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/cache.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tracer/calls/inside.h"

enum { PLAN_BYTES_MAX = 1 << 30 };

// Where the plan of an image is. NULL: nowhere.
static char *find_place(const char *directory, const struct input_image *image)
{
    static const char table_end[] = ".qut";
    char *own = NULL, *table = NULL, *place = NULL;
    if (!directory && qutc_cache_directory(&own, NULL) != 0)
        return NULL;
    directory = directory ? directory : own;
    if (qutc_cache_is_safe(directory, NULL) == 0 &&
        qutc_cache_path(directory, image, qutc_cache_proof_by_user(), &table, NULL) == 0) {
        size_t length = strlen(table);
        size_t end = sizeof table_end - 1;
        if (length > end && strcmp(table + length - end, table_end) == 0 &&
            asprintf(&place, "%.*s.plan", (int)(length - end), table) < 0)
            place = NULL;
    }
    free(table);
    free(own);
    return place;
}

static bool is_of(const struct calls_plan *plan, const struct input_image *image)
{
    const struct qut_plan_header *header = plan->header;
    return header->architecture == image->arch->id && header->identity_kind == image->identity_kind &&
           header->identity_size == image->identity_size &&
           memcmp(header->identity, image->identity, image->identity_size) == 0 &&
           header->file_bytes == image->size_bytes; // stripped, it has the same build-id and other names
}

static bool read_plan(const char *place, const struct input_image *image, struct calls_plan **plan)
{
    uint8_t *bytes;
    size_t size;
    if (qutc_read_file(place, PLAN_BYTES_MAX, &bytes, &size, NULL) != 0 ||
        calls_plan_take(bytes, size, plan, NULL) != 0)
        return false;
    if (is_of(*plan, image))
        return true;
    calls_plan_free(*plan);
    *plan = NULL;
    return false;
}

int calls_plan_get(const char *path, const char *name, struct calls_plan_cache *cache, struct calls_plan **plan,
                   struct base_error *error)
{
    const struct input_image_options options = {.identity_only = true};
    struct input_image *image;
    cache->was_cached = false;
    if (calls_refuse_module_name(name ? name : calls_module_name(path)) != QUT_PLAN_OK)
        return calls_plan_make(path, name, plan, error);
    if (input_image_open(path, NULL, 0, 0, &options, &image, error) != 0)
        return -1;
    char *place = find_place(cache->directory, image);
    cache->was_cached = place && read_plan(place, image, plan);
    input_image_close(image);
    int result = cache->was_cached ? 0 : calls_plan_make(path, name, plan, error);
    if (result == 0 && place && !cache->was_cached && qutc_cache_make_room(place, NULL) == 0)
        qutc_publish(place, (*plan)->bytes, (*plan)->size_bytes, false, NULL);
    free(place);
    return result;
}
