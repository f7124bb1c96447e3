// SPDX-License-Identifier: Apache-2.0
// What stands behind the module list: a record for each module, the threads, and what waits to be freed.
//
// Locks, in the order in which they are taken:
//   control   start and stop, one at a time
//   work      for scanning for modules and making a table, one step at a time. Held while files are read and a compiler
//             runs, never wanted by anything else
//   lock      the fields below. Held for short work in memory only; taken around fork
// No walk takes any of them.
#ifndef QUT_MODULES_REGISTRY_H
#define QUT_MODULES_REGISTRY_H

#include <link.h>

#include <qut/local.h>

#include "libqut/art/oat_identity.h"
#include "libqut/elf/build_id.h"
#include "libqut/modules/modules.h"
#include "libqut/os/os.h"
#include "libqut/runtime/table_store.h"

enum { MODULES_HEADERS_MAX = 32 };

// What tells one module from another, and what its table is made from. Zeroed before it is filled, so that it can be
// compared as bytes.
struct modules_identity {
    uintptr_t start, end; // of its executable segments
    uint64_t load_bias, entry;
    uintptr_t map_start, link_map; // 0 where unknown
    uint64_t is_permanent;         // 0 or 1, as all flags here: so that there is no padding
    uint64_t is_unlisted;          // no loader lists it
    uintptr_t canary_address;
    uint8_t canary[MODULES_CANARY_BYTES];
    uint64_t content_hash; // of what is mapped and not written to, where nothing else tells it from its successor
    uint32_t build_id_size;
    uint8_t build_id[ELF_BUILD_ID_MAX];
    uint32_t header_count;
    uint64_t has_oat_identity; // in place of a build-id, of an OAT file
    uint8_t oat_identity[ART_OAT_IDENTITY_BYTES];
    ElfW(Phdr) headers[MODULES_HEADERS_MAX]; // those of the segments that are loaded
};

// The beginning, or a member, of what walks may still read. free knows which.
struct modules_retired {
    struct modules_retired *next;
    void (*free)(struct modules_retired *retired);
};

// From the moment a module is met until no walk can look at it any more.
struct modules_record {
    struct modules_identity identity;
    char *name; // as the loader calls it
    char *file; // where others find it, if that is another name; NULL: it is not, or was not asked for. The watch's own
    enum runtime_code_state state;
    bool seen;                               // by the scan under way
    bool counted;                            // its table came into use
    uint32_t unlisted;                       // its number among those that no loader lists; 0: it is listed
    uint64_t jit_descriptor;                 // address of the __jit_debug_descriptor that it exports; 0: none
    uint64_t art_instance;                   // ... of art::Runtime::instance_
    uint64_t hotspot_structs, hotspot_types; // ... of gHotSpotVMStructs and -Types
    uintptr_t python_dynamic;                // address of its dynamic section, if it exports _PyRuntime; 0: it does not
    uintptr_t v8_dynamic;                    // the same, if it exports what V8 says of its frames
    uint64_t met_ns;
    uint64_t code_base;        // code_space.h
    uint32_t watch_generation; // the watch's own
    uint32_t watch_index;
    struct runtime_stored_table stored; // READY
    char reason[120];                   // NO_TABLE
    struct modules_retired retired;     // its way out
};

struct modules_registry {
    _Atomic uint32_t control, work, lock;
    _Atomic uint32_t started;  // 0 or 1
    _Atomic uint32_t stopping; // the thread shall end
    _Atomic uint32_t wanted;   // a scan is due; until it begins, further requests cost one load
    _Atomic uint32_t bell;     // changes when the thread has something to do
    _Atomic uint32_t progress; // changes with every list
    // In a child the loader's lock may belong to a thread that stayed behind in the parent. A thread that asks for it
    // then waits for ever: so the thread asks before it takes any lock of ours, and is not waited for meanwhile.
    _Atomic uint32_t asks_for_loader;
    bool is_child;

    // Set by start, constant until stop.
    char *cache_directory;
    qut_compile_fn compile;
    void *compile_context;
    uint32_t flags;

    // ---- under lock
    struct os_thread *thread;        // NULL: none, or lost in a fork
    struct os_thread *lost;          // its memory, until another one begins: most children end before that
    struct modules_record **records; // ascending by start
    size_t record_count;
    struct os_generation loader; // at the last scan
    struct modules_list *list;   // the one that is current
    struct modules_retired *retired;
    struct runtime_thread *threads;
    uintptr_t ended[QUT_END_REASON_COUNT];  // walks of threads that were registered
    uintptr_t before[QUT_END_REASON_COUNT]; // walks before start
    struct qut_stats stats;
    uint64_t published_ns;
    bool unpublished; // tables are ready that the list does not have yet
};

extern struct modules_registry modules_registry;

