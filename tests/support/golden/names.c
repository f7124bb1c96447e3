// SPDX-License-Identifier: Apache-2.0
// tracer/names/names.h for traces made by hand, whose modules are nowhere: what links with this instead gets names by a
// rule that a test can know. In the program, 0x1500 has two inlined functions and lines; 0x1300 is "a", 0x1400 "b::b".
#include "tracer/names/names.h"
#include "tracer/names/data_names.h"
#include "tracer/names/file_offset.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct names {
    const struct trace *trace;
    struct name *all;
    size_t count;
    char (*texts)[64];
    uint32_t *first; // of each node, in `order`; one more behind the last node
    uint32_t *order; // ids
};

struct known {
    const char *path;
    uint64_t pc;
    struct name name;
};

#define PROGRAM "/opt/app/golden"
#define LIBRARY "/usr/lib/x86_64-linux-gnu/libgolden.so.1"

// Of one pc, innermost first.
static const struct known known[] = {
    {PROGRAM, 0x1100, {.function = "_start"}},
    {PROGRAM, 0x1200, {.function = "main", .file = "/src/main.cc", .line = 12}},
    {PROGRAM, 0x1300, {.function = "a", .file = "/src/main.cc", .line = 30}},
    {PROGRAM,
     0x1400,
     {.function = "b::b(std::vector<int, std::allocator<int> > const&)", .mangled = "_ZN1bC2ERKSt6vector"}},
    {PROGRAM, 0x1500, {.function = "inner", .file = "/src/in.h", .line = 5, .is_inlined = true}},
    {PROGRAM, 0x1500, {.function = "middle", .file = "/src/in.h", .line = 9, .is_inlined = true}},
    {PROGRAM, 0x1500, {.function = "outer", .file = "/src/main.cc", .line = 44}},
    {PROGRAM, 0x1600, {.function = "on_signal"}},
    {LIBRARY, 0x1800, {.function = "__restore_rt"}},
    {LIBRARY, 0x1b00, {.function = "pthread_mutex_lock"}},
    {LIBRARY, 0x1c00, {.function = "pthread_mutex_unlock"}},
};
enum { KNOWN_COUNT = sizeof known / sizeof *known };

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static uint32_t new_name(struct names *names, const struct name *name)
{
    struct name *added = &names->all[names->count];
    *added = *name;
    added->id = (uint32_t)names->count++;
    return added->id;
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

// A few names only, but in large traces: found by comparing the newest ones would be slow, so each node's own pc
// decides, in a table with one place for each pc / 64.
enum { PLACES = 1 << 16 };

struct maker {
    struct names *names;
    uint32_t *places; // by pc: id + 1
    uint32_t known_ids[KNOWN_COUNT];
    uint32_t order_count;
};

static void put(struct maker *maker, uint32_t id)
{
    maker->names->order[maker->order_count++] = id;
}

static bool put_known(struct maker *maker, const char *path, uint64_t pc)
{
    bool is_known = false;
    for (unsigned i = 0; i < KNOWN_COUNT; i++) {
        if (known[i].pc != pc || !is_same(known[i].path, path))
            continue;
        if (!maker->known_ids[i]) {
            struct name name = known[i].name;
            name.module = last_part(path);
            name.is_known = true;
            maker->known_ids[i] = new_name(maker->names, &name) + 1;
        }
        put(maker, maker->known_ids[i] - 1);
        is_known = true;
    }
    return is_known;
}

static void put_text(struct maker *maker, const char *function, const char *module, bool is_known)
{
    struct names *names = maker->names;
    struct name name = {.function = function, .module = module, .is_known = is_known};
    for (size_t i = 0; names->count < 200 && i < names->count; i++)
        if (is_same(names->all[i].function, function) && is_same(names->all[i].module, module)) {
            put(maker, (uint32_t)i);
            return;
        }
    put(maker, new_name(names, &name));
}

static void put_address(struct maker *maker, const char *path, uint64_t pc)
{
    struct names *names = maker->names;
    const char *module = last_part(path);
    bool is_large = is_same(module, "large");
    uint32_t *place = &maker->places[pc / 64 % PLACES];
    if (is_large && *place) {
        put(maker, *place - 1);
        return;
    }
    char *text = names->texts[names->count];
    if (is_large)
        snprintf(text, sizeof names->texts[0], "ns%jx::function_%jx(int)", (uintmax_t)(pc >> 12), (uintmax_t)pc);
    else if (!*module)
        snprintf(text, sizeof names->texts[0], "0x%jx", (uintmax_t)pc);
    else
        snprintf(text, sizeof names->texts[0], "%.40s+0x%jx", module, (uintmax_t)pc);
    put_text(maker, text, module, is_large);
    if (is_large)
        *place = names->order[maker->order_count - 1] + 1;
}

static void put_node(struct maker *maker, const struct trace_node *node)
{
    if (node->label) {
        put_text(maker, *node->label ? node->label : "[no name]", "", true);
        return;
    }
    const struct trace_module *module = node->module == TRACE_NONE ? NULL : &maker->names->trace->modules[node->module];
    if (module && module->flags & QUT_TRACE_MODULE_JIT)
        put_text(maker, module->path, "[jit]", true);
    else if (!put_known(maker, module ? module->path : "", node->pc))
        put_address(maker, module ? module->path : "", node->pc);
}

struct names *names_of(const struct trace *trace, const struct names_options *options, struct base_error *error)
{
    (void)options;
    struct names *names = calloc(1, sizeof *names);
    struct maker maker = {.names = names, .places = calloc(PLACES, sizeof *maker.places)};
    size_t most = trace->node_count + KNOWN_COUNT;
    if (names) {
        names->trace = trace;
        names->all = calloc(most, sizeof *names->all);
        names->texts = calloc(most, sizeof *names->texts);
        names->first = calloc(trace->node_count + 1, sizeof *names->first);
        names->order = calloc(3 * trace->node_count, sizeof *names->order);
    }
    if (!names || !maker.places || !names->all || !names->texts || !names->first || !names->order) {
        base_fail(error, BASE_ERR_NO_MEMORY, "names", 0, "%zu nodes", trace->node_count);
        abort();
    }
    for (size_t i = 0; i < trace->node_count; i++) {
        names->first[i] = maker.order_count;
        if (i)
            put_node(&maker, &trace->nodes[i]);
    }
    names->first[trace->node_count] = maker.order_count;
    free(maker.places);
    return names;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    free(names->all);
    free(names->texts);
    free(names->first);
    free(names->order);
    free(names);
}

size_t names_count(const struct names *names, uint32_t node)
{
    return names->first[node + 1] - names->first[node];
}

const struct name *names_at(const struct names *names, uint32_t node, size_t index)
{
    return &names->all[names->order[names->first[node] + index]];
}

size_t names_id_count(const struct names *names)
{
    return names->count;
}
const struct name *names_by_id(const struct names *names, uint32_t id)
{
    return &names->all[id];
}

size_t names_missing(const struct names *names, const struct names_missing **missing)
{
    (void)names;
    *missing = NULL;
    return 0;
}

// Two pages before its address: as in a file whose code does not lie at its offset.
uint64_t names_file_offset(const struct names_options *options, const struct trace_module *module, uint64_t vaddr)
{
    (void)options;
    (void)module;
    return vaddr - 0x2000;
}

// ---- of data: one condition has a name

struct names_data *names_data_open(const struct trace *trace, const struct names *names)
{
    (void)trace;
    return (struct names_data *)(uintptr_t)names; // nothing is kept
}

void names_data_close(struct names_data *data)
{
    (void)data;
}

bool names_data_no_memory(const struct names_data *data)
{
    (void)data;
    return false;
}

const char *names_data_at(struct names_data *data, uint32_t process, uint64_t address, char text[NAMES_DATA_TEXT_BYTES])
{
    (void)data;
    strcpy(text, process == 0 && address == 0x6000 ? "queue_ready" : "");
    return text;
}
