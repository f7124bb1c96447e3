// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "qutc/input/image_store.h"
#include "qutc/input/oat.h"

static int by_place(const void *a, const void *b)
{
    const struct input_oat_start *x = a, *y = b;
    return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

// Newer files have them in order already.
static void sort(struct input_oat_starts *starts)
{
    size_t i = 1, kept = 0;
    while (i < starts->count && starts->items[i - 1].vaddr <= starts->items[i].vaddr)
        i++;
    if (i < starts->count)
        qsort(starts->items, starts->count, sizeof *starts->items, by_place);
    for (i = 0; i < starts->count; i++)
        if (kept == 0 || starts->items[kept - 1].vaddr != starts->items[i].vaddr)
            starts->items[kept++] = starts->items[i];
    starts->count = kept;
}

int input_oat_find_starts(const struct input_image *image, enum input_oat_naming naming,
                          struct input_oat_starts *starts, struct base_error *error)
{
    const struct input_image_store *store = image->store;
    int result;
    *starts = (struct input_oat_starts){0};
    if (naming == INPUT_OAT_BY_TABLES) {
        result = input_oat_add_classes(image, starts, error);
    } else {
        result = input_oat_add_symbols(image, &store->elf, starts, error);
        if (result == 0 && store->debugdata_elf.arch == image->arch)
            result = input_oat_add_symbols(image, &store->debugdata_elf, starts, error);
    }
    if (result != 0)
        input_oat_starts_free(starts);
    sort(starts);
    return result;
}

void input_oat_starts_free(struct input_oat_starts *starts)
{
    base_vector_free(&starts->vector);
    *starts = (struct input_oat_starts){0};
}