// What is told to the part that writes down what happens here (libqut/trace). All but `maintain` under lock.
struct modules_watch {
    void (*publishes)(void);                     // what `records` are is about to become the current list
    void (*goes)(struct modules_record *record); // it is no longer loaded
    void (*thread_ends)(void);                   // the calling one, which is registered. Not under lock
    void (*before_fork)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
    // What is due now and then; returns in how many ms again, -1: never. Under work, without lock.
    int (*maintain)(void);
};
extern _Atomic(const struct modules_watch *) modules_registry_watch; // NULL: none. Set once

// What every process needs once, before anything else. 0 or -ENOMEM.
int modules_registry_prepare_process(void);

// ---- registry.c

// The same, once in a process's life. Under control.
int modules_registry_prepare(void);
// Of all threads that are or were registered, and of those that never were. Under lock.
void modules_registry_sum_ends(const struct modules_registry *registry, uintptr_t *ends);
// The thread that looks after modules; no other one begins before `stopping` is 0 again. Under control.
void modules_registry_end_thread(struct modules_registry *registry, int patience_ms);

// ---- modules.c

// A new list from the records, in place of the old one, which is retired. False: no memory, the old one stays.
// Under lock.
bool modules_registry_publish(void);
// Its pages are made, so that few walks have to. Under work, without lock.
void modules_registry_touch(void);
// No list. Under lock.
void modules_registry_unpublish(void);

// ---- code_ranges.c

// What modules_made_generation counts.
void modules_made_has_changed(void);

// ---- grace.c

// Its object is freed when no walk that runs now can look at it. Under lock.
void modules_registry_push_retired(struct modules_retired *retired);
// The same without lock; NULL: there is none.
void modules_registry_retire(struct modules_retired *retired);

// Frees what was retired, once the walks that run now have ended; waits for them at most patience_ms. Returns whether
// nothing is left. Under work, without lock.
bool modules_registry_reclaim(int patience_ms);

// In a child after fork: no thread but the caller's is there. Under lock.
void modules_walks_after_fork(void);

// ---- scan.c

// Learns what is loaded, publishes. Returns how many modules came or went, or -ENOMEM. Under work, without lock.
int modules_registry_scan(void);
void modules_record_free(struct modules_record *record);
void modules_registry_tell_gone(struct modules_record *record); // under lock

// Whether any of [start, end) is in one of the image's segments of code.
bool modules_has_code(const struct modules_identity *identity, uintptr_t start, uintptr_t end);

// ---- code_ranges.c

// Nothing is known of what is executable. It is read at once if frame pointers may be followed there, else when a walk
// asks. Under lock.
void modules_code_ranges_start(bool has_frame_pointers);
void modules_code_ranges_stop(void); // the same
// Now. Under work, without lock.
void modules_code_ranges_read(void);
// If a walk asked for it and it is due. False: it is not; *wait_ms: until it will be, -1: never. The same.
bool modules_code_ranges_step(int *wait_ms);

// ---- machine_code.c

// Takes over which module is a virtual machine, if one is. Under work, without lock.
void modules_machine_take_records(void);
void modules_machine_drop(void); // under lock
// Looks whether the machine has made what is to be known of it, if a walk asked for it and it is due. False: not;
// *wait_ms as above. Under work, without lock.
bool modules_machine_step(int *wait_ms);

// ---- module_content.c

// Of a module without build-id: the identity of an OAT file, else a hash over what is mapped of it and not written to.
// `dynamic`: the address of its dynamic section; 0: it has none. Has a buffer of `size` bytes to work with.
void modules_identify_content(struct modules_identity *identity, uintptr_t dynamic, uint8_t *buffer, size_t size);

// ---- module_table.c

// 0, or -1: there is none; the compiler then gives a reason. Under work, without lock.
int modules_record_read_table(const struct modules_record *record, struct runtime_stored_table *stored);
int modules_record_compile_table(const struct modules_record *record, struct runtime_stored_table *stored, char *reason,
                                 size_t reason_size);

// ---- refresh.c

// The next thing that is due, one at a time. Not under any lock.
enum modules_step {
    MODULES_STEP_NOTHING = 0,
    MODULES_STEP_TABLE,         // a table was made, or could not be made
    MODULES_STEP_SCAN,          // modules were listed
    MODULES_STEP_JIT,           // code made at run time was looked at, or where it can be
    MODULES_STEP_SCAN_POINTLESS // ... again, with the same result, and the next walk may ask for it again
};
enum modules_step modules_registry_step(int *wait_ms); // NOTHING: until something will be due; -1: until the bell rings
void modules_registry_ring(void);
// The thread that looks after modules, where there should be one and is none. 0 or -errno. Under lock.
int modules_registry_ensure_thread(void);

// ---- walking_threads.c

void modules_threads_after_fork(void); // under lock

#endif
