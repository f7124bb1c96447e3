// SPDX-License-Identifier: Apache-2.0
// What a trace is of, said beside its name: a trace knows no hosts.
#include <string.h>
#include <unistd.h>

#include "tracer/tables/tables.h"

static bool take_label(const char *text, struct tables_labels *labels)
{
    const struct {
        const char *key;
        const char **label;
    } known[] = {{"host=", &labels->host}, {"service=", &labels->service}, {"version=", &labels->version}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(text, known[i].key, strlen(known[i].key)) == 0) {
            *known[i].label = text + strlen(known[i].key);
            return true;
        }
    return false;
}

void tables_take_labels(char *operand, struct tables_labels *labels)
{
    *labels = (struct tables_labels){0};
    while (access(operand, F_OK) != 0) {
        char *comma = strrchr(operand, ',');
        if (!comma || !take_label(comma + 1, labels))
            return;
        *comma = 0;
    }
}
