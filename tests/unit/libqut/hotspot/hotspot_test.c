// SPDX-License-Identifier: Apache-2.0
// HotSpot's tables and code, made up: which rule each instruction has, and what is refused.
#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"
#include "tests/unit/libqut/hotspot/fake_hotspot.h"

enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R13 = 13 };

static struct fake_hotspot fake;
static struct hotspot_machine machine;

// A method as the compilers make them, and where each instruction stands.
static const uint8_t method[] = {
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, // 0: mov %eax, -0x14000(%rsp)
    0x55,                                     // 7: push %rbp
    0x48, 0x83, 0xec, 0x30,                   // 8: sub $0x30, %rsp
    0x90,                                     // 12: the frame stands
    0xe8, 0,    0,    0,    0,                // 13: call
    0x90,                                     // 18
    0x48, 0x83, 0xc4, 0x30,                   // 19: add $0x30, %rsp
    0x5d,                                     // 23: pop %rbp
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0,    0,    // 24: cmp 0x340(%r15), %rsp
    0x0f, 0x87, 0,    0,    0,    0,          // 31: ja
    0xc3,                                     // 37: ret
};
enum { PUSH = 7, SUB = 8, COMPLETE = 12, BEHIND_CALL = 18, ADD = 19, POP = 23, POLL = 24, JA = 31, RET = 37 };

static const uint8_t entry[] = {
    0x48, 0x83, 0xc0, 0x58,                // 0: add $0x58, %rax
    0x58,                                  // 4: pop %rax
    0x4c, 0x8d, 0x74, 0xcc, 0xf8,          // 5: lea -8(%rsp,%rcx,8), %r14
    0x50,                                  // 10: push %rax
    0x55,                                  // 11: push %rbp
    0x48, 0x8b, 0xec,                      // 12: mov %rsp, %rbp
    0x41, 0x55,                            // 15: push %r13
    0x90,                                  // 17: the frame stands
    0xc9,                                  // 18: leave
    0x41, 0xc6, 0x87, 0xbe, 0x03, 0, 0, 0, // 19: movb $0, 0x3be(%r15)
    0x5e,                                  // 27: pop %rsi
    0x48, 0x8b, 0xe3,                      // 28: mov %rbx, %rsp
    0xff, 0xe6,                            // 31: jmp *%rsi
};

static uint64_t code, interpreter;
enum { BLOCK = FAKE_CODE + 0x2000, STUBS = FAKE_CODE + 0x4000, FRAME_WORDS = 8 };

static enum hotspot_fault start(enum fake_release release, const char *without)
{
    fake_begin(&fake, release, without);
    code = fake_blob(&fake, BLOCK, 0x1000, FRAME_WORDS, COMPLETE, method, sizeof method);
    fake_put_word(&fake, fake.call_stub_at,
                  fake_blob(&fake, STUBS, 0xa000, 0, -1, method, sizeof method) + BEHIND_CALL);
    interpreter = fake_interpreter(&fake, FAKE_CODE + 0x1000, entry, sizeof entry);
    hotspot_machine_free(&machine);
    return hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine);
}

static struct arch_interpreted interpreted; // of the last rule

static struct qut_rule rule_at(uint64_t pc, enum arch_pc_kind kind)
{
    struct qut_rule rule = {0};
    if (!hotspot_frame_rule(&machine, &fake.memory, pc, kind, &rule, &interpreted))
        rule.kind = QUT_RULE_HOLE;
    return rule;
}

static struct qut_reg_rule fp_of(const struct qut_rule *rule)
{
    return rule->tracked[arch_slot(&arch_x86_64, RBP)];
}

// cfa = reg + offset; ra = *(cfa - 8); rbp = *(cfa + fp_offset), or what it is where that is 0.
static void check_rule(uint64_t offset, uint64_t pc, enum arch_pc_kind kind, uint8_t reg, int cfa_offset, int fp_offset)
{
    const struct qut_rule rule = rule_at(pc, kind);
    const struct qut_reg_rule fp = fp_of(&rule);
    CHECK(rule.kind == QUT_RULE_FRAME, "at %d: kind %d", (int)offset, rule.kind);
    CHECK(rule.cfa.how == QUT_CFA_REG && rule.cfa.reg == reg && rule.cfa.offset_bytes == cfa_offset,
          "at %d: cfa = r%d + %d", (int)offset, rule.cfa.reg, rule.cfa.offset_bytes);
    CHECK(rule.ra.how == QUT_REG_AT_CFA && rule.ra.offset_bytes == -8, "at %d: ra %d %d", (int)offset, rule.ra.how,
          rule.ra.offset_bytes);
    CHECK(fp.how == (fp_offset ? QUT_REG_AT_CFA : QUT_REG_SAME) && fp.offset_bytes == fp_offset, "at %d: rbp %d %d",
          (int)offset, fp.how, fp.offset_bytes);
    CHECK(rule.tracked[arch_slot(&arch_x86_64, RBX)].how == QUT_REG_UNDEFINED, "at %d: rbx", (int)offset);
}

