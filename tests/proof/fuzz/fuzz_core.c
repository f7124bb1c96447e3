// SPDX-License-Identifier: Apache-2.0
// A core file: opened, its threads walked, what is mapped asked for. Files that it names are not there.
#include <qut/target.h>
#include <qutc/provide.h>

#include "tests/proof/fuzz/fuzz.h"
#include "tests/proof/fuzz/walk_target.h"

int fuzz_core(const uint8_t *data, size_t size)
{
    static const struct qutc_provide_options provide = {.size = sizeof provide};
    const struct qut_target_options options = {.size = sizeof options,
                                               .compile = qutc_compile_for_qut,
                                               .compile_context = (void *)&provide,
                                               .sysroot = "/nowhere"};
    struct qut_target_error error = {""};
    struct qut_target *target = qut_target_core(fuzz_file(data, size), NULL, &options, &error);
    fuzz_require(target || error.text[0]);
    if (target)
        fuzz_walk_target(target);
    return 0;
}
