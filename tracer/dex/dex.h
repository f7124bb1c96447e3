// SPDX-License-Identifier: Apache-2.0
// One dex file: Android's bytecode, as compilers write it ("dex\n035" to "dex\n041"), or as Android 9 to 13 rewrote it
// at installation ("cdex001"). What is read here is what names need: which method has its code where.
//
//   035-040   a file. Offsets count from its header
//   041       one of several in a container. Offsets count from the container's start, and may point anywhere in it
//   cdex001   ids behind the header, as in a dex file; strings, class data and code in a section further on, which
//             several share. Offsets into that count from its start. Code items are packed
#ifndef TRACER_DEX_DEX_H
#define TRACER_DEX_DEX_H

#include "base/cursor_inline.h"
#include "base/error.h"

enum {
    DEX_FLAG_NATIVE = 0x100,
    DEX_HEADER_BYTES = 0x70,           // that all have
    DEX_IDENTITY_BYTES = 32,           // magic, checksum and signature: equal in no two files
    DEX_CONTAINER_HEADER_BYTES = 0x78, // 041
    DEX_COMPACT_HEADER_BYTES = 0x88,
};

struct dex_table { // of ids, or of class definitions
    uint32_t offset;
    uint32_t count;
};

struct dex {
    uint64_t header_offset; // in the bytes it was read from
    uint64_t size_bytes;    // from the header to where the next dex file may begin
    bool is_compact;
    struct base_bytes ids;  // where the tables are
    struct base_bytes data; // where strings, class data and code are
    uint64_t data_offset;   // of data, in the bytes it was read from
    struct dex_table strings, types, methods, classes;
};

// The dex file whose header is at an offset. Its tables lie inside the file; what they point to is checked when it is
// read. Its bytes are the file's. Returns 0, or -1 with *error filled.
int dex_read(struct base_bytes file, uint64_t offset, struct dex *dex, struct base_error *error);

// What a dex file needs, by its header alone (DEX_CONTAINER_HEADER_BYTES of it): the file; of a compact one, with
// the shared data; of one in a container, all of that, which begins *before_bytes before the header. Returns how many
// bytes that are, or 0: this is no header of a dex file.
uint64_t dex_extent(struct base_bytes header, uint64_t *before_bytes);

// Where the code of one method is: in the bytes that the dex file was read from. Abstract and native methods have none.
struct dex_code {
    uint64_t start, end;  // equal: it has none, or dex_each_declared does not say
    uint32_t method;      // index in methods
    uint32_t class_index; // of the class definition
    uint32_t flags;       // access flags, as the dex file has them
    uint32_t number;      // among the class's methods: the direct ones, then the virtual ones
};
// Returns 0; or -1, and *error, which ends it.
typedef int (*dex_take_fn)(void *context, const struct dex_code *code, struct base_error *error);

// Every method that has code, in the order of the classes. *budget_bytes is what class definitions and class data may
// take; what they took is subtracted: classes of a sound file have no data in common, so that the file's size is
// enough. Returns 0, or -1 with *error filled.
int dex_each_method(const struct dex *dex, uint64_t *budget_bytes, dex_take_fn take, void *context,
                    struct base_error *error);

// The same of every method that a class defines, also abstract and native ones; where its code is is not looked for.
int dex_each_declared(const struct dex *dex, uint64_t *budget_bytes, dex_take_fn take, void *context,
                      struct base_error *error);

// "java.util.Arrays.binarySearch": allocated. NULL: without memory, or the dex file has no such name.
char *dex_method_name(const struct dex *dex, uint32_t method);

#endif
