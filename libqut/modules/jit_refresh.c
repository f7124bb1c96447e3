// SPDX-License-Identifier: Apache-2.0
// Keeping the list of jit.h as it should be: reading the compilers' lists, and making tables of what is new in them.
// A compiler adds entries all the time, and each makes walks ask for more: so what is done unasked is done in short
// pieces, with pauses between them that are longer.
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/jit_registry.h"

enum {
    PIECE_NS = 2000000, // of making tables, if a new list of intervals takes less
    PAUSE_FACTOR = 7,   // an eighth of one core at most
    PAUSE_NS_MAX = 2000000000,
    FAULT_PAUSE_NS = 1000000, // and twice as long each time, where a list cannot be read as a whole
    FAULT_STREAK_MAX = 8,
};

struct modules_jit_registry modules_jit;

void modules_jit_want(uint32_t want)
{
    if ((atomic_load_explicit(&modules_jit.wanted, memory_order_relaxed) & want) == want)
        return;
    if (atomic_fetch_or_explicit(&modules_jit.wanted, want, memory_order_acq_rel) == 0)
        modules_registry_ring();
}

// ---- one list

// Those that hold what walks compare with. Nothing, where it changed since its list was read.
static void take_descriptor(struct modules_jit_source *source, const struct art_jit_list *list)
{
    const struct elf_art_memory *memory = &modules_jit_own_memory;
    const struct art_jit_descriptor *descriptor = &list->descriptor;
    source->descriptor = *descriptor;
    size_t size = arch_native_arch.word_bytes == 8 ? 56 : 48;
    if (descriptor->layout == ART_JIT_GDB)
        size = 8 + 2u * arch_native_arch.word_bytes;
    bool is_read = elf_art_read(memory, descriptor->address, source->bytes, size);
    source->byte_count = is_read && art_jit_is_unchanged(memory, descriptor) ? (uint8_t)size : 0;
    source->first = (struct art_jit_entry){0};
    if (descriptor->layout == ART_JIT_GDB && descriptor->first_entry != 0 &&
        !art_jit_read_entry(memory, descriptor, descriptor->first_entry, &source->first))
        source->byte_count = 0;
}

struct reading {
    struct modules_jit_source source;
    enum art_jit_fault fault;
    struct modules_jit_blob **blobs;
    size_t count;
};

static int by_address(const void *a, const void *b)
{
    const struct art_jit_entry *first = *(const struct art_jit_entry *const *)a,
                               *second = *(const struct art_jit_entry *const *)b;
    return (first->address > second->address) - (first->address < second->address);
}

// Both are ascending: what is known is found in one pass.
static struct modules_jit_blob *find_known(const struct modules_jit_list_state *state, size_t *at,
                                           const struct art_jit_entry *entry, bool doubted)
{
    while (*at < state->blob_count && state->blobs[*at]->code.entry.address < entry->address)
        ++*at;
    if (*at == state->blob_count || state->blobs[*at]->code.entry.address != entry->address)
        return NULL;
    struct modules_jit_blob *blob = state->blobs[*at];
    doubted = doubted && state->source.descriptor.layout == ART_JIT_GDB;
    return modules_jit_blob_is(blob, entry, doubted) ? blob : NULL;
}

// Known, or new; NULL: it has gone, there is no room for it now, or *fault.
static struct modules_jit_blob *take_entry(const struct modules_jit_list_state *state, size_t *known_at,
                                           const struct art_jit_descriptor *descriptor,
                                           const struct art_jit_entry *entry, bool doubted, size_t waiting_bytes,
                                           enum art_jit_fault *fault)
{
    struct modules_jit_blob *known = find_known(state, known_at, entry, doubted), *blob;
    if (known && known->state != MODULES_JIT_EARLY)
        return known;
    if (waiting_bytes > MODULES_JIT_WAITING_BYTES_MAX)
        return NULL;
    blob = modules_jit_blob_new(descriptor, entry, fault);
    if (*fault == ART_JIT_BUSY)
        *fault = ART_JIT_FINE;
    if (blob && known)
        blob->tries = known->tries + 1;
    return blob;
}

