// SPDX-License-Identifier: Apache-2.0
// An archive with ELF files in it, read as a file.
#include "qutc/input/inputs.h"
#include "tests/proof/fuzz/fuzz.h"

int fuzz_apk(const uint8_t *data, size_t size)
{
    struct input_inputs inputs;
    input_inputs_init(&inputs);
    struct base_error error = {0};
    if (input_inputs_add_path(&inputs, fuzz_file(data, size), &error) != 0)
        fuzz_require(error.reason != BASE_OK);
    struct input_image_options options = {.unpack_max_bytes = 4 << 20};
    for (size_t i = 0; i < inputs.count && i < 16; i++) {
        struct input_image *image;
        struct base_error open_error = {0};
        fuzz_require(inputs.items[i].offset_bytes <= size &&
                     inputs.items[i].size_bytes <= size - inputs.items[i].offset_bytes);
        if (input_open(&inputs.items[i], &options, &image, &open_error) == 0)
            input_image_close(image);
        else
            fuzz_require(open_error.reason != BASE_OK);
    }
    input_inputs_free(&inputs);
    return 0;
}
