// SPDX-License-Identifier: Apache-2.0
// Which modules are loaded. What the loader's list points at is read as memory that may go away: its lock keeps the
// list together, not every mapping.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/art/jit_methods.h"
#include "libqut/elf/dynamic_symbol.h"
#include "libqut/modules/code_space.h"
#include "libqut/modules/jit_registry.h"
#include "libqut/modules/own_memory.h"
#include "libqut/modules/scan.h"

enum { NOTE_BYTES_MAX = 4096, HEADERS_READ = 32 };

// ---- one module

static uintptr_t address_of(const struct modules_identity *identity, const ElfW(Phdr) * header)
{
    return (uintptr_t)(identity->load_bias + header->p_vaddr);
}

static void add_code(struct modules_identity *identity, const ElfW(Phdr) * header)
{
    uintptr_t start = address_of(identity, header), end = start + header->p_memsz;
    if (!(header->p_flags & PF_X) || end <= start)
        return;
    if (identity->end == 0 || start < identity->start)
        identity->start = start;
    if (end > identity->end)
        identity->end = end;
}

// One system call for each module, instead of one for each thing that is read.
static void read_page(struct modules_scan *scan, uintptr_t address)
{
    scan->page = address - address % MODULES_SCAN_PAGE_BYTES;
    scan->page_got = os_read_self(scan->page, scan->page_bytes, MODULES_SCAN_PAGE_BYTES);
}

static size_t read_image(const struct modules_scan *scan, uintptr_t address, void *bytes, size_t size)
{
    const uintptr_t offset = address - scan->page;
    if (offset >= scan->page_got || size > scan->page_got - offset)
        return os_read_self(address, bytes, size);
    memcpy(bytes, scan->page_bytes + offset, size);
    return size;
}

// The build-id among the notes of a segment.
static void find_build_id(struct modules_identity *identity, const ElfW(Phdr) * header, const struct modules_scan *scan)
{
    uint8_t *buffer = scan->buffer;
    uintptr_t address = address_of(identity, header);
    size_t wanted = header->p_memsz < NOTE_BYTES_MAX ? (size_t)header->p_memsz : NOTE_BYTES_MAX;
    size_t at = 0, size = read_image(scan, address, buffer, wanted);
    identity->build_id_size = elf_find_build_id(buffer, size, header->p_align, &at);
    memcpy(identity->build_id, buffer + at, identity->build_id_size);
    if (identity->build_id_size >= MODULES_CANARY_BYTES) {
        identity->canary_address = address + at;
        memcpy(identity->canary, identity->build_id, MODULES_CANARY_BYTES);
    }
}

// The program's entry point, and the dynamic loader's: there a stack ends.
static void read_header(struct modules_identity *identity, const ElfW(Phdr) * header, const struct modules_scan *scan)
{
    ElfW(Ehdr) elf;
    uintptr_t address = address_of(identity, header);
    if (header->p_offset != 0 || read_image(scan, address, &elf, sizeof elf) != sizeof elf ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    if (elf.e_entry)
        identity->entry = (identity->load_bias + elf.e_entry) & ~(uint64_t)arch_native_arch.has_thumb;
}

static void take_header(struct modules_found *found, const ElfW(Phdr) * header, const struct modules_scan *scan)
{
    struct modules_identity *identity = &found->identity;
    if (header->p_type == PT_LOAD && identity->header_count < MODULES_HEADERS_MAX) {
        identity->headers[identity->header_count++] = *header;
        add_code(identity, header);
    } else if (header->p_type == PT_NOTE && identity->build_id_size == 0) {
        find_build_id(identity, header, scan);
    } else if (header->p_type == PT_DYNAMIC) {
        found->dynamic = address_of(identity, header);
    }
}

static void identify(struct modules_found *found, const struct os_module *module, struct modules_scan *scan)
{
    struct modules_identity *identity = &found->identity;
    ElfW(Phdr) headers[HEADERS_READ];
    identity->load_bias = module->load_bias;
    identity->map_start = module->map_start;
    identity->link_map = module->link_map;
    read_page(scan, (uintptr_t)module->program_headers);
    size_t got = HEADERS_READ;
    for (size_t first = 0; got == HEADERS_READ && first < module->program_header_count; first += got) {
        size_t left = module->program_header_count - first, wanted = left < HEADERS_READ ? left : HEADERS_READ;
        uintptr_t at = (uintptr_t)module->program_headers + first * sizeof *headers;
        got = read_image(scan, at, headers, wanted * sizeof *headers) / sizeof *headers;
        for (size_t i = 0; i < got; i++)
            take_header(found, &headers[i], scan);
    }
    identity->is_permanent = module->is_program || module->is_loader;
    if (identity->is_permanent)
        for (uint32_t i = 0; i < identity->header_count; i++)
            read_header(identity, &identity->headers[i], scan);
}

int modules_scan_add(struct modules_scan *scan, const struct os_module *module)
{
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? scan->capacity * 2 : 64;
        struct modules_found *found = realloc(scan->found, capacity * sizeof *found);
        if (!found)
            return -ENOMEM;
        scan->found = found;
        scan->capacity = capacity;
    }
    struct modules_found *found = &scan->found[scan->count];
    memset(found, 0, sizeof *found);
    identify(found, module, scan);
    if (found->identity.end == 0)
        return 0;
    found->name = strdup(module->path);
    if (!found->name)
        return -ENOMEM;
    scan->count++;
    return 0;
}