static void check_method(void)
{
    const struct {
        int offset, cfa_offset, fp_offset;
    } forms[] = {{0, 8, 0},      {PUSH, 8, 0},   {SUB, 16, -16}, {COMPLETE, 64, -16}, {BEHIND_CALL, 64, -16},
                 {ADD, 64, -16}, {POP, 16, -16}, {POLL, 8, 0},   {JA, 8, 0},          {RET, 8, 0}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        check_rule((uint64_t)forms[i].offset, code + (uint64_t)forms[i].offset, ARCH_PC_EXACT, RSP, forms[i].cfa_offset,
                   forms[i].fp_offset);
    check_rule(BEHIND_CALL, code + BEHIND_CALL, ARCH_PC_RETURN, RSP, 64, -16);
    bool is_sure_in_body = !(rule_at(code + COMPLETE, ARCH_PC_EXACT).flags & QUT_RULE_BODY_ONLY);
    CHECK(!is_sure_in_body, "a body's rule has to be confirmed");
    CHECK(!(rule_at(code + POP, ARCH_PC_EXACT).flags & QUT_RULE_BODY_ONLY), "the way out is known");
    CHECK(!(rule_at(code + BEHIND_CALL, ARCH_PC_RETURN).flags & QUT_RULE_BODY_ONLY), "so is a call");
}

TEST(method_of_17)
{
    enum hotspot_fault fault = start(FAKE_17, NULL);
    CHECK(fault == HOTSPOT_FINE, "%s", hotspot_fault_text(fault));
    check_method();
}

TEST(method_of_25)
{
    enum hotspot_fault fault = start(FAKE_25, NULL);
    CHECK(fault == HOTSPOT_FINE, "%s", hotspot_fault_text(fault));
    check_method();
}

// sub without push: rbp is stored once the frame stands.
TEST(frame_pointer_that_is_stored)
{
    static const uint8_t stores[] = {0x48, 0x83, 0xec, 0x38, 0x48, 0x89, 0x6c, 0x24, 0x30, 0x90};
    start(FAKE_17, NULL);
    uint64_t begin = fake_blob(&fake, FAKE_CODE + 0x3000, 0x800, FRAME_WORDS, 9, stores, sizeof stores);
    check_rule(0, begin, ARCH_PC_EXACT, RSP, 8, 0);
    check_rule(4, begin + 4, ARCH_PC_EXACT, RSP, 64, 0);
    check_rule(9, begin + 9, ARCH_PC_EXACT, RSP, 64, -16);
}

TEST(interpreted_frame)
{
    start(FAKE_17, NULL);
    check_rule(17, interpreter + 17, ARCH_PC_EXACT, RBP, 16, -16);
    check_rule(17, interpreter + 2, ARCH_PC_RETURN, RBP, 16, -16); // wherever it is returned to, a frame stands
    const struct qut_rule body = rule_at(interpreter + 17, ARCH_PC_EXACT);
    CHECK(interpreted.method_cfa_bytes == -40, "method at %d", interpreted.method_cfa_bytes);
    CHECK(interpreted.bytecode_cfa_bytes == -80 && interpreted.bytecode_reg == R13, "bytecode at %d",
          interpreted.bytecode_cfa_bytes);
    CHECK(body.sp.how == QUT_REG_AT_CFA && body.sp.offset_bytes == -24, "sp %d %d", body.sp.how, body.sp.offset_bytes);
    const struct {
        int offset;
        uint8_t shape;
    } forms[] = {{0, 't'},  {4, 't'},  {5, 'a'},  {10, 'a'}, {11, 't'},
                 {12, 'f'}, {15, 'F'}, {19, 'T'}, {27, 'T'}, {28, 'S'}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const struct qut_rule rule = rule_at(interpreter + (uint64_t)forms[i].offset, ARCH_PC_EXACT);
        const uint8_t shape = forms[i].shape;
        bool is_in_register = shape == 'a' || shape == 'S', is_down = shape == 'T' || shape == 'S';
        CHECK(rule.kind == QUT_RULE_FRAME, "at %d", forms[i].offset);
        CHECK(rule.ra.how == (is_in_register ? QUT_REG_IN_REG : QUT_REG_AT_CFA), "at %d: ra %d", forms[i].offset,
              rule.ra.how);
        CHECK(!is_in_register || rule.ra.reg == (shape == 'a' ? RAX : 4), "at %d: ra in r%d", forms[i].offset,
              rule.ra.reg);
        CHECK(rule.sp.how == QUT_REG_IN_REG && rule.sp.reg == (is_down ? RBX : R13), "at %d: sp r%d", forms[i].offset,
              rule.sp.reg);
        CHECK(rule.cfa.reg == (shape == 'F' ? RBP : RSP), "at %d: cfa by r%d", forms[i].offset, rule.cfa.reg);
        CHECK(rule.cfa.offset_bytes == (is_in_register                 ? 0
                                        : shape == 't' || shape == 'T' ? 8
                                                                       : 16),
              "at %d: cfa %d", forms[i].offset, rule.cfa.offset_bytes);
    }
}

TEST(call_stub_gives_registers_back)
{
    start(FAKE_17, NULL);
    const struct qut_rule rule = rule_at(machine.call_stub_return, ARCH_PC_RETURN);
    const struct qut_reg_rule rbx = rule.tracked[arch_slot(&arch_x86_64, RBX)];
    CHECK(rule.kind == QUT_RULE_FRAME && rule.cfa.reg == RBP && rule.cfa.offset_bytes == 16, "cfa %d", rule.cfa.reg);
    CHECK(rbx.how == QUT_REG_AT_CFA && rbx.offset_bytes == -72, "rbx %d %d", rbx.how, rbx.offset_bytes);
    CHECK(rule_at(machine.call_stub_return, ARCH_PC_EXACT).kind == QUT_RULE_HOLE, "interrupted there");
}

TEST(what_lies_in_no_blob_has_no_rule)
{
    start(FAKE_17, NULL);
    const uint64_t pcs[] = {FAKE_CODE,
                            FAKE_CODE - 1,
                            BLOCK + 8,
                            FAKE_CODE + FAKE_CODE_BYTES / 2,
                            FAKE_CODE + FAKE_CODE_BYTES,
                            STUBS + FAKE_BLOB_HEAD_BYTES + 0x9000,
                            0,
                            UINT64_MAX};
    for (size_t i = 0; i < sizeof pcs / sizeof pcs[0]; i++)
        CHECK(rule_at(pcs[i], ARCH_PC_EXACT).kind == QUT_RULE_HOLE, "%zu", i);
    fake_put(&fake, BLOCK + 8, "", 1); // the block is not in use any more
    CHECK(rule_at(code, ARCH_PC_EXACT).kind == QUT_RULE_HOLE, "freed");
}

TEST(machine_that_is_starting)
{
    start(FAKE_17, NULL);
    fake_put_int(&fake, fake.queue + 28, 8); // codelets are still being made
    hotspot_machine_free(&machine);
    CHECK(hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine) == HOTSPOT_STARTING, "codelets");
    fake_put_word(&fake, fake.call_stub_at, 0);
    CHECK(hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine) == HOTSPOT_STARTING, "stub");
}

