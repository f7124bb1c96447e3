// SPDX-License-Identifier: Apache-2.0
// Frame programs made to keep a walk going for ever: an attacker writes them, or a compiler by mistake.
#include <stdlib.h>
#include <string.h>

#include "libqut/runtime/walk.h"
#include "qutc/qutc.h"
#include "tests/support/frame_asm.h"
#include "tests/support/tap.h"

enum { STEPS_MAX = 1000, STACK_WORDS = 64, STACK = 0x7000 };

struct crafted {
    struct qut_table table;
    uint8_t *bytes;
    uint64_t stack[STACK_WORDS];
};

static bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct crafted *crafted = context;
    if (address < STACK || address > STACK + sizeof crafted->stack - 8)
        return false;
    memcpy(value, (char *)crafted->stack + (address - STACK), 8);
    return true;
}

static size_t no_code(void *context, uint64_t pc, void *bytes, size_t size)
{
    (void)context, (void)pc, (void)bytes, (void)size;
    return 0;
}

static void find(void *context, uint64_t pc, struct runtime_code *code)
{
    struct crafted *crafted = context;
    (void)pc;
    *code = (struct runtime_code){.state = RUNTIME_CODE_READY, .table = &crafted->table};
}

static uint64_t as_it_is(void *context, uint64_t pc)
{
    (void)context;
    return pc;
}

static const struct runtime_walk_ops ops = {.read = read_stack, .read_code = no_code, .find = find, .strip = as_it_is};

// Steps until the walk ends; all registers are known at first and point at the stack, every word of which is the
// function's own address.
static uint32_t steps_under(const uint8_t *program, size_t size, struct qut_end *end)
{
    struct crafted crafted = {0};
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    struct frame_fde fde = {.cie = &cie, .size = 0x40, .program = program, .program_size = size};
    frame_add_fde(&a, &fde);
    struct build_buffer file = frame_elf(&a);
    struct base_error error = {0};
    struct input_image *image = build_open_bytes(&file, &error);
    size_t table_size;
    int made = image ? qutc_compile(image, NULL, &crafted.bytes, &table_size, NULL, &error) : -1;
    uint32_t steps = 0;
    if (CHECK(made == 0 && runtime_table_attach(&crafted.table, crafted.bytes, table_size, NULL) == QUT_TABLE_OK, "%s",
              error.detail)) {
        struct arch_frame_regs regs = {.pc = FRAME_TEXT + 0x20, .valid = 0x1ffff};
        for (int i = 0; i < STACK_WORDS; i++)
            crafted.stack[i] = FRAME_TEXT + 0x20;
        for (int reg = 0; reg < 17; reg++)
            regs.reg[reg] = STACK + 16;
        struct runtime_walk walk;
        runtime_walk_begin(&arch_x86_64, &walk, &regs, ARCH_PC_EXACT);
        while (steps < STEPS_MAX && runtime_walk_step(&arch_x86_64, &ops, &crafted, &walk))
            steps++;
        *end = walk.end;
    }
    free(crafted.bytes);
    if (image)
        input_image_close(image);
    free(file.data);
    frame_free(&a);
    return steps;
}

TEST(cfa_from_a_register_that_stays)
{
    struct qut_end end = {0};
    // def_cfa rbp, 16
    uint32_t steps = steps_under(BYTES(0x0c, 6, 16), &end);
    CHECK(steps < STEPS_MAX && end.reason == QUT_END_NO_PROGRESS, "%u steps, reason %u", steps, end.reason);
}

TEST(stack_pointer_lost)
{
    struct qut_end end = {0};
    // def_cfa rbp, 16; undefined rsp
    uint32_t steps = steps_under(BYTES(0x0c, 6, 16, 0x07, 7), &end);
    CHECK(steps < STEPS_MAX, "%u steps, reason %u", steps, end.reason);
}

TEST(stack_pointer_copied_from_another_register)
{
    struct qut_end end = {0};
    // def_cfa rbp, 16; register rsp, rbp
    uint32_t steps = steps_under(BYTES(0x0c, 6, 16, 0x09, 7, 6), &end);
    CHECK(steps < STEPS_MAX, "%u steps, reason %u", steps, end.reason);
}

TEST(stack_pointer_that_moves_inward)
{
    struct qut_end end = {0};
    // val_offset rsp, -16: sp moves inward
    uint32_t steps = steps_under(BYTES(0x14, 7, 2), &end);
    CHECK(steps < STEPS_MAX && end.reason == QUT_END_NO_PROGRESS, "%u steps, reason %u", steps, end.reason);
}

int main(void)
{
    RUN(cfa_from_a_register_that_stays);
    RUN(stack_pointer_lost);
    RUN(stack_pointer_copied_from_another_register);
    RUN(stack_pointer_that_moves_inward);
    return tap_finish();
}
