// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/padding.h"

#include "qutc/code/inside.h"

uint32_t code_behind_padding(const struct code_follower *f, uint32_t pc, uint32_t end)
{
    struct code_instruction in;
    bool was_zero = false;
    while (pc < end && !(f->marks && f->marks[pc] & CODE_MARK_POINTED)) {
        // Zeros are instructions, too, of x86: no function begins with them.
        struct base_bytes bytes = input_image_some(f->image, f->text_start + pc, 2);
        was_zero = bytes.size >= 1 && bytes.data[0] == 0 && (was_zero || (bytes.size >= 2 && bytes.data[1] == 0));
        if (was_zero)
            pc++;
        else if (code_read(f, pc, &in) && in.is_padding)
            pc += in.size_bytes;
        else
            break;
    }
    return pc < end ? pc : end;
}

uint64_t code_padding_bytes(const struct input_image *image, uint64_t start, uint64_t end)
{
    const struct code_follower f = {.image = image,
                                    .arch = image->arch,
                                    .code = code_arch(image->arch),
                                    .text_start = start,
                                    .text_size = (uint32_t)(end - start)};
    return f.code->read ? code_behind_padding(&f, 0, f.text_size) : 0;
}
