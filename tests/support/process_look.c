// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process_look.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static FILE *open_of(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    return file;
}

char *process_maps(pid_t pid)
{
    FILE *file = open_of(pid, "maps");
    char *text = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&text, &size);
    for (int c; (c = fgetc(file)) != EOF;)
        fputc(c, copy);
    fclose(copy);
    fclose(file);
    return text;
}

bool process_has_name_in_maps(pid_t pid, const char *name)
{
    char *maps = process_maps(pid);
    bool has = strstr(maps, name) != NULL;
    free(maps);
    return has;
}

unsigned process_count(pid_t pid, const char *folder)
{
    char path[64];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, folder);
    DIR *entries = opendir(path);
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

unsigned long process_code_hash(pid_t pid)
{
    FILE *file = open_of(pid, "maps");
    unsigned long start, end, hash = 5381;
    char line[4352], rights[5];
    static unsigned char bytes[65536];
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[2] != 'x' || strstr(line, "[v"))
            continue;
        for (unsigned long at = start; at < end; at += sizeof bytes) {
            size_t size = end - at < sizeof bytes ? end - at : sizeof bytes;
            const struct iovec here = {bytes, size}, there = {(void *)at, size};
            ck_assert_int_eq(process_vm_readv(pid, &here, 1, &there, 1, 0), (ssize_t)size);
            for (size_t i = 0; i < size; i++)
                hash = hash * 33 + bytes[i];
        }
    }
    fclose(file);
    return hash;
}
