// SPDX-License-Identifier: Apache-2.0
#include "libqut/modules/modules.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/host/host.h"
#include "libqut/modules/registry.h"
#include "libqut/runtime/shared_rules_inline.h"

_Atomic(const struct modules *) modules_current;
_Atomic(const struct modules_watch *) modules_registry_watch;
_Atomic(host_registry_call) modules_registry_now_and_then;

const struct module *modules_at(const struct modules *modules, uintptr_t pc)
{
    // The last one that begins at or before pc. No jumps but the loop's: which half it is in is as good as random.
    const uintptr_t *first = modules->starts;
    for (size_t count = modules->count; count > 1; count -= count / 2)
        first = first[count / 2] <= pc ? first + count / 2 : first;
    if (modules->count == 0 || pc < *first)
        return NULL;
    const struct module *module = &modules->items[first - modules->starts];
    return pc < module->end ? module : NULL;
}

// The kernel compares a word in a quarter of the time that it reads in. Where it may not, or what is there is none of
// its words, it reads.
static bool is_there(const struct module *module)
{
    uint32_t words[MODULES_CANARY_BYTES / sizeof(uint32_t)];
    uint8_t now[MODULES_CANARY_BYTES];
    uintptr_t address = module->canary_address;
    unsigned same = 0;
    memcpy(words, module->canary, sizeof words);
    while (same < module->canary_words && os_is_word(address + same * sizeof *words, words[same]))
        same++;
    return same == module->canary_words ||
           (os_read_self(address, now, sizeof now) == sizeof now && memcmp(now, module->canary, sizeof now) == 0);
}

bool module_confirm(const struct module *module, uintptr_t pc)
{
    // Without a build-id or an OAT file's checksum nothing that is quickly read tells it from another library, loaded
    // where it was. (Seen: the loader gave two of them the same address and the same link map.) A scan compares
    // everything.
    if (module->is_permanent)
        return true;
    return module->canary_address && (module->unlisted || os_confirm_module(pc, module->map_start, module->link_map)) &&
           is_there(module);
}

void modules_want_refresh(void)
{
    struct modules_registry *registry = &modules_registry;
    if (atomic_load_explicit(&registry->wanted, memory_order_relaxed))
        return;
    // Where the loader has added nothing, code that is in no module will be in none after another look either.
    struct runtime_thread *thread = runtime_thread_self();
    const struct modules *modules = modules_enter(thread);
    bool pointless = !modules || modules_up_to_date(modules);
    modules_leave(thread);
    if (!pointless && atomic_exchange_explicit(&registry->wanted, 1, memory_order_acq_rel) == 0)
        modules_registry_ring();
}

// ---- the list

static struct module module_of(const struct modules_record *record)
{
    const struct modules_identity *identity = &record->identity;
    struct module module = {
        .start = identity->start,
        .end = identity->end,
        .code = {.state = record->state,
                 .table = record->state == RUNTIME_CODE_READY ? &record->stored.table : NULL,
                 .load_bias = identity->load_bias,
                 .entry = identity->entry,
                 .frame_pointers = modules_registry.flags & QUT_START_FRAME_POINTERS ? RUNTIME_FRAME_POINTERS_OF_IMAGE
                                                                                     : RUNTIME_FRAME_POINTERS_NOT},
        .map_start = identity->map_start,
        .link_map = identity->link_map,
        .is_permanent = identity->is_permanent,
        .canary_address = identity->canary_address,
        .canary_words = identity->has_oat_identity ? 1 : MODULES_CANARY_BYTES / sizeof(uint32_t),
        .code_base = record->code_base,
        .unlisted = record->unlisted,
    };
    memcpy(module.canary, identity->canary, sizeof module.canary);
    return module;
}

static uint32_t next_epoch(void)
{
    static uint32_t epoch;
    if (++epoch == 0)
        epoch = 1;
    return epoch;
}

