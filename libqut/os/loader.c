// SPDX-License-Identifier: Apache-2.0
// What the dynamic loader has loaded.
//
// glibc counts the modules that it adds, but tells the count only under its lock (dl_iterate_phdr). The counter is a
// member of _rtld_global, an object that ld.so exports to the other parts of glibc and whose layout is its own affair.
// So it is found by its value: all words of that object that equal the count are taken, and those that ever differ from
// it are dropped. In the same way the number of modules that are loaded, which tells of those that go. Where no word is
// left for either, there is no generation. Android's linker counts as well, and its file says where
// (linker_counters.c); musl removes nothing.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "libqut/os/os.h"

enum count { COUNT_ADDED, COUNT_LOADED, COUNT_REMOVED, COUNTS };
enum {
    SLOTS_MAX = sizeof((struct os_generation *)0)->words / sizeof(struct os_word),
    SLOTS_OF_A_KIND_MAX = SLOTS_MAX / 2,
};

enum generation_source {
    SOURCE_UNKNOWN = 0, // not looked yet
    SOURCE_CONSTANT,    // a static program
    SOURCE_SLOTS,
    SOURCE_NONE,
};

static _Atomic uint32_t source;
// Changed by the thread that lists modules, under the loader's lock.
static uint32_t slot_count;
static uintptr_t slots[SLOTS_MAX]; // words of the loader's; on 32-bit machines the lower half of the count
static enum count slot_kinds[SLOTS_MAX];
static uint64_t constant_adds; // of a static program

static uintptr_t slot_value(uintptr_t slot)
{
    return __atomic_load_n((const uintptr_t *)slot, __ATOMIC_RELAXED);
}

static uintptr_t object_start;
static size_t object_size;

static bool holds(uintptr_t slot, enum count kind, uint64_t value)
{
    // The loaded are counted in the machine's word, the others in 64 bits, everywhere.
    bool has_upper_half = kind != COUNT_LOADED && sizeof(uintptr_t) < sizeof value;
    return slot_value(slot) == (uintptr_t)value &&
           (!has_upper_half || slot_value(slot + sizeof(uintptr_t)) == value >> 32);
}

// Appends those that hold the value. False: there are none, or too many to tell.
static bool find_slots(enum count kind, uint64_t value)
{
    uint32_t first = slot_count;
    for (size_t at = 0; value && at + sizeof value <= object_size; at += sizeof(uintptr_t)) {
        if (!holds(object_start + at, kind, value))
            continue;
        if (slot_count - first == SLOTS_OF_A_KIND_MAX)
            return false;
        slots[slot_count] = object_start + at;
        slot_kinds[slot_count++] = kind;
    }
    return slot_count > first;
}

// Drops those that hold another value. False: of one of the kinds none are left.
static bool check_slots(const uint64_t *values)
{
    uint32_t kept = 0;
    unsigned kinds_left = 0;
    for (uint32_t i = 0; i < slot_count; i++) {
        if (!holds(slots[i], slot_kinds[i], values[slot_kinds[i]]))
            continue;
        slots[kept] = slots[i];
        slot_kinds[kept++] = slot_kinds[i];
        kinds_left |= 1u << slot_kinds[i];
    }
    slot_count = kept;
    return (kinds_left & 1u << COUNT_ADDED) && (kinds_left & (1u << COUNT_LOADED | 1u << COUNT_REMOVED));
}

#ifdef __ANDROID__
// Which module is told first is not said: seen in the sources, it may be the linker.
static bool is_the_program(const struct dl_phdr_info *module, bool is_first)
{
    (void)is_first;
    return (uintptr_t)module->dlpi_phdr == getauxval(AT_PHDR);
}

static bool is_static_program(const struct dl_phdr_info *first)
{
    (void)first;
    return getauxval(AT_BASE) == 0;
}

static void know_slots(void)
{
    struct os_mapping *linker = malloc(sizeof *linker);
    uintptr_t base = getauxval(AT_BASE);
    uint64_t vaddrs[2];
    // The linker's first segment has the virtual address 0.
    if (linker && base && os_mapping_at(base, linker) == 0 && linker->is_there && linker->offset_bytes == 0 &&
        os_linker_counters(linker->path, vaddrs)) {
        slots[0] = base + (uintptr_t)vaddrs[0];
        slots[1] = base + (uintptr_t)vaddrs[1];
        slot_kinds[0] = COUNT_ADDED;
        slot_kinds[1] = COUNT_REMOVED;
        slot_count = 2;
    }
    free(linker);
}
#else
static bool is_the_program(const struct dl_phdr_info *module, bool is_first)
{
    (void)module;
    return is_first;
}

static bool is_static_program(const struct dl_phdr_info *first)
{
    for (unsigned i = 0; i < first->dlpi_phnum; i++)
        if (first->dlpi_phdr[i].p_type == PT_INTERP)
            return false;
    return true;
}

