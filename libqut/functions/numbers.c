// SPDX-License-Identifier: Apache-2.0
#include "libqut/functions/functions.h"
#include "libqut/functions/text.h"
#include "libqut/modules/registry.h"
#include "libqut/os/os.h"

enum { HASH_BITS = 12, STEPS_MAX = 64 };

bool functions_table_prepare(struct functions_table *table)
{
    if (!table->items)
        table->items = os_reserve(table->item_bytes * table->number_end);
    if (!table->heads)
        table->heads = os_reserve(sizeof *table->heads << HASH_BITS);
    return table->items && table->heads;
}

void functions_table_forget(struct functions_table *table)
{
    if (table->items)
        os_free_pages(table->items, table->item_bytes * table->number_end);
    if (table->heads)
        os_free_pages(table->heads, sizeof *table->heads << HASH_BITS);
    table->items = NULL;
    table->heads = NULL;
}

static struct functions_item *item_at(const struct functions_table *table, uint32_t number)
{
    return functions_item(table, number);
}

// ---- numbers

static _Atomic uint32_t *head_of(const struct functions_table *table, uint64_t key)
{
    return &table->heads[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS)];
}

// From one number on, up to another one or the chain's end.
static uint32_t find_from(const struct functions_table *table, uint32_t number, uint32_t end,
                          const struct functions_wanted *wanted)
{
    for (unsigned steps = 0; number != end && number != 0 && steps < STEPS_MAX; steps++) {
        const struct functions_item *item = item_at(table, number);
        if (wanted->is_it(item, wanted->context))
            return number;
        number = item->older;
    }
    return 0;
}

uint32_t functions_find(const struct functions_table *table, struct functions_wanted *wanted)
{
    wanted->first = atomic_load_explicit(head_of(table, wanted->key), memory_order_acquire);
    return find_from(table, wanted->first, 0, wanted);
}

static uint32_t new_number(struct functions_table *table)
{
    uint32_t last = atomic_load_explicit(&table->last, memory_order_relaxed);
    do {
        if (last + 1 >= table->number_end)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&table->last, &last, last + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return last + 1;
}

uint32_t functions_add(struct functions_table *table, struct functions_wanted *wanted,
                       void (*fill)(void *item, const void *context))
{
    _Atomic uint32_t *head = head_of(table, wanted->key);
    uint32_t number = new_number(table), first = wanted->first, tries = 0;
    if (!number)
        return 0;
    struct functions_item *item = item_at(table, number);
    fill(item, wanted->context);
    item->older = first;
    // Release: who finds the number finds the function.
    while (!atomic_compare_exchange_strong_explicit(head, &first, number, memory_order_acq_rel, memory_order_acquire)) {
        uint32_t found = find_from(table, first, item->older, wanted); // another thread was quicker
        if (found || ++tries == STEPS_MAX)
            return found;
        item->older = first;
    }
    return number;
}

// ---- those that were met

// Our thread takes all of the list at once, so a number is in it once, at one place.
static void tell_later(struct functions_table *table, struct functions_item *item, uint32_t number)
{
    if (atomic_exchange_explicit(&item->is_listed, 1, memory_order_acq_rel))
        return;
    item->next = atomic_load_explicit(&table->met, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&table->met, &item->next, number, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
    }
    if (item->next == 0)
        modules_registry_ring();
}

void functions_meet(struct functions_table *table, uint32_t number, uint32_t mark)
{
    struct functions_item *item = item_at(table, number);
    if (atomic_load_explicit(&item->mark, memory_order_relaxed) == mark)
        return;
    atomic_store_explicit(&item->mark, mark, memory_order_release);
    tell_later(table, item, number);
}

static void tell_one(const struct functions_table *table, uint32_t number, functions_tell *tell, void *context)
{
    char text[FUNCTIONS_TEXT_BYTES];
    const char *name, *file;
    table->texts(item_at(table, number), &name, &file);
    functions_text(name, file, text, sizeof text);
    tell(context, table->base | (uint64_t)number << table->line_bits, (uint64_t)1 << table->line_bits, text);
}

void functions_tell_met(struct functions_table *table, uint32_t mark, functions_tell *tell, void *context)
{
    if (!table->items || !table->heads)
        return;
    uint32_t number = atomic_exchange_explicit(&table->met, 0, memory_order_acq_rel);
    for (uint32_t steps = 0; number != 0 && steps < table->number_end; steps++) {
        struct functions_item *item = item_at(table, number);
        uint32_t next = item->next;
        atomic_store_explicit(&item->is_listed, 0, memory_order_seq_cst);
        if (atomic_load_explicit(&item->mark, memory_order_seq_cst) == mark && item->told != mark) {
            tell_one(table, number, tell, context);
            item->told = mark;
        }
        number = next;
    }
}

void functions_table_after_fork(struct functions_table *table)
{
    uint32_t last = table->items ? atomic_load_explicit(&table->last, memory_order_relaxed) : 0;
    atomic_store_explicit(&table->met, 0, memory_order_relaxed);
    for (uint32_t number = 1; number <= last; number++) {
        struct functions_item *item = item_at(table, number);
        atomic_store_explicit(&item->is_listed, 0, memory_order_relaxed);
        atomic_store_explicit(&item->mark, 0, memory_order_relaxed);
    }
}
