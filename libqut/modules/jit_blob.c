// SPDX-License-Identifier: Apache-2.0
// One symbol file, from its entry to its table.
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/jit_registry.h"

static void free_node(struct modules_retired *retired)
{
    modules_jit_blob_free((struct modules_jit_blob *)((char *)retired - offsetof(struct modules_jit_blob, retired)));
}

void modules_jit_blob_free(struct modules_jit_blob *blob)
{
    free(blob->table_bytes);
    free(blob->symfile);
    free(blob->ranges);
    free(blob);
}

static bool is_elf(const uint8_t *bytes, size_t size)
{
    return size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

// What is compared when the entry is met again, of a copy of the file. Its headers say where it was loaded and how long
// its parts are; what else has changed where its rules did not, does not matter here.
static void choose_parts(struct modules_jit_blob *blob)
{
    struct modules_jit_code *code = &blob->code;
    struct art_jit_range sections[MODULES_JIT_PARTS_MAX - 1];
    if (blob->symfile_bytes <= MODULES_JIT_WHOLE_BYTES_MAX) {
        code->parts[0].size = (uint32_t)blob->symfile_bytes;
        return;
    }
    size_t count = art_jit_frame_sections(&arch_native_arch, blob->symfile, blob->symfile_bytes, sections,
                                          MODULES_JIT_PARTS_MAX - 1);
    for (size_t i = 0; i < count; i++) {
        code->parts[i].offset = (uint32_t)sections[i].start;
        code->parts[i].size = (uint32_t)(sections[i].end - sections[i].start);
    }
    ElfW(Ehdr) header;
    memcpy(&header, blob->symfile, sizeof header);
    bool has_headers = count != 0 && header.e_shoff < blob->symfile_bytes;
    uint64_t from = has_headers ? header.e_shoff : 0, rest = blob->symfile_bytes - from;
    uint64_t size = has_headers ? (uint64_t)header.e_shnum * header.e_shentsize : rest;
    code->parts[count].offset = (uint32_t)from;
    code->parts[count].size = (uint32_t)(size < rest ? size : rest);
}

// Where its code lies, and what the compiler will be given.
static enum art_jit_fault look_into(struct modules_jit_blob *blob)
{
    struct art_jit_range ranges[MODULES_JIT_RANGES_MAX];
    if (!is_elf(blob->symfile, blob->symfile_bytes)) {
        blob->state = MODULES_JIT_NOT_ELF;
        return ART_JIT_FINE;
    }
    size_t count =
        art_jit_code_ranges(&arch_native_arch, blob->symfile, blob->symfile_bytes, ranges, MODULES_JIT_RANGES_MAX);
    blob->state = MODULES_JIT_NO_TABLE;
    if (count == 0)
        return ART_JIT_FINE;
    blob->ranges = malloc(count * sizeof *ranges);
    if (!blob->ranges)
        return ART_JIT_NO_MEMORY;
    memcpy(blob->ranges, ranges, count * sizeof *ranges);
    blob->range_count = count;
    if (art_jit_complete_symfile(&modules_jit_own_memory, blob->symfile, blob->symfile_bytes))
        blob->state = MODULES_JIT_WAITS;
    return ART_JIT_FINE;
}

struct modules_jit_blob *modules_jit_blob_new(const struct art_jit_descriptor *descriptor,
                                              const struct art_jit_entry *entry, enum art_jit_fault *fault)
{
    struct modules_jit_blob *blob = calloc(1, sizeof *blob);
    *fault = ART_JIT_NO_MEMORY;
    if (!blob)
        return NULL;
    blob->retired.free = free_node;
    blob->code.entry = *entry;
    *fault = art_jit_copy_symfile(&modules_jit_own_memory, descriptor, entry, &blob->symfile, &blob->symfile_bytes);
    if (*fault == ART_JIT_FINE) {
        choose_parts(blob);
        modules_jit_hash(&blob->code, blob->symfile, &blob->code.hash);
        *fault = look_into(blob);
    }
    if (*fault == ART_JIT_TOO_LARGE || *fault == ART_JIT_UNREADABLE) {
        blob->state = MODULES_JIT_NOT_READ;
        *fault = ART_JIT_FINE;
    }
    if (*fault != ART_JIT_FINE) {
        modules_jit_blob_free(blob);
        return NULL;
    }
    blob->code.code = (struct runtime_code){.state = RUNTIME_CODE_NO_TABLE, .frame_flags = QUT_FRAME_JIT};
    if (blob->state != MODULES_JIT_WAITS) {
        free(blob->symfile);
        blob->symfile = NULL;
        blob->symfile_bytes = 0;
    }
    return blob;
}

bool modules_jit_blob_is(const struct modules_jit_blob *blob, const struct art_jit_entry *entry, bool doubted)
{
    const struct art_jit_entry *known = &blob->code.entry;
    uint64_t hash;
    return known->seqlock == entry->seqlock && known->timestamp == entry->timestamp &&
           known->symfile_address == entry->symfile_address && known->symfile_bytes == entry->symfile_bytes &&
           (!doubted || (modules_jit_hash(&blob->code, NULL, &hash) && hash == blob->code.hash));
}

// ---- its table

// Rows that lie in none of the file's sections of code are not its to answer for.
static bool add_ranges(const struct modules_jit_blob *blob, uint64_t start, uint64_t end, struct modules_jit_made *made,
                       size_t *capacity)
{
    for (size_t i = 0; i < blob->range_count; i++) {
        const struct art_jit_range *code = &blob->ranges[i];
        struct art_jit_range range = {start > code->start ? start : code->start, end < code->end ? end : code->end};
        if (range.start >= range.end)
            continue;
        struct art_jit_range *last = made->range_count ? &made->ranges[made->range_count - 1] : NULL;
        if (last && last->end == range.start) {
            last->end = range.end;
            continue;
        }
        if (made->range_count == *capacity) {
            size_t larger = *capacity ? *capacity * 2 : 4;
            struct art_jit_range *ranges = realloc(made->ranges, larger * sizeof *ranges);
            if (!ranges)
                return false;
            made->ranges = ranges;
            *capacity = larger;
        }
        made->ranges[made->range_count++] = range;
    }
    return true;
}

static bool find_ranges(const struct modules_jit_blob *blob, struct modules_jit_made *made)
{
    size_t capacity = 0;
    struct qut_rule rule;
    uint64_t pc = made->table.text_start, end;
    for (; runtime_table_next_row(&made->table, &pc, &end, &rule); pc = end)
        if (rule.kind != QUT_RULE_HOLE && !add_ranges(blob, pc, end, made, &capacity))
            return false;
    return true;
}

// A copy where a table has to lie. There are many and small ones: pages of their own would be mostly empty.
static bool adopt(const void *bytes, size_t size, struct modules_jit_made *made)
{
    size_t room = (size + QUT_TABLE_ALIGN - 1) / QUT_TABLE_ALIGN * QUT_TABLE_ALIGN;
    void *memory; // aligned_alloc came to Android with 9
    if (size > room || posix_memalign(&memory, QUT_TABLE_ALIGN, room) != 0)
        return false;
    made->table_bytes = memory;
    memcpy(made->table_bytes, bytes, size);
    return runtime_table_attach(&made->table, made->table_bytes, size, NULL) == QUT_TABLE_OK &&
           made->table.header->arch == arch_native_arch.id;
}

void modules_jit_blob_make(const struct modules_jit_blob *blob, struct modules_jit_made *made)
{
    struct qut_compile_request request = {
        .path = "",
        .memory = blob->symfile,
        .memory_size = blob->symfile_bytes,
        .flags = QUT_COMPILE_JIT,
    };
    void *bytes = NULL;
    size_t size = 0;
    char reason[120];
    *made = (struct modules_jit_made){.state = MODULES_JIT_NO_TABLE};
    if (!modules_registry.compile ||
        modules_registry.compile(modules_registry.compile_context, &request, &bytes, &size, reason, sizeof reason) != 0)
        return;
    if (adopt(bytes, size, made) && find_ranges(blob, made) && made->range_count) {
        made->state = MODULES_JIT_READY;
    } else {
        // LLVM registers an object before it has put addresses into it: rows of no code of its own are a sign of that.
        bool is_early = made->table_bytes && blob->tries < MODULES_JIT_TRIES_MAX;
        free(made->table_bytes);
        free(made->ranges);
        *made = (struct modules_jit_made){.state = is_early ? MODULES_JIT_EARLY : MODULES_JIT_NO_TABLE};
    }
    free(bytes);
}

void modules_jit_blob_settle(struct modules_jit_blob *blob, const struct modules_jit_made *made, uint8_t frame_flags)
{
    blob->state = made->state;
    free(blob->symfile);
    blob->symfile = NULL;
    blob->symfile_bytes = 0;
    if (made->state != MODULES_JIT_READY)
        return;
    free(blob->ranges);
    blob->ranges = made->ranges;
    blob->range_count = made->range_count;
    blob->table = made->table;
    blob->table_bytes = made->table_bytes;
    blob->code.code =
        (struct runtime_code){.state = RUNTIME_CODE_READY, .table = &blob->table, .frame_flags = frame_flags};
}
