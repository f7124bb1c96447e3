// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/labels.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool take_label(const char *text, struct analysis_labels *labels)
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

// "WORD=...", as labels are.
static bool looks_like_label(const char *text)
{
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    return length > 0 && text[length] == '=';
}

const char *analysis_take_labels(char *operand, struct analysis_labels *labels)
{
    *labels = (struct analysis_labels){0};
    while (access(operand, F_OK) != 0) {
        char *comma = strrchr(operand, ',');
        if (!comma)
            return NULL;
        if (!take_label(comma + 1, labels))
            return looks_like_label(comma + 1) ? comma + 1 : NULL;
        *comma = 0;
    }
    return NULL;
}
