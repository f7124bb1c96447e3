// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/otlp/inside.h"

static uint32_t need(struct otlp_attributes *attributes, const struct otlp_attribute *wanted)
{
    const uint64_t hash = base_hash_word(base_hash_word(wanted->key, wanted->number), (uintptr_t)wanted->text);
    for (uint32_t step = 0, i; (i = base_hash_next(&attributes->index, hash, &step)) != BASE_HASH_NONE;) {
        const struct otlp_attribute *other = &attributes->items[i];
        if (other->key == wanted->key && other->text == wanted->text && other->number == wanted->number)
            return i + 1;
    }
    struct otlp_attribute *attribute = BASE_ADD(attributes);
    if (!attribute || !base_hash_add(&attributes->index, hash, (uint32_t)attributes->count - 1)) {
        attributes->has_failed = true;
        return 0;
    }
    *attribute = *wanted;
    return (uint32_t)attributes->count;
}

uint32_t export_otlp_attribute_text(struct otlp_attributes *attributes, struct base_interner *strings, const char *key,
                                    const char *text)
{
    const uint32_t number = base_interner_add(&attributes->texts, text); // equal texts are at one address
    attributes->has_failed = attributes->has_failed || attributes->texts.has_failed;
    return need(attributes, &(struct otlp_attribute){.key = base_interner_add(strings, key),
                                                     .text = base_interner_text(&attributes->texts, number)});
}

uint32_t export_otlp_attribute_number(struct otlp_attributes *attributes, struct base_interner *strings,
                                      const char *key, uint64_t number)
{
    return need(attributes, &(struct otlp_attribute){.key = base_interner_add(strings, key), .number = number});
}

void export_otlp_attributes_free(struct otlp_attributes *attributes)
{
    base_vector_free(&attributes->vector);
    base_hash_free(&attributes->index);
    base_interner_free(&attributes->texts);
}
