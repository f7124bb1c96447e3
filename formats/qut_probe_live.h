// SPDX-License-Identifier: Apache-2.0
// Probes that run, version 6: the memory that the tool and the programs under its probes share. Pure data; the tool
// makes it. Specification: formats/qut_probe.md.
//
//   header | image (qut_probe.h) | maps (bytecode/maps.h) | slots of records | masks and callers of each process
//
// Masks are a word for each function, by its number: bit N is set where program N of the image runs. Behind them are
// the callers: of programs that run in calls out of some functions only, where these functions are.
#ifndef QUT_FORMATS_QUT_PROBE_LIVE_H
#define QUT_FORMATS_QUT_PROBE_LIVE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_calls.h"
#include "formats/qut_probe.h"

#define QUT_PROBE_LIVE_MAGIC "QUTPLiv\x01"

enum {
    QUT_PROBE_LIVE_VERSION = 6,
    QUT_PROBE_LIVE_PAGE_BYTES = 4096, // each part begins at a multiple of these
    QUT_PROBE_LIVE_MASKS_BYTES = 4 << QUT_CALLS_ID_BITS,
    QUT_PROBE_LIVE_CALLERS_MAX = 1 << 16,
    QUT_PROBE_LIVE_CALLER_MODULES_MAX = 256,
    QUT_PROBE_LIVE_SLOTS_MAX = 1 << 20,
    QUT_PROBE_LIVE_SLOT_WORDS_MAX = QUT_PROBE_RECORD_WORDS_MAX + 1,
    QUT_PROBE_LIVE_RECORD_BITS = 8, // of a slot's first word
};
#define QUT_PROBE_LIVE_BYTES_MAX (UINT64_C(1) << 34)

enum qut_probe_live_flag {
    QUT_PROBE_LIVE_INTERPRETS = 1,  // nobody is to make machine code of programs
    QUT_PROBE_LIVE_TELLS_CALLS = 2, // where programs run, events are written as well (qut_calls.h)
};

enum qut_probe_live_over { QUT_PROBE_LIVE_OVER_NOT, QUT_PROBE_LIVE_OVER_BEGUN, QUT_PROBE_LIVE_OVER };

struct qut_probe_live {
    uint8_t magic[8];
    uint32_t version;
    uint32_t image_bytes;
    uint64_t total_bytes; // without masks
    uint64_t image_offset_bytes, maps_offset_bytes, slots_offset_bytes;
    uint32_t slot_count, slot_words; // slot_count: a power of two
    // ns = base_ns + (ticks - base_ticks) * rate / 2^32, with the ticks of struct qut_calls_event.
    uint64_t base_ticks, base_ns, rate;
    uint32_t budget_permille; // of a process's processor time that its probes may take; 0: all of it
    uint32_t called_programs; // bits of those that run in calls out of some functions only
    uint32_t flags;           // enum qut_probe_live_flag
    uint32_t zero;

    alignas(64) qut_calls_u64 head; // slots taken so far, by any program
    qut_calls_u64 lost;             // records that had no room
    // Of the process that was over its budget. From _BEGUN on no program runs in any.
    qut_calls_u64 over; // enum qut_probe_live_over
    qut_calls_u64 over_pid, over_probes_ns, over_cpu_ns;
    qut_calls_u64 unlisted;    // calls that had no room among those that are open: whether they are left is not seen
    qut_calls_u64 interpreted; // processes that could make no machine code of programs
    alignas(64) qut_calls_u64 tail;  // slots read, by the tool
    qut_calls_u64 interpreted_error; // the errno of one of these
};
static_assert(sizeof(struct qut_probe_live) == 256, "shared");
static_assert(offsetof(struct qut_probe_live, total_bytes) == 16, "shared");

static inline uint64_t qut_probe_live_pages(uint64_t bytes)
{
    return (bytes + QUT_PROBE_LIVE_PAGE_BYTES - 1) / QUT_PROBE_LIVE_PAGE_BYTES * QUT_PROBE_LIVE_PAGE_BYTES;
}

// Where what lies, of an image and its maps (bytecode/maps.h), with slots of so many bytes at most. The clock and what
// may be wanted beside are the caller's.
static inline void qut_probe_live_lay_out(struct qut_probe_live *live, const struct qut_probe_image *image,
                                          uint64_t maps_words, uint64_t slots_bytes_most)
{
    uint32_t words = 1;
    for (uint32_t i = 0; i < image->header->record_count; i++)
        if (image->records[i].words + 1 > words)
            words = image->records[i].words + 1;
    for (unsigned i = 0; i < sizeof live->magic; i++)
        live->magic[i] = (uint8_t)QUT_PROBE_LIVE_MAGIC[i];
    live->version = QUT_PROBE_LIVE_VERSION;
    live->image_bytes = image->header->total_bytes;
    live->slot_words = words;
    live->slot_count = 1;
    while (live->slot_count * (uint64_t)words * 8 * 2 <= slots_bytes_most && image->header->record_count)
        live->slot_count *= 2;
    live->image_offset_bytes = qut_probe_live_pages(sizeof *live);
    live->maps_offset_bytes = live->image_offset_bytes + qut_probe_live_pages(live->image_bytes);
    live->slots_offset_bytes = live->maps_offset_bytes + qut_probe_live_pages(maps_words * 8);
    live->total_bytes = live->slots_offset_bytes + qut_probe_live_pages((uint64_t)live->slot_count * words * 8);
}

