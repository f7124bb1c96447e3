// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of every fuzzer, and dictionaries: make_seeds DIRECTORY [TARGET=FILE...]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qutc/input/file_map.h"
#include "tests/proof/fuzz/seeds/seeds.h"

static const char *root;

void write_seed(const char *target, const char *name, int first_byte, const void *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    FILE *file = fopen(path, "we");
    if (!file || (first_byte >= 0 && fputc(first_byte, file) == EOF) || fwrite(bytes, 1, size, file) != size ||
        fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

// A real file. Of targets that read other things in front of it, seeds say what; here it is zero.
static void file_seed(const char *argument, int number)
{
    const size_t size_max = 64000;
    const char *mark = strchr(argument, '=');
    struct input_file_map map;
    char target[64], name[32];
    if (!mark || input_file_map_open(&map, mark + 1, 0, 0, INPUT_FILE_MAPPED, NULL) != 0)
        return;
    snprintf(target, sizeof target, "%.*s", (int)(mark - argument), argument);
    snprintf(name, sizeof name, "file-%d", number);
    if (map.bytes.size <= size_max)
        write_seed(target, name,
                   strcmp(target, "names") == 0 ? 3
                   : strcmp(target, "xz") == 0  ? 0
                                                : -1,
                   map.bytes.data, map.bytes.size);
    input_file_map_close(&map);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2) {
        fprintf(stderr, "usage: make_seeds DIRECTORY [TARGET=FILE...]\n");
        return 2;
    }
    root = arguments[1];
    all_seeds();
    write_dictionaries(root);
    for (int i = 2; i < argument_count; i++)
        file_seed(arguments[i], i - 1);
    return 0;
}
