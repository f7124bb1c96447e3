// SPDX-License-Identifier: Apache-2.0
// A terminal that shows one screen after the other: what any VT100 knows. Whatever ends us, it is as it was before.
#ifndef TRACER_TOP_TERMINAL_H
#define TRACER_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct top_terminal {
    bool is_taken;
    struct termios before;
    unsigned columns, rows;
};

// Standard input and output are one. Takes it: keys come one by one, unseen, and the screen is another one, without a
// cursor. -1: errno says why.
int top_terminal_take(struct top_terminal *terminal);
void top_terminal_give_back(struct top_terminal *terminal);
void top_terminal_measure(struct top_terminal *terminal);

enum top_key {
    TOP_KEY_NONE,
    TOP_KEY_UP = 256, // below: the character itself
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
};
// The next key of those that were pressed; *is_open false: there will be none any more.
int top_terminal_key(bool *is_open);

// Draws lines (each ends with a newline) from the terminal's first row on, cut at its last column and row. The first
// `head_count` are always shown, of the others those from `first` on. Returns how many lines there are behind the head.
size_t top_terminal_draw(const struct top_terminal *terminal, const char *lines, size_t head_count, size_t first);

#endif
