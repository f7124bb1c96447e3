// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/image_store.h"

void input_image_note_no_memory(const struct input_image *image, const struct base_error *why)
{
    if (why->reason == BASE_ERR_NO_MEMORY)
        base_fail_as(&image->store->no_memory, why);
}

int input_image_check_memory(const struct input_image *image, struct base_error *error)
{
    return image->store->no_memory.reason ? base_fail_as(error, &image->store->no_memory) : 0;
}

void input_image_note_damage(struct input_image *image, const struct base_error *damage)
{
    input_image_note_no_memory(image, damage);
    if (image->damage_count++ == 0)
        image->damage = *damage;
}