static int collect(void *context, const struct os_module *module)
{
    return modules_scan_add(context, module);
}

// ---- records

static void free_record_node(struct modules_retired *retired)
{
    modules_record_free((struct modules_record *)((char *)retired - offsetof(struct modules_record, retired)));
}

void modules_record_free(struct modules_record *record)
{
    runtime_stored_table_free(&record->stored);
    free(record->name);
    free(record->file);
    free(record);
}

void modules_registry_tell_gone(struct modules_record *record)
{
    const struct modules_watch *watch = atomic_load_explicit(&modules_registry_watch, memory_order_acquire);
    if (watch)
        watch->goes(record);
}

static struct modules_record *new_record(struct modules_found *found)
{
    static uint32_t unlisted; // under lock
    struct modules_record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    memcpy(&record->identity, &found->identity, sizeof record->identity);
    record->name = found->name;
    found->name = NULL;
    record->jit_descriptor = found->jit_descriptor;
    record->art_instance = found->art_instance;
    record->hotspot_structs = found->hotspot_structs;
    record->hotspot_types = found->hotspot_types;
    record->python_dynamic = found->is_python ? found->dynamic : 0;
    record->v8_dynamic = found->is_v8 ? found->dynamic : 0;
    record->state = RUNTIME_CODE_PENDING;
    if (record->identity.is_unlisted && ++unlisted == 0)
        unlisted = 1;
    record->unlisted = record->identity.is_unlisted ? unlisted : 0;
    record->met_ns = os_now_ns();
    record->code_base = modules_code_space_of(&record->identity, record->name);
    record->retired = (struct modules_retired){.free = free_record_node};
    return record;
}

static bool is_same(struct modules_identity *known, const struct modules_identity *now)
{
    if (known->link_map == 0) { // the loader did not know it yet
        known->link_map = now->link_map;
        known->map_start = now->map_start;
    }
    return memcmp(known, now, sizeof *known) == 0;
}

static struct modules_record *find_known(struct modules_registry *registry, const struct modules_identity *identity)
{
    for (size_t i = 0; i < registry->record_count; i++) {
        struct modules_record *record = registry->records[i];
        if (record->identity.start == identity->start && !record->seen && is_same(&record->identity, identity))
            return record;
    }
    return NULL;
}

static int by_start(const void *a, const void *b)
{
    const struct modules_record *const *first = a, *const *second = b;
    uintptr_t start = (*first)->identity.start, other = (*second)->identity.start;
    return (start > other) - (start < other);
}

// Whether what was found is where the record says that something else is.
static bool is_overlaid(const struct modules_record *record, const struct modules_scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        if (modules_has_code(&scan->found[i].identity, record->identity.start, record->identity.end))
            return true;
    return false;
}

// Those of the other kind: they stay, but what no loader listed goes where one does now. Returns how many.
static size_t keep_others(struct modules_registry *registry, const struct modules_scan *scan, bool are_unlisted,
                          struct modules_record **records)
{
    size_t count = 0;
    for (size_t i = 0; i < registry->record_count; i++) {
        struct modules_record *record = registry->records[i];
        record->seen = record->identity.is_unlisted != are_unlisted && (are_unlisted || !is_overlaid(record, scan));
        if (record->seen)
            records[count++] = record;
    }
    return count;
}

