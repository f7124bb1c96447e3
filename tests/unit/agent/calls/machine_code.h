// SPDX-License-Identifier: Apache-2.0
// A probe's program as machine code, of several parts, with helpers that are called from the midst of it.
#ifndef TESTS_UNIT_AGENT_CALLS_MACHINE_CODE_H
#define TESTS_UNIT_AGENT_CALLS_MACHINE_CODE_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bytecode/machine.h"

enum { MACHINE_CODE_BYTES = 8192, MACHINE_CODE_CALLS = 6 };

static uint8_t *machine_code;
static uint32_t machine_code_bytes;

static uint64_t machine_code_helper(struct bytecode_host *host, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    (void)host;
    volatile uint64_t sum = helper + a;
    sum += b;
    return sum + c;
}

// Between two calls there are more instructions than one part has room for.
static void machine_code_make(void)
{
    enum { COUNT = MACHINE_CODE_CALLS * 24 + 3 };
    static struct qut_probe_instruction code[COUNT];
    static uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX];
    uint32_t at = 0;
#define ADD(...) code[at++] = (struct qut_probe_instruction){__VA_ARGS__}
    ADD(0xb7, 6, 0, 1000);
    for (int call = 0; call < MACHINE_CODE_CALLS; call++) {
        for (int i = 0; i < 9; i++) {
            ADD(0x7a, 10, (int16_t)(-8 - 8 * i), i); // a word of the stack
            ADD(0x37, 6, 1, i - 3);                  // / i - 3, signed
        }
        ADD(0x15, 6, 1, 12345); // over
        ADD(0x07, 6, 0, 7);
        ADD(0xbf, 0x61, 0, 0);
        ADD(0xb7, 2, 0, 2);
        ADD(0xb7, 3, 0, 3);
        ADD(0x85, 0, 0, QUT_PROBE_READ);
    }
    ADD(0xbf, 0x60, 0, 0);
    ADD(0x95, 0, 0, 0);
#undef ADD
    machine_code = mmap(NULL, MACHINE_CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (machine_code == MAP_FAILED || at != COUNT ||
        bytecode_machine.translate(code, COUNT, places, NULL) > MACHINE_CODE_BYTES)
        abort();
    machine_code_bytes = bytecode_machine.translate(code, COUNT, places, machine_code);
    if (mprotect(machine_code, MACHINE_CODE_BYTES, PROT_READ | PROT_EXEC) != 0)
        abort();
}

#endif
