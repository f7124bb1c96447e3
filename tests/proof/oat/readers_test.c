// SPDX-License-Identifier: Apache-2.0
// The readers of machine code against binutils' disassembler, over whole C libraries: how long an instruction is,
// whether it changes sp, where it branches to, what calls and what returns.
#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qutc/cfi/oat_track.h"
#include "tests/support/run_suite.h"

enum { ENOUGH = 60000 };

struct line {
    uint64_t address;
    uint8_t bytes[32];
    size_t size;
    char name[32], operands[200];
    bool has_target;
    uint64_t target;
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

// "  4010:\td2800050 \tmov\tx16, #2": groups of hex digits are little-endian numbers.
static bool parse(const char *text, struct line *line)
{
    int at = 0;
    *line = (struct line){0};
    if (sscanf(text, " %" SCNx64 ":%n", &line->address, &at) != 1 || text[at] != '\t')
        return false;
    const char *c = text + at + 1;
    while (isxdigit((unsigned char)*c)) {
        char *end;
        uint64_t group = strtoull(c, &end, 16);
        for (long i = 0; i < (end - c) / 2 && line->size < sizeof line->bytes; i++)
            line->bytes[line->size++] = (uint8_t)(group >> (8 * i));
        c = *end == ' ' ? end + 1 : end;
    }
    while (*c == ' ')
        c++;
    if (*c != '\t' || sscanf(c, " %31s %199[^\n]", line->name, line->operands) < 1)
        return false;
    char *symbol = strchr(line->operands, '<');
    if (symbol) {
        char *digits = symbol;
        while (digits > line->operands && (digits[-1] == ' ' || isxdigit((unsigned char)digits[-1])))
            digits--;
        line->has_target = true;
        line->target = strtoull(digits, NULL, 16);
    }
    return true;
}

struct machine {
    enum qut_arch_id arch;
    const char *disassemble, *library;
    bool (*changes_sp)(const struct line *line);
    bool (*is_skipped)(const struct line *line);              // what compiled Java code never has; data
    const char *const *calls, *const *returns, *const *jumps; // jumps: prefixes of names of direct branches
};

static bool writes_back(const struct line *line)
{
    const char *o = line->operands;
    return strstr(o, "[sp], ") || (strstr(o, "[sp") && strchr(o, '!'));
}

static bool aarch64_changes_sp(const struct line *line)
{
    static const char *const others[] = {"cmp", "cmn", "tst", "ccmp", "ccmn", NULL};
    return (begins(line->operands, "sp,") && !is_one_of(line->name, others)) || writes_back(line);
}

static bool thumb_changes_sp(const struct line *line)
{
    const char *n = line->name, *o = line->operands;
    bool stores = begins(n, "st") || begins(n, "cmp") || begins(n, "cmn") || begins(n, "tst") || begins(n, "ldm");
    return (begins(o, "sp,") && !stores) || begins(o, "sp!") || begins(n, "push") || begins(n, "pop") ||
           begins(n, "vpush") || begins(n, "vpop") || writes_back(line);
}

static bool riscv64_changes_sp(const struct line *line)
{
    const char *n = line->name;
    bool reads = (n[0] == 's' && strlen(n) == 2) || n[0] == 'b' || begins(n, "fs");
    return begins(line->operands, "sp,") && !reads;
}

static bool x86_changes_sp(const struct line *line)
{
    char operands[sizeof line->operands];
    snprintf(operands, sizeof operands, "%s", line->operands);
    char *end = strchr(operands, '#');
    end = end ? end : operands + strlen(operands);
    while (end > operands && end[-1] == ' ')
        end--;
    *end = 0;
    size_t length = strlen(operands);
    bool last = length >= 4 && strcmp(operands + length - 2, "sp") == 0 && operands[length - 4] == '%';
    bool reads = begins(line->name, "cmp") || begins(line->name, "test") || begins(line->name, "bt");
    return (last && !reads) || begins(line->name, "push") || (begins(line->name, "pop") && line->name[3] != 'c') ||
           begins(line->name, "leave") || (begins(line->name, "xchg") && strstr(operands, "sp") && operands[0] == '%');
}

// Not known on purpose; `call` of the next instruction is a push; `rep`, `bnd`, `notrack` stand before the name.
static bool x86_skips(const struct line *line)
{
    static const char *const prefixes[] = {"rep",    "repz",  "repnz", "bnd",      "notrack",  "lock", "data16",
                                           "addr32", "(bad)", "ret",   "xacquire", "xrelease", "cs",   NULL};
    bool next = line->has_target && line->target == line->address + line->size;
    return is_one_of(line->name, prefixes) || next || (begins(line->name, "ret") && line->operands[0]);
}

static bool aarch64_skips(const struct line *line)
{
    return begins(line->name, ".") || begins(line->name, "udf") || (begins(line->name, "ret") && line->operands[0]);
}

// Also code of the other instruction set, and what `it` makes conditional.
static bool thumb_skips(const struct line *line)
{
    static const char *const unusual[] = {"tbb", "tbh", "ldc2", "stc2", "bxj", "bxns", "blxns", NULL};
    const char *n = line->name;
    return is_one_of(n, unusual) || begins(n, "it") || begins(n, "@") || begins(n, ".") ||
           (begins(n, "bx") && strlen(n) > 3) || begins(line->operands, "{}") || strstr(line->operands, "UNDEFINED");
}

static bool riscv64_skips(const struct line *line)
{
    bool other_link = begins(line->name, "jal") && (begins(line->operands, "t1,") || begins(line->operands, "t0,"));
    return begins(line->name, "unimp") || begins(line->name, ".") || other_link;
}

static const char *const x86_calls[] = {"call", NULL}, *const aarch64_calls[] = {"bl", "blr", NULL},
                         *const thumb_calls[] = {"bl", "blx", NULL}, *const riscv64_calls[] = {"jal", "jalr", NULL};
static const char *const rets[] = {"ret", NULL}, *const none[] = {NULL};
static const char *const x86_jumps[] = {"j", NULL}, *const aarch64_jumps[] = {"b.", "cb", "tb", NULL},
                         *const thumb_jumps[] = {"beq", "bne", "bcs", "bcc", "bhi", "bls", "blt",
                                                 "bgt", "ble", "bge", "cb",  "b.",  NULL},
                         *const riscv64_jumps[] = {"b", NULL};

static const struct machine machines[] = {
    {QUT_ARCH_X86_64, "objdump -dw", "/lib/x86_64-linux-gnu/libc.so.6", x86_changes_sp, x86_skips, x86_calls, rets,
     x86_jumps},
    {QUT_ARCH_X86, "objdump -dw", "/usr/i686-linux-gnu/lib/libc.so.6", x86_changes_sp, x86_skips, x86_calls, rets,
     x86_jumps},
    {QUT_ARCH_AARCH64, "aarch64-linux-gnu-objdump -d", "/usr/aarch64-linux-gnu/lib/libc.so.6", aarch64_changes_sp,
     aarch64_skips, aarch64_calls, rets, aarch64_jumps},
    {QUT_ARCH_ARM, "arm-linux-gnueabihf-objdump -d", "/usr/arm-linux-gnueabihf/lib/libc.so.6", thumb_changes_sp,
     thumb_skips, thumb_calls, none, thumb_jumps},
    {QUT_ARCH_RISCV64, "riscv64-linux-gnu-objdump -d", "/usr/riscv64-linux-gnu/lib/libc.so.6", riscv64_changes_sp,
     riscv64_skips, riscv64_calls, rets, riscv64_jumps},
};

static bool is_jump(const struct machine *m, const struct line *line)
{
    if (!line->has_target || is_one_of(line->name, m->calls) || strchr(line->operands, '*'))
        return false;
    for (const char *const *prefix = m->jumps; *prefix; prefix++)
        if (begins(line->name, *prefix))
            return true;
    return false;
}

static void check_line(const struct machine *m, const struct line *line, const char *text, uint64_t *unknown)
{
    struct art_instruction in;
    cfi_oat_read(cfi_oat_arch(arch_by_id(m->arch))->read, (struct base_bytes){line->bytes, line->size}, &in);
    if (in.size_bytes == 0) {
        ++*unknown;
        return;
    }
    bool changes = in.sp_change_bytes != 0 || in.effect == ART_SP_LOST;
    ck_assert_msg(in.size_bytes == line->size, "%u bytes: %s", in.size_bytes, text);
    ck_assert_msg(changes == m->changes_sp(line), "sp: %s", text);
    ck_assert_msg((in.effect == ART_CALL) == is_one_of(line->name, m->calls), "call: %s", text);
    if (m->returns[0])
        ck_assert_msg((in.effect == ART_RETURN) == is_one_of(line->name, m->returns), "return: %s", text);
    if (is_jump(m, line))
        ck_assert_msg(in.branches && line->address + (uint64_t)(int64_t)in.branch_bytes == line->target, "to: %s",
                      text);
}

START_TEST(as_the_disassembler_says)
{
    const struct machine *m = &machines[_i];
    char command[200], text[512];
    uint64_t instructions = 0, unknown = 0;
    snprintf(command, sizeof command, "command -v %.*s >/dev/null && %s %s 2>/dev/null",
             (int)strcspn(m->disassemble, " "), m->disassemble, m->disassemble, m->library);
    FILE *output = access(m->library, R_OK) == 0 ? popen(command, "re") : NULL;
    while (output && instructions < ENOUGH && fgets(text, sizeof text, output)) {
        struct line line;
        // A line of Arm code has one group of eight digits.
        if (!parse(text, &line) || m->is_skipped(&line) ||
            (m->arch == QUT_ARCH_ARM && strcspn(strchr(text, '\t') + 1, " ") == 8))
            continue;
        instructions++;
        check_line(m, &line, text, &unknown);
    }
    if (output)
        pclose(output);
    if (instructions == 0)
        printf("SKIP: no %s, or no %s\n", m->disassemble, m->library);
    else
        ck_assert_uint_eq(instructions, ENOUGH);
    ck_assert_msg(unknown * 50 < instructions || instructions == 0, "%" PRIu64 " of %" PRIu64 " are not known", unknown,
                  instructions);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_readers");
    TCase *tcase = tcase_create("oat_readers");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, as_the_disassembler_says, 0, (int)(sizeof machines / sizeof *machines));
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
