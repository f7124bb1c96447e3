// SPDX-License-Identifier: Apache-2.0
// In a build without libcurl and libcrypto.
#include "qutc/shelf/inside.h"

static int not_here(struct base_error *error)
{
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "this build has neither libcurl nor libcrypto (-Dfetch)");
}

int shelf_put(const char *root, const struct input_image *image, struct base_bytes table, size_t *packed_bytes,
              struct base_error *error)
{
    (void)root, (void)image, (void)table, (void)packed_bytes;
    return not_here(error);
}

bool shelf_has(const char *root, const struct input_image *image)
{
    (void)root, (void)image;
    return false;
}

int shelf_index(const char *root, const char *key, struct shelf_totals *totals, struct base_error *error)
{
    (void)root, (void)key;
    *totals = (struct shelf_totals){0};
    return not_here(error);
}

struct shelf_wanted shelf_wanted_of(const struct input_image *image)
{
    return (struct shelf_wanted){image->arch, image->identity, image->identity_size, image};
}

enum shelf_answer shelf_take(const struct shelf_source *source, const struct shelf_wanted *wanted, uint8_t **table,
                             size_t *table_size, size_t *from, struct base_error *error)
{
    (void)source, (void)wanted, (void)table_size, (void)from;
    *table = NULL;
    not_here(error);
    return SHELF_REFUSED;
}

int shelf_check_url(const char *url, struct base_error *error)
{
    (void)url;
    return not_here(error);
}
