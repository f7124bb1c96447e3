// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/image_store.h"

void input_image_note_damage(struct input_image *image, const struct base_error *damage)
{
    if (image->damage_count++ == 0)
        image->damage = *damage;
}
