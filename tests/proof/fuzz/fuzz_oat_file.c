// SPDX-License-Identifier: Apache-2.0
// A whole OAT file: what finds its methods, and the rows of its table. As a file, and as the loader mapped it.
#include "tests/proof/fuzz/fuzz.h"

int fuzz_oat_file(const uint8_t *data, size_t size)
{
    for (int as_mapped = 0; as_mapped < 2; as_mapped++) {
        const struct input_image_options options = {.unpack_max_bytes = 4 << 20, .as_mapped = as_mapped};
        struct base_error error = {0};
        struct input_image *image;
        if (input_image_open_memory((struct base_bytes){data, size}, "fuzz", &options, &image, &error) != 0) {
            fuzz_require(error.reason != BASE_OK);
            continue;
        }
        if (image->oat.present)
            fuzz_require(image->oat.data.start <= image->oat.data.end && image->oat.code.start <= image->oat.code.end);
        fuzz_compile(image);
        input_image_close(image);
    }
    return 0;
}
