// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/corrupt/generic_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    enum qut_arch_id arch;
    const char *folder;
} folders[] = {
    {QUT_ARCH_X86_64, "/lib/x86_64-linux-gnu"},       {QUT_ARCH_AARCH64, "/usr/aarch64-linux-gnu/lib"},
    {QUT_ARCH_ARM, "/usr/arm-linux-gnueabihf/lib"},   {QUT_ARCH_X86, "/usr/i686-linux-gnu/lib"},
    {QUT_ARCH_RISCV64, "/usr/riscv64-linux-gnu/lib"},
};

static const char *const libraries[] = {"libc.so.6", "libgcc_s.so.1", "libm.so.6"};

uint64_t world_random(struct world *world)
{
    world->random_state ^= world->random_state << 13;
    world->random_state ^= world->random_state >> 7;
    world->random_state ^= world->random_state << 17;
    return world->random_state * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t world_below(struct world *world, uint64_t below)
{
    return (world_random(world) >> 20) % below;
}

static uint64_t word_mask(const struct world *world)
{
    return world->arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

bool world_readable(const struct world *world, uint64_t address)
{
    uint64_t offset = address - world->stack_address;
    return world->all_readable || (offset <= (uint64_t)(WORLD_STACK_BYTES - world->arch->word_bytes));
}

// What lies at an address that is not the stack's: the same every time.
static uint64_t noise(uint64_t address)
{
    uint64_t x = address * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 29;
}

static bool read_stack(void *context, uint64_t address, uint64_t *value)
{
    struct world *world = context;
    world->reads++;
    uint64_t offset = address - world->stack_address;
    if (offset <= (uint64_t)(WORLD_STACK_BYTES - world->arch->word_bytes)) {
        *value = 0;
        memcpy(value, world->stack + offset, world->arch->word_bytes);
        return true;
    }
    if (!world->all_readable)
        return false;
    *value = noise(address) & word_mask(world);
    return true;
}

static const struct world_module *module_at(const struct world *world, uint64_t pc)
{
    for (unsigned i = 0; i < world->module_count; i++) {
        const struct world_module *module = &world->modules[i];
        for (unsigned range = 0; range < module->image->exec_count; range++)
            if (pc - module->load_bias >= module->image->exec[range].start &&
                pc - module->load_bias < module->image->exec[range].end)
                return module;
    }
    return NULL;
}

static size_t read_code(void *context, uint64_t pc, void *bytes, size_t size)
{
    struct world *world = context;
    uint64_t offset = pc - world->trampolines_address;
    if (offset < 16u * world->arch->trampoline_count) {
        const struct arch_trampoline *trampoline = &world->arch->trampolines[offset / 16];
        size_t there = sizeof trampoline->code - offset % 16;
        size_t count = size < there ? size : there;
        memcpy(bytes, trampoline->code + offset % 16, count);
        return count;
    }
    const struct world_module *module = module_at(world, pc);
    if (!module)
        return 0;
    struct base_bytes code = input_image_at(module->image, pc - module->load_bias);
    size_t count = size < code.size ? size : code.size;
    if (count)
        memcpy(bytes, code.data, count);
    return count;
}

static void find(void *context, uint64_t pc, struct runtime_code *code)
{
    struct world *world = context;
    *code = (struct runtime_code){0};
    const struct world_module *module = module_at(world, pc);
    if (!module)
        return;
    code->state = module->state;
    code->load_bias = module->load_bias;
    if (module->state == RUNTIME_CODE_READY)
        code->table = &module->table;
}

// What walkers of real machines do with a signed address; without signatures, nothing.
static uint64_t strip(void *context, uint64_t pc)
{
    struct world *world = context;
    return world->arch->has_signed_ra ? pc & ((UINT64_C(1) << 48) - 1) : pc;
}

const struct runtime_walk_ops world_ops = {.read = read_stack, .read_code = read_code, .find = find, .strip = strip};

static bool add_module(struct world *world, const char *path, struct base_error *error)
{
    struct world_module *module = &world->modules[world->module_count];
    size_t size;
    if (input_image_open(path, path, 0, 0, NULL, &module->image, error) != 0)
        return false;
    uint8_t *compiled;
    if (qutc_compile(module->image, NULL, &compiled, &size, NULL, error) != 0) {
        input_image_close(module->image);
        return false;
    }
    // Exactly as large as the table: the address sanitizer then sees every byte read beside it.
    module->bytes = aligned_alloc(64, (size + 63) & ~(size_t)63);
    memcpy(module->bytes, compiled, size);
    free(compiled);
    enum qut_table_fault fault = runtime_table_attach(&module->table, module->bytes, size, NULL);
    if (fault != QUT_TABLE_OK) {
        free(module->bytes);
        input_image_close(module->image);
        base_fail(error, BASE_ERR_TABLE, "", 0, "%s", qut_table_fault_name(fault));
        return false;
    }
    module->state = RUNTIME_CODE_READY;
    uint64_t base = world->arch->word_bytes == 8 ? UINT64_C(0x7f0000000000) : 0x40000000;
    module->load_bias = base + world->module_count * UINT64_C(0x1000000);
    world->module_count++;
    return true;
}

bool world_open(struct world *world, const struct arch *arch, struct base_error *error)
{
    memset(world, 0, sizeof *world);
    world->arch = arch;
    world->trampolines_address = arch->word_bytes == 8 ? UINT64_C(0x7fff00001000) : 0xb0001000;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        for (size_t k = 0; folders[i].arch == arch->id && k < sizeof libraries / sizeof *libraries; k++) {
            char path[256];
            snprintf(path, sizeof path, "%s/%s", folders[i].folder, libraries[k]);
            if (access(path, R_OK) != 0 || add_module(world, path, error))
                continue;
            if (error->reason != BASE_ERR_NO_UNWIND)
                return false;
            *error = (struct base_error){0}; // arm's libm, for one, describes none of its code
        }
    }
    return world->module_count > 0;
}

void world_close(struct world *world)
{
    for (unsigned i = 0; i < world->module_count; i++) {
        input_image_close(world->modules[i].image);
        free(world->modules[i].bytes);
    }
}

uint64_t world_random_pc(struct world *world)
{
    if (world->arch->trampoline_count && world_below(world, 12) == 0)
        return world->trampolines_address + world_below(world, world->arch->trampoline_count) * 16;
    const struct world_module *module = &world->modules[world_below(world, world->module_count)];
    const struct input_range *range = &module->image->exec[world_below(world, module->image->exec_count)];
    uint64_t pc = range->start + world_below(world, range->end - range->start);
    // Now and then the edges of the text, and far more often the edges of a row.
    switch (world_below(world, 8)) {
    case 0: pc = range->start; break;
    case 1: pc = range->end; break;
    case 2:
    case 3: pc = runtime_table_row_start(&module->table, pc); break;
    default: break;
    }
    return module->load_bias + pc;
}

static uint64_t random_word(struct world *world)
{
    switch (world_below(world, 10)) {
    case 0: return world_random(world);
    case 1: return world_below(world, 256);
    case 2: return 0 - world_below(world, 256);
    case 3: return 0;
    case 4:
    case 5:
    case 6: return world->stack_address + world_below(world, WORLD_STACK_BYTES);
    default: return world_random_pc(world) + world_below(world, 5);
    }
}

static uint64_t random_stack_pointer(struct world *world)
{
    unsigned word = world->arch->word_bytes;
    switch (world_below(world, 16)) {
    case 0: return world_random(world);
    case 1: return 0;
    case 2: return world->stack_address + WORLD_STACK_BYTES - world_below(world, 16);
    case 3: return world->stack_address + world_below(world, WORLD_STACK_BYTES);
    case 4: return 0 - world_below(world, 64);
    default: return world->stack_address + world_below(world, WORLD_STACK_BYTES / word / 2) * word;
    }
}

void world_shuffle(struct world *world, uint64_t seed, struct arch_frame_regs *regs, enum arch_pc_kind *kind)
{
    world->random_state = (seed + 1) * UINT64_C(0xd1342543de82ef95) | 1;
    for (int i = 0; i < 4; i++)
        world_random(world);
    uint64_t mask = word_mask(world);
    unsigned word = world->arch->word_bytes;

    world->stack_address = world->arch->word_bytes == 8 ? UINT64_C(0x7ffc00000000) : 0xbe000000;
    if (world_below(world, 32) == 0)
        world->stack_address = (0 - (uint64_t)WORLD_STACK_BYTES) & mask; // the last bytes there are
    else if (world_below(world, 32) == 0)
        world->stack_address = 1; // unaligned, and the first
    world->all_readable = world_below(world, 16) == 0;
    for (unsigned i = 0; i < world->module_count; i++)
        world->modules[i].state = world_below(world, 12) == 0
                                      ? (enum runtime_code_state)world_below(world, RUNTIME_CODE_READY)
                                      : RUNTIME_CODE_READY;

    // Words of the stack: a mixture, or nothing but plausible return addresses.
    bool only_pcs = world_below(world, 2) == 0;
    for (unsigned offset = 0; offset + word <= WORLD_STACK_BYTES; offset += word) {
        uint64_t value = only_pcs ? world_random_pc(world) + world_below(world, 5) : random_word(world);
        memcpy(world->stack + offset, &value, word);
    }

    regs->pc = (world_below(world, 8) ? world_random_pc(world) : random_word(world)) & mask;
    regs->valid = 0;
    for (unsigned reg = 0; reg < ARCH_REGISTERS_MAX; reg++)
        regs->reg[reg] = random_word(world) & (world_below(world, 64) ? mask : UINT64_MAX);
    regs->reg[world->arch->sp_reg] = random_stack_pointer(world) & mask;
    regs->valid = (UINT64_C(1) << world->arch->register_count) - 1;
    if (world_below(world, 8) == 0)
        regs->valid &= world_random(world);
    *kind = world_below(world, 3) ? ARCH_PC_EXACT : ARCH_PC_RETURN;
}
