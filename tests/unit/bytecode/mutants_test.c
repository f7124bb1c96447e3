// SPDX-License-Identifier: Apache-2.0
// Programs that the compiler made, changed at random: whatever the verifier takes is run by an interpreter that checks
// everything (tests/support/probe_judge.h), by ours, and as machine code: all must do the same. That the judge can find
// something is shown by those that are refused: without a verifier many of them would do what they must not.
//
//   mutants_test [COUNT [SEED]]
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytecode/verify.h"
#include "tests/support/probe_machine.h"
#include "tracer/probe/script.h"

enum { COUNT = 2000000, IMAGE_MAX = 16384, CHANGES_MAX = 4 };

static const char long_script[] =
    "entry:f { @last[tid] = arg0; if (@last[tid] * 3 < time || !arg1) { @n = avg(s32(arg1 + 4)) }"
    " else if (arg2 == 7) { @m = min(arg3 % 7 / (arg4 - 1)) } else { @l = lhist(arg5, -10, 100, 10) } }";
static const char *const scripts[] = {
    "entry:f { @ = count() }",
    "entry:f /arg0 > 10 && arg1 != 0/ { @a[arg0, tid] = sum(arg1); @b = hist(arg2) }",
    "return:f /duration > 1ms/ { @[str(u64(retval), 24)] = max(duration); printf(\"%d %s\", tid, str(retval, 16)) }",
    long_script,
    "entry:f /str(arg0) == \"a text of some words\"/ { @hits = count() } end { print(@hits); clear(@hits) }",
    "return:f /errno != 0/ { @p[path(retval, 20), errno] = count(); printf(\"%s\", path(duration)) }",
    "begin { printf(\"%x\", time) } entry:f { @v = arg0 > 0x123456789 ? ~arg1 : -arg2 << 3 ^ 5 }",
};

static uint64_t state;

static uint32_t below(uint32_t most)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return most ? (uint32_t)(state >> 32) % most : 0;
}

static int32_t odd_number(void)
{
    static const int32_t numbers[] = {0,   1,   -1,  2,    7,    8,    -8,        16,       -16,
                                      255, 256, 257, -504, -512, -520, INT32_MAX, INT32_MIN};
    return below(3) ? numbers[below(sizeof numbers / sizeof *numbers)] : (int32_t)below(80) - 40;
}

static uint8_t odd_opcode(void)
{
    static const uint8_t opcodes[] = {0x18, 0x05, 0x85, 0x95, 0x79, 0x7b, 0x7a, 0x61, 0x63, 0x69, 0x71, 0x72, 0x73,
                                      0xb7, 0xbf, 0x07, 0x0f, 0x17, 0x1f, 0x15, 0x1d, 0x55, 0x66, 0xb4, 0x97, 0x87};
    return below(4) ? opcodes[below(sizeof opcodes)] : (uint8_t)below(256);
}

static void change_instruction(struct qut_probe_instruction *code, uint32_t count)
{
    struct qut_probe_instruction *one = &code[below(count)], *other = &code[below(count)], kept = *one;
    switch (below(12)) {
    case 0: one->opcode = odd_opcode(); break;
    case 1: one->registers = (uint8_t)(below(12) | below(12) << 4); break;
    case 2: one->offset = (int16_t)odd_number(); break;
    case 3: one->immediate = odd_number(); break;
    case 4: *one = *other; break;
    case 5:
        *one = *other;
        *other = kept;
        break;
    case 6: one->registers = (uint8_t)((one->registers & 0xf0) | below(11)); break;
    case 7: // what has a chance to be taken: a word of the stack is read, or written; a register is copied; a jump
        *one =
            (struct qut_probe_instruction){0x79, (uint8_t)(below(6) | 10 << 4), (int16_t)(-8 - 8 * (int)below(20)), 0};
        break;
    case 8: *one = (struct qut_probe_instruction){0x7a, 10, (int16_t)(-8 - 8 * (int)below(20)), odd_number()}; break;
    case 9: *one = (struct qut_probe_instruction){0xbf, (uint8_t)(below(6) | below(7) << 4), 0, 0}; break;
    case 10: *one = (struct qut_probe_instruction){below(2) ? 0x15 : 0x05, 0, (int16_t)below(6), 0}; break;
    default: ((uint8_t *)one)[below(sizeof *one)] ^= (uint8_t)(1u << below(8)); break;
    }
}

