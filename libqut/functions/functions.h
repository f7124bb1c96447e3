// SPDX-License-Identifier: Apache-2.0
// What samples of this process's own threads need of any runtime whose functions are no machine code's (libqut/python,
// libqut/javascript): the thread that is sampled takes its functions in its handler, and our thread tells the trace
// what they are called.
//
//   rooms.c    handlers: what they work with, too large for a stack
//   numbers.c  handlers: which number a function has; our thread: the names of those that were met
//   putting.c  handlers: functions into a walk
#ifndef QUT_FUNCTIONS_FUNCTIONS_H
#define QUT_FUNCTIONS_FUNCTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libqut/walk/noted_walk.h"

#pragma GCC visibility push(hidden)

// ---- rooms.c

enum { FUNCTIONS_ROOMS = 16 }; // threads that take their functions at the same moment

// The first part of what a thread works with.
struct functions_room {
    _Atomic uint32_t is_taken;
};

struct functions_rooms {
    size_t room_bytes;
    unsigned char *all; // NULL: none yet
};

// Memory is reserved, and takes room where it is touched. False: there is none.
bool functions_rooms_prepare(struct functions_rooms *rooms);
void functions_rooms_forget(struct functions_rooms *rooms);
// In a child after fork: threads that worked in one have stayed behind.
void functions_rooms_after_fork(struct functions_rooms *rooms);
// Mostly the one that the thread had before: that has its pages, and what is known of it. NULL: all are taken.
// Signal-safe.
void *functions_room_take(const struct functions_rooms *rooms, uint32_t tid);
void functions_room_give(struct functions_room *room);

// ---- numbers.c

// Functions that were met, each with a number from 1 on. Numbers are given and never taken back: a table of fixed size,
// to which threads add without a lock.

// The first part of what is known of a function.
struct functions_item {
    uint32_t older; // the next one with this hash; 0: none
    // Of the trace that it was met in last; of the one that it was told for last.
    _Atomic uint32_t mark;
    uint32_t told;
    // In the list of those that are to be told.
    _Atomic uint32_t is_listed;
    uint32_t next;
};

struct functions_table {
    size_t item_bytes;
    uint32_t number_end; // no number is as large
    // What stands for a function where an address would: base | number << line_bits | line.
    uint64_t base;
    unsigned line_bits;
    void (*texts)(const void *item, const char **name, const char **file);
    // Both are 0 at first.
    unsigned char *items;
    _Atomic uint32_t *heads; // by hash
    _Atomic uint32_t last;   // number that was given
    _Atomic uint32_t met;    // the first of those that are to be told; 0: none
};

bool functions_table_prepare(struct functions_table *table);
void functions_table_forget(struct functions_table *table);
// In a child after fork: the list may end in the middle, where a thread was about to add to it. What is met again is
// told again.
void functions_table_after_fork(struct functions_table *table);

static inline void *functions_item(const struct functions_table *table, uint32_t number)
{
    return table->items + number * table->item_bytes;
}

struct functions_wanted {
    uint64_t key;
    bool (*is_it)(const void *item, void *context);
    void *context;
    uint32_t first; // of those with this hash when it was looked for
};

// The newest that is it; 0: none. Signal-safe.
uint32_t functions_find(const struct functions_table *table, struct functions_wanted *wanted);
// The number of one that was looked for and not found, or of the same that another thread has added meanwhile; 0: there
// is no room. Calls fill for its own part of the item. Signal-safe.
uint32_t functions_add(struct functions_table *table, struct functions_wanted *wanted,
                       void (*fill)(void *item, const void *context));
// That number was met for the trace with that mark. Signal-safe.
void functions_meet(struct functions_table *table, uint32_t number, uint32_t mark);

typedef void functions_tell(void *context, uint64_t start, uint64_t bytes, const char *text);
// Calls tell for each that was met for the trace with that mark, and not told yet. Under work.
void functions_tell_met(struct functions_table *table, uint32_t mark, functions_tell *tell, void *context);

// ---- putting.c

// Frames that take the place of those that a walk has noted.
struct functions_putting {
    struct walk_noted_walk *notes;
    size_t count;
    bool is_cut; // there was no room for another one
};
// False: there was no room. Signal-safe, as the next.
bool functions_put(struct functions_putting *putting, uint64_t pc, uint32_t flags);
// All are put: how many frames the walk has.
size_t functions_put_all(struct functions_putting *putting);

#pragma GCC visibility pop

#endif
