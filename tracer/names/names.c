// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/qut_agent.h"
#include "tracer/call_events/events.h"
#include "tracer/names/code_places.h"
#include "tracer/names/debuginfod.h"
#include "tracer/names/named_file.h"
#include "tracer/names/readable.h"

struct naming {
    const struct trace *trace;
    struct names_options options;
    struct names *names;
    struct names_places places;
    struct names_readables readables;
    struct names_debuginfod *debuginfod; // NULL: no server is asked
    size_t done;
    // Of the last function that was met: neighbours have the same.
    const char *symbol;
    struct names_readable last;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *keep(struct naming *naming, const char *text)
{
    return names_keep(naming->names, text, strlen(text));
}

static struct name address_name(struct naming *naming, const char *module, uint64_t pc)
{
    char text[32];
    struct name name = {.module = module};
    snprintf(text, sizeof text, "0x%" PRIx64, pc);
    if (!*module) {
        name.function = keep(naming, text);
        return name;
    }
    size_t length = strlen(module) + 1 + strlen(text);
    char *joined = malloc(length + 1);
    if (!joined) {
        naming->names->no_memory = true;
        return (struct name){.function = "", .module = ""};
    }
    snprintf(joined, length + 1, "%s+%s", module, text);
    name.function = names_keep(naming->names, joined, length);
    free(joined);
    return name;
}

static bool name_by_symbol(struct naming *naming, struct names_file *file, uint64_t pc, struct name *name)
{
    struct symbol symbol;
    if (!names_file_symbol(file, pc, &symbol))
        return false;
    if (symbol.name != naming->symbol)
        naming->last = names_make_readable(&naming->readables, naming->names, symbol.name, symbol.name_length);
    naming->symbol = symbol.name;
    name->function = naming->last.readable;
    name->mangled = naming->last.mangled;
    name->is_known = true;
    return *name->function != '\0';
}

static bool name_by_method(struct naming *naming, struct names_file *file, uint64_t pc, struct name *name)
{
    char *method = names_file_method(file, pc);
    if (!method)
        return false;
    name->function = keep(naming, method);
    name->is_known = true;
    free(method);
    return *name->function != '\0';
}

static const char *at_plt(struct naming *naming, const char *function)
{
    char *text = NULL;
    if (asprintf(&text, "%s@plt", function) < 0) {
        naming->names->no_memory = true;
        return "";
    }
    const char *kept = keep(naming, text);
    free(text);
    return kept;
}

static bool name_by_plt(struct naming *naming, struct names_file *file, uint64_t pc, struct name *name)
{
    struct base_bytes target;
    if (!names_file_is_plt(file, pc, &target))
        return false;
    name->is_known = true;
    name->function = keep(naming, "[plt]");
    if (target.size) {
        const struct names_readable made =
            names_make_readable(&naming->readables, naming->names, (const char *)target.data, target.size);
        name->function = at_plt(naming, made.readable);
        name->mangled = made.mangled ? at_plt(naming, made.mangled) : NULL;
    }
    return true;
}

static void set_source(struct naming *naming, const struct names_inline_function *from, struct name *name)
{
    if (!naming->options.lines)
        return;
    name->file = from->file && *from->file ? keep(naming, from->file) : NULL;
    name->line = name->file ? from->line : 0;
}

static bool name_by_debug_info(struct naming *naming, const struct names_inline_function *from, struct name *name)
{
    if (!from->name)
        return false;
    const struct names_readable made =
        names_make_readable(&naming->readables, naming->names, from->name, strlen(from->name));
    name->function = made.readable;
    name->mangled = made.mangled;
    name->is_known = true;
    return *name->function != '\0';
}

// Whether debug information calls the function of a symbol otherwise. Clones ("f.part.0") have f's name there, and what
// C++ makes of one destructor has another.
static bool is_by_alias(const struct name *symbol, const struct names_inline_function *function)
{
    return symbol->is_known && !symbol->mangled && function->name &&
           strncmp(symbol->function, function->name, strlen(function->name)) != 0;
}

// The functions that are inlined there; *outermost is what is known of the one they are inlined into, `symbol` what its
// symbol says. Where debug information has another name for it (glibc's write is __GI___libc_write), a part of it that
// was inlined into itself is called as it is: one function has one name.
static void add_inlined(struct naming *naming, struct names_file *file, const struct names_key *key,
                        const struct name *symbol, struct names_inline_function *outermost)
{
    struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX];
    size_t count = names_file_inlines(file, key->pc, functions);
    *outermost = count ? functions[count - 1] : (struct names_inline_function){0};
    if (!naming->options.inlined ||
        strcmp(symbol->module, AGENT_FILE) == 0) // of the agent, what the program called is enough
        return;
    for (size_t i = 0; i + 1 < count; i++) {
        bool is_itself =
            is_by_alias(symbol, outermost) && functions[i].name && strcmp(functions[i].name, outermost->name) == 0;
        struct name name = is_itself ? *symbol : (struct name){.module = symbol->module};
        name.is_inlined = true;
        set_source(naming, &functions[i], &name);
        if (is_itself || name_by_debug_info(naming, &functions[i], &name))
            names_add(naming->names, key->place, name);
    }
}

