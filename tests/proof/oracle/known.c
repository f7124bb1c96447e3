// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/known.h"

#include <stdio.h>
#include <string.h>

enum { CODE_BYTES_MIN = 8 };

static unsigned parse_hex(const char *text, uint8_t code[KNOWN_CODE_MAX])
{
    unsigned bytes = 0, value;
    while (bytes < KNOWN_CODE_MAX && sscanf(text + 2 * (size_t)bytes, "%2x", &value) == 1)
        code[bytes++] = (uint8_t)value;
    return bytes;
}

void known_open(struct known_mistakes *known, struct guest *guest, const char *path)
{
    char line[512], code[2 * KNOWN_CODE_MAX + 1];
    *known = (struct known_mistakes){.guest = guest};
    FILE *file = path ? fopen(path, "r") : NULL;
    while (file && known->count < KNOWN_MISTAKES_MAX && fgets(line, sizeof line, file)) {
        struct known_mistake *item = &known->items[known->count];
        unsigned long size_bytes;
        if (line[0] == '#' || sscanf(line, "%63s %63s %lu %32s", item->module, item->symbol, &size_bytes, code) != 4)
            continue;
        item->size_bytes = size_bytes;
        item->code_bytes = parse_hex(code, item->code);
        known->count += item->code_bytes >= CODE_BYTES_MIN;
    }
    if (file)
        fclose(file);
}

static bool is_inside(const struct known_mistakes *known, const struct known_mistake *item, uint64_t pc)
{
    uint8_t code[KNOWN_CODE_MAX];
    for (uint64_t back = 0; back < item->size_bytes && back <= pc; back++)
        if (guest_read_bytes(known->guest, pc - back, code, item->code_bytes) == item->code_bytes &&
            memcmp(code, item->code, item->code_bytes) == 0)
            return true;
    return false;
}

const char *known_mistake(const struct known_mistakes *known, const struct oracle_file *file, uint64_t pc)
{
    if (!file)
        return NULL;
    const char *slash = strrchr(file->path, '/');
    for (unsigned i = 0; i < known->count; i++)
        if ((strcmp(known->items[i].module, "*") == 0 ||
             strcmp(known->items[i].module, slash ? slash + 1 : file->path) == 0) &&
            is_inside(known, &known->items[i], pc))
            return known->items[i].symbol;
    return NULL;
}
