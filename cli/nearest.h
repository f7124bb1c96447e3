// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?": the word that what was typed is closest to.
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

struct cli_nearest {
    const char *typed;
    size_t length;     // of typed that counts
    const char *word;  // the nearest so far; NULL: none is near enough
    unsigned distance; // of word
};

// Nothing is near to an empty word.
void cli_nearest_begin(struct cli_nearest *nearest, const char *typed, size_t length);
void cli_nearest_offer(struct cli_nearest *nearest, const char *word);

#endif
