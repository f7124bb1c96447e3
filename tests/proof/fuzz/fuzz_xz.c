// SPDX-License-Identifier: Apache-2.0
// Whatever may stand packed in a file. The first byte says how: 0 xz streams (.gnu_debugdata), 1 a compressed section
// of a 32-bit file, 2 an old .zdebug section, 3 a compressed section of a 64-bit file.
#include <elf.h>

#include "qutc/input/unpack.h"
#include "tests/proof/fuzz/fuzz.h"

int fuzz_xz(const uint8_t *data, size_t size)
{
    const uint64_t bound_bytes = 4 << 20;
    if (size == 0)
        return 0;
    struct base_bytes packed = {data + 1, size - 1}, bytes;
    struct input_unpacker unpacker = {.left_bytes = bound_bytes};
    struct base_error error = {0};
    int result;
    if (data[0] % 4 == 0) {
        result = input_unpack_xz(&unpacker, packed, ".gnu_debugdata", &bytes, &error);
    } else {
        struct input_elf elf = {.bytes = packed, .is_64 = data[0] % 4 == 3};
        bool old = data[0] % 4 == 2;
        struct input_elf_section section = {.name = old ? ".zdebug_frame" : ".debug_frame",
                                            .type = SHT_PROGBITS,
                                            .flags = old ? 0 : SHF_COMPRESSED,
                                            .size_bytes = packed.size};
        result = input_unpack_section(&unpacker, &elf, &section, &bytes, &error);
    }
    fuzz_require(result == 0 ? bytes.size <= bound_bytes + size : error.reason != BASE_OK);
    input_unpack_free(&unpacker);
    return 0;
}
