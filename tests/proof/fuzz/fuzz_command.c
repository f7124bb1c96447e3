// SPDX-License-Identifier: Apache-2.0
// A file that is to be started and recorded: an ELF program, or a script that names one.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/proof/fuzz/fuzz.h"
#include "tracer/record/command_file.h"

int fuzz_command(const uint8_t *data, size_t size)
{
    static struct program program, self;
    const char *path = fuzz_file(data, size);
    struct base_error error = {0};
    fuzz_require(chmod(path, 0700) == 0);
    if (!self.is_known)
        record_program_self(&self);
    int status = record_program_find(&program, path, &error);
    fuzz_require(status == 0 || error.reason != BASE_OK);
    if (status == 0) {
        fuzz_require(memchr(program.interpreter, 0, sizeof program.interpreter) &&
                     memchr(program.image, 0, sizeof program.image));
        record_program_refuses_agent(&program, &self);
    }
    return 0;
}
