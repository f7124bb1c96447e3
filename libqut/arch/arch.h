// SPDX-License-Identifier: Apache-2.0
// What differs between architectures, as data. One folder per architecture fills one struct arch; everything
// else asks here.
#ifndef QUT_ARCH_ARCH_H
#define QUT_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_rule.h"

enum {
    ARCH_REGISTERS_MAX = 33,
    ARCH_NOT_KEPT = 0xffff,
    ARCH_TRAMPOLINE_OFFSET_MAX = 8,
    ARCH_SYSTEM_CALL_BYTES = 4, // of the instruction, at most
    ARCH_CALL_BYTES = 8,        // before a return address, that tell whether there is a call
    ARCH_EDGE_BYTES_BEFORE = 2,
    ARCH_EDGE_BYTES_AT = 4,
};

// The registers of one frame.
struct arch_frame_regs {
    uint64_t pc;
    uint64_t reg[ARCH_REGISTERS_MAX]; // by DWARF number
    uint64_t valid;                   // bit i: reg[i] is known
    uint64_t vector_bytes;            // of one vector register, where the machine says; 0: not known
};

// What unwinding knows of a caller's registers.
struct arch_caller {
    uint64_t pc, sp;
    uint64_t tracked[QUT_TRACKED_MAX]; // by slot
    uint64_t valid;                    // bit of each known one's DWARF number: sp's and the tracked ones'
};

// Where a block of saved registers keeps each: a signal context, or what ptrace and core files call the general
// registers (NT_PRSTATUS).
struct arch_register_layout {
    uint16_t size_bytes;
    uint16_t word_bytes;
    uint16_t pc_offset;
    uint16_t reg_offset[ARCH_REGISTERS_MAX]; // by DWARF number; ARCH_NOT_KEPT where it is not in the block
};

// The code that a signal handler returns to. Unwind information is often missing for it, and sometimes wrong, so it is
// known by its bytes. The interrupted registers lie at a known distance from sp.
struct arch_trampoline {
    const char *name; // "x86_64 rt_sigreturn"
    uint8_t code[16];
    uint8_t code_bytes;
    uint8_t entry_count; // instruction starts at which a thread can be; the first is 0, where the handler returns to
    struct {
        uint8_t code_offset; // at most ARCH_TRAMPOLINE_OFFSET_MAX
        // the interrupted registers lie at sp + offset
        int16_t registers_offset;
    } entries[3];
    const struct arch_register_layout *layout; // NULL: no signal frame, but code at which a stack begins
};

// What to try for the innermost frame where there is no unwind information.
enum arch_guess {
    ARCH_GUESS_STACK_TOP,     // ra = *sp, cfa = sp + word; else by frame pointer
    ARCH_GUESS_LINK_REGISTER, // ra = lr, cfa = sp
};

// An instruction that calls, by bytes at a known distance before the return address.
struct arch_call_site {
    uint8_t distance_bytes; // from byte[0] to the return address
    uint8_t mask[2], byte[2];
};

// Where a function that keeps a frame pointer has saved its caller's, counted in words from its own:
// ra = *(fp + ra_words); fp = *(fp + fp_words); cfa = fp + cfa_words.
struct arch_frame_record {
    bool is_known;
    bool cfa_is_known; // else compilers differ, and cfa is at least fp + cfa_words
    int8_t ra_words, fp_words, cfa_words;
};

// Instructions between which a function that keeps a frame pointer has none of its own: one that was interrupted there
// has its return address at sp + saved_words.
struct arch_frame_edge {
    uint8_t before_bytes, at_bytes; // how many of each are compared: before the pc, and from it on
    uint8_t before[2], at[4];
    uint8_t saved_words; // above the return address lies, if 1, the caller's frame pointer at *sp
};

// The first entry of a lazy .plt, which calls the resolver: the only one that touches the stack.
struct arch_plt_header {
    uint8_t size_bytes; // 0: not known; or the stack is as unwind information says, which linkers write there
    uint8_t push_bytes;
    int8_t ra_offset_bytes;    // from the cfa, after the push
    uint32_t push_instruction; // the first or, behind a landing pad, the second; 0: never touches the stack
};

