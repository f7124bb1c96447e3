// SPDX-License-Identifier: Apache-2.0
// What is loaded -> the segment, before it can be named.
#include <string.h>

#include "libqut/trace/feed.h"

// As a reader in another process can find it: what the loader calls it may be empty, or relative.
static void find_file(struct modules_record *record)
{
    static struct os_mapping mapping; // under lock; too large for a stack
    if (os_mapping_at(record->identity.start, &mapping) == 0 && mapping.is_file)
        record->file = strdup(mapping.path);
}

static bool is_vdso(const struct modules_record *record)
{
    return strncmp(record->name, "linux-", 6) == 0 || strcmp(record->name, "[vdso]") == 0;
}

static bool wants_file(const struct modules_record *record)
{
    return record->name[0] != '/' && !is_vdso(record) && !record->file;
}

void feed_find_files(void)
{
    for (size_t i = 0; i < modules_registry.record_count; i++)
        if (wants_file(modules_registry.records[i]))
            find_file(modules_registry.records[i]);
}

// A trace that begins later than its process, or its parent, may be opened in a handler, which may not ask: it was
// asked then.
static void add_module(struct feed *feed, struct modules_record *record)
{
    const struct modules_identity *identity = &record->identity;
    if (wants_file(record) && !feed->begun_ns)
        find_file(record);
    const char *path = record->file ? record->file : record->name;
    struct qut_trace_module module = {
        .code_base = record->code_base,
        .code_bytes = identity->end - identity->start,
        .start = identity->start,
        .start_vaddr = identity->start - identity->load_bias,
        .load_ns = os_now_ns(),
        .flags = (identity->has_oat_identity ? QUT_TRACE_MODULE_MANAGED : 0u) |
                 (is_vdso(record) ? QUT_TRACE_MODULE_VDSO : 0u),
        .build_id_bytes = identity->build_id_size,
    };
    memcpy(module.build_id, identity->build_id, identity->build_id_size);
    int index = record->code_base ? segment_module_add(&feed->segment, &module, path) : -1;
    record->watch_generation = feed->generation;
    record->watch_index = index < 0 ? UINT32_MAX : (uint32_t)index;
}
static_assert((int)ELF_BUILD_ID_MAX <= (int)QUT_TRACE_BUILD_ID_BYTES, "none is cut");

void feed_publishes(void)
{
    for (struct feed *feed = feed_all; feed && !feed->is_closed; feed = NULL)
        for (size_t i = 0; i < modules_registry.record_count; i++)
            if (modules_registry.records[i]->watch_generation != feed->generation)
                add_module(feed, modules_registry.records[i]);
}

void feed_module_goes(struct modules_record *record)
{
    struct feed *feed = feed_all;
    if (feed && !feed->is_closed && record->watch_generation == feed->generation && record->watch_index != UINT32_MAX)
        segment_module_unloaded(&feed->segment, record->watch_index, os_now_ns());
}
