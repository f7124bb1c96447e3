// SPDX-License-Identifier: Apache-2.0
// Code of ART's JIT in a target that no symbol file covers.
#include <string.h>

#include "libqut/art/traced.h"
#include "libqut/target/machine.h"

static bool is_nameless(const struct target_map *map)
{
    return map->inode == 0 && !map->path[0];
}

static bool is_like(const struct target_map *map, const struct target_map *other)
{
    return map->readable &&
           (is_nameless(other) ? is_nameless(map) : art_jit_is_cache_name(map->path, strlen(map->path)));
}

// The cache whose code lies at an address: its data lies before it.
static bool find_cache(const struct target_machine *machine, uint64_t pc, struct art_jit_cache *cache)
{
    const struct target_maps *maps = &machine->target->maps;
    const struct target_map *map = target_maps_find(maps, pc);
    if (!map || !map->executable || !is_like(map, map))
        return false;
    const struct target_map *first = map, *last = map, *end = maps->items + maps->count;
    while (first > maps->items && first[-1].end == first->start && first[-1].executable && is_like(&first[-1], map))
        first--;
    while (last + 1 < end && last[1].start == last->end && last[1].executable && is_like(&last[1], map))
        last++;
    const struct target_map *data = first;
    while (data > maps->items && data[-1].end == data->start && !data[-1].executable && is_like(&data[-1], map))
        data--;
    *cache = (struct art_jit_cache){data->start, first->start, last->end};
    return data != first && (!is_nameless(map) || art_jit_is_space(&machine->memory, first->start));
}

bool target_find_art(struct qut_target *target, uint64_t pc, struct runtime_code *code)
{
    struct art_jit_cache cache;
    struct target_machine *machine = target_machine(target);
    if (!machine || !art_jit_knows(target->arch) || !find_cache(machine, pc, &cache))
        return false;
    unsigned i = 0;
    while (i < machine->art_cache_count && memcmp(&machine->art_caches[i], &cache, sizeof cache) != 0)
        i++;
    // Where there is no room the last one is another from now on: a walk asks for the rule at once.
    if (i == machine->art_cache_count && machine->art_cache_count < TARGET_ART_CACHES_MAX)
        machine->art_cache_count++;
    i = i < TARGET_ART_CACHES_MAX ? i : TARGET_ART_CACHES_MAX - 1;
    machine->art_caches[i] = cache;
    *code = (struct runtime_code){
        .state = RUNTIME_CODE_OF_MACHINE,
        .frame_flags = QUT_FRAME_JIT | QUT_FRAME_MANAGED,
        .is_called_by_all = true,
        .machine = &machine->art_caches[i],
    };
    return true;
}

uint64_t target_art_thread(const struct arch *arch, const void *block)
{
    const struct art_traced_layout *layout = art_traced_layout(arch);
    return layout ? target_core_word(arch, block, layout->core_thread_at) : 0;
}

bool target_art_true_return(void *context, uint64_t sp, uint64_t *pc)
{
    struct qut_target *target = context;
    if (target->copy)
        return art_true_return_of(target->copy->art_returns, target->copy->art_return_count, sp, pc);
    struct target_machine *machine = target->art_thread ? target_machine(target) : NULL;
    return machine && art_true_return(&machine->memory, target->art_thread, sp, pc);
}

size_t target_art_returns(struct qut_target *target, uint64_t art_thread, struct art_return *returns, size_t max)
{
    struct target_machine *machine = art_thread ? target_machine(target) : NULL;
    return machine ? art_true_returns(&machine->memory, art_thread, returns, max) : 0;
}

bool target_machine_rule(void *target, const void *machine, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                         struct arch_interpreted *interpreted)
{
    const struct target_machine *known = ((const struct qut_target *)target)->machine;
    if (machine == &known->hotspot)
        return target_hotspot_rule(target, machine, pc, kind, rule, interpreted);
    struct art_jit_scratch scratch;
    return art_jit_frame_rule(machine, &known->memory, &scratch, pc, kind, rule);
}

// ---- names

// 0: there is none.
static uint64_t find_instance(struct target_machine *machine)
{
    const struct qut_target *target = machine->target;
    uint64_t size_bytes;
    for (size_t i = 0; i < target->range_count && !machine->art_instance; i++)
        if (target_machine_is_art(target->ranges[i].image))
            machine->art_instance =
                target_machine_export(machine, target->ranges[i].image, ART_RUNTIME_INSTANCE, &size_bytes);
    return machine->art_instance;
}

// The machine, if code in a cache may be found by its records.
static struct target_machine *machine_with_records(struct qut_target *target)
{
    struct target_machine *machine = art_jit_knows(target->arch) ? target_machine(target) : NULL;
    return machine && find_instance(machine) ? machine : NULL;
}

bool target_art_collections(struct qut_target *target, uint64_t address, struct art_jit_collections *collections)
{
    struct art_jit_cache cache;
    struct target_machine *machine = machine_with_records(target);
    if (machine && address)
        return find_cache(machine, address, &cache) &&
               art_jit_collections_of(&machine->memory, &cache, machine->art_instance, collections);
    for (size_t i = 0; machine && i < target->maps.count; i++)
        if (find_cache(machine, target->maps.items[i].start, &cache) &&
            art_jit_collections_of(&machine->memory, &cache, machine->art_instance, collections))
            return true;
    return false;
}

bool target_art_code_at(struct qut_target *target, uint64_t address, struct target_art_code *code)
{
    struct art_jit_cache cache;
    struct art_jit_method method;
    struct art_jit_scratch scratch;
    struct target_machine *machine = machine_with_records(target);
    if (!machine || !find_cache(machine, address, &cache) ||
        !art_jit_method_at(&cache, &machine->memory, &scratch, address, &method) ||
        !art_jit_bytecode_of(&machine->memory, &cache, machine->art_instance, method.start, &code->dex_pc))
        return false;
    code->start = method.start;
    code->end = method.start + method.code_bytes;
    return true;
}