struct arch {
    enum qut_arch_id id;
    const char *name;       // as in docs and on the command line
    uint16_t elf_machine;   // EM_*
    uint8_t word_bytes;     // 4 or 8
    uint8_t pc_shift;       // log2 of the smallest distance between two instruction starts
    uint8_t register_count; // DWARF core registers are 0 .. register_count-1
    uint8_t sp_reg;         // DWARF numbers
    uint8_t ra_reg;         // the usual return-address column
    uint8_t pc_reg;         // the pc's own number; QUT_NO_REGISTER: it has none
    bool ra_in_register;    // at a function's first instruction ra is in ra_reg (else on the stack)
    uint8_t tracked_count;
    uint8_t tracked[QUT_TRACKED_MAX];  // DWARF numbers by slot
    const char *const *register_names; // register_count names
    // The register that says how many bytes a vector register has, which frames for vectors are sized by: its DWARF
    // number, beyond the core registers, and its name. 0: there is none
    uint16_t vector_bytes_reg;
    const char *vector_bytes_name;
    enum arch_guess guess;
    struct arch_frame_record frame_record;
    const struct arch_call_site *call_sites;
    uint8_t call_site_count;
    const struct arch_frame_edge *frame_edges;
    uint8_t frame_edge_count;
    bool has_call_thunks;                               // calls of functions can be traced: formats/qut_calls_thunk.h
    bool has_thumb;                                     // bit 0 of a code address says Thumb, and is no part of it
    bool has_signed_ra;                                 // code addresses can carry a signature in their upper bits
    bool has_tagged_pointers;                           // the top byte of a pointer to data is no part of it
    bool has_exidx;                                     // unwind tables in .ARM.exidx
    bool counts_from_got_plt;                           // _GLOBAL_OFFSET_TABLE_ is .got.plt where there is one
    uint8_t int64_alignment_bytes;                      // of 64-bit members
    uint16_t jump_slot_relocation, glob_dat_relocation; // R_*: what fills the slots that .plt entries jump through
    struct arch_plt_header plt_header;
    // The instructions that enter the kernel, little-endian; the register that holds what a call returned.
    struct {
        uint8_t size_bytes, code[ARCH_SYSTEM_CALL_BYTES];
    } system_calls[2];
    uint8_t result_reg;
    uint8_t call_number_reg; // still has a call's number behind it; 0: none has, see arch_call_behind
    uint8_t clone_number;
    // Where kernels look at a call's result after a stop (others decide before it): its arguments' registers, and where
    // core_registers have its number. 0: they do not.
    uint8_t call_argument_regs[4], call_number_offset;
    enum qut_arch_id tracee_id;   // 32-bit processes that it can stop as its own; QUT_ARCH_NONE: none
    const char *telling_register; // its line in a dump of registers tells the architecture: no other has the name
    const struct arch_register_layout *core_registers; // what ptrace and core files give
    uint16_t core_thread_pointer_offset; // in them, of what thread-local variables are found by; 0: it is not there
    const struct arch_register_layout *ucontext_registers; // what a signal handler gets, from the ucontext_t's start
    const struct arch_trampoline *trampolines;
    uint8_t trampoline_count;
    // x86-64: calls into [vsyscall, + 4096) are emulated by the kernel: cfa = sp + 8, ra = *sp. 0: there is none
    uint64_t vsyscall;
    // The Linux from which a timer of processor time sends its signal on the way back to user mode, so that it
    // interrupts no call (POSIX_CPU_TIMERS_TASK_WORK, which no configuration of a kernel chooses); 0.0: not known
    struct {
        uint8_t major, minor;
    } cpu_timers_wait_from;
};

// NULL where unknown. Signal-safe, no allocation.
const struct arch *arch_by_id(enum qut_arch_id id);
const struct arch *arch_by_elf_machine(uint16_t elf_machine);

// Slot of a DWARF register in arch->tracked, or -1.
static inline int arch_slot(const struct arch *arch, uint64_t dwarf_reg)
{
    for (int i = 0; i < arch->tracked_count; i++)
        if (arch->tracked[i] == dwarf_reg)
            return i;
    return -1;
}

static inline uint64_t arch_pointer(const struct arch *arch, uint64_t pointer)
{
    return arch->has_tagged_pointers ? pointer & (UINT64_MAX >> 8) : pointer;
}

// What a vector register's size can be: what is read from files and memory may be anything.
static inline bool arch_is_vector_bytes(uint64_t bytes)
{
    return bytes >= 4 && bytes <= 8192 && (bytes & (bytes - 1)) == 0;
}

// The instruction that runs in a frame lies before its return address; where it was interrupted, it begins at pc.
enum arch_pc_kind { ARCH_PC_RETURN, ARCH_PC_EXACT };

// Address to look up rules and symbols with: the one place where 1 is subtracted.
static inline uint64_t arch_lookup_pc(uint64_t pc, enum arch_pc_kind kind)
{
    return kind == ARCH_PC_EXACT ? pc : pc - 1;
}

// Whether the ARCH_CALL_BYTES bytes before an address end with an instruction that calls.
bool arch_is_call_site(const struct arch *arch, const uint8_t bytes[ARCH_CALL_BYTES]);

// The edge at a pc, from the bytes around it, of which so many were read. NULL: none.
const struct arch_frame_edge *arch_frame_edge_at(const struct arch *arch, const uint8_t *pc_bytes,
                                                 unsigned before_bytes, unsigned at_bytes);

// Every register that the block keeps. `bytes` has layout->size_bytes bytes, in little-endian order.
void arch_registers_from_block(const struct arch_register_layout *layout, const void *bytes,
                               struct arch_frame_regs *regs);

// Where a frame of an interpreter says what it runs: the method's description at cfa + method_cfa_bytes; where its next
// bytecode is, at cfa + bytecode_cfa_bytes, or in a register, where that is known. 0: it is no such frame.
struct arch_interpreted {
    int8_t method_cfa_bytes, bytecode_cfa_bytes;
    uint8_t bytecode_reg;
};

// Both in one word, on architectures with addresses of 48 bits: the description's address, and above it the lower bits
// of the bytecode's, which tell it in a method of up to 64 KiB. All 0: it is not known.
enum { ARCH_METHOD_BITS = 48 };
static inline uint64_t arch_interpreted_word(uint64_t method, uint64_t bytecode)
{
    return method >> ARCH_METHOD_BITS ? method : method | bytecode << ARCH_METHOD_BITS;
}
static inline uint64_t arch_interpreted_method(uint64_t word)
{
    return word & (((uint64_t)1 << ARCH_METHOD_BITS) - 1);
}
static inline uint16_t arch_interpreted_bytecode(uint64_t word)
{
    return (uint16_t)(word >> ARCH_METHOD_BITS);
}

extern const struct arch arch_x86_64, arch_aarch64, arch_arm, arch_x86, arch_riscv64;

#endif
