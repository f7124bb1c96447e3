// SPDX-License-Identifier: Apache-2.0
// What programs have counted and said.
#include <string.h>

#include "agent/own/inside.h"
#include "libqut/host/host.h"

static const uint64_t patience_ns = 1000000000; // with a record that is not written: its writer may have jumped away

static struct qut_own_value value_of(uint32_t map, const struct bytecode_slot *slot)
{
    const struct qut_probe_map *of = &own_probes.image.maps[map];
    const uint32_t cells = qut_probe_cells(of);
    return (struct qut_own_value){.key = slot->key,
                                  .key_words = of->key_words,
                                  .cell_count = cells,
                                  .updates = slot->updates,
                                  .number =
                                      cells ? (int64_t)slot->values[cells] : bytecode_maps_number(of, slot->values[0]),
                                  .cells = cells ? slot->values : NULL};
}

int qut_own_probes_next(uint32_t map, uint32_t *position, struct qut_own_value *value, size_t size)
{
    struct bytecode_slot slot;
    if (!own_probes.live || map >= own_probes.maps.map_count)
        return 0;
    while (*position < own_probes.maps.maps[map].slot_count) {
        if (!bytecode_maps_slot(&own_probes.maps, map, (*position)++, &slot))
            continue;
        const struct qut_own_value all = value_of(map, &slot);
        memset(value, 0, size);
        memcpy(value, &all, size < sizeof all ? size : sizeof all);
        return 1;
    }
    return 0;
}

static void pass(struct own_probes *probes)
{
    probes->stuck_ns = 0;
    __atomic_store_n(&probes->live->tail, ++probes->tail, __ATOMIC_RELEASE);
}

static bool is_stuck(struct own_probes *probes)
{
    const uint64_t now_ns = os_now_ns();
    if (!probes->stuck_ns)
        probes->stuck_ns = now_ns;
    return now_ns - probes->stuck_ns >= patience_ns;
}

int qut_own_probes_record(uint32_t *record, uint64_t *words, uint32_t max)
{
    struct own_probes *probes = &own_probes;
    while (probes->live && __atomic_load_n(&probes->live->head, __ATOMIC_ACQUIRE) != probes->tail) {
        const uint64_t *slot =
            probes->slots + (probes->tail & (probes->laid_out.slot_count - 1)) * probes->laid_out.slot_words;
        const uint64_t mark = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        const uint32_t number = (uint32_t)(mark & ((1 << QUT_PROBE_LIVE_RECORD_BITS) - 1));
        if (mark == qut_probe_live_mark(probes->tail, number) && number < probes->image.header->record_count) {
            const uint32_t count = probes->image.records[number].words;
            for (uint32_t i = 0; i < count && i < max; i++)
                words[i] = __atomic_load_n(slot + 1 + i, __ATOMIC_RELAXED);
            *record = number;
            pass(probes);
            return 1;
        }
        if (!is_stuck(probes))
            return 0;
        __atomic_fetch_add(&probes->live->lost, 1, __ATOMIC_RELAXED);
        pass(probes);
    }
    return 0;
}

uint64_t qut_own_probes_lost(void)
{
    uint64_t lost = 0;
    if (!own_probes.live)
        return 0;
    for (uint32_t i = 0; i < own_probes.maps.map_count; i++)
        lost += bytecode_maps_lost(&own_probes.maps, i);
    if (own_header)
        lost += __atomic_load_n(&own_header->passed_misaligned, __ATOMIC_RELAXED) +
                __atomic_load_n(&own_header->passed_no_shadow, __ATOMIC_RELAXED);
    return lost + __atomic_load_n(&own_probes.live->lost, __ATOMIC_RELAXED) +
           __atomic_load_n(&own_probes.live->unlisted, __ATOMIC_RELAXED);
}