// Times and sums of tables that come into use with this list.
static void count_record(struct modules_registry *registry, struct modules_record *record, uint64_t now_ns)
{
    struct qut_stats *stats = &registry->stats;
    stats->pending_count += record->state == RUNTIME_CODE_PENDING;
    stats->no_table_count += record->state == RUNTIME_CODE_NO_TABLE;
    stats->table_bytes += record->stored.size;
    if (record->state != RUNTIME_CODE_READY || record->counted)
        return;
    record->counted = true;
    stats->walkable_last_ns = now_ns - record->met_ns;
    if (stats->walkable_last_ns > stats->walkable_most_ns)
        stats->walkable_most_ns = stats->walkable_last_ns;
}

static void fill(struct modules_registry *registry, struct modules *modules, uintptr_t *starts)
{
    uint64_t now_ns = os_now_ns();
    modules->epoch = next_epoch();
    modules->starts = starts;
    modules->loader = registry->loader;
    registry->stats.pending_count = registry->stats.no_table_count = registry->stats.table_bytes = 0;
    for (size_t i = 0; i < registry->record_count; i++) {
        struct module module = module_of(registry->records[i]);
        // One module in a gap between the segments of another: the hole's owner is the one that begins later.
        struct module *last = modules->count ? &modules->items[modules->count - 1] : NULL;
        if (last && last->end > module.start)
            last->end = module.start;
        starts[modules->count] = module.start;
        modules->items[modules->count++] = module;
        count_record(registry, registry->records[i], now_ns);
    }
    registry->stats.module_count = modules->count;
    registry->published_ns = now_ns;
}

// A list as it is allocated.
struct modules_list {
    struct modules_retired retired;
    bool is_touched;
    struct modules modules;
};

static void free_list(struct modules_retired *retired)
{
    struct modules_list *list = (struct modules_list *)retired;
    if (list->modules.shared)
        os_free_pages(list->modules.shared, sizeof *list->modules.shared);
    free(list);
}
static_assert(offsetof(struct modules_list, retired) == 0, "a list is freed by its node");

static void replace(struct modules_registry *registry, struct modules_list *list)
{
    atomic_store_explicit(&modules_current, list ? &list->modules : NULL, memory_order_seq_cst);
    if (registry->list)
        modules_registry_push_retired(&registry->list->retired);
    registry->list = list;
    registry->unpublished = false;
    atomic_fetch_add_explicit(&registry->progress, 1, memory_order_release);
    os_wake(&registry->progress);
}

bool modules_registry_publish(void)
{
    struct modules_registry *registry = &modules_registry;
    const size_t room = registry->record_count;
    struct modules_list *list = malloc(sizeof *list + room * (sizeof list->modules.items[0] + sizeof(uintptr_t)));
    if (!list)
        return false;
    list->retired = (struct modules_retired){.free = free_list};
    list->is_touched = false;
    list->modules.count = 0;
    fill(registry, &list->modules, (uintptr_t *)(void *)&list->modules.items[room]);
    // Without it walks look up by themselves. While tables come, each list is soon replaced by one that has more.
    const bool is_brief = registry->stats.pending_count != 0;
    list->modules.shared =
        RUNTIME_SHARED_IS_POSSIBLE && !is_brief ? os_pages(sizeof *list->modules.shared, false) : NULL;
    const struct modules_watch *watch = atomic_load_explicit(&modules_registry_watch, memory_order_acquire);
    if (watch)
        watch->publishes();
    replace(registry, list);
    return true;
}

// Who waits for the list does not wait for pages. Walks that come before them make those that they need.
void modules_registry_touch(void)
{
    struct modules_registry *registry = &modules_registry;
    os_lock(&registry->lock);
    struct modules_list *list = registry->list;
    struct runtime_shared_rules *shared = list && !list->is_touched ? list->modules.shared : NULL;
    if (shared)
        list->is_touched = true;
    os_unlock(&registry->lock);
    if (shared)
        os_touch_pages(shared, sizeof *shared);
}

void modules_registry_unpublish(void)
{
    replace(&modules_registry, NULL);
}
