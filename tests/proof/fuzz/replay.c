// SPDX-License-Identifier: Apache-2.0
// One target without libFuzzer: replay_NAME FILE-OR-FOLDER... reads each file once. For what was found, with any
// compiler; and for what a corpus reaches, in a build that counts lines.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/proof/fuzz/targets.h"

#define PASTE(A, B)  A##B
#define PASTED(A, B) PASTE(A, B)

static size_t count;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "re");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0) {
        perror(path);
        return -1;
    }
    size_t size = (size_t)status.st_size;
    uint8_t *bytes = malloc(size ? size : 1);
    int result = bytes && fread(bytes, 1, size, file) == size ? 0 : -1;
    fclose(file);
    if (result == 0) {
        PASTED(fuzz_, FUZZ_TARGET)(bytes, size);
        count++;
    }
    free(bytes);
    return result;
}

static int replay_folder(const char *path, DIR *folder)
{
    int result = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[PATH_MAX];
        struct stat status;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (stat(name, &status) == 0 && S_ISREG(status.st_mode) && replay_file(name) != 0)
            result = -1;
    }
    closedir(folder);
    return result;
}

int main(int argument_count, char **arguments)
{
    int result = 0;
    for (int i = 1; i < argument_count; i++) {
        DIR *folder = opendir(arguments[i]);
        if ((folder ? replay_folder(arguments[i], folder) : replay_file(arguments[i])) != 0)
            result = -1;
    }
    printf("%zu inputs\n", count);
    return result == 0 && count ? EXIT_SUCCESS : EXIT_FAILURE;
}