// False: the place has no name.
static bool name_place(struct naming *naming, struct names_file *file, const struct names_key *key, const char *module)
{
    struct name name = {.module = module};
    struct names_inline_function outermost = {0};
    bool is_known;
    if (key->way == NAMES_BY_METHOD) {
        is_known = name_by_method(naming, file, key->pc, &name);
    } else {
        is_known = name_by_symbol(naming, file, key->pc, &name);
        if (naming->options.inlined || naming->options.lines)
            add_inlined(naming, file, key, &name, &outermost);
        is_known = is_known || name_by_debug_info(naming, &outermost, &name);
    }
    if (!is_known && key->way == NAMES_BY_SYMBOL_SIGNAL) {
        name.function = keep(naming, "[signal frame]");
        name.is_known = is_known = true;
    }
    is_known = is_known || (key->way == NAMES_BY_SYMBOL && name_by_plt(naming, file, key->pc, &name));
    if (!is_known) {
        uint64_t start = key->pc;
        if (key->way == NAMES_BY_SYMBOL)
            names_file_start(file, key->pc, &start);
        name = address_name(naming, module, start);
    }
    set_source(naming, &outermost, &name);
    names_add(naming->names, key->place, name);
    return is_known;
}

// libdw gives up on a unit, and starts and slots are left out, where memory fails them, and none says why; malloc does,
// by errno. What is opened by a path tells of itself: looking for other paths overwrites errno.
static bool name_place_or_fail(struct naming *naming, struct names_file *file, const struct names_key *key,
                               const char *module)
{
    errno = 0;
    bool is_known = name_place(naming, file, key, module);
    naming->names->no_memory |= file->no_memory || errno == ENOMEM;
    return is_known;
}

static void tell_progress(struct naming *naming)
{
    enum { EVERY = 4096 };
    if (naming->options.progress && (naming->done % EVERY == 0 || naming->done == naming->places.count))
        naming->options.progress(naming->options.progress_context, naming->done, naming->places.count);
}

static void add_missing(struct naming *naming, const char *path, size_t node_count, const char *why)
{
    struct names *names = naming->names;
    if (node_count)
        names->missing[names->missing_count++] =
            (struct names_missing){.path = keep(naming, path), .node_count = node_count, .why = keep(naming, why)};
}

static void name_file(struct naming *naming, const struct names_key *keys, size_t count)
{
    const struct trace_module *module = &naming->trace->modules[naming->places.module_of_file.items[keys->file]];
    const char *base = keep(naming, last_part(module->path));
    struct names_file file = {.options = &naming->options, .module = module, .debuginfod = naming->debuginfod};
    size_t unknown = 0;
    naming->symbol = NULL;
    for (size_t i = 0; i < count && !naming->names->no_memory; i++) {
        if (naming->options.no_files)
            names_add(naming->names, keys[i].place, address_name(naming, base, keys[i].pc));
        else if (!name_place_or_fail(naming, &file, &keys[i], base))
            unknown += keys[i].node_count;
        naming->done++;
        tell_progress(naming);
    }
    add_missing(naming, module->path, unknown, *file.why ? file.why : "no function is known there");
    names_file_close(&file);
}

// A function of a source file: what its interpreter says of it.
static void name_by_source(struct naming *naming, const struct names_key *key, struct name *name)
{
    const char *text = (const char *)(uintptr_t)key->pc, *end = strchr(text, '\n');
    const char *file = end ? end + 1 : "";
    name->function = names_keep(naming->names, text, end ? (size_t)(end - text) : strlen(text));
    if (!*name->function)
        name->function = keep(naming, "[no name]");
    name->module = keep(naming, last_part(file));
    if (!naming->options.lines || !*file)
        return;
    name->file = keep(naming, file);
    name->line = key->line;
}

// As the virtual machine told them when the code ran.
static void name_levels(struct naming *naming, const struct names_key *key)
{
    const struct trace_module *module = (const struct trace_module *)(uintptr_t)key->pc;
    const char *none = keep(naming, "");
    for (uint32_t i = naming->options.inlined ? 0 : module->level_count - 1; i < module->level_count; i++) {
        const struct trace_level *level = &module->levels[i];
        struct name name = {.module = none, .is_known = true, .is_inlined = i + 1 < module->level_count};
        name.function = keep(naming, level->function);
        if (naming->options.lines && level->file) {
            name.file = keep(naming, level->file);
            name.line = level->line;
        }
        names_add(naming->names, key->place, name);
    }
}