TEST(missing_fields_are_refused)
{
    static const char *const fields[] = {
        "_heaps",       "_segmap", "_low", "_used", "_frame_size", "_code_begin", "_frame_complete_offset",
        "_stub_buffer", "_size",   "_len"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        CHECK(start(FAKE_17, fields[i]) == HOTSPOT_UNKNOWN_LAYOUT, "%s", fields[i]);
    CHECK(machine.places == NULL, "nothing is kept");
}

TEST(values_that_cannot_be_are_refused)
{
    start(FAKE_17, NULL);
    hotspot_machine_free(&machine);
    fake_put_int(&fake, fake.heap_object + 256, 40); // log2 of a segment
    CHECK(hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine) == HOTSPOT_UNKNOWN_LAYOUT, "shift");
    start(FAKE_17, NULL);
    hotspot_machine_free(&machine);
    fake_put_int(&fake, FAKE_CODE + 0x1000 + 8, 0); // a codelet's size
    CHECK(hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine) == HOTSPOT_UNKNOWN_LAYOUT, "codelet");
    CHECK(hotspot_machine_read(&fake.memory, 8, fake.types, &machine) == HOTSPOT_UNREADABLE, "no memory there");
    struct elf_art_memory other = fake.memory;
    other.arch = &arch_riscv64;
    CHECK(hotspot_machine_read(&other, fake.structs, fake.types, &machine) == HOTSPOT_OTHER_ARCH, "architecture");
}

