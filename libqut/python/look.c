// SPDX-License-Identifier: Apache-2.0
// Our thread: where the interpreter is, and which thread state belongs to which thread. Handlers search for neither:
// they have a list, and ask for a newer one where their thread is not in it.
#include <stdlib.h>
#include <string.h>

#include "libqut/elf/dynamic_symbol.h"
#include "libqut/modules/own_memory.h"
#include "libqut/os/task.h"
#include "libqut/python/inside.h"

enum {
    LOOK_AGAIN_NS = 10000000, // for a thread that is not known: most of those run no Python
    LOOK_EACH_NS = 500000000, // for one that is known
    LOOK_SHARE = 20,          // of our thread's time at most a twentieth
};

_Atomic(struct python_known *) python_known;

static _Atomic uint32_t wanted;
static uintptr_t found;               // the dynamic section of what was looked at; under work, as all below
static struct cpython_thread *listed; // room for CPYTHON_THREADS_MAX
static uint64_t due_ns;

void python_want_look(void)
{
    if (atomic_exchange_explicit(&wanted, 1, memory_order_acq_rel) == 0)
        modules_registry_ring();
}

// ---- where it is

// By what it exports from 3.11 on (address: where that is, or 0), else by the name of its file: "python3.8",
// "libpython3.10.so.1.0".
static unsigned minor_of(const struct modules_record *record, uint64_t address)
{
    static struct os_mapping mapping; // under work; too large for a stack
    uint32_t version;
    if (address && elf_art_read(&modules_own_memory, address, &version, sizeof version) && version >> 24 == 3)
        return version >> 16 & 255;
    const char *path = record->name;
    if (path[0] != '/' && os_mapping_at(record->identity.start, &mapping) == 0 && mapping.is_file)
        path = mapping.path;
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, "python3.");
    return at ? (unsigned)strtoul(at + strlen("python3."), NULL, 10) : 0;
}

static void find_text(const struct modules_record *record, struct python_known *known)
{
    const struct modules_identity *identity = &record->identity;
    for (uint32_t i = 0; i < identity->header_count; i++) {
        const ElfW(Phdr) *header = &identity->headers[i];
        uint64_t start = identity->load_bias + header->p_vaddr;
        if ((header->p_flags & PF_X) && known->runtime.evaluator_start - start < header->p_memsz) {
            known->text_start = start;
            known->text_end = start + header->p_memsz;
        }
    }
}

// False: it is none whose version is known.
static bool read_runtime(const struct modules_record *record, struct python_known *known)
{
    enum { RUNTIME, CODE_TYPE, EVALUATOR, VERSION, NAMES };
    static const char *const names[NAMES] = {"_PyRuntime", "PyCode_Type", "_PyEval_EvalFrameDefault", "Py_Version"};
    struct cpython_runtime *runtime = &known->runtime;
    uint64_t addresses[NAMES], bytes[NAMES];
    elf_art_find_symbols(&modules_own_memory, record->identity.load_bias, record->python_dynamic, names, NAMES,
                         addresses, bytes);
    runtime->runtime = addresses[RUNTIME];
    runtime->code_type = addresses[CODE_TYPE];
    runtime->evaluator_start = addresses[EVALUATOR];
    runtime->evaluator_end = runtime->evaluator_start + bytes[EVALUATOR];
    if (!runtime->runtime || !runtime->code_type || !runtime->evaluator_start || !bytes[EVALUATOR] ||
        !cpython_layout_of(minor_of(record, addresses[VERSION]), &modules_own_memory, runtime->runtime,
                           &runtime->layout))
        return false;
    find_text(record, known);
    return true;
}

// ---- what handlers have

static void free_known(struct modules_retired *retired)
{
    free((struct python_known *)retired);
}
static_assert(offsetof(struct python_known, retired) == 0, "freed by its node");

static void replace(struct python_known *known)
{
    struct python_known *old = atomic_exchange_explicit(&python_known, known, memory_order_seq_cst);
    modules_registry_retire(old ? &old->retired : NULL);
}

// What is known and stays, with the threads that there are now.
static bool list_threads(const struct python_known *like)
{
    struct cpython_runtime runtime = like->runtime;
    uint64_t spent_ns = os_thread_cpu_ns(); // how long it takes says nothing on a busy machine
    runtime.threads = listed;
    cpython_list_threads(&runtime, &modules_own_memory); // what could be read is there
    size_t bytes = runtime.thread_count * sizeof *listed;
    struct python_known *known = malloc(sizeof *known + bytes);
    if (!known)
        return false;
    *known = *like;
    known->runtime = runtime;
    known->runtime.threads = known->threads;
    memcpy(known->threads, listed, bytes);
    known->retired = (struct modules_retired){.free = free_known};
    uint64_t now_ns = os_now_ns(), pause_ns = (os_thread_cpu_ns() - spent_ns) * LOOK_SHARE;
    known->look_again_ns = now_ns + (pause_ns > LOOK_AGAIN_NS ? pause_ns : LOOK_AGAIN_NS);
    known->look_each_ns = now_ns + LOOK_EACH_NS + pause_ns;
    due_ns = known->look_again_ns;
    replace(known);
    return true;
}

void python_forget(void)
{
    free(atomic_exchange_explicit(&python_known, NULL, memory_order_seq_cst));
    free(listed);
    listed = NULL;
    found = 0;
    functions_table_forget(&python_functions);
    python_lines_forget();
    functions_rooms_forget(&python_rooms);
}

static bool prepare(void)
{
    if (!listed)
        listed = malloc(CPYTHON_THREADS_MAX * sizeof *listed);
    return listed && functions_table_prepare(&python_functions) && python_lines_prepare() &&
           functions_rooms_prepare(&python_rooms);
}

static void look_at(const struct modules_record *record)
{
    struct python_known first = {0};
    if (record && read_runtime(record, &first) && prepare() && list_threads(&first))
        return;
    if (atomic_load_explicit(&python_known, memory_order_relaxed))
        replace(NULL);
}

int python_look(void)
{
    const struct modules_registry *registry = &modules_registry;
    const struct modules_record *record = NULL;
    for (size_t i = 0; i < registry->record_count && !record; i++)
        if (registry->records[i]->python_dynamic)
            record = registry->records[i];
    uintptr_t now_found = record ? record->python_dynamic : 0;
    if (now_found != found) {
        found = now_found;
        atomic_store_explicit(&wanted, 0, memory_order_relaxed);
        look_at(record);
        return -1;
    }
    const struct python_known *known = atomic_load_explicit(&python_known, memory_order_relaxed);
    if (!known || !atomic_load_explicit(&wanted, memory_order_acquire))
        return -1;
    uint64_t now_ns = os_now_ns();
    if (now_ns < due_ns)
        return (int)((due_ns - now_ns + 999999u) / 1000000u);
    atomic_store_explicit(&wanted, 0, memory_order_release);
    list_threads(known);
    return -1;
}