// ---- callers

// A function, or another part of code: programs (bits) run in calls out of it.
struct qut_probe_caller {
    qut_calls_u64 begin; // address in the process
    uint32_t size_bytes;
    uint32_t programs;
};
static_assert(sizeof(struct qut_probe_caller) == 16, "shared");

// Those of one module, ascending. It is written before module_count, and when the module goes, `end` becomes 0. Then
// another one with as many callers or fewer may take the place, whose `end` is written last.
struct qut_probe_caller_module {
    qut_calls_u64 begin, end; // of all of them
    uint32_t first, count;
};
static_assert(sizeof(struct qut_probe_caller_module) == 24, "shared");

struct qut_probe_callers {
    uint32_t module_count; // modules in use, with those that are gone
    uint32_t zero;
    struct qut_probe_caller_module modules[QUT_PROBE_LIVE_CALLER_MODULES_MAX];
    struct qut_probe_caller items[QUT_PROBE_LIVE_CALLERS_MAX];
};

enum { // of a process
    QUT_PROBE_LIVE_CALLERS_BYTES =
        ((int)sizeof(struct qut_probe_callers) / QUT_PROBE_LIVE_PAGE_BYTES + 1) * QUT_PROBE_LIVE_PAGE_BYTES,
    QUT_PROBE_LIVE_PROCESS_BYTES = QUT_PROBE_LIVE_MASKS_BYTES + QUT_PROBE_LIVE_CALLERS_BYTES,
};

// The programs that run in calls that return to `pc`, bits. What another side writes meanwhile is not believed. A call
// may be a function's last instruction: so the one before `pc` counts.
static inline uint32_t qut_probe_callers_programs(const struct qut_probe_callers *callers, uint64_t pc)
{
    uint32_t modules = __atomic_load_n(&callers->module_count, __ATOMIC_ACQUIRE);
    if (modules > QUT_PROBE_LIVE_CALLER_MODULES_MAX)
        modules = QUT_PROBE_LIVE_CALLER_MODULES_MAX;
    for (uint32_t i = 0; i < modules; i++) {
        const struct qut_probe_caller_module *module = &callers->modules[i];
        const uint64_t end = __atomic_load_n(&module->end, __ATOMIC_ACQUIRE);
        if (pc - 1 >= end || pc - 1 < __atomic_load_n(&module->begin, __ATOMIC_RELAXED))
            continue;
        const uint32_t first = __atomic_load_n(&module->first, __ATOMIC_RELAXED),
                       count = __atomic_load_n(&module->count, __ATOMIC_RELAXED);
        if (first > QUT_PROBE_LIVE_CALLERS_MAX || count > QUT_PROBE_LIVE_CALLERS_MAX - first)
            return 0;
        uint32_t low = first, high = first + count; // the last one that begins at pc - 1 or before is below high
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (__atomic_load_n(&callers->items[middle].begin, __ATOMIC_RELAXED) <= pc - 1)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == first)
            return 0;
        const struct qut_probe_caller *caller = &callers->items[low - 1];
        const uint64_t behind = pc - 1 - __atomic_load_n(&caller->begin, __ATOMIC_RELAXED);
        return behind < __atomic_load_n(&caller->size_bytes, __ATOMIC_RELAXED)
                   ? __atomic_load_n(&caller->programs, __ATOMIC_RELAXED)
                   : 0;
    }
    return 0;
}

// ---- records

// What a slot's first word is when its record is written: slots are used again and again.
static inline uint64_t qut_probe_live_mark(uint64_t sequence, uint32_t record)
{
    return (sequence + 1) << QUT_PROBE_LIVE_RECORD_BITS | record;
}

// Whether all that a copy of the header names lies in a memory of so many bytes. Of the image and of the maps only
// where they begin: their ends depend on the image.
static inline bool qut_probe_live_is_sound(const struct qut_probe_live *live, uint64_t bytes)
{
    for (unsigned i = 0; i < sizeof live->magic; i++)
        if (live->magic[i] != (uint8_t)QUT_PROBE_LIVE_MAGIC[i])
            return false;
    if (live->version != QUT_PROBE_LIVE_VERSION || live->total_bytes > bytes ||
        live->total_bytes > QUT_PROBE_LIVE_BYTES_MAX || live->total_bytes < sizeof *live)
        return false;
    if (live->slot_count == 0 || live->slot_count > QUT_PROBE_LIVE_SLOTS_MAX ||
        (live->slot_count & (live->slot_count - 1)) || live->slot_words == 0 ||
        live->slot_words > QUT_PROBE_LIVE_SLOT_WORDS_MAX)
        return false;
    const uint64_t begins[] = {live->image_offset_bytes, live->maps_offset_bytes, live->slots_offset_bytes};
    const uint64_t sizes[] = {live->image_bytes, 0, (uint64_t)live->slot_count * live->slot_words * 8};
    for (unsigned i = 0; i < sizeof begins / sizeof *begins; i++)
        if (begins[i] % QUT_PROBE_LIVE_PAGE_BYTES != 0 || begins[i] < sizeof *live || begins[i] > live->total_bytes ||
            sizes[i] > live->total_bytes - begins[i])
            return false;
    return true;
}

#endif