// Puts the records of what was found in place of those that are known, which are retired where they were not found
// again. All or nothing. Under lock.
static int merge(struct modules_registry *registry, struct modules_scan *scan, bool are_unlisted)
{
    size_t most = scan->count + registry->record_count + 1;
    struct modules_record **records = malloc(most * sizeof(struct modules_record *));
    if (!records)
        return -ENOMEM;
    size_t others = keep_others(registry, scan, are_unlisted, records), count = others;
    int changes = 0;
    for (size_t i = 0; i < scan->count; i++) {
        struct modules_record *record = find_known(registry, &scan->found[i].identity);
        if (!record) {
            record = new_record(&scan->found[i]);
            changes++;
        }
        if (!record)
            break;
        record->seen = true;
        records[count++] = record;
    }
    bool complete = count == others + scan->count;
    qsort(records, count, sizeof(struct modules_record *), by_start);

    struct modules_record **old_records = registry->records;
    size_t old_count = registry->record_count;
    registry->records = records;
    registry->record_count = count;
    if (!complete || !modules_registry_publish()) {
        registry->records = old_records;
        registry->record_count = old_count;
        for (size_t i = 0; i < old_count; i++)
            old_records[i]->seen = true;
        for (size_t i = 0; i < count; i++) {
            bool is_old = false;
            for (size_t j = 0; j < old_count; j++)
                is_old = is_old || old_records[j] == records[i];
            if (!is_old)
                modules_record_free(records[i]);
        }
        free(records);
        return -ENOMEM;
    }
    for (size_t i = 0; i < old_count; i++)
        if (!old_records[i]->seen) {
            modules_registry_tell_gone(old_records[i]);
            modules_registry_push_retired(&old_records[i]->retired);
            changes++;
        }
    free(old_records);
    return changes;
}

static int list_modules(struct modules_scan *scan, struct os_generation *generation)
{
    scan->buffer = malloc(MODULES_SCAN_BUFFER_BYTES);
    if (!scan->buffer)
        return -ENOMEM;
    int result = os_each_module(collect, scan, generation);
    for (size_t i = 0; i < scan->count && result == 0; i++)
        if (scan->found[i].identity.build_id_size == 0 && !scan->found[i].identity.is_permanent)
            modules_identify_content(&scan->found[i].identity, scan->found[i].dynamic, scan->buffer,
                                     MODULES_SCAN_BUFFER_BYTES);
    free(scan->buffer);
    return result;
}

// What virtual machines publish. Under work, so that the records do not change.
static void find_machines(struct modules_registry *registry, struct modules_scan *scan)
{
    enum { JIT_DESCRIPTOR, ART_INSTANCE, HOTSPOT_STRUCTS, HOTSPOT_TYPES, PYTHON, V8, NAMES };
    static const char *const names[NAMES] = {"__jit_debug_descriptor", ART_RUNTIME_INSTANCE, "gHotSpotVMStructs",
                                             "gHotSpotVMTypes",        "_PyRuntime",         "v8dbg_off_fp_context"};
    for (size_t i = 0; i < registry->record_count; i++)
        registry->records[i]->seen = false;
    for (size_t i = 0; i < scan->count; i++) {
        struct modules_found *found = &scan->found[i];
        uint64_t addresses[NAMES];
        if (!found->dynamic || find_known(registry, &found->identity))
            continue;
        elf_art_find_symbols(&modules_own_memory, found->identity.load_bias, found->dynamic, names, NAMES, addresses,
                             NULL);
        found->jit_descriptor = addresses[JIT_DESCRIPTOR];
        found->art_instance = addresses[ART_INSTANCE];
        found->hotspot_structs = addresses[HOTSPOT_STRUCTS];
        found->hotspot_types = found->hotspot_structs ? addresses[HOTSPOT_TYPES] : 0;
        found->is_python = addresses[PYTHON] != 0;
        found->is_v8 = addresses[V8] != 0;
    }
}

int modules_scan_take(struct modules_scan *scan, const struct os_generation *loader)
{
    struct modules_registry *registry = &modules_registry;
    find_machines(registry, scan);
    os_lock(&registry->lock);
    struct os_generation last = registry->loader;
    if (loader)
        registry->loader = *loader;
    int result = merge(registry, scan, !loader);
    if (result < 0)
        registry->loader = last;
    os_unlock(&registry->lock);
    if (result < 0)
        return result;
    modules_machine_take_records();
    return modules_jit_take_records() ? result : -ENOMEM;
}

void modules_scan_free(struct modules_scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        free(scan->found[i].name);
    free(scan->found);
}

int modules_registry_scan(void)
{
    struct modules_registry *registry = &modules_registry;
    struct modules_scan scan = {0};
    // What is asked for from here on may have been loaded after the list was taken: another scan.
    atomic_exchange_explicit(&registry->wanted, 0, memory_order_acq_rel);
    struct os_generation before;
    int result = list_modules(&scan, &before);
    if (result == 0)
        result = modules_scan_take(&scan, &before);
    modules_scan_free(&scan);
    return result;
}
