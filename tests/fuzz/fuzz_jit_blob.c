// SPDX-License-Identifier: Apache-2.0
// The symbol file of one piece of code that was compiled just in time, from its header to the rows of its table.
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct qutc_image_options options = {.unpack_max_bytes = 16 << 20, .jit = true};
    struct qutc_error error = {0};
    struct qutc_image *image;
    if (qutc_image_open_memory((struct qutc_bytes){data, size}, "fuzz", &options, &image, &error) != 0) {
        fuzz_require(error.reason != QUTC_OK);
        return 0;
    }
    fuzz_compile(image);
    qutc_image_close(image);
    return 0;
}