#ifdef __GLIBC__
#pragma weak dladdr1 // the agent must load under musl, too, where it does nothing
static bool loader_object(uintptr_t *start, size_t *size)
{
    void *object = dlsym(RTLD_DEFAULT, "_rtld_global");
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (!object || !dladdr1(object, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || info.dli_saddr != object)
        return false;
    *start = (uintptr_t)object;
    *size = symbol->st_size;
    return true;
}

// dlsym takes a lock of the loader's own, so it is not for the callback.
static void know_slots(void)
{
    if (!loader_object(&object_start, &object_size))
        object_size = 0;
}
#else
static void know_slots(void) {}
#endif
#endif

// Under the loader's lock, with what it told of the first module.
static int check_generation(struct dl_phdr_info *first, size_t info_size, void *context)
{
    (void)context;
    if (info_size < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof first->dlpi_subs)
        return 1;
    const uint64_t values[COUNTS] = {[COUNT_ADDED] = first->dlpi_adds,
                                     [COUNT_LOADED] = first->dlpi_adds - first->dlpi_subs,
                                     [COUNT_REMOVED] = first->dlpi_subs};
    uint32_t now = atomic_load_explicit(&source, memory_order_relaxed), next = now;
    if (now == SOURCE_UNKNOWN && is_static_program(first)) {
        constant_adds = values[COUNT_ADDED];
        next = SOURCE_CONSTANT;
    } else if (now == SOURCE_UNKNOWN && slot_count) {
        next = check_slots(values) ? SOURCE_SLOTS : SOURCE_NONE;
    } else if (now == SOURCE_UNKNOWN) {
        bool found = find_slots(COUNT_ADDED, values[COUNT_ADDED]) && find_slots(COUNT_LOADED, values[COUNT_LOADED]);
        next = found ? SOURCE_SLOTS : SOURCE_NONE;
    } else if (now == SOURCE_CONSTANT) {
        next = values[COUNT_ADDED] == constant_adds ? SOURCE_CONSTANT : SOURCE_NONE;
    } else if (now == SOURCE_SLOTS) {
        next = check_slots(values) ? SOURCE_SLOTS : SOURCE_NONE;
    }
    atomic_store_explicit(&source, next, memory_order_release);
    return 1; // no more modules
}

// Appends what the words are now. A word that is both counts, so far, is told once.
static void tell_words(struct os_generation *generation)
{
    for (uint32_t i = 0; i < slot_count; i++) {
        bool is_told = false;
        for (uint32_t j = 0; j < generation->word_count; j++)
            is_told = is_told || generation->words[j].address == slots[i];
        if (!is_told)
            generation->words[generation->word_count++] = (struct os_word){slots[i], slot_value(slots[i])};
    }
}

// Those that were dropped since may change at any time.
static void keep_words(struct os_generation *generation)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < generation->word_count; i++) {
        bool is_slot = false;
        for (uint32_t j = 0; j < slot_count; j++)
            is_slot = is_slot || generation->words[i].address == slots[j];
        if (is_slot)
            generation->words[kept++] = generation->words[i];
    }
    generation->word_count = kept;
    uint32_t from = atomic_load_explicit(&source, memory_order_relaxed);
    generation->is_known = from == SOURCE_SLOTS || from == SOURCE_CONSTANT;
}

// Since glibc 2.35. Weak, so that a program built here runs with an older one.
#ifdef DLFO_STRUCT_HAS_EH_DBASE
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static bool find_object(uintptr_t pc, uintptr_t *map_start, uintptr_t *link_map)
{
    struct dl_find_object found;
    if (!_dl_find_object || _dl_find_object((void *)pc, &found) != 0)
        return false;
    *map_start = (uintptr_t)found.dlfo_map_start;
    *link_map = (uintptr_t)found.dlfo_link_map;
    return true;
}

static bool can_find_object(void)
{
    return _dl_find_object != NULL;
}
#else
static bool find_object(uintptr_t pc, uintptr_t *map_start, uintptr_t *link_map)
{
    (void)pc;
    (void)map_start;
    (void)link_map;
    return false;
}

static bool can_find_object(void)
{
    return false;
}
#endif

bool os_confirm_module(uintptr_t pc, uintptr_t map_start, uintptr_t link_map)
{
#ifndef __GLIBC__
    (void)pc, (void)map_start, (void)link_map, (void)find_object, (void)can_find_object;
    return true;
#else
    if (!can_find_object())
        return atomic_load_explicit(&source, memory_order_acquire) == SOURCE_CONSTANT;
    uintptr_t map_start_now, link_map_now;
    return link_map && find_object(pc, &map_start_now, &link_map_now) && map_start_now == map_start &&
           link_map_now == link_map;
#endif
}

struct each {
    int (*function)(void *context, const struct os_module *module);
    void *context;
    bool goes_on;
};

static int each_object(struct dl_phdr_info *info, size_t info_size, void *context)
{
    struct each *each = context;
    bool is_first = !each->goes_on, is_program = is_the_program(info, is_first);
    each->goes_on = true;
    if (is_first)
        check_generation(info, info_size, NULL);
    struct os_module module = {
        .path = info->dlpi_name ? info->dlpi_name : "",
        .load_bias = info->dlpi_addr,
        .program_headers = info->dlpi_phdr,
        .program_header_count = info->dlpi_phnum,
        .is_program = is_program,
        .is_loader = info->dlpi_addr && info->dlpi_addr == getauxval(AT_BASE),
    };
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) &&
            find_object((uintptr_t)(info->dlpi_addr + header->p_vaddr), &module.map_start, &module.link_map))
            break;
    }
    return each->function(each->context, &module);
}

static int ask_for_no_more(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info, (void)size, (void)context;
    return 1;
}

void os_await_loader(void)
{
    dl_iterate_phdr(ask_for_no_more, NULL);
}

int os_each_module(int (*function)(void *context, const struct os_module *module), void *context,
                   struct os_generation *generation)
{
    if (atomic_load_explicit(&source, memory_order_acquire) == SOURCE_UNKNOWN) {
        know_slots();
        dl_iterate_phdr(check_generation, NULL);
    }
    // Not under the lock: the lock lies among the words, and would be told as it is while it is held.
    memset(generation, 0, sizeof *generation);
    tell_words(generation);
    struct each each = {.function = function, .context = context};
    int result = dl_iterate_phdr(each_object, &each);
    keep_words(generation);
    return result;
}
