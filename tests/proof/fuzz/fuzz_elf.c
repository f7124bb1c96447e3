// SPDX-License-Identifier: Apache-2.0
// A whole ELF file, from its header to the rows of its table. By its name it is Android's runtime, of which symbols say
// more.
#include "tests/proof/fuzz/fuzz.h"

int fuzz_elf(const uint8_t *data, size_t size)
{
    struct input_image_options options = {.unpack_max_bytes = 16 << 20};
    struct base_error error = {0};
    struct input_image *image;
    if (input_image_open_memory((struct base_bytes){data, size}, "libart.so", &options, &image, &error) != 0) {
        fuzz_require(error.reason != BASE_OK);
        return 0;
    }
    fuzz_compile(image);
    input_image_close(image);
    return 0;
}