TEST(names)
{
    struct hotspot_code_name name;
    start(FAKE_17, NULL);
    uint64_t hash_code = fake_method(&fake, "java/lang/String", "hashCode");
    fake_name_blob(&fake, BLOCK, "nmethod", hash_code);
    CHECK(hotspot_name_code(&machine, &fake.memory, code + 5, &name) &&
              strcmp(name.text, "java.lang.String.hashCode") == 0,
          "\"%s\"", name.text);
    CHECK(name.start == code && name.end == BLOCK + 0x1000, "%d bytes", (int)(name.end - name.start));
    fake_name_blob(&fake, STUBS, "StubRoutines (1)", 0);
    CHECK(hotspot_name_code(&machine, &fake.memory, machine.call_stub_return, &name) &&
              strcmp(name.text, "StubRoutines (1)") == 0,
          "\"%s\"", name.text);
    CHECK(hotspot_name_code(&machine, &fake.memory, hash_code, &name) &&
              strcmp(name.text, "java.lang.String.hashCode") == 0 && name.start == hash_code,
          "by its description: \"%s\"", name.text);
    CHECK(!hotspot_name_code(&machine, &fake.memory, hash_code + 8, &name), "beside it");
    CHECK(!hotspot_name_code(&machine, &fake.memory, FAKE_CODE + FAKE_CODE_BYTES - 1, &name), "no code");
}

TEST(names_of_what_was_unloaded)
{
    struct hotspot_code_name name;
    start(FAKE_25, NULL);
    uint64_t method_at = fake_method(&fake, "java/lang/String", "hashCode");
    fake_name_blob(&fake, BLOCK, "nmethod", method_at);
    CHECK(hotspot_name_code(&machine, &fake.memory, code, &name), "it is there");
    fake_put_word(&fake, fake.pool + 24, fake.pool); // its class is none any more
    CHECK(!hotspot_name_code(&machine, &fake.memory, code, &name), "\"%s\"", name.text);
    fake_name_blob(&fake, BLOCK, "nmethod", 0);
    CHECK(!hotspot_name_code(&machine, &fake.memory, code, &name), "\"%s\"", name.text);
    fake_name_blob(&fake, BLOCK, "nmethod", fake_method(&fake, "java/lang/String", "hash\nCode"));
    CHECK(!hotspot_name_code(&machine, &fake.memory, code, &name), "\"%s\"", name.text);
}

TEST(machine_that_states_no_names_has_rules)
{
    struct hotspot_code_name name;
    CHECK(start(FAKE_17, "_constMethod") == HOTSPOT_FINE, "all that rules want is there");
    CHECK(rule_at(code, ARCH_PC_EXACT).kind == QUT_RULE_FRAME, "a rule");
    CHECK(!hotspot_name_code(&machine, &fake.memory, code, &name), "no name");
}

// Whatever stands there: an answer, within memory. A byte of the tables or of a blob's head at a time.
TEST(damage)
{
    static struct fake_hotspot whole;
    start(FAKE_17, NULL);
    uint64_t method_at = fake_method(&fake, "java/lang/String", "hashCode");
    fake_name_blob(&fake, BLOCK, "nmethod", method_at);
    whole = fake;
    unsigned fine = 0;
    srand(7);
    for (unsigned i = 0; i < 20000; i++) {
        fake = whole;
        fake.memory.context = &fake;
        unsigned used = (unsigned)(whole.next - FAKE_BASE);
        unsigned at = (unsigned)rand() % (used + 0x1000);
        at = at < used ? at : (unsigned)(BLOCK - FAKE_BASE) + (at - used) % 256;
        fake.bytes[at] = (uint8_t)rand();
        hotspot_machine_free(&machine);
        if (hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine) != HOTSPOT_FINE)
            continue;
        fine++;
        for (unsigned offset = 0; offset < sizeof method; offset++)
            rule_at(code + offset, offset % 2 ? ARCH_PC_EXACT : ARCH_PC_RETURN);
        struct hotspot_code_name name;
        hotspot_name_code(&machine, &fake.memory, code, &name);
        hotspot_name_code(&machine, &fake.memory, method_at, &name);
    }
    CHECK(fine > 10000, "%u", fine);
}

int main(void)
{
    RUN(method_of_17);
    RUN(method_of_25);
    RUN(frame_pointer_that_is_stored);
    RUN(interpreted_frame);
    RUN(call_stub_gives_registers_back);
    RUN(what_lies_in_no_blob_has_no_rule);
    RUN(machine_that_is_starting);
    RUN(missing_fields_are_refused);
    RUN(values_that_cannot_be_are_refused);
    RUN(names);
    RUN(names_of_what_was_unloaded);
    RUN(machine_that_states_no_names_has_rules);
    RUN(damage);
    hotspot_machine_free(&machine);
    return tap_finish();
}
