// SPDX-License-Identifier: Apache-2.0
// What stands behind the module list: a record for each module, the threads, and what waits to be freed.
//
// Locks, in the order in which they are taken:
//   control   start and stop, one at a time
//   work      whoever scans for modules or makes a table, one step at a time. Held while files are read and a compiler
//             runs, never wanted by anything else
//   lock      the fields below. Held for short work in memory only; taken around fork
// No walk takes any of them.
#ifndef QUT_RUNTIME_REGISTRY_H
#define QUT_RUNTIME_REGISTRY_H

#include <link.h>

#include <qut/local.h>

#include "libqut/art/oat_identity.h"
#include "libqut/os/os.h"
#include "libqut/runtime/build_id.h"
#include "libqut/runtime/modules.h"
#include "libqut/runtime/table_store.h"

enum { QUT_HEADERS_MAX = 32 };

// What tells one module from another, and what its table is made from. Zeroed before it is filled, so that it can be
// compared as bytes.
struct qut_identity {
    uintptr_t start, end; // of its executable segments
    uint64_t load_bias, entry;
    uintptr_t map_start, link_map; // 0 where unknown
    uint64_t is_permanent;         // 0 or 1, as all flags here: so that there is no padding
    uintptr_t canary_address;
    uint8_t canary[QUT_CANARY_BYTES];
    uint64_t content_hash; // of what is mapped and not written to, where nothing else tells it from its successor
    uint32_t build_id_size;
    uint8_t build_id[QUT_BUILD_ID_MAX];
    uint32_t header_count;
    uint64_t has_oat_identity; // in place of a build-id, of an OAT file
    uint8_t oat_identity[QUT_OAT_IDENTITY_BYTES];
    ElfW(Phdr) headers[QUT_HEADERS_MAX]; // those of the segments that are loaded
};

// The beginning, or a member, of what walks may still read. free knows which.
struct qut_retired {
    struct qut_retired *next;
    void (*free)(struct qut_retired *retired);
};

// From the moment a module is met until no walk can look at it any more.
struct qut_record {
    struct qut_identity identity;
    char *name; // as the loader calls it
    enum qut_code_state state;
    bool seen;               // by the scan under way
    bool counted;            // its table came into use
    uint64_t jit_descriptor; // address of the __jit_debug_descriptor that it exports; 0: none
    uint64_t met_ns;
    uint64_t code_base;        // code_space.h
    uint32_t watch_generation; // the watch's own
    uint32_t watch_index;
    struct qut_stored_table stored; // READY
    char reason[120];               // NO_TABLE
    struct qut_retired retired;     // its way out
};

struct qut_registry {
    _Atomic uint32_t control, work, lock;
    _Atomic uint32_t started;  // 0 or 1
    _Atomic uint32_t stopping; // the thread shall end
    _Atomic uint32_t wanted;   // a scan is due; until it begins, further requests cost one load
    _Atomic uint32_t bell;     // changes when the thread has something to do
    _Atomic uint32_t progress; // changes with every list
    // In a child the loader's lock may belong to a thread that stayed behind in the parent. Whoever asks for it then
    // waits for ever: so the thread asks before it takes any lock of ours, and is not waited for meanwhile.
    _Atomic uint32_t asks_for_loader;
    bool is_child;

    // Set by start, constant until stop.
    char *cache_directory;
    qut_compile_fn compile;
    void *compile_context;
    uint32_t flags;

    // ---- under lock
    struct qut_os_thread *thread; // NULL: none, or lost in a fork
    struct qut_record **records;  // ascending by start
    size_t record_count;
    struct qut_os_generation loader; // at the last scan
    struct qut_list *list;           // the one that is current
    struct qut_retired *retired;
    struct qut_thread *threads;
    uintptr_t ended[QUT_END_REASON_COUNT];  // walks of threads that were registered
    uintptr_t before[QUT_END_REASON_COUNT]; // walks before start
    struct qut_stats stats;
    uint64_t published_ns;
    bool unpublished; // tables are ready that the list does not have yet
};

extern struct qut_registry qut_registry;

// What is told to who writes down what happens here (libqut/trace). All but `maintain` under lock.
struct qut_watch {
    void (*publishes)(void);                 // what `records` are is about to become the current list
    void (*goes)(struct qut_record *record); // it is no longer loaded
    void (*thread_ends)(void);               // the calling one, which is registered. Not under lock
    void (*before_fork)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
    // What is due now and then; returns in how many ms again, -1: never. Under work, without lock.
    int (*maintain)(void);
};
extern _Atomic(const struct qut_watch *) qut_registry_watch; // NULL: nobody. Set once
// What libqut's thread calls besides, with nothing locked; returns in how many ms again, -1: never. NULL: nothing.
typedef int (*qut_registry_call)(void);
extern _Atomic(qut_registry_call) qut_registry_now_and_then;

// What every process needs once, before anything else. 0 or -ENOMEM.
int qut_registry_prepare_process(void);

// The thread ends for a while, and nothing begins another: for what the kernel allows only to processes with a single
// thread. Modules and tables stay.
void qut_registry_pause_thread(void);
void qut_registry_resume_thread(void);

// ---- modules.c

// A new list from the records, in place of the old one, which is retired. False: no memory, the old one stays.
// Under lock.
bool qut_registry_publish(void);
// No list. Under lock.
void qut_registry_unpublish(void);

// ---- grace.c

// Its object is freed when no walk that runs now can look at it. Under lock.
void qut_registry_push_retired(struct qut_retired *retired);

// Frees what was retired, once the walks that run now have ended; waits for them at most patience_ms. Returns whether
// nothing is left. Under work, without lock.
bool qut_registry_reclaim(int patience_ms);

// In a child after fork: no thread but the caller's is there. Under lock.
void qut_walks_after_fork(void);

// ---- scan.c

// Learns what is loaded, publishes. Returns how many modules came or went, or -ENOMEM. Under work, without lock.
int qut_registry_scan(void);
void qut_record_free(struct qut_record *record);
void qut_registry_tell_gone(struct qut_record *record); // under lock

// ---- content.c

// Of a module without build-id: the identity of an OAT file, else a hash over what is mapped of it and not written to.
// `dynamic`: the address of its dynamic section; 0: it has none. Has a buffer of `size` bytes to work with.
void qut_identify_content(struct qut_identity *identity, uintptr_t dynamic, uint8_t *buffer, size_t size);

// ---- make_table.c

// 0, or -1: there is none; the compiler then gives a reason. Under work, without lock.
int qut_record_read_table(const struct qut_record *record, struct qut_stored_table *stored);
int qut_record_compile_table(const struct qut_record *record, struct qut_stored_table *stored, char *reason,
                             size_t reason_size);

// ---- refresh.c

// The next thing that is due, one at a time. Not under any lock.
enum qut_step {
    QUT_STEP_NOTHING = 0,
    QUT_STEP_TABLE,         // a table was made, or could not be made
    QUT_STEP_SCAN,          // modules were listed
    QUT_STEP_JIT,           // code made at run time was looked at
    QUT_STEP_SCAN_POINTLESS // ... again, with the same result, and the next walk may ask for it again
};
enum qut_step qut_registry_step(int *wait_ms); // NOTHING: until something will be due; -1: until the bell rings
void qut_registry_ring(void);
// The thread that looks after modules, where there should be one and is none. 0 or -errno. Under lock.
int qut_registry_ensure_thread(void);

// ---- thread.c

void qut_threads_after_fork(void); // under lock

#endif
