// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_children.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/diagnostics.h"

enum { SHOWN = 5, TITLE_BYTES = 64 };

static bool read_relative(pid_t pid, struct record_relative *relative)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *behind_name = strrchr(text, ')'); // the name can hold anything
    unsigned long long user, system, begin;
    *relative = (struct record_relative){.pid = pid};
    if (!behind_name || sscanf(behind_name + 1,
                               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
                               "%*d %*d %llu",
                               &relative->parent, &user, &system, &begin) != 4)
        return false;
    relative->begin_ticks = begin;
    relative->cpu_ns = (user + system) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

static int by_pid(const void *one, const void *other)
{
    const struct record_relative *a = one, *b = other;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static struct record_relative *find(const struct record_children *children, pid_t pid)
{
    const struct record_relative wanted = {.pid = pid};
    return children->count ? bsearch(&wanted, children->items, children->count, sizeof wanted, by_pid) : NULL;
}

// Most processes are younger than their parent and have a greater number: one round finds nearly all.
static void mark_descendants(struct record_children *children, pid_t pid)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < children->count; i++) {
            struct record_relative *relative = &children->items[i];
            const struct record_relative *parent = find(children, relative->parent);
            if (relative->is_descendant || relative->pid == getpid() ||
                !(relative->parent == pid || (parent && parent->is_descendant)))
                continue;
            relative->is_descendant = found = true;
        }
    }
}

void cli_record_children_read(struct record_children *children, pid_t pid)
{
    *children = (struct record_children){.items = NULL};
    DIR *directory = opendir("/proc");
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct record_relative relative, *added;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_relative(atoi(entry->d_name), &relative))
            continue;
        if (!(added = BASE_ADD(children)))
            break;
        *added = relative;
    }
    if (directory)
        closedir(directory);
    if (children->count)
        qsort(children->items, children->count, sizeof *children->items, by_pid);
    mark_descendants(children, pid);
}

void cli_record_children_free(struct record_children *children)
{
    base_vector_free(&children->vector);
}

static uint64_t used_since(const struct record_children *before, const struct record_relative *now)
{
    const struct record_relative *then = find(before, now->pid);
    uint64_t before_ns = then && then->begin_ticks == now->begin_ticks ? then->cpu_ns : 0;
    return now->cpu_ns > before_ns ? now->cpu_ns - before_ns : 0;
}

// Its command line, which servers change to say what they are at; of one that has none, its name.
static void read_title(pid_t pid, char title[TITLE_BYTES])
{
    static const char *const files[] = {"cmdline", "comm"};
    size_t size = 0;
    for (size_t i = 0; i < 2 && !size; i++) {
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        FILE *file = fopen(path, "re");
        size = file ? fread(title, 1, TITLE_BYTES - 1, file) : 0;
        if (file)
            fclose(file);
        for (size_t at = 0; at < size; at++)
            if (!title[at] || title[at] == '\n')
                title[at] = ' ';
        while (size && title[size - 1] == ' ')
            size--;
    }
    title[size] = 0;
}

static int by_use(const void *one, const void *other)
{
    const struct record_relative *a = one, *b = other; // cpu_ns is that since the beginning
    return a->cpu_ns != b->cpu_ns ? (a->cpu_ns < b->cpu_ns ? 1 : -1) : by_pid(a, b);
}

static void list(struct record_children *now, size_t count)
{
    qsort(now->items, now->count, sizeof *now->items, by_use);
    size_t shown = 0;
    for (size_t i = 0; i < now->count && shown < SHOWN; i++) {
        char title[TITLE_BYTES];
        if (!now->items[i].is_descendant)
            continue;
        read_title(now->items[i].pid, title);
        cli_report(stderr, NULL, "  %-8d %-8s %s", (int)now->items[i].pid,
                   base_quantity_time(now->items[i].cpu_ns).text, title);
        shown++;
    }
    if (count > shown)
        cli_report(stderr, NULL, "  and %zu more", count - shown);
    for (size_t i = 0; i < now->count; i++)
        if (now->items[i].is_descendant) {
            cli_report(stderr, NULL, "to record one of them: %s record -p %d; all: start the process with %s record",
                       cli_program, (int)now->items[i].pid, cli_program);
            return;
        }
}

void cli_record_children_say(const struct record_children *before, pid_t pid, bool has_samples)
{
    struct record_children now;
    uint64_t own_ns = 0, others_ns = 0;
    size_t count = 0;
    cli_record_children_read(&now, pid);
    for (size_t i = 0; i < now.count; i++) {
        struct record_relative *relative = &now.items[i];
        uint64_t used_ns = used_since(before, relative);
        relative->cpu_ns = used_ns;
        own_ns += relative->pid == pid ? used_ns : 0;
        others_ns += relative->is_descendant ? used_ns : 0;
        count += relative->is_descendant;
    }
    if (count && (!has_samples || others_ns > own_ns)) {
        cli_report(
            stderr, NULL,
            "process %d used %s of processor time meanwhile; %zu processes that it started are not recorded, and "
            "used %s:",
            (int)pid, base_quantity_time(own_ns).text, count, base_quantity_time(others_ns).text);
        list(&now, count);
    } else if (!has_samples) {
        cli_report(stderr, NULL, "no samples: process %d did not run, it waited. To see for what: -p %d --wall",
                   (int)pid, (int)pid);
    }
    cli_record_children_free(&now);
}
