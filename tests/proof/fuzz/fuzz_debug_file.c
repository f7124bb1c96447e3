// SPDX-License-Identifier: Apache-2.0
// A file and its separate debug file, which it names by .gnu_debuglink or by its build-id. Input: two bytes that say
// how long the first is; both. The link's CRC counts for nothing here.
#include <stdio.h>

#include "tests/proof/fuzz/fuzz.h"

int fuzz_debug_file(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t first = data[0] | (size_t)data[1] << 8;
    data += 2;
    size -= 2;
    first = first < size ? first : size;
    fuzz_write("file", data, first);
    fuzz_write("a.debug", data + first, size - first);
    fuzz_write(".build-id/ab/cdef.debug", data + first, size - first);
    char path[256];
    snprintf(path, sizeof path, "%s/file", fuzz_folder());
    for (int read_files = 0; read_files < 2; read_files++) {
        const struct input_image_options options = {
            .debug_root = fuzz_folder(), .unpack_max_bytes = 4 << 20, .read_files = read_files};
        struct base_error error = {0};
        struct input_image *image;
        if (input_image_open(path, NULL, 0, 0, &options, &image, &error) != 0) {
            fuzz_require(error.reason != BASE_OK);
            continue;
        }
        fuzz_compile(image);
        input_image_close(image);
    }
    return 0;
}
