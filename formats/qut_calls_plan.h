// SPDX-License-Identifier: Apache-2.0
// A plan: how each function of one ELF file is patched so that its calls can be traced. The same bytes in memory and in
// a file. qut_calls_plan.md is its page.
#ifndef QUT_FORMATS_QUT_CALLS_PLAN_H
#define QUT_FORMATS_QUT_CALLS_PLAN_H

#include <assert.h>
#include <stdint.h>

#define QUT_PLAN_MAGIC "QUTPLAN\1"

enum {
    QUT_PLAN_VERSION = 3, // raised also where another plan is made of the same file: a cache has the old one
    QUT_PLAN_IDENTITY_MAX = 32,
    QUT_PLAN_CODE_MAX = 24,
    QUT_PLAN_MOVES_MAX = 5, // instructions that begin within 5 bytes
};

// How a function is patched. Append only.
enum qut_plan_kind {
    QUT_PLAN_REFUSED = 0, // it is not: enum qut_plan_refusal says why
    QUT_PLAN_NOPS = 1,    // a 5-byte jump over nops that were left for it
    QUT_PLAN_JUMP = 2,    // a 5-byte jump
    QUT_PLAN_SHORT = 3,   // a 2-byte jump to a 5-byte jump in padding that belongs to nobody
    QUT_PLAN_TRAP = 4,    // there is room for one byte only
    QUT_PLAN_KIND_END,
};

// Why a function is left alone. Append only.
enum qut_plan_refusal {
    QUT_PLAN_OK = 0,
    QUT_PLAN_NO_UNWIND = 1,     // no FDE, no place for entries: nothing says that its return address is on top
    QUT_PLAN_UNDECODED = 2,     // its first bytes are no instructions that are known
    QUT_PLAN_UNMOVABLE = 3,     // its first instruction cannot be executed elsewhere
    QUT_PLAN_READS_RETURN = 4,  // reads or changes its own return address
    QUT_PLAN_LOADER = 5,        // dlopen, dlsym and what belongs to the dynamic loader: look at who calls
    QUT_PLAN_SAVES_CONTEXT = 6, // setjmp, getcontext, swapcontext and their kin: keep the return address elsewhere
    QUT_PLAN_SHARES_STACK = 7,  // vfork, clone, posix_spawn: two threads return through one word
    QUT_PLAN_SANITIZER = 8,     // run-time code of a sanitizer or profiler
    QUT_PLAN_BUILTIN = 9,       // V8's: frames that its own walker reads
    QUT_PLAN_GO = 10,           // Go moves stacks
    QUT_PLAN_SIGNAL_RETURN = 11,
    QUT_PLAN_RESOLVER = 12,     // of IFUNC: runs while the loader relocates
    QUT_PLAN_PROGRAM_END = 13,  // _start, _init and what is entered or left otherwise than by call and return
    QUT_PLAN_UNWINDER = 14,     // reads the stack, itself included
    QUT_PLAN_KEEPS_RETURN = 15, // aarch64: calls with its own return address in a register: both would have one slot
    QUT_PLAN_SCALABLE = 16,     // aarch64: arguments in scalable vectors, which system calls do not keep
    QUT_PLAN_REFUSAL_END,
};

// What has to be done to an instruction so that it does the same elsewhere. Append only.
enum qut_plan_move {
    QUT_MOVE_COPY = 0,      // nothing
    QUT_MOVE_SKIP = 1,      // it is a nop
    QUT_MOVE_ADDRESS = 2,   // 4 bytes at operand_at count from its end
    QUT_MOVE_JUMP = 3,      // a jump; 1 or 4 bytes at operand_at, its last, count from its end
    QUT_MOVE_CONDITION = 4, // a conditional jump
    QUT_MOVE_LOOP = 5,      // jrcxz and loop, which have no long form
    QUT_MOVE_CALL = 6,      // 4 bytes, its last, count from its end
    QUT_MOVE_CALL_BY = 7,   // through register or memory; operand_at: its ModRM byte
    // ... and memory relative to the instruction: the 4 bytes behind ModRM
    QUT_MOVE_CALL_BY_ADDRESS = 8,
    QUT_MOVE_END,
};

struct qut_plan_instruction {
    uint8_t length;
    uint8_t move; // enum qut_plan_move
    uint8_t operand_at;
    uint8_t zero;
};

enum qut_plan_flag {
    QUT_PLAN_ENDS = 1,  // the moved code ends in a jump, return or the like: nothing follows it
    QUT_PLAN_LOOPS = 2, // the function jumps to its own entry: each round is an entry, by the rule of tail calls
    // aarch64: before the patch stands paciasp, or pacibsp, which stays: it is undone in the thunk and done again
    QUT_PLAN_SIGNED_A = 4,
    QUT_PLAN_SIGNED_B = 8,
};

struct qut_plan_function {
    uint64_t entry_vaddr; // ascending
    uint64_t pad_vaddr;   // SHORT: where the 5-byte jump stands
    uint32_t size_bytes;  // as the FDE says
    uint32_t name;        // offset in the names, as in the file; 0: it has none ("")
    uint32_t readable;    // demangled; the same as name where it is not mangled
    uint8_t kind;         // enum qut_plan_kind
    uint8_t refusal;      // enum qut_plan_refusal
    uint8_t patch_at;     // bytes behind the entry where the patch begins: 4 behind an endbr64, which stays
    uint8_t patch_bytes;  // exchanged there: 5, 2 or 1
    uint8_t moved_bytes;  // whole instructions that are copied, from patch_at on. Fewer than patch_bytes
                          // where the function ends and padding follows
    uint8_t instruction_count;
    uint8_t flags;                   // enum qut_plan_flag
    uint8_t code_bytes;              // of `code`: the greater of moved_bytes and patch_bytes
    uint8_t code[QUT_PLAN_CODE_MAX]; // as in the file, from patch_at on
    struct qut_plan_instruction instructions[QUT_PLAN_MOVES_MAX];
    uint8_t pad[8]; // SHORT: as in the file, from pad_vaddr on
};
static_assert(sizeof(struct qut_plan_function) == 88, "the same in a file on every architecture");

// Another name of a function.
struct qut_plan_alias {
    uint32_t function; // index, ascending
    uint32_t name, readable;
};
static_assert(sizeof(struct qut_plan_alias) == 12, "the same in a file on every architecture");

struct qut_plan_header {
    char magic[8];
    uint32_t version;
    uint32_t function_count;
    uint32_t alias_count;
    uint32_t names_bytes;    // the first and the last are 0
    uint32_t fragment_count; // FDEs that are no functions: cold parts
    uint8_t identity_size;
    uint8_t identity_kind; // 1: build-id, 0: hash of all of the file
    uint8_t architecture;  // enum qut_arch
    uint8_t zero;
    uint8_t identity[QUT_PLAN_IDENTITY_MAX];
    uint64_t text_start, text_end; // [start, end): where the file's code is, virtual addresses of the file
    uint64_t file_bytes;
    uint64_t checksum; // qut_table_checksum, of all that is behind the header
};
static_assert(sizeof(struct qut_plan_header) == 96, "the same in a file on every architecture");
// Behind the header: functions, aliases, names, each at a multiple of 8.

#endif