static void name_rest(struct naming *naming, const struct names_key *keys, size_t count)
{
    static const char kernel[] = "[kernel]"; // as labels of QUT_TRACE_CLASS_KERNEL begin
    const char *none = keep(naming, ""), *kernel_module = keep(naming, kernel);
    size_t unknown = 0;
    for (size_t i = 0; i < count && !naming->names->no_memory; i++) {
        struct name name = {.module = none, .is_known = true};
        if (keys[i].way == NAMES_BY_LEVELS) {
            name_levels(naming, &keys[i]);
            naming->done++;
            tell_progress(naming);
            continue;
        }
        if (keys[i].way == NAMES_BY_LABEL) {
            const char *label = (const char *)(uintptr_t)keys[i].pc;
            const struct names_readable made =
                names_make_readable(&naming->readables, naming->names, label, strlen(label));
            name.function = *made.readable ? made.readable : keep(naming, "[no name]");
            name.mangled = made.mangled;
            if (strncmp(label, kernel, sizeof kernel - 1) == 0)
                name.module = kernel_module;
        } else if (keys[i].way == NAMES_BY_SOURCE) {
            name_by_source(naming, &keys[i], &name);
        } else {
            name = address_name(naming, none, keys[i].pc);
            unknown += keys[i].node_count;
        }
        names_add(naming->names, keys[i].place, name);
        naming->done++;
        tell_progress(naming);
    }
    add_missing(naming, "[memory]", unknown, "in no module that was known");
}

static int by_count(const void *one, const void *other)
{
    const struct names_missing *a = one, *b = other;
    return a->node_count != b->node_count ? (a->node_count > b->node_count ? -1 : 1) : strcmp(a->path, b->path);
}

static void name_all(struct naming *naming)
{
    const struct names_places *places = &naming->places;
    for (size_t first = 0, next; first < places->count && !naming->names->no_memory; first = next) {
        const struct names_key *keys = &places->items[first];
        for (next = first; next < places->count && places->items[next].file == keys->file;)
            next++;
        if (keys->file == NAMES_NO_FILE)
            name_rest(naming, keys, next - first);
        else
            name_file(naming, keys, next - first);
    }
}

bool names_can_inline(void)
{
    return names_inlines_built();
}

// What belongs to another system's root is in there, too, if it is anywhere.
static char *debug_root_of(const struct names_options *options)
{
    static const char usual[] = "/usr/lib/debug";
    if (options->debug_root)
        return strdup(options->debug_root);
    char *root = NULL;
    if (!options->system_root)
        return strdup(usual);
    if (asprintf(&root, "%s%s", options->system_root, usual) < 0)
        return NULL;
    if (access(root, F_OK) == 0)
        return root;
    free(root);
    return strdup(usual);
}

// Traced functions of files that are gone, or have no symbols: what the tracer read there.
static void name_told(struct naming *naming)
{
    struct names *names = naming->names;
    for (size_t i = 0; i < naming->trace->calls_count; i++) {
        const struct call_events *calls = naming->trace->calls[i];
        for (size_t j = 0; j < calls->functions.count && !names->no_memory; j++) {
            const struct call_events_function *told = &calls->functions.items[j];
            const uint32_t place = names->place_of[told->node];
            const struct name *known = names_at(names, told->node, 0);
            if (!*told->name || known->is_known)
                continue;
            const struct names_readable made =
                names_make_readable(&naming->readables, names, told->name, strlen(told->name));
            const struct name name = {.function = made.readable ? made.readable : "",
                                      .mangled = made.mangled,
                                      .module = known->module,
                                      .is_known = true};
            names->places[place].count = 0;
            names_add(names, place, name);
        }
    }
}

static void name_all_files(struct naming *naming)
{
    char *debug_root = debug_root_of(&naming->options);
    naming->options.debug_root = debug_root;
    naming->names->no_memory = !debug_root;
    naming->debuginfod = naming->options.debuginfod ? names_debuginfod_open() : NULL;
    naming->names->no_memory |= naming->options.debuginfod && !naming->debuginfod;
    name_all(naming);
    if (!naming->names->no_memory)
        name_told(naming);
    names_debuginfod_close(naming->debuginfod);
    qsort(naming->names->missing, naming->names->missing_count, sizeof *naming->names->missing, by_count);
    free(debug_root);
}

// Of one that was loaded from a copy, which is gone. NULL: it was not.
static const char *agent_path_of(const struct trace *trace)
{
    for (size_t i = trace->first_own_note; i < trace->note_count; i++)
        if (trace->notes[i].text && strcmp(trace->notes[i].name, "agent-path") == 0)
            return trace->notes[i].text;
    return NULL;
}

struct names *names_of(const struct trace *trace, const struct names_options *options, struct base_error *error)
{
    struct names *names = calloc(1, sizeof *names);
    struct naming naming = {.trace = trace, .names = names};
    if (options)
        naming.options = *options;
    if (!naming.options.agent_path)
        naming.options.agent_path = agent_path_of(trace);
    if (names)
        names->options = naming.options;
    if (names && names_places_find(&naming.places, trace, names))
        names->missing = calloc(naming.places.module_of_file.count + 1, sizeof *names->missing);
    if (names && names->missing)
        name_all_files(&naming);
    bool done = names && names->missing && !names->no_memory;
    names_places_free(&naming.places);
    names_readables_free(&naming.readables);
    if (done)
        return names;
    names_free(names);
    base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "names of %zu nodes", trace->node_count);
    return NULL;
}
