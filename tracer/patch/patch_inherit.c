// SPDX-License-Identifier: Apache-2.0
// Children of fork: their code is their parent's of that moment. Which moment it was is told by the bytes alone.
#include <stdlib.h>
#include <string.h>

#include "libqut/os/process.h"
#include "libqut/target/live.h"
#include "tracer/patch/inside.h"

enum { PAGE_BYTES = 4096, PAST_MAX = 1 << 18 };

// Two pages of a process's code, as sites may reach over an edge.
struct window {
    pid_t pid;
    int memory_fd;
    uint64_t start;
    size_t got;
    uint8_t bytes[2 * PAGE_BYTES];
};

static bool stands_there(struct window *window, const struct patch_site *site)
{
    const uint64_t start = site->address / PAGE_BYTES * PAGE_BYTES, at = site->address - start;
    if (window->start != start) {
        window->start = start;
        window->got = os_read_process(window->pid, window->memory_fd, start, window->bytes, sizeof window->bytes);
    }
    return at + site->size <= window->got && memcmp(window->bytes + at, site->patched, site->size) == 0;
}

void patch_note_past(struct patch_process *process, const struct patch_installed *installed)
{
    // One that loads and unloads modules for ever: children that old are not to be expected.
    struct patch_installed *place = process->past.count < PAST_MAX ? BASE_ADD(&process->past) : NULL;
    if (place)
        *place = *installed;
}

static int by_address(const void *a, const void *b)
{
    const struct patch_installed *x = a, *y = b;
    return x->site.address < y->site.address ? -1 : x->site.address > y->site.address;
}

static void settle(struct patch_process *process, size_t found)
{
    struct patch_installed *to = process->installed.items;
    if (found)
        qsort(to, found, sizeof *to, by_address);
    // The same again: it was taken out and put in.
    size_t kept = 0;
    for (size_t i = 0; i < found; i++)
        if (kept == 0 || to[kept - 1].site.address != to[i].site.address)
            to[kept++] = to[i];
    process->installed.count = kept;
}

int patch_inherit(struct patch_process *process, const struct patch_process *parent, struct base_error *error)
{
    struct window window = {.pid = process->pid, .memory_fd = process->memory_fd, .start = UINT64_MAX};
    const size_t count = parent->installed.count + parent->past.count;
    if (!BASE_RESERVE(&process->installed, count))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    struct patch_installed *to = process->installed.items;
    size_t found = process->installed.count;
    for (size_t i = 0; i < count; i++) {
        const struct patch_installed *from = i < parent->installed.count
                                                 ? &parent->installed.items[i]
                                                 : &parent->past.items[i - parent->installed.count];
        if (!stands_there(&window, &from->site))
            continue;
        to[found] = *from;
        to[found++].site.state = PATCH_IN;
    }
    settle(process, found);
    return 0;
}

// Each of several that have the same address would stand there with bytes of its own.
int patch_adopt(struct patch_process *process, const struct patch_site *sites, size_t count, struct base_error *error)
{
    struct window window = {.pid = process->pid, .memory_fd = process->memory_fd, .start = UINT64_MAX};
    struct qut_target_error why;
    if (!BASE_RESERVE(&process->installed, count))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    if (target_live_refresh_maps(process->target, &why) != 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
    size_t found = process->installed.count;
    for (size_t i = 0; i < count; i++) {
        struct patch_installed *to = &process->installed.items[found];
        if (!stands_there(&window, &sites[i]) || !patch_identify(process, &sites[i], to))
            continue;
        to->site.state = PATCH_IN;
        found++;
    }
    settle(process, found);
    return 0;
}

bool patch_is_in(const struct patch_process *process, uint64_t address)
{
    const struct patch_installed wanted = {.site = {.address = address}};
    return process->installed.count && bsearch(&wanted, process->installed.items, process->installed.count,
                                               sizeof *process->installed.items, by_address);
}
