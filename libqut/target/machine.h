// SPDX-License-Identifier: Apache-2.0
// What virtual machines of a target publish, as far as it was read: their lists of symbol files and of dex files, and
// tables of the code that was met. Nothing is looked for before a walk comes to code that is in no ELF image.
#ifndef QUT_TARGET_MACHINE_H
#define QUT_TARGET_MACHINE_H

#include <qut/frame.h>

#include "libqut/art/jit_code.h"
#include "libqut/art/jit_list.h"
#include "libqut/art/jit_methods.h"
#include "libqut/hotspot/machine.h"
#include "libqut/target/opened_target.h"

enum {
    TARGET_MACHINE_CANDIDATES_MAX = 64, // symbol files that are asked for one pc
    TARGET_ART_CACHES_MAX = 4,
};

// Lists that virtual machines keep for debuggers, and what they export.
enum target_machine_subject { TARGET_MACHINE_CODE = 0, TARGET_MACHINE_DEX, TARGET_MACHINE_SUBJECTS };
enum target_machine_export {
    TARGET_EXPORT_LISTS = 0, // one of each subject
    TARGET_EXPORT_HOTSPOT_STRUCTS = TARGET_MACHINE_SUBJECTS,
    TARGET_EXPORT_HOTSPOT_TYPES,
    TARGET_EXPORT_CPYTHON,
    TARGET_EXPORT_V8,
    TARGET_EXPORT_COUNT,
};
static_assert(TARGET_EXPORT_COUNT == sizeof((struct target_image *)0)->exports / sizeof(uint64_t), "one each");

// One descriptor, and what it leads to.
struct target_machine_list {
    uint64_t descriptor_address;
    bool is_read;
    uint64_t read_moment, moment; // when it was read, and last seen to be the same
    enum art_jit_fault fault;
    struct art_jit_list list;
    uint8_t frame_flags; // of its code
};

// A symbol file that was asked for. It stays, since its bytes are handed out.
struct target_machine_blob {
    struct art_jit_descriptor descriptor;
    struct art_jit_entry entry; // address 0: a file that is mapped where its code would be
    uint64_t start, end;        // of its code
    uint64_t moment;            // when it was last seen to be there
    uint64_t used_moment;       // ... and a walk asked for it
    uint8_t *bytes;             // as the compiler takes them; NULL: they could not be had
    uint8_t *registered;        // as they were registered, where that is not the same; else NULL
    size_t size;
    struct runtime_stored_table stored;
    bool has_table;
    uint8_t frame_flags;
    char reason[TARGET_REASON_BYTES]; // why it has none
};

// Code that an entry of a list describes.
struct target_machine_code {
    uint64_t start, end;   // start == end: it describes none
    uint64_t greatest_end; // of this and all that begin before it
    size_t order;          // in the lists: the newest first
    unsigned list;
    struct art_jit_entry entry;
    struct target_machine_blob *blob; // NULL: not asked for
};

struct target_machine {
    struct qut_target *target;
    struct elf_art_memory memory;
    uint64_t moment; // counts times at which the target may have changed since
    bool is_searched;
    struct target_machine_list *lists[TARGET_MACHINE_SUBJECTS];
    unsigned list_count[TARGET_MACHINE_SUBJECTS];
    struct target_machine_code *code; // by start
    size_t code_count;
    bool code_is_current;
    struct target_machine_blob **blobs;
    size_t blob_count, blob_capacity;
    uint64_t blob_bytes; // together
    uint8_t *scratch;    // a symbol file that is looked at
    size_t scratch_bytes;
    uint64_t looked_bytes;                   // of all that are looked at now
    uint64_t hotspot_structs, hotspot_types; // addresses; 0: there is no such machine
    struct hotspot_machine hotspot;
    enum hotspot_fault hotspot_fault; // STARTING: not read
    uint64_t hotspot_moment;          // when it was tried last
    unsigned hotspot_odd;             // moments since its tables were found not to be of use
    struct art_jit_cache art_caches[TARGET_ART_CACHES_MAX];
    unsigned art_cache_count;
    uint64_t art_instance; // address of what leads to the runtime's records; 0: not known
};

// ---- machine.c

// Made when it is first asked for. NULL: no memory.
struct target_machine *target_machine(struct qut_target *target);
// Brings the lists of a subject up to date. True: one of them is another than before.
bool target_machine_update(struct target_machine *machine, enum target_machine_subject subject);
// Reads the lists anew that do not tell when they change, if that was not done in this moment. True: it was done now.
bool target_machine_read_again(struct target_machine *machine, enum target_machine_subject subject);

// Which images export what, where that is not known.
void target_machine_search(struct target_machine *machine);
// The address of what an image exports, and its size; 0: nothing of that name.
uint64_t target_machine_export(struct target_machine *machine, const struct target_image *image, const char *name,
                               uint64_t *size_bytes);

// Whether an image is Android's runtime.
bool target_machine_is_art(const struct target_image *image);

// ---- art_code.c

struct target_art_code {
    uint64_t start, end; // of the method's code
    uint64_t dex_pc;     // of its bytecode
};
// What the code at an address was made of, if it is the JIT's and the runtime's records are known.
bool target_art_code_at(struct qut_target *target, uint64_t address, struct target_art_code *code);
// Of the cache whose code an address lies in; 0: of the one that there is.
bool target_art_collections(struct qut_target *target, uint64_t address, struct art_jit_collections *collections);

// ---- machine_blob.c

// Fills start, end, and either table or reason. NULL: no memory.
struct target_machine_blob *target_machine_blob_make(struct target_machine *machine,
                                                     const struct target_machine_list *list,
                                                     const struct target_machine_code *code);
// Whether it is what is registered now.
bool target_machine_blob_holds(struct target_machine *machine, const struct target_machine_blob *blob);
// It is not asked for any more. Its bytes stay, if it has any.
void target_machine_blob_drop(struct target_machine *machine, struct target_machine_blob *blob);
void target_machine_blob_free(struct target_machine_blob *blob);

// ---- machine_code.c

// Where the code of a symbol file lies, from the first byte to the last. False: it is no ELF file, has none, or cannot
// be read.
bool target_machine_text(struct target_machine *machine, uint64_t address, uint64_t size, uint64_t *start,
                         uint64_t *end);

// The symbol file whose code a pc lies in, the newest first, with a table if one has; NULL: none.
struct target_machine_blob *target_machine_code_at(struct target_machine *machine, uint64_t pc);

#endif
