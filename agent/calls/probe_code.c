// SPDX-License-Identifier: Apache-2.0
// Programs of an image as machine code.
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/calls/inside.h"
#include "bytecode/machine.h"
#include "libqut/host/host.h"

// All of them, one behind the other, in this order. `to` NULL: how many bytes that are.
static uint64_t translate(struct calls_probe *probe, uint8_t *to)
{
    static uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX]; // by one thread at a time
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < probe->image.header->program_count; i++) {
        const struct qut_probe_program *program = &probe->image.programs[i];
        const enum qut_probe_kind kind = (enum qut_probe_kind)program->kind;
        if (!qut_probe_is_inside(kind) || qut_probe_is_mark(kind))
            continue;
        uint8_t *at = to ? to + bytes : NULL;
        probe->machine_programs[i] = at;
        bytes += bytecode_machine.translate(probe->image.instructions + program->first_instruction,
                                            program->instruction_count, places, at);
    }
    return bytes;
}

int calls_probe_make_code(struct calls_probe *probe)
{
    if (!bytecode_machine.translate)
        return -ENOSYS;
    const uint64_t bytes = translate(probe, NULL);
    if (bytes == 0)
        return 0;
    uint8_t *code = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return os_failed(SYS_mmap);
    translate(probe, code);
    if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) {
        const int error = os_failed(SYS_mprotect);
        munmap(code, bytes);
        return error;
    }
    probe->machine_code = code;
    probe->machine_code_bytes = bytes;
    return 0;
}

void calls_probe_free_code(struct calls_probe *probe)
{
    if (probe->machine_code)
        munmap(probe->machine_code, probe->machine_code_bytes);
}
