// SPDX-License-Identifier: Apache-2.0
// The same function, of the same arguments by name, which are elsewhere in each of the two files.
#ifndef TESTS_WHOLE_PROBE_ITEM_H
#define TESTS_WHOLE_PROBE_ITEM_H

#ifdef PROBE_LATER
struct probe_item {
    long other;
    int size;
};
#else
struct probe_item {
    short size;
    unsigned kind : 3;
    char name[8]; // without an end, if it is as long
    struct probe_item *next;
};
#endif

struct probe_item *probe_take(struct probe_item *item, int count, const char *label);
void probe_later(void); // calls that of its own file

#endif
