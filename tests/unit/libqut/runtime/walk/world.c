// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/runtime/walk/world.h"

#include <string.h>

#include "qutc/table/rule_text.h"

void world_init(struct world *world, const struct arch *arch)
{
    memset(world, 0, sizeof *world);
    world->arch = arch;
    world->state = RUNTIME_CODE_READY;
    maker_init(&world->maker, arch, 1);
    world->maker.text_size = WORLD_TEXT_BYTES;
    memset(world->code, 0x90, sizeof world->code);
}

void world_free(struct world *world)
{
    made_table_free(&world->made);
    maker_free(&world->maker);
}

void world_rule(struct world *world, uint32_t offset, const struct qut_rule *rule)
{
    maker_row(&world->maker, offset, maker_rule(&world->maker, rule));
}

void world_seal(struct world *world)
{
    world->made = maker_table(&world->maker, false);
}

struct qut_rule world_frame(const struct world *world, int cfa_words)
{
    return maker_plain_rule(&world->maker, cfa_words * world->arch->word_bytes);
}

struct qut_rule world_frame_saved(const struct world *world, int cfa_words, int ra_words)
{
    struct qut_rule rule = world_frame(world, cfa_words);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = ra_words * world->arch->word_bytes};
    return rule;
}

void world_put(struct world *world, unsigned index, uint64_t value)
{
    memcpy(world->stack + (size_t)index * world->arch->word_bytes, &value, world->arch->word_bytes);
}

void world_put_shadow(struct world *world, unsigned index, uint64_t value)
{
    memcpy(world->shadow + (size_t)index * world->arch->word_bytes, &value, world->arch->word_bytes);
}

uint64_t world_stack_address(const struct world *world, unsigned index)
{
    return WORLD_STACK + (uint64_t)index * world->arch->word_bytes;
}

void world_set(struct world *world, unsigned reg, uint64_t value)
{
    world->regs.reg[reg] = value;
    world->regs.valid |= (uint64_t)1 << reg;
}

static bool world_read(void *context, uint64_t address, uint64_t *value)
{
    struct world *world = context;
    unsigned bytes = world->arch->word_bytes;
    const uint64_t shadow = WORLD_STACK - ((uint64_t)1 << WORLD_SHADOW_LOG2); // wraps: the world is a small one
    const uint8_t *from = address >= shadow ? world->shadow : world->stack;
    uint64_t offset = address - (from == world->shadow ? shadow : WORLD_STACK);
    if (offset > WORLD_STACK_BYTES - bytes)
        return false;
    *value = 0;
    memcpy(value, from + offset, bytes);
    return true;
}

static size_t world_read_code(void *context, uint64_t pc, void *bytes, size_t size)
{
    struct world *world = context;
    if (pc < WORLD_TEXT || pc - WORLD_TEXT >= WORLD_TEXT_BYTES)
        return 0;
    size_t left = WORLD_TEXT_BYTES - (size_t)(pc - WORLD_TEXT);
    size_t count = size < left ? size : left;
    memcpy(bytes, world->code + (pc - WORLD_TEXT), count);
    return count;
}

static void world_find(void *context, uint64_t pc, struct runtime_code *code)
{
    struct world *world = context;
    *code = (struct runtime_code){0};
    if (pc < WORLD_TEXT || pc - WORLD_TEXT >= WORLD_TEXT_BYTES)
        return;
    uint64_t offset = pc - WORLD_TEXT;
    bool is_made = offset >= world->machine_start && offset < world->machine_end;
    *code = (struct runtime_code){.state = is_made ? RUNTIME_CODE_OF_MACHINE : world->state,
                                  .table = &world->made.table,
                                  .load_bias = WORLD_BIAS,
                                  .entry = world->entry,
                                  .frame_flags = world->frame_flags,
                                  .frame_pointers = world->frame_pointers,
                                  .has_entries = is_made && offset >= world->machine_entries,
                                  .machine = world};
}

static bool world_machine_rule(void *context, const void *machine, uint64_t pc, enum arch_pc_kind kind,
                               struct qut_rule *rule, struct arch_interpreted *interpreted)
{
    const struct world *world = context;
    *interpreted = world->interpreted;
    *rule = world->machine_rule;
    if (pc - WORLD_TEXT < world->machine_rules)
        return false;
    if (kind == ARCH_PC_RETURN)
        rule->flags &= (uint8_t)~QUT_RULE_BODY_ONLY;
    return machine == world && rule->kind == QUT_RULE_FRAME;
}

static uint64_t world_strip(void *context, uint64_t pc)
{
    return pc & ~((const struct world *)context)->signature_bits;
}

static uint64_t world_vector_bytes(void *context)
{
    return ((const struct world *)context)->vector_bytes;
}

// What the shadow has for the word below sp, if it has anything.
static bool world_true_return(void *context, uint64_t sp, uint64_t *pc)
{
    const struct world *world = context;
    unsigned bytes = world->arch->word_bytes;
    uint64_t offset = sp - bytes - WORLD_STACK;
    *pc = 0;
    if (offset <= WORLD_STACK_BYTES - bytes)
        memcpy(pc, world->shadow + offset, bytes);
    return *pc != 0;
}

const struct runtime_walk_ops world_ops = {.read = world_read,
                                           .read_code = world_read_code,
                                           .find = world_find,
                                           .strip = world_strip,
                                           .vector_bytes = world_vector_bytes,
                                           .machine_rule = world_machine_rule,
                                           .true_return = world_true_return};

size_t world_walk(struct world *world, enum arch_pc_kind kind, struct qut_frame *frames, size_t max,
                  struct qut_end *end)
{
    struct runtime_walk walk;
    runtime_walk_begin(world->arch, &walk, &world->regs, kind);
    size_t count = 0;
    bool more = true;
    while (more && count < max) {
        runtime_walk_frame(world->arch, &world_ops, world, &walk, &frames[count++]);
        more = runtime_walk_step(world->arch, &world_ops, world, &walk);
    }
    *end = walk.end;
    return count;
}
