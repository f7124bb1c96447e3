// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/guest.h"

#include <dlfcn.h>
#include <malloc.h>
#include <string.h>

#include "tests/support/qemu_plugin.h"

// Where glib is at hand it is qemu's own.
struct byte_array {
    uint8_t *data;
    unsigned length;
};

typedef int (*read_register_fn)(void *cpu, struct byte_array *bytes, int gdb_register);
typedef int (*write_register_fn)(void *cpu, uint8_t *bytes, int gdb_register);

static struct {
    read_register_fn read;
    write_register_fn write;
    struct byte_array *(*array_new)(void);
    void *(*array_free)(struct byte_array *array, int free_data);
} gdb;

enum { GDB_ARM_CPSR = 25, CPSR_THUMB_BIT = 5 };

const struct arch *guest_arch(const char *target_name)
{
    static const struct {
        const char *name;
        const struct arch *arch;
    } known[] = {
        {"x86_64", &arch_x86_64},
        {"aarch64", &arch_aarch64},
        {"arm", &arch_arm},
        {"i386", &arch_x86},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, target_name) == 0)
            return known[i].arch;
    return NULL;
}

// -1: not a register that an instruction can hold a value in.
static int gdb_number(const struct arch *arch, unsigned dwarf_reg)
{
    static const uint8_t x86_64[16] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    switch (arch->id) {
    case QUT_ARCH_X86_64: return dwarf_reg < 16 ? x86_64[dwarf_reg] : -1;
    case QUT_ARCH_X86: return dwarf_reg < 8 ? (int)dwarf_reg : -1;
    case QUT_ARCH_ARM: return dwarf_reg < 15 ? (int)dwarf_reg : -1;
    case QUT_ARCH_AARCH64: return dwarf_reg < 32 ? (int)dwarf_reg : -1;
    default: return -1;
    }
}

static bool find_gdb_functions(const struct arch *arch)
{
    const char *read = arch->id == QUT_ARCH_AARCH64 ? "aarch64_cpu_gdb_read_register"
                       : arch->id == QUT_ARCH_ARM   ? "arm_cpu_gdb_read_register"
                                                    : "x86_cpu_gdb_read_register";
    const char *write = arch->id == QUT_ARCH_AARCH64 ? "aarch64_cpu_gdb_write_register"
                        : arch->id == QUT_ARCH_ARM   ? "arm_cpu_gdb_write_register"
                                                     : "x86_cpu_gdb_write_register";
    *(void **)&gdb.read = dlsym(RTLD_DEFAULT, read);
    *(void **)&gdb.write = dlsym(RTLD_DEFAULT, write);
    *(void **)&gdb.array_new = dlsym(RTLD_DEFAULT, "g_byte_array_new");
    *(void **)&gdb.array_free = dlsym(RTLD_DEFAULT, "g_byte_array_free");
    return gdb.read && gdb.write && gdb.array_new && gdb.array_free;
}

static uint64_t read_register(void *cpu, int gdb_register)
{
    uint64_t value = 0;
    struct byte_array *bytes = gdb.array_new();
    int size = gdb.read(cpu, bytes, gdb_register);
    memcpy(&value, bytes->data, size > 0 && size <= 8 ? (size_t)size : 0);
    gdb.array_free(bytes, 1);
    return value;
}

static void write_register(void *cpu, int gdb_register, uint64_t value)
{
    gdb.write(cpu, (uint8_t *)&value, gdb_register);
}

// The only place in the CPU's object that changes with the register.
static const uint8_t *find_register(void *cpu, int gdb_register, unsigned word_bytes)
{
    const uint64_t mark = 0x51a7c0deb5e9f317;
    const uint8_t *object = cpu, *found = NULL;
    size_t size = malloc_usable_size(cpu);
    uint64_t before = read_register(cpu, gdb_register);
    write_register(cpu, gdb_register, mark);
    unsigned hits = 0;
    for (size_t at = 0; at + word_bytes <= size; at += word_bytes)
        if (memcmp(object + at, &mark, word_bytes) == 0) {
            found = object + at;
            hits++;
        }
    write_register(cpu, gdb_register, before);
    return hits == 1 ? found : NULL;
}

const char *guest_open(struct guest *guest, const struct arch *arch)
{
    *guest = (struct guest){.arch = arch, .word_mask = arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX};
    guest->cpu = qemu_get_cpu(0);
    if (!guest->cpu || !find_gdb_functions(arch))
        return "this qemu does not export what the oracle needs";
    for (unsigned reg = 0; reg < ARCH_REGISTERS_MAX; reg++) {
        int number = gdb_number(arch, reg);
        if (number < 0)
            continue;
        guest->reg_at[reg] = find_register(guest->cpu, number, arch->word_bytes);
        if (!guest->reg_at[reg])
            return "a register cannot be found in the emulator";
    }
    return NULL;
}

void guest_registers(const struct guest *guest, uint64_t pc, struct arch_frame_regs *regs)
{
    regs->pc = pc;
    regs->valid = 0;
    for (unsigned reg = 0; reg < guest->arch->register_count; reg++) {
        if (!guest->reg_at[reg])
            continue;
        regs->reg[reg] = 0;
        memcpy(&regs->reg[reg], guest->reg_at[reg], guest->arch->word_bytes);
        regs->valid |= (uint64_t)1 << reg;
    }
}

bool guest_is_thumb(const struct guest *guest)
{
    return guest->arch->has_thumb && (read_register(guest->cpu, GDB_ARM_CPSR) >> CPSR_THUMB_BIT & 1);
}

size_t guest_read_bytes(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct guest *guest = context;
    address &= guest->word_mask;
    uint64_t last = address + size - 1;
    if (size == 0 || last < address || last > guest->word_mask || !(page_get_flags(address) & QEMU_PAGE_READ) ||
        !(page_get_flags(last) & QEMU_PAGE_READ))
        return 0;
    memcpy(bytes, (const void *)(guest_base + (uintptr_t)address), size);
    return size;
}

bool guest_read_word(void *context, uint64_t address, uint64_t *value)
{
    const struct guest *guest = context;
    *value = 0;
    return guest_read_bytes(context, address, value, guest->arch->word_bytes) != 0;
}

// qemu-user gives aarch64 programs 48 address bits, and no tags that reach a pc.
uint64_t guest_strip(void *context, uint64_t pc)
{
    const struct guest *guest = context;
    return guest->arch->id == QUT_ARCH_AARCH64 ? pc & (((uint64_t)1 << 48) - 1) : pc;
}
