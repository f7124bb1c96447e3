// SPDX-License-Identifier: Apache-2.0
// Makes the files that are not there yet, of today's versions:   make_golden_files tests/support/golden_files
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden_files/golden_files.h"

static int make(const char *directory, enum golden_file file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, golden_file_names[file]);
    FILE *to = fopen(path, "wbx");
    if (!to && errno == EEXIST)
        return 0;
    struct golden_bytes made = golden_file_make(file);
    if (file == GOLDEN_SEGMENT) {
        struct golden_bytes whole = made;
        made = golden_file_pack(whole);
        free(whole.bytes);
    }
    bool is_written = to && fwrite(made.bytes, 1, made.size, to) == made.size;
    is_written = to && fclose(to) == 0 && is_written;
    if (!is_written)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    free(made.bytes);
    return is_written ? 0 : 1;
}

int main(int argc, char **argv)
{
    int status = 0;
    if (argc != 2)
        return 2;
    for (int file = 0; file < GOLDEN_FILE_COUNT; file++)
        status |= make(argv[1], (enum golden_file)file);
    return status;
}
