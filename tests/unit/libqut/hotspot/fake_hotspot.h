// SPDX-License-Identifier: Apache-2.0
// Memory as a HotSpot machine has it: tables for debuggers, a heap of code with a segment map, blobs, an interpreter.
#ifndef TESTS_UNIT_LIBQUT_HOTSPOT_FAKE_HOTSPOT_H
#define TESTS_UNIT_LIBQUT_HOTSPOT_FAKE_HOTSPOT_H

#include "libqut/hotspot/machine.h"

enum {
    FAKE_BASE = 0x10000000, // of all memory there is
    FAKE_BYTES = 0x40000,
    FAKE_CODE = FAKE_BASE + 0x20000, // the heap of code
    FAKE_CODE_BYTES = 0x20000,       // reserved; half of it is in use
    FAKE_SEGMENT_BYTES = 128,
    FAKE_BLOB_HEAD_BYTES = 256, // from a block's start to its code
};

// Two ways to say where a blob's code begins, and how large a heap's block header is.
enum fake_release { FAKE_17, FAKE_25 };

struct fake_hotspot {
    enum fake_release release;
    uint8_t bytes[FAKE_BYTES];
    uint64_t next;           // where there is room for more data
    uint64_t structs, types; // as they are exported
    uint64_t queue, call_stub_at, heap_object;
    uint64_t pool, constant;                                  // of the last method
    uint64_t scopes_at, places_at, methods_at, compile_id_at; // of the last fake_scopes
    unsigned field_count, type_count;
    struct elf_art_memory memory;
};

// All but blobs and the interpreter's code is there. `without`: the name of a field that is missing, or NULL.
void fake_begin(struct fake_hotspot *fake, enum fake_release release, const char *without);
// A blob whose block begins at a multiple of the segments' size; returns the address of its code.
uint64_t fake_blob(struct fake_hotspot *fake, uint64_t block, uint64_t block_bytes, int frame_words, int frame_complete,
                   const void *code, size_t code_bytes);
// A method's description: of a class "java/lang/String".
uint64_t fake_method(struct fake_hotspot *fake, const char *class_name, const char *name);
// ... with a source file (NULL: none), so many bytes of bytecode, and a table of lines behind it (0 bytes: none).
uint64_t fake_method_of(struct fake_hotspot *fake, const char *class_name, const char *name, const char *file,
                        uint16_t code_bytes, const uint8_t *lines, size_t lines_bytes);
// What a compiler says of places in a blob's code: {offset, offset of its scope}, scopes, and methods.
struct fake_scopes {
    const int32_t (*places)[2];
    size_t place_count;
    const uint8_t *bytes;
    size_t bytes_count;
    const uint64_t *methods;
    size_t method_count;
};
void fake_scopes(struct fake_hotspot *fake, uint64_t block, int32_t compile_id, const struct fake_scopes *scopes);
// What a blob is called, and whose code it has; 0: no method's.
void fake_name_blob(struct fake_hotspot *fake, uint64_t block, const char *name, uint64_t method);
// The queue of codelets: one codelet, of this code behind its header.
uint64_t fake_interpreter(struct fake_hotspot *fake, uint64_t address, const void *code, size_t code_bytes);
void fake_put(struct fake_hotspot *fake, uint64_t address, const void *bytes, size_t size);
void fake_put_word(struct fake_hotspot *fake, uint64_t address, uint64_t value);
void fake_put_int(struct fake_hotspot *fake, uint64_t address, int32_t value);

#endif