static enum art_jit_fault take_entries(const struct modules_jit_list_state *state, const struct art_jit_list *list,
                                       bool doubted, struct reading *reading)
{
    const struct art_jit_entry **sorted = malloc((list->count + 1) * sizeof *sorted);
    reading->blobs = malloc((list->count + 1) * sizeof *reading->blobs);
    enum art_jit_fault fault = sorted && reading->blobs ? ART_JIT_FINE : ART_JIT_NO_MEMORY;
    for (size_t i = 0; i < list->count && fault == ART_JIT_FINE; i++)
        sorted[i] = &list->entries[i];
    if (fault == ART_JIT_FINE)
        qsort(sorted, list->count, sizeof *sorted, by_address);
    size_t known_at = 0, waiting_bytes = 0;
    for (size_t i = 0; i < list->count && fault == ART_JIT_FINE; i++) {
        // An entry that was removed and linked anew while the list was read, in GDB's layout, where nothing tells.
        // Known for both, one blob would be let go of twice.
        if (i && sorted[i]->address == sorted[i - 1]->address) {
            fault = ART_JIT_BUSY;
            break;
        }
        struct modules_jit_blob *blob =
            take_entry(state, &known_at, &list->descriptor, sorted[i], doubted, waiting_bytes, &fault);
        reading->source.is_complete = reading->source.is_complete && blob;
        if (!blob)
            continue;
        blob->rank = (uint32_t)(sorted[i] - list->entries);
        reading->blobs[reading->count++] = blob;
        waiting_bytes += blob->symfile_bytes;
    }
    free(sorted);
    return fault;
}

