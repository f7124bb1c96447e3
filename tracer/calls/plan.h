// SPDX-License-Identifier: Apache-2.0
// How the functions of one ELF file are to be patched so that their calls are traced. Nothing here touches a process.
#ifndef TRACER_CALLS_PLAN_H
#define TRACER_CALLS_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "formats/qut_calls_plan.h"

struct calls_plan {
    const struct qut_plan_header *header;
    const struct qut_plan_function *functions; // header->function_count, by entry
    const struct qut_plan_alias *aliases;      // header->alias_count
    const char *names;
    uint32_t kind_count[QUT_PLAN_KIND_END];
    uint32_t refusal_count[QUT_PLAN_REFUSAL_END];
    void *bytes; // malloc's: all of the above
    size_t size_bytes;
    unsigned shares; // beside the first; atomic
};

// Whether this build can make plans: it needs the decoder (-Dzydis), and has one on x86-64.
bool calls_plan_is_possible(void);

// Reads and decodes the file. name: what the module is called, for what is denied by that ("libc.so.6"); NULL: the
// path's last part. Blocks, allocates. Returns 0, or -1 with *error filled; free with calls_plan_free.
int calls_plan_make(const char *path, const char *name, struct calls_plan **plan, struct base_error *error);
// The same from the cache of tables, where a plan of this file is; else it is made, and left there. What cannot be read
// or written there is no error. A name that is denied as a whole is planned anew.
struct calls_plan_cache {
    const char *directory; // NULL: qutc_cache_directory's
    bool was_cached;       // answered
};
int calls_plan_get(const char *path, const char *name, struct calls_plan_cache *cache, struct calls_plan **plan,
                   struct base_error *error);
// The same of bytes (malloc's, aligned to 8), which are checked; they are freed where it fails.
int calls_plan_take(void *bytes, size_t size_bytes, struct calls_plan **plan, struct base_error *error);
void calls_plan_free(struct calls_plan *plan);
// The same one once more, to be freed once more; from any thread.
struct calls_plan *calls_plan_share(struct calls_plan *plan);

static inline const char *calls_plan_name(const struct calls_plan *plan, const struct qut_plan_function *function)
{
    return plan->names + function->name;
}
static inline const char *calls_plan_readable(const struct calls_plan *plan, const struct qut_plan_function *function)
{
    return plan->names + function->readable;
}

// "jump", "padding", "trap"; "reads its return address". Static.
const char *calls_kind_text(enum qut_plan_kind kind);
const char *calls_refusal_text(enum qut_plan_refusal refusal);

#endif
