// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/known.h"

#include <stdlib.h>
#include <string.h>

#include "tests/oracle/report.h"

enum { KNOWN_MAX = 32, CODE_MAX = 16 };

// A function, known by its module's name and its first bytes: the libraries are stripped, and addresses differ from
// build to build.
struct known {
    char module[64], symbol[64];
    uint64_t size_bytes;
    uint8_t code[CODE_MAX];
    unsigned code_bytes;
};

static struct known all[KNOWN_MAX];
static unsigned count;

static unsigned parse_hex(const char *text, uint8_t code[CODE_MAX])
{
    unsigned bytes = 0, value;
    while (bytes < CODE_MAX && sscanf(text + 2 * bytes, "%2x", &value) == 1)
        code[bytes++] = (uint8_t)value;
    return bytes;
}

static void read_all(const char *path)
{
    char line[512], code[2 * CODE_MAX + 1];
    FILE *file = fopen(path, "r");
    while (file && count < KNOWN_MAX && fgets(line, sizeof line, file)) {
        struct known *known = &all[count];
        unsigned long size_bytes;
        if (line[0] == '#' ||
            sscanf(line, "%63s %63s %lu %32s", known->module, known->symbol, &size_bytes, code) != 4)
            continue;
        known->size_bytes = size_bytes;
        known->code_bytes = parse_hex(code, known->code);
        count += known->code_bytes >= 8;
    }
    if (file)
        fclose(file);
}

static bool is_inside(struct oracle *oracle, const struct known *known, uint64_t pc)
{
    uint8_t code[CODE_MAX];
    for (uint64_t back = 0; back < known->size_bytes && back <= pc; back++)
        if (guest_read_bytes(&oracle->guest, pc - back, code, known->code_bytes) == known->code_bytes &&
            memcmp(code, known->code, known->code_bytes) == 0)
            return true;
    return false;
}

const char *known_mistake(struct oracle *oracle, const struct judged_pc *at)
{
    if (oracle->known_path && !count)
        read_all(oracle->known_path);
    const char *slash = strrchr(at->file->path, '/');
    for (unsigned i = 0; i < count; i++)
        if (strcmp(all[i].module, slash ? slash + 1 : at->file->path) == 0 && is_inside(oracle, &all[i], at->pc))
            return all[i].symbol;
    return NULL;
}
