// SPDX-License-Identifier: Apache-2.0
#include "cli/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 31, CHANGES_MAX = 2 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// Capitals and small letters are the same.
static char small(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool is_same(char one, char other)
{
    return small(one) == small(other);
}

// How many letters are to be put in, left out, replaced or swapped with their neighbour.
static unsigned distance(const char *one, size_t one_length, const char *other, size_t other_length)
{
    unsigned rows[3][WORD_MAX + 1]; // of the letters before, and of this one
    unsigned *before_last = rows[0], *last = rows[1], *row = rows[2];
    for (unsigned j = 0; j <= other_length; j++)
        last[j] = j;
    for (size_t i = 1; i <= one_length; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= other_length; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + !is_same(one[i - 1], other[j - 1]));
            if (i > 1 && j > 1 && is_same(one[i - 1], other[j - 2]) && is_same(one[i - 2], other[j - 1]))
                row[j] = least(row[j], before_last[j - 2] + 1);
        }
        unsigned *free_row = before_last;
        before_last = last;
        last = row;
        row = free_row;
    }
    return last[other_length];
}

void cli_nearest_begin(struct cli_nearest *nearest, const char *typed, size_t length)
{
    // A third of the letters may differ, rounded: of two or three, one, of five, two.
    unsigned changes = least(CHANGES_MAX, (least(WORD_MAX, (unsigned)length) + 1) / 3);
    *nearest = (struct cli_nearest){.typed = typed, .length = length, .distance = changes + 1};
}

void cli_nearest_offer(struct cli_nearest *nearest, const char *word)
{
    size_t length = strlen(word);
    if (nearest->length > WORD_MAX || length > WORD_MAX)
        return;
    unsigned found = distance(nearest->typed, nearest->length, word, length);
    // Hardly anybody gets the first letter wrong: of two that are equally near, it says which.
    const bool is_nearer =
        found < nearest->distance || (nearest->word && found == nearest->distance &&
                                      !is_same(*nearest->word, *nearest->typed) && is_same(*word, *nearest->typed));
    if (!is_nearer)
        return;
    nearest->word = word;
    nearest->distance = found;
}
