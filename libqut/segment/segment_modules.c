// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/segment/atomics_inline.h"
#include "libqut/segment/segment.h"

enum { CODE_FIRST = 4096, CODE_ALIGNMENT = 16 };

static bool is_same(const struct qut_trace_module *a, const struct qut_trace_module *b)
{
    if (a->code_bytes != b->code_bytes || a->build_id_bytes != b->build_id_bytes)
        return false;
    return a->build_id_bytes ? memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 : a->path && a->path == b->path;
}

// The place that the same module had before, or the first behind all others; 0: there is none.
static uint64_t place_of(const struct segment *segment, uint32_t count, const struct qut_trace_module *module)
{
    uint64_t end = CODE_FIRST;
    for (uint32_t i = 0; i < count; i++) {
        const struct qut_trace_module *other = &segment->modules[i];
        if (other->code_base == 0)
            continue;
        if (is_same(other, module))
            return other->code_base;
        if (end < other->code_base + other->code_bytes)
            end = other->code_base + other->code_bytes;
    }
    end = (end + CODE_ALIGNMENT - 1) & ~(uint64_t)(CODE_ALIGNMENT - 1);
    return end;
}

static int add(struct segment *segment, const struct qut_trace_module *module, const char *path)
{
    const uint64_t code_end = (uint64_t)1 << QUT_TRACE_CODE_BITS;
    uint32_t count = segment_get32(&segment->header->module_count);
    if (count >= segment->module_capacity)
        return -ENOSPC;
    struct qut_trace_module *entry = &segment->modules[count];
    *entry = *module;
    if (entry->build_id_bytes > QUT_TRACE_BUILD_ID_BYTES)
        entry->build_id_bytes = QUT_TRACE_BUILD_ID_BYTES;
    if (path)
        entry->path = segment_string(segment, path, strlen(path));
    bool has_code = !(entry->flags & (QUT_TRACE_MODULE_JIT | QUT_TRACE_MODULE_FILE));
    if (!has_code)
        entry->code_base = 0;
    else if (entry->code_base == 0)
        entry->code_base = place_of(segment, count, entry);
    if (has_code && (entry->code_base >= code_end || entry->code_bytes > code_end - entry->code_base))
        return -ENOSPC;
    // Release: a reader of the count finds the entry complete.
    __atomic_store_n(&segment->header->module_count, count + 1, __ATOMIC_RELEASE);
    return (int)count;
}

int segment_module_add(struct segment *segment, const struct qut_trace_module *module, const char *path)
{
    os_lock(&segment->module_lock);
    int result = add(segment, module, path);
    os_unlock(&segment->module_lock);
    return result;
}

void segment_module_unloaded(struct segment *segment, uint32_t index, uint64_t now_ns)
{
    if (index < segment->module_capacity)
        segment_put64(&segment->modules[index].unload_ns, now_ns);
}
