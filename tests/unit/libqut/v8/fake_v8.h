// SPDX-License-Identifier: Apache-2.0
// V8's memory, made up: objects of the types that lead to a function's name, at BASE.
#ifndef TESTS_UNIT_LIBQUT_V8_FAKE_V8_H
#define TESTS_UNIT_LIBQUT_V8_FAKE_V8_H

#include "libqut/v8/v8.h"

enum { BASE = 0x10000000, BYTES = 0x20000, TAG = 1 };
enum {
    TYPE_FUNCTION = 2066,
    TYPE_SHARED = 262,
    TYPE_SCRIPT = 167,
    TYPE_SCOPE = 261,
    TYPE_BYTECODES = 191,
    TYPE_BYTES = 190
};
enum { TYPE_ONE_BYTE = 8, TYPE_TWO_BYTE = 0, TYPE_CONS = 1, TYPE_SLICED = 3, TYPE_THIN = 5, TYPE_EXTERNAL = 10 };

extern uint8_t bytes[BYTES];
extern uint64_t next; // what is free
extern struct v8_layout layout;
extern struct elf_art_memory memory; // reads `bytes`

size_t read_fake(void *context, uint64_t address, void *to, size_t size);
void put(uint64_t address, uint64_t word);
uint64_t room(size_t size);
uint64_t number(int32_t value); // as a word
uint64_t object(uint16_t type, size_t size);
uint64_t text(const char *characters);
uint64_t pair(uint16_t type, uint32_t length, uint64_t first, uint64_t second);
// Nothing is there any more, and layout and memory are fresh.
void begin(void);

// A function, the objects that lead to its name, and to its script, "/a.js", number 7.
extern uint64_t function, shared, scope, script, name, source;
void make_function(void); // the only one, "walk"
void make_function_called(const char *called, int32_t start);

#endif
