// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/strings.h"

#include <stdlib.h>
#include <string.h>

static size_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); // FNV-1a
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32);
}

static uint32_t *slot_of(const struct report_strings *strings, const char *text)
{
    for (size_t i = hash_of(text);; i++) {
        uint32_t *slot = &strings->slots[i & (strings->capacity - 1)];
        if (*slot == 0 || strcmp(strings->texts[*slot - 1], text) == 0)
            return slot;
    }
}

static bool grow(struct report_strings *strings)
{
    size_t capacity = strings->capacity ? strings->capacity * 2 : 1024;
    uint32_t *slots = calloc(capacity, sizeof *slots);
    const char **texts = realloc(strings->texts, capacity / 2 * sizeof *texts);
    if (texts)
        strings->texts = texts;
    if (!slots || !texts) {
        free(slots);
        strings->has_failed = true;
        return false;
    }
    free(strings->slots);
    strings->slots = slots;
    strings->capacity = capacity;
    for (size_t i = 0; i < strings->count; i++)
        *slot_of(strings, texts[i]) = (uint32_t)i + 1;
    return true;
}

static uint32_t add(struct report_strings *strings, const char *text)
{
    if (strings->has_failed || (strings->count >= strings->capacity / 2 && !grow(strings)))
        return 0;
    uint32_t *slot = slot_of(strings, text);
    if (*slot == 0) {
        strings->texts[strings->count] = text;
        *slot = (uint32_t)++strings->count;
    }
    return *slot - 1;
}

uint32_t report_strings_add(struct report_strings *strings, const char *text)
{
    if (strings->count == 0)
        add(strings, "");
    return add(strings, text ? text : "");
}

void report_strings_free(struct report_strings *strings)
{
    free(strings->texts);
    free(strings->slots);
    *strings = (struct report_strings){0};
}
