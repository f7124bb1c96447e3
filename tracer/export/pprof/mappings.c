// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/pprof/mappings.h"

#include <stdlib.h>

bool export_has_mapping(const struct trace *trace, uint32_t module)
{
    return module != TRACE_NONE && !(trace->modules[module].flags & QUT_TRACE_MODULE_JIT);
}

uint64_t export_mapping_address(const struct trace *trace, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    if (export_has_mapping(trace, at->module))
        return at->pc;
    return export_location_has_address(at) ? export_location_address(trace, node) : 0;
}

// Bytecode lies outside of what was known as code when the module was loaded.
static void widen(struct export_mapping *mapping, uint64_t pc)
{
    mapping->start = pc < mapping->start ? pc : mapping->start;
    mapping->limit = pc >= mapping->limit ? pc + 1 : mapping->limit;
}

// All of a file's places have to have a name: who reads the profile names a whole file or nothing of it.
static void learn(struct export_mapping *mapping, const struct names *names, uint32_t node)
{
    for (size_t i = 0; i < names_count(names, node); i++) {
        const struct name *name = names_at(names, node, i);
        mapping->functions = mapping->functions && name->is_known;
        mapping->lines = mapping->lines || name->line;
        mapping->inlined = mapping->inlined || name->is_inlined;
    }
}

struct export_mapping *export_mappings_make(const struct trace *trace, const struct names *names,
                                            const struct locations *locations, bool no_names)
{
    struct export_mapping *mappings = calloc(trace->module_count + 1, sizeof *mappings);
    if (!mappings)
        return NULL;
    for (uint32_t i = 0; i < trace->module_count; i++) {
        const struct trace_module *module = &trace->modules[i];
        mappings[i] = (struct export_mapping){
            .functions = !no_names, .start = module->start_vaddr, .limit = module->start_vaddr + module->code_bytes};
    }
    for (size_t i = 0; i < locations->count; i++) {
        const uint32_t node = locations->nodes[i], module = trace->nodes[node].module;
        if (module == TRACE_NONE)
            continue;
        widen(&mappings[module], trace->nodes[node].pc);
        if (!no_names)
            learn(&mappings[module], names, node);
    }
    return mappings;
}

const char *export_build_id_text(const struct trace_module *module, char text[EXPORT_BUILD_ID_CHARS])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t byte = 0;
    for (; byte < module->build_id_bytes && byte < QUT_TRACE_BUILD_ID_BYTES; byte++) {
        text[2 * byte] = digits[module->build_id[byte] >> 4];
        text[2 * byte + 1] = digits[module->build_id[byte] & 15];
    }
    text[2 * byte] = '\0';
    return text;
}
