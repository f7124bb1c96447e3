// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/code_pages.h"

#include <stdio.h>
#include <sys/uio.h>

enum { PAGE_BYTES = 4096, AT_ONCE = 256 };
static const uint64_t pages_most = 1 << 20; // of one mapping: 4 GiB

struct search {
    pid_t pid;
    inject_page_fn each;
    void *context;
    bool is_over;
};

// The kernel stops at the first page that it cannot read: that one is left out.
static void look(struct search *search, uint64_t start, uint64_t count)
{
    uint8_t heads[AT_ONCE][INJECT_PAGE_HEAD_BYTES];
    struct iovec here[AT_ONCE], there[AT_ONCE];
    while (count > 0 && !search->is_over) {
        const uint64_t now = count < AT_ONCE ? count : AT_ONCE;
        for (uint64_t i = 0; i < now; i++) {
            here[i] = (struct iovec){heads[i], sizeof heads[i]};
            there[i] = (struct iovec){(void *)(uintptr_t)(start + i * PAGE_BYTES), sizeof heads[i]};
        }
        const ssize_t got = process_vm_readv(search->pid, here, (unsigned long)now, there, (unsigned long)now, 0);
        const uint64_t read = got > 0 ? (uint64_t)got / INJECT_PAGE_HEAD_BYTES : 0;
        for (uint64_t i = 0; i < read && !search->is_over; i++)
            search->is_over = search->each(search->context, start + i * PAGE_BYTES, heads[i]);
        const uint64_t done = read < now ? read + 1 : now;
        start += done * PAGE_BYTES;
        count -= done;
    }
}

bool inject_each_code_page(pid_t pid, inject_page_fn each, void *context)
{
    struct search search = {pid, each, context, false};
    char path[64], line[4352];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!search.is_over && fgets(line, sizeof line, file)) {
        unsigned long long start, end, inode;
        char permissions[5];
        int behind = 0;
        if (sscanf(line, "%llx-%llx %4s %*s %*s %llu %n", &start, &end, permissions, &inode, &behind) != 4 ||
            permissions[2] != 'x' || inode != 0 || line[behind] == '[' || end <= start)
            continue;
        const uint64_t pages = (end - start) / PAGE_BYTES;
        look(&search, start, pages < pages_most ? pages : pages_most);
    }
    fclose(file);
    return true;
}
