// SPDX-License-Identifier: Apache-2.0
#include "tests/support/probe_machine.h"

#include <string.h>
#include <sys/mman.h>

#include "bytecode/machine.h"
#include "formats/qut_calls_thunk.h"

enum { ROOM = BYTECODE_MACHINE_BYTES_MAX * (QUT_PROBE_INSTRUCTIONS_MAX / 2 + 1), PAGE = 4096 };

static struct {
    uint8_t *code;
    uint32_t bytes;
    uint8_t stack[QUT_PROBE_STACK_BYTES] __attribute__((aligned(16)));
} loaded;

bool probe_machine_is_there(void)
{
    return bytecode_machine.translate != NULL;
}

// As a walk looks for it.
static bool has_origin(uint32_t from)
{
    const uint64_t pc = (uintptr_t)loaded.code + from, end = (uintptr_t)loaded.code + loaded.bytes;
    for (uint64_t at = (pc | (QUT_CALLS_THUNK_ALIGNMENT - 1)) + 1;
         at - pc < QUT_CALLS_THUNK_BYTES_MAX && at + sizeof(struct qut_calls_origin) <= end;
         at += QUT_CALLS_THUNK_ALIGNMENT)
        if (qut_calls_origin_is_of((const struct qut_calls_origin *)(uintptr_t)at, at, pc))
            return true;
    return false;
}

const char *probe_machine_load(const struct qut_probe_image *image, uint32_t program)
{
    static uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX];
    const uint32_t count = image->programs[program].instruction_count;
    const struct qut_probe_instruction *code = image->instructions + image->programs[program].first_instruction;
    if (!loaded.code) {
        loaded.code = mmap(NULL, (ROOM + PAGE) / PAGE * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (loaded.code == MAP_FAILED)
            return "no memory";
    }
    const uint32_t bytes = bytecode_machine.translate(code, count, places, NULL);
    if (bytes > BYTECODE_MACHINE_BYTES_MAX * (count / 2 + 1) || bytes % BYTECODE_MACHINE_ALIGNMENT)
        return "more code than there may be";
    const size_t pages = (size_t)(bytes + PAGE) / PAGE * PAGE;
    if (mprotect(loaded.code, pages, PROT_READ | PROT_WRITE) != 0)
        return "memory that cannot be written";
    memset(loaded.code + bytes, 0xa5, pages - bytes);
    loaded.bytes = bytecode_machine.translate(code, count, places, loaded.code);
    for (size_t i = bytes; i < pages; i++)
        if (loaded.code[i] != 0xa5)
            return "more is written than was said";
    if (loaded.bytes != bytes)
        return "the second look finds another length than the first";
    for (uint32_t i = 0; i < count; i++)
        if (!has_origin(places[i]))
            return "code without an origin";
    return mprotect(loaded.code, pages, PROT_READ | PROT_EXEC) == 0 ? NULL : "memory that cannot be executed";
}

static uint64_t run_on_own_stack(void *context, const uint64_t *fields, struct bytecode_host *host)
{
    (void)context;
    enum { HEAD_BYTES = 16 }; // bytecode/x86_64/translate.c
    return probe_machine_enter(loaded.code + HEAD_BYTES, fields, host, loaded.stack + sizeof loaded.stack);
}

static uint64_t run_as_probes_do(void *context, const uint64_t *fields, struct bytecode_host *host)
{
    (void)context;
    return bytecode_machine.enter(loaded.code, fields, host);
}

static bool is_same(const struct probe_judgement *a, const struct probe_judgement *b)
{
    return a->result == b->result && a->calls == b->calls && a->calls_hash == b->calls_hash;
}

const char *probe_machine_differs(const struct qut_probe_image *image, const uint64_t *fields,
                                  const struct probe_judgement *judged)
{
    memset(loaded.stack, 0xa5, sizeof loaded.stack);
    const struct probe_judgement alone = probe_judge_runs_by(image, fields, run_on_own_stack, NULL);
    if (!is_same(&alone, judged))
        return "machine code gives another result, or calls otherwise";
    for (size_t i = 0; i < sizeof loaded.stack; i++)
        if (loaded.stack[i] != (judged->is_written[i] ? judged->stack[i] : 0xa5))
            return "machine code leaves another stack";
    const struct probe_judgement usual = probe_judge_runs_by(image, fields, run_as_probes_do, NULL);
    return is_same(&usual, judged) ? NULL : "machine code does otherwise where probes enter it";
}

const char *probe_machine_judge(const struct qut_probe_image *image, uint32_t program, const uint64_t *fields,
                                const struct probe_judgement *judged)
{
    if (!probe_machine_is_there())
        return NULL;
    const char *wrong = probe_machine_load(image, program);
    return wrong ? wrong : probe_machine_differs(image, fields, judged);
}
