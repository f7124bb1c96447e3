// SPDX-License-Identifier: Apache-2.0
#include "tracer/managed/names.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/target/machine.h"

static void set_text(struct managed_name *name, const char *text, size_t length)
{
    length = length < sizeof name->text ? length : sizeof name->text - 1;
    memcpy(name->text, text, length);
    name->text[length] = '\0';
}

// Code that a debugger is told of.
static bool name_jit(struct managed_names *names, struct qut_target *target, uint64_t address, uint64_t since_ns,
                     struct managed_name *name)
{
    struct target_machine *machine = target_machine(target);
    struct managed_jit_name found;
    if (!machine)
        return false;
    target_machine_search(machine);
    managed_jit_drop_lists(&names->jit);
    for (unsigned i = 0; i < machine->list_count[TARGET_MACHINE_CODE]; i++)
        managed_jit_add_list(&names->jit, machine->lists[TARGET_MACHINE_CODE][i].descriptor_address);
    if (!managed_jit_at(&names->jit, &machine->memory, address, since_ns, &found))
        return false;
    *name = (struct managed_name){.start = found.start, .end = found.end, .may_move = true};
    if (name->end == name->start) // it tells where it begins only
        *name = (struct managed_name){.start = address, .end = address + 1, .may_move = true};
    set_text(name, found.text, found.length);
    return true;
}

// Code that nobody is told of.
static bool name_art(struct managed_names *names, struct qut_target *target, uint64_t address, uint64_t since_ns,
                     struct managed_name *name)
{
    struct managed_art_place place;
    names->dex.target = target;
    target_jit_new_moment(target);
    if (!managed_art_at_since(&names->art, &names->dex, address, since_ns, &place))
        return false;
    *name = (struct managed_name){.start = place.start, .end = place.end, .may_move = true};
    set_text(name, place.method, strlen(place.method));
    free(place.method);
    return true;
}

static bool name_dex(struct managed_names *names, struct qut_target *target, uint64_t address,
                     struct managed_name *name)
{
    struct qut_module_info info;
    struct managed_dex_place place;
    struct base_error error = {0};
    names->dex.target = target;
    // The lists are as they were when they were last asked for.
    target_jit_new_moment(target);
    if (!qut_target_module(target, address, &info) || !managed_dex_at(&names->dex, &info, address, &place, &error) ||
        !place.method)
        return false;
    *name = (struct managed_name){.start = place.start, .end = place.end};
    set_text(name, place.method, strlen(place.method));
    free(place.method);
    return true;
}

void managed_names_begin(struct managed_names *names, struct qut_target *target)
{
    managed_art_look(&names->art, target);
}

bool managed_name_at(struct managed_names *names, struct qut_target *target, uint64_t address, uint64_t since_ns,
                     struct managed_name *name)
{
    const struct target_map *map = target_maps_find(&target->maps, address);
    if (!map)
        return false;
    if (!map->executable)
        return name_dex(names, target, address, name);
    return name_jit(names, target, address, since_ns, name) || name_art(names, target, address, since_ns, name);
}

void managed_names_free(struct managed_names *names)
{
    managed_dex_free(&names->dex);
    managed_jit_free(&names->jit);
}
