// SPDX-License-Identifier: Apache-2.0
#include "libqut/modules/met.h"

#include "libqut/modules/registry.h"

// Our thread takes all of the list at once, so a number is in it once, at one place.
static void tell_later(struct modules_met_list *list, struct modules_met *met, uint32_t number)
{
    if (atomic_exchange_explicit(&met->is_listed, 1, memory_order_acq_rel))
        return;
    met->next = atomic_load_explicit(&list->first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&list->first, &met->next, number, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
    }
    if (met->next == 0)
        modules_registry_ring();
}

void modules_meet(struct modules_met_list *list, uint32_t number, uint32_t mark)
{
    struct modules_met *met = list->item(number);
    if (atomic_load_explicit(&met->mark, memory_order_relaxed) == mark)
        return;
    atomic_store_explicit(&met->mark, mark, memory_order_release);
    tell_later(list, met, number);
}

void modules_tell_met(struct modules_met_list *list, uint32_t most, uint32_t mark,
                      void (*tell)(void *context, uint32_t number), void *context)
{
    uint32_t number = atomic_exchange_explicit(&list->first, 0, memory_order_acq_rel);
    for (uint32_t steps = 0; number != 0 && steps < most; steps++) {
        struct modules_met *met = list->item(number);
        uint32_t next = met->next;
        atomic_store_explicit(&met->is_listed, 0, memory_order_seq_cst);
        if (atomic_load_explicit(&met->mark, memory_order_seq_cst) == mark && met->told != mark) {
            tell(context, number);
            met->told = mark;
        }
        number = next;
    }
}

void modules_forget_met(struct modules_met_list *list, uint32_t end)
{
    atomic_store_explicit(&list->first, 0, memory_order_relaxed);
    for (uint32_t number = 1; number < end; number++) {
        struct modules_met *met = list->item(number);
        atomic_store_explicit(&met->is_listed, 0, memory_order_relaxed);
        atomic_store_explicit(&met->mark, 0, memory_order_relaxed);
    }
}