// The header may be changed already: where instructions are, the original says.
static void change(uint8_t *image, const struct probe_script *script)
{
    const struct qut_probe_image parts = qut_probe_parts(script->image);
    const size_t at = (size_t)((const char *)parts.instructions - (const char *)script->image);
    if (below(50) == 0)
        image[below((uint32_t)script->image_bytes)] ^= (uint8_t)(1u << below(8));
    else
        change_instruction((struct qut_probe_instruction *)(void *)(image + at), parts.header->instruction_count);
}

static struct account {
    uint64_t mutants, taken, runs, refused_wrong;
} account;

static bool run_all(const uint8_t *image, bool is_taken)
{
    const struct qut_probe_image parts = qut_probe_parts(image);
    for (uint32_t i = 0; i < parts.header->program_count; i++) {
        uint64_t fields[QUT_PROBE_FIELD_END];
        for (unsigned n = 0; n < QUT_PROBE_FIELD_END; n++)
            fields[n] = below(3) ? (uint64_t)(int64_t)odd_number() : state;
        const struct probe_judgement judged = probe_judge(&parts, i, fields);
        if (!is_taken) {
            account.refused_wrong += judged.wrong != NULL;
            continue;
        }
        account.runs++;
        if (judged.wrong) {
            printf("taken, and wrong: program %" PRIu32 ", instruction %" PRIu32 ": %s\n", i, judged.at, judged.wrong);
            return false;
        }
        const struct probe_judgement ran = probe_judge_runs(&parts, i, fields);
        if (ran.result != judged.result || ran.calls != judged.calls || ran.calls_hash != judged.calls_hash) {
            printf("program %" PRIu32 " gives 0x%" PRIx64 " after %" PRIu32 " calls, and should give 0x%" PRIx64
                   " after %" PRIu32 "\n",
                   i, ran.result, ran.calls, judged.result, judged.calls);
            return false;
        }
        const char *differs = probe_machine_judge(&parts, i, fields, &judged);
        if (differs) {
            printf("program %" PRIu32 ": %s\n", i, differs);
            return false;
        }
    }
    return true;
}

static bool try_one(const struct probe_script *script)
{
    static _Alignas(8) uint8_t image[IMAGE_MAX];
    static struct bytecode_workspace workspace;
    struct bytecode_fault fault;
    memcpy(image, script->image, script->image_bytes);
    for (uint32_t changes = 1 + below(CHANGES_MAX); changes; changes--)
        change(image, script);
    const bool is_taken = bytecode_verify(image, script->image_bytes, &workspace, &fault);
    account.mutants++;
    account.taken += is_taken;
    // Only instructions of what is refused may be wrong: the judge goes by the tables.
    if (!is_taken && (fault.refusal < BYTECODE_OPCODE || account.mutants % 8))
        return true;
    return run_all(image, is_taken);
}

int main(int argc, char **argv)
{
    enum { SCRIPTS = sizeof scripts / sizeof *scripts };
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : COUNT;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct probe_script compiled[SCRIPTS];
    bool is_good = true;
    state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (size_t i = 0; i < SCRIPTS; i++) {
        struct probe_diagnostic why;
        if (probe_compile(scripts[i], strlen(scripts[i]), &compiled[i], &why) != 0 ||
            compiled[i].image_bytes > IMAGE_MAX) {
            printf("%s: %s\n", scripts[i], why.text);
            return EXIT_FAILURE;
        }
        is_good = is_good && run_all(compiled[i].image, true);
    }
    for (uint64_t i = 0; i < count && is_good; i++)
        is_good = try_one(&compiled[i % SCRIPTS]);
    for (size_t i = 0; i < SCRIPTS; i++)
        probe_script_free(&compiled[i]);
    if (!is_good)
        return EXIT_FAILURE;
    printf("seed %" PRIu64 ": %" PRIu64 " mutants, %" PRIu64 " taken, %" PRIu64
           " runs, none wrong; of those refused %" PRIu64 " programs would be\n",
           seed, account.mutants, account.taken, account.runs, account.refused_wrong);
    return account.taken > count / 100 && account.refused_wrong > count / 1000 ? EXIT_SUCCESS : EXIT_FAILURE;
}
