// SPDX-License-Identifier: Apache-2.0
// A snapshot directory. Input: maps.txt and regs.txt, each up to a NUL; two bytes that say how long stack.data is;
// that; and the rest is the file lib.so, for which a line of the maps may ask.
#include <qut/target.h>
#include <qutc/provide.h>

#include "tests/proof/fuzz/fuzz.h"
#include "tests/proof/fuzz/walk_target.h"

static size_t text_bytes(const uint8_t *data, size_t size)
{
    return strnlen((const char *)data, size);
}

int fuzz_snapshot(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {"maps.txt", "regs.txt"};
    size_t text_size = 0;
    for (size_t i = 0; i < 2; i++) { // the two texts
        size_t length = text_bytes(data, size);
        fuzz_write(texts[i], data, length);
        data += length;
        size -= length;
        text_size += length;
        data += size > 0;
        size -= size > 0;
    }
    size_t stack = 0;
    if (size >= 2) {
        stack = data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
    }
    stack = stack < size ? stack : size;
    fuzz_write("stack.data", data, stack);
    fuzz_write("lib.so", data + stack, size - stack);

    static const struct qutc_provide_options provide = {.size = sizeof provide};
    struct qut_target_options options = {.size = sizeof options};
    if (text_size % 4) { // else as where no compiler is linked
        options.compile = qutc_compile_for_qut;
        options.compile_context = (void *)&provide;
    }
    struct qut_target_error error = {""};
    struct qut_target *target = qut_target_snapshot(fuzz_folder(), &options, &error);
    fuzz_require(target || error.text[0]);
    if (target)
        fuzz_walk_target(target);
    return 0;
}