static bool is_known(const struct modules_jit_list_state *state, const struct modules_jit_blob *blob)
{
    size_t low = 0, high = state->blob_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (state->blobs[middle]->code.entry.address < blob->code.entry.address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < state->blob_count && state->blobs[low] == blob;
}

static void read_list(const struct modules_jit_list_state *state, bool doubted, struct reading *reading)
{
    struct art_jit_list list;
    *reading = (struct reading){.source.is_complete = true};
    reading->fault = art_jit_list_read(&modules_jit_own_memory, state->address, &list);
    take_descriptor(&reading->source, &list);
    if (reading->fault == ART_JIT_FINE)
        reading->fault = take_entries(state, &list, doubted, reading);
    if (!reading->source.is_complete)
        reading->source.byte_count = 0;
    art_jit_list_free(&list);
    if (reading->fault == ART_JIT_FINE)
        return;
    for (size_t i = 0; i < reading->count; i++)
        if (!is_known(state, reading->blobs[i]))
            modules_jit_blob_free(reading->blobs[i]);
    reading->count = 0;
}

// ---- what becomes of what was known. Under lock

// All that are in the first but not in the second. Both are ascending, and what both have is the same object.
static void let_others_go(struct modules_jit_blob **blobs, size_t count, struct modules_jit_blob **kept,
                          size_t kept_count)
{
    for (size_t i = 0, k = 0; i < count; i++) {
        while (k < kept_count && kept[k]->code.entry.address < blobs[i]->code.entry.address)
            k++;
        if (k == kept_count || kept[k] != blobs[i])
            modules_jit_let_go(blobs[i]);
    }
}

static void put(struct modules_jit_list_state *state, struct reading *reading)
{
    state->fault = reading->fault;
    // What is known stays: walks confirm it, or wait.
    if (reading->fault != ART_JIT_FINE) {
        free(reading->blobs);
        return;
    }
    let_others_go(state->blobs, state->blob_count, reading->blobs, reading->count);
    free(state->blobs);
    state->blobs = reading->blobs;
    state->blob_count = reading->count;
    state->source = reading->source;
    modules_jit.waiting_next = modules_jit.waiting_count = 0; // some of them may have gone
}

static int newest_first(const void *a, const void *b)
{
    const struct modules_jit_blob *first = *(const struct modules_jit_blob *const *)a,
                                  *second = *(const struct modules_jit_blob *const *)b;
    return (first->rank > second->rank) - (first->rank < second->rank);
}

// Under work, without lock.
static void queue_waiting(void)
{
    size_t count = 0, bytes = 0;
    for (size_t i = 0; i < modules_jit.list_count; i++)
        count += modules_jit.lists[i].blob_count;
    struct modules_jit_blob **waiting = malloc((count + 1) * sizeof(struct modules_jit_blob *));
    count = 0;
    for (size_t i = 0; waiting && i < modules_jit.list_count; i++)
        for (size_t j = 0; j < modules_jit.lists[i].blob_count; j++) {
            struct modules_jit_blob *blob = modules_jit.lists[i].blobs[j];
            if (blob->state != MODULES_JIT_WAITS)
                continue;
            waiting[count++] = blob;
            bytes += blob->symfile_bytes;
        }
    if (waiting)
        qsort(waiting, count, sizeof(struct modules_jit_blob *), newest_first);
    if (!waiting)
        modules_jit_want(MODULES_JIT_WANT);
    os_lock(&modules_registry.lock);
    free(modules_jit.waiting);
    modules_jit.waiting = waiting;
    modules_jit.waiting_next = 0;
    modules_jit.waiting_count = count;
    modules_jit.waiting_bytes = bytes;
    os_unlock(&modules_registry.lock);
}

// ---- all lists

static void read_lists(void)
{
    uint32_t number = atomic_fetch_add_explicit(&modules_jit.begun, 1, memory_order_acq_rel) + 1;
    // What is asked for from here on may have been registered after its list was read: another reading.
    uint32_t wanted = atomic_exchange_explicit(&modules_jit.wanted, 0, memory_order_acq_rel);
    bool has_fault = false;
    for (size_t i = 0; i < modules_jit.list_count; i++) {
        struct modules_jit_list_state *state = &modules_jit.lists[i];
        struct reading reading;
        read_list(state, wanted & MODULES_JIT_DOUBT, &reading);
        has_fault = has_fault || reading.fault != ART_JIT_FINE || !reading.source.is_complete;
        os_lock(&modules_registry.lock);
        put(state, &reading);
        modules_jit.is_unpublished = true;
        os_unlock(&modules_registry.lock);
    }
    queue_waiting();
    modules_jit.fault_streak =
        !has_fault ? 0 : modules_jit.fault_streak + (modules_jit.fault_streak < FAULT_STREAK_MAX);
    os_lock(&modules_registry.lock);
    modules_registry.stats.jit_readings++;
    os_unlock(&modules_registry.lock);
    atomic_store_explicit(&modules_jit.done, number, memory_order_release);
    atomic_fetch_add_explicit(&modules_registry.progress, 1, memory_order_release);
    os_wake(&modules_registry.progress);
}

static bool is_wanted(void)
{
    return atomic_load_explicit(&modules_jit.wanted, memory_order_acquire) != 0;
}

static bool has_waiting(void)
{
    return modules_jit.waiting_next < modules_jit.waiting_count;
}

// Android 8's list has no mark of its own: there the library's name says what made the code.
static uint8_t flags_of(const struct modules_jit_blob *blob)
{
    for (size_t i = 0; i < modules_jit.list_count; i++) {
        const struct modules_jit_list_state *state = &modules_jit.lists[i];
        if (is_known(state, blob) && (state->is_art || state->source.descriptor.layout != ART_JIT_GDB))
            return QUT_FRAME_JIT | QUT_FRAME_MANAGED;
    }
    return QUT_FRAME_JIT;
}

static void make_tables(uint64_t limit_ns)
{
    while (has_waiting()) {
        struct modules_jit_blob *blob = modules_jit.waiting[modules_jit.waiting_next];
        struct modules_jit_made made;
        uint64_t began_ns = os_now_ns();
        modules_jit_blob_make(blob, &made);
        uint64_t ended_ns = os_now_ns();
        uint8_t frame_flags = flags_of(blob);
        os_lock(&modules_registry.lock);
        modules_jit.waiting_next++;
        modules_jit.waiting_bytes -= blob->symfile_bytes;
        modules_jit_blob_settle(blob, &made, frame_flags);
        modules_jit.is_unpublished = true;
        modules_registry.stats.jit_compile_ns += ended_ns - began_ns;
        modules_registry.stats.jit_tables_compiled += made.state == MODULES_JIT_READY;
        os_unlock(&modules_registry.lock);
        if (ended_ns > limit_ns)
            break;
    }
}

static void publish(void)
{
    if (modules_jit.is_unpublished)
        modules_jit_publish();
}

bool modules_jit_step(int *wait_ms)
{
    *wait_ms = -1;
    if (!(is_wanted() || has_waiting() || modules_jit.is_unpublished))
        return false;
    uint64_t began_ns = os_now_ns();
    if (began_ns < modules_jit.due_ns) {
        *wait_ms = (int)((modules_jit.due_ns - began_ns) / 1000000u) + 1;
        return false;
    }
    if (is_wanted()) {
        read_lists();
        publish(); // what has gone, and what is pending from now on
    }
    uint64_t piece_ns = 2 * modules_jit.publish_ns > PIECE_NS ? 2 * modules_jit.publish_ns : PIECE_NS;
    make_tables(os_now_ns() + piece_ns);
    publish();
    uint64_t ended_ns = os_now_ns(), pause_ns = (ended_ns - began_ns) * PAUSE_FACTOR;
    if (modules_jit.fault_streak && pause_ns < (uint64_t)FAULT_PAUSE_NS << modules_jit.fault_streak)
        pause_ns = (uint64_t)FAULT_PAUSE_NS << modules_jit.fault_streak;
    modules_jit.due_ns = ended_ns + (pause_ns < PAUSE_NS_MAX ? pause_ns : PAUSE_NS_MAX);
    return true;
}

void modules_jit_refresh(void)
{
    if (modules_jit.list_count == 0 && !is_wanted())
        return;
    atomic_fetch_or_explicit(&modules_jit.wanted, MODULES_JIT_WANT | MODULES_JIT_DOUBT, memory_order_acq_rel);
    read_lists();
    make_tables(UINT64_MAX);
    publish();
}

// A reading under way was cut off in between: what it had put in place is whole, and it is done again.
void modules_jit_after_fork(void)
{
    modules_jit.waiting_next = modules_jit.waiting_count = 0;
    atomic_store_explicit(&modules_jit.done, atomic_load_explicit(&modules_jit.begun, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&modules_jit.wanted, MODULES_JIT_WANT | MODULES_JIT_DOUBT, memory_order_relaxed);
}
