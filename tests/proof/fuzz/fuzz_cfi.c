// SPDX-License-Identifier: Apache-2.0
// The bytes of one frame section, after two that choose the architecture and the kind.
#include "qutc/input/image_store.h"
#include "tests/proof/fuzz/fuzz.h"

enum { HEAD_BYTES = 2, TEXT = 0x10000, TEXT_BYTES = 1 << 16, SECTION = 0x8000000 };

int fuzz_cfi(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    const struct arch *arch = arch_by_id((enum qut_arch_id)(1 + data[0] % (QUT_ARCH_END - 1)));
    struct input_image_store store = {0};
    struct input_image image = {.name = (char[]){"fuzz"},
                                .store = &store,
                                .arch = arch,
                                .is_64 = arch->word_bytes == 8,
                                .exec = {{TEXT, TEXT + TEXT_BYTES}},
                                .exec_count = 1,
                                .frame_count = 1};
    image.frame[0] = (struct input_frame_section){.kind = data[1] & 1 ? INPUT_FRAME_DEBUG : INPUT_FRAME_EH,
                                                  .name = ".frame",
                                                  .bytes = {data + HEAD_BYTES, size - HEAD_BYTES},
                                                  .vaddr = SECTION};
    fuzz_compile(&image);
    return 0;
}
