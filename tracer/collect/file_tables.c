// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/file_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/file_columns.h"

enum { STRING_BLOCK_BYTES = 1 << 20, MODULE_BLOCK_COUNT = 4096, THREAD_BLOCK_COUNT = 1024 };
enum { HEAD_BYTES = 8 }; // before modules and strings: where they belong
enum { CODE_NAMES_AT_ONCE = 64, CODE_STRING_BYTES_MAX = sizeof(((struct collect_code *)0)->name) + 8 };
enum { LEVELS_TEXT_BYTES = COLLECT_LEVELS_MAX * 33 + 1, PIECE_BYTES = 256 << 10 };

// One piece for all: each by itself would be a mapping to be made, touched and given back, of which a short recording
// uses next to nothing.
int collect_file_tables_begin(struct file_tables *tables, struct trace_file *file,
                              const struct trace_segment_view *view, struct code_names *code_names,
                              struct base_error *error)
{
    enum { ALIGN = 64 };
    *tables = (struct file_tables){.file = file, .view = view, .code_names = code_names};
    const struct {
        void *place;
        size_t bytes;
    } parts[] = {
        {&tables->threads, view->thread_count * sizeof *tables->threads},
        {&tables->modules, (view->module_capacity + 1) * sizeof *tables->modules},
        {&tables->strings, view->string_bytes + 1},
        {&tables->raw, view->raw_count * sizeof *tables->raw},
        {&tables->nodes, view->node_count * sizeof *tables->nodes},
        {&tables->indices, COLUMNS_COUNT_MAX * sizeof *tables->indices},
        {&tables->words, COLUMNS_COUNT_MAX * sizeof *tables->words},
        {&tables->scratch, QUT_TRACE_FILE_BLOCK_BYTES_MAX},
    };
    size_t all = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        all += (parts[i].bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    uint8_t *at = tables->room = calloc(1, all);
    if (!at)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for a copy of the segment's tables");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy(parts[i].place, &at, sizeof at);
        at += (parts[i].bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    }
    return 0;
}

void collect_file_tables_free(struct file_tables *tables)
{
    free(tables->room);
}

static int write_columns(struct file_tables *tables, enum qut_trace_file_type type, size_t count, uint64_t *shadow,
                         uint64_t *all, struct base_error *error)
{
    static_assert(8 + COLUMNS_COUNT_MAX * 13 <= QUT_TRACE_FILE_BLOCK_BYTES_MAX, "a block has room for them");
    size_t size = trace_columns_write(tables->scratch, tables->indices, tables->words, count);
    if (collect_trace_file_block(tables->file, type, tables->scratch, size, 0, error) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        *all += shadow[tables->indices[i]] == 0;
        if (type == QUT_TRACE_FILE_RAW)
            collect_code_names_meet(tables->code_names, tables->words[i]);
        shadow[tables->indices[i]] = tables->words[i];
    }
    return 0;
}

// Words that the file has not, or (in a table that is being spoiled) has otherwise.
static int write_words(struct file_tables *tables, enum qut_trace_file_type type, const qut_trace_u64 *now,
                       size_t capacity, uint64_t *shadow, uint64_t *all, struct base_error *error)
{
    size_t count = 0, end = 0;
    for (size_t i = 1; i < end || trace_segment_next_words(tables->view, now, capacity, &i, &end); i++) {
        uint64_t word = __atomic_load_n(&now[i], __ATOMIC_ACQUIRE);
        if (!word || word == shadow[i])
            continue;
        tables->indices[count] = (uint32_t)i;
        tables->words[count++] = word;
        if (count == COLUMNS_COUNT_MAX) {
            if (write_columns(tables, type, count, shadow, all, error) != 0)
                return -1;
            count = 0;
        }
    }
    return count ? write_columns(tables, type, count, shadow, all, error) : 0;
}

static int write_at(struct file_tables *tables, enum qut_trace_file_type type, uint32_t first, const void *items,
                    size_t size, struct base_error *error)
{
    const uint32_t head[2] = {first, 0};
    static_assert(sizeof head == HEAD_BYTES, "shared");
    memcpy(tables->scratch, head, HEAD_BYTES);
    memcpy(tables->scratch + HEAD_BYTES, items, size);
    return collect_trace_file_block(tables->file, type, tables->scratch, HEAD_BYTES + size, 0, error);
}

// Entries may change after they were written: a module is unloaded.
static int write_modules(struct file_tables *tables, struct base_error *error)
{
    const struct qut_trace_module *now = trace_segment_modules(tables->view);
    uint32_t told = __atomic_load_n(&trace_segment_header(tables->view)->module_count, __ATOMIC_ACQUIRE);
    uint32_t count = told < tables->view->module_capacity ? told : tables->view->module_capacity;
    for (uint32_t first = 0; first < count;) {
        struct qut_trace_module *old = &tables->modules[first];
        if (first < tables->module_count && memcmp(old, &now[first], sizeof *old) == 0) {
            first++;
            continue;
        }
        uint32_t end = first + 1;
        while (end < count && end - first < MODULE_BLOCK_COUNT &&
               (end >= tables->module_count || memcmp(&tables->modules[end], &now[end], sizeof *old) != 0))
            end++;
        size_t size = (end - first) * sizeof *old;
        if (write_at(tables, QUT_TRACE_FILE_MODULES, first, &now[first], size, error) != 0)
            return -1;
        memcpy(old, tables->scratch + HEAD_BYTES, size); // what was written, not what is there now
        if (end > tables->module_count)
            tables->module_count = end;
        first = end;
    }
    return 0;
}

// Room is reserved before a string is written: what was copied half is written again.
static int write_strings(struct file_tables *tables, struct base_error *error)
{
    const uint8_t *now = tables->view->bytes + tables->view->header.strings.offset_bytes;
    uint32_t told = __atomic_load_n(&trace_segment_header(tables->view)->string_used_bytes, __ATOMIC_ACQUIRE);
    uint32_t size = told < tables->view->string_bytes ? told : (uint32_t)tables->view->string_bytes;
    uint32_t first = 0;
    while (first < size) {
        if (first < tables->string_bytes && tables->strings[first] == now[first]) {
            first++;
            continue;
        }
        uint32_t piece = size - first < STRING_BLOCK_BYTES ? size - first : STRING_BLOCK_BYTES;
        if (write_at(tables, QUT_TRACE_FILE_STRINGS, first, now + first, piece, error) != 0)
            return -1;
        memcpy(tables->strings + first, tables->scratch + HEAD_BYTES, piece);
        first += piece;
        if (first > tables->string_bytes)
            tables->string_bytes = first;
    }
    return 0;
}

int collect_file_tables_write(struct file_tables *tables, struct base_error *error)
{
    const struct trace_segment_view *view = tables->view;
    collect_code_names_pass(tables->code_names, view->header.start_ns);
    if (write_modules(tables, error) != 0 || write_strings(tables, error) != 0 ||
        write_words(tables, QUT_TRACE_FILE_RAW, trace_segment_raw(view), view->raw_count, tables->raw,
                    &tables->raw_count, error) != 0)
        return -1;
    return write_words(tables, QUT_TRACE_FILE_NODES, trace_segment_nodes(view), view->node_count, tables->nodes,
                       &tables->node_count, error);
}

// As the segment has them: length, bytes, a zero, padding.
static uint32_t put_string(uint8_t *to, const char *text)
{
    uint16_t length = (uint16_t)strlen(text);
    uint32_t size = (uint32_t)(sizeof length + length + 1 + 3) & ~3u;
    memset(to, 0, size);
    memcpy(to, &length, sizeof length);
    memcpy(to + sizeof length, text, length);
    return size;
}

// Of a place in a method that is interpreted, where the method is described.
static uint64_t plain_address(uint64_t address)
{
    return address & (((uint64_t)1 << COLLECT_ADDRESS_BITS) - 1);
}

// Strings first, so that each module's path is there.
static int write_name_pieces(struct file_tables *tables, const struct code_name *names, size_t count,
                             struct base_error *error)
{
    struct qut_trace_module *modules = calloc(count, sizeof *modules);
    uint8_t *strings = malloc(count * CODE_STRING_BYTES_MAX);
    uint32_t first = (tables->string_bytes + 3) & ~3u, size = 0;
    int status = modules && strings ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for names of code");
    for (size_t i = 0; i < count && status == 0; i++) {
        modules[i] = (struct qut_trace_module){
            .code_bytes = names[i].end - names[i].start,
            .start = names[i].start,
            .start_vaddr = names[i].has_lines ? names[i].start : plain_address(names[i].start),
            .load_ns = names[i].met_ns,
            .path = (first + size) / 4,
            .flags = QUT_TRACE_MODULE_JIT | (names[i].has_lines ? QUT_TRACE_MODULE_LINES : 0u)};
        size += put_string(strings + size, names[i].text);
    }
    if (status == 0)
        status = write_at(tables, QUT_TRACE_FILE_STRINGS, first, strings, size, error);
    if (status == 0)
        status =
            write_at(tables, QUT_TRACE_FILE_MODULES, tables->module_count, modules, count * sizeof *modules, error);
    if (status == 0) {
        tables->string_bytes = first + size;
        tables->module_count += (uint32_t)count;
    }
    free(modules);
    free(strings);
    return status;
}

int collect_file_tables_write_code_names(struct file_tables *tables, uint64_t *left, struct base_error *error)
{
    const struct code_names *names = tables->code_names;
    for (size_t next = 0; next < names->count;) {
        size_t count = names->count - next < CODE_NAMES_AT_ONCE ? names->count - next : CODE_NAMES_AT_ONCE;
        uint64_t end = (uint64_t)tables->string_bytes + 3 + count * CODE_STRING_BYTES_MAX;
        if (tables->module_count + count > tables->view->module_capacity || end > tables->view->string_bytes) {
            *left = names->count - next;
            return 0;
        }
        if (write_name_pieces(tables, &names->items[next], count, error) != 0)
            return -1;
        next += count;
    }
    return 0;
}

// ---- places in code

// "FUNCTION FILE LINE;" of each level: string ids.
static void put_levels(const struct code_places *places, const struct code_place *place, const uint32_t *ids,
                       char *text)
{
    *text = 0;
    for (uint32_t i = 0; i < place->count; i++) {
        const struct code_level *level = &places->levels.items[place->first + i];
        text +=
            sprintf(text, "%" PRIu32 " %" PRIu32 " %" PRIu32 ";", ids[level->function], ids[level->file], level->line);
    }
}

// From *next on, as many as fit into one piece. Their ids; false: the file has no room for more.
static bool put_place_strings(struct file_tables *tables, const struct code_places *places, size_t *next, uint32_t *ids,
                              struct base_error *error, int *status)
{
    uint8_t *strings = (uint8_t *)tables->texts;
    uint32_t first = (tables->string_bytes + 3) & ~3u, size = 0;
    for (; *next < places->strings.count && size + CODE_STRING_BYTES_MAX <= PIECE_BYTES; ++*next) {
        const char *text = base_interner_text(&places->strings, (uint32_t)*next);
        ids[*next] = *text ? (first + size) / 4 : 0;
        size += *text ? put_string(strings + size, text) : 0;
    }
    if ((uint64_t)first + size > tables->view->string_bytes)
        return false;
    *status = size ? write_at(tables, QUT_TRACE_FILE_STRINGS, first, strings, size, error) : 0;
    tables->string_bytes = first + size;
    return *status == 0;
}

static bool put_places(struct file_tables *tables, const struct code_places *places, size_t *next, const uint32_t *ids,
                       struct base_error *error, int *status)
{
    struct qut_trace_module modules[CODE_NAMES_AT_ONCE] = {0};
    uint8_t *strings = (uint8_t *)tables->texts;
    uint32_t first = (tables->string_bytes + 3) & ~3u, size = 0, count = 0;
    char text[LEVELS_TEXT_BYTES];
    for (; *next + count < places->count && count < CODE_NAMES_AT_ONCE; count++) {
        const struct code_place *place = &places->items[*next + count];
        put_levels(places, place, ids, text);
        modules[count] = (struct qut_trace_module){
            .code_bytes = 1,
            .start = place->address,
            .start_vaddr = plain_address(place->address),
            .load_ns = place->met_ns,
            .path = ids[places->levels.items[place->first + place->count - 1].function],
            .levels = (first + size) / 4,
            .flags = QUT_TRACE_MODULE_JIT,
        };
        size += put_string(strings + size, text);
    }
    if ((uint64_t)first + size > tables->view->string_bytes ||
        tables->module_count + count > tables->view->module_capacity)
        return false;
    *status = write_at(tables, QUT_TRACE_FILE_STRINGS, first, strings, size, error);
    if (*status == 0)
        *status =
            write_at(tables, QUT_TRACE_FILE_MODULES, tables->module_count, modules, count * sizeof *modules, error);
    tables->string_bytes = first + size;
    tables->module_count += count;
    *next += count;
    return *status == 0;
}

int collect_file_tables_write_code_places(struct file_tables *tables, uint64_t *left, struct base_error *error)
{
    const struct code_places *places = &tables->code_names->places;
    int status = 0;
    size_t strings = 0, next = 0;
    static_assert((size_t)CODE_NAMES_AT_ONCE * (LEVELS_TEXT_BYTES + 8) <= PIECE_BYTES, "a piece has room for them");
    if (places->count == 0)
        return 0;
    uint32_t *ids = calloc(places->strings.count + 1, sizeof *ids);
    tables->texts = malloc(PIECE_BYTES);
    if (!ids || !tables->texts || places->strings.has_failed)
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for places in code");
    bool has_room = status == 0;
    while (has_room && strings < places->strings.count)
        has_room = put_place_strings(tables, places, &strings, ids, error, &status);
    while (has_room && next < places->count)
        has_room = put_places(tables, places, &next, ids, error, &status);
    *left += places->count - next;
    free(ids);
    free(tables->texts);
    tables->texts = NULL;
    return status;
}

static int write_changed_threads(struct file_tables *tables, size_t count, struct base_error *error)
{
    const struct qut_trace_file_thread *changed = (const void *)tables->scratch;
    if (collect_trace_file_block(tables->file, QUT_TRACE_FILE_THREADS, changed, count * sizeof *changed, 0, error) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct qut_trace_file_thread *old = &tables->threads[changed[i].slot];
        tables->thread_count += old->uid != changed[i].uid;
        *old = changed[i];
    }
    return 0;
}

int collect_file_tables_write_threads(struct file_tables *tables, const struct qut_trace_file_thread *threads,
                                      size_t count, struct base_error *error)
{
    static_assert(THREAD_BLOCK_COUNT * sizeof *threads <= QUT_TRACE_FILE_BLOCK_BYTES_MAX, "a block has room for them");
    struct qut_trace_file_thread *changed = (void *)tables->scratch;
    size_t changed_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!threads[i].uid || memcmp(&tables->threads[threads[i].slot], &threads[i], sizeof *threads) == 0)
            continue;
        changed[changed_count++] = threads[i];
        if (changed_count == THREAD_BLOCK_COUNT) {
            if (write_changed_threads(tables, changed_count, error) != 0)
                return -1;
            changed_count = 0;
        }
    }
    return changed_count ? write_changed_threads(tables, changed_count, error) : 0;
}

int collect_file_tables_write_segment(struct file_tables *tables, const struct qut_trace_header *header,
                                      const struct qut_trace_counters *counters, struct base_error *error)
{
    memcpy(tables->scratch, header, sizeof *header);
    memcpy(tables->scratch + sizeof *header, counters, sizeof *counters);
    return collect_trace_file_block(tables->file, QUT_TRACE_FILE_SEGMENT, tables->scratch,
                                    sizeof *header + sizeof *counters, 0, error);
}
