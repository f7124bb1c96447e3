// SPDX-License-Identifier: Apache-2.0
// Functions of other files that never return. Nothing in this file says so of them: their names do, also in the file
// that has them, where their own code may be too hard to follow. A compiler lets the next function begin right behind a
// call of one, so the walk must end there.
#include <stdlib.h>

#include "formats/elf_wide_inline.h"
#include "qutc/code/inside.h"
#include "qutc/input/symbol_sections.h"

// In the order of bytes. Only what its own documentation says never returns, whatever it is called with.
static const char *const endings[] = {
    "PyThread_exit_thread",
    "Py_Exit",
    "Py_FatalError",
    "_Exit",
    "_Py_FatalErrorFunc",
    "_Unwind_Resume",
    "_ZN10__gnu_cxx27__verbose_terminate_handlerEv",
    "_ZSt10unexpectedv",
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    "_ZSt9terminatev",
    "__assert",
    "__assert2",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_end_cleanup",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__libc_longjmp",
    "__libc_siglongjmp",
    "__longjmp_chk",
    "__pthread_unwind_next",
    "__stack_chk_fail",
    "__stack_chk_fail_local",
    "_exit",
    "_gfortran_error_stop_numeric",
    "_gfortran_error_stop_string",
    "_gfortran_os_error",
    "_gfortran_os_error_at",
    "_gfortran_runtime_error",
    "_gfortran_runtime_error_at",
    "_gfortran_stop_numeric",
    "_gfortran_stop_string",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "g_assertion_message_expr",
    "longjmp",
    "objc_exception_throw",
    "pthread_exit",
    "quick_exit",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
};

static int by_name(const void *a, const void *b)
{
    return strcmp(a, *(const char *const *)b);
}

// The standard library's throwing functions: std::__throw_length_error(char const*), std::__glibcxx_assert_fail(...).
static bool is_thrower(const char *name)
{
    static const char space[] = "_ZSt", throws[] = "__throw_", asserts[] = "__glibcxx_assert_fail";
    if (strncmp(name, space, sizeof space - 1) != 0)
        return false;
    name += sizeof space - 1;
    const char *digits = name;
    while (*name >= '0' && *name <= '9')
        name++;
    return name > digits &&
           (strncmp(name, throws, sizeof throws - 1) == 0 || strncmp(name, asserts, sizeof asserts - 1) == 0);
}

static bool is_ending(const char *name)
{
    return is_thrower(name) || bsearch(name, endings, sizeof endings / sizeof *endings, sizeof *endings, by_name);
}

// What is reserved for the C library and the compiler means the same where it is defined.
bool code_name_ends(const char *name, size_t length)
{
    enum { NAME_MAX_BYTES = 128 };
    char whole[NAME_MAX_BYTES + 1];
    if (length == 0 || length > NAME_MAX_BYTES)
        return false;
    memcpy(whole, name, length);
    whole[length] = 0;
    return (whole[0] == '_' || strcmp(whole, "abort") == 0 || strcmp(whole, "exit") == 0) && is_ending(whole);
}

bool code_note_slot(struct code_follower *f, const struct input_symbol_section *symbols, uint64_t index, uint64_t vaddr,
                    bool is_call)
{
    size_t bytes = elf_symbol_bytes(f->image->is_64);
    if (index == 0 || index >= symbols->symbols.size / bytes)
        return true;
    const Elf64_Sym symbol = elf_wide_symbol(symbols->symbols.data + index * bytes, f->image->is_64);
    size_t left = symbol.st_name < symbols->names.size ? symbols->names.size - symbol.st_name : 0;
    const char *name = left ? (const char *)symbols->names.data + symbol.st_name : "";
    bool is_known = left && strnlen(name, left) < left && is_ending(name);
    uint64_t pc = symbol.st_value - f->text_start;
    bool is_here = is_call && symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
                   symbol.st_value >= f->text_start && pc < f->text_size;
    if (!is_known && !is_here)
        return true;
    uint32_t here = is_here ? (uint32_t)pc & ~(uint32_t)f->arch->has_thumb : UINT32_MAX;
    if (is_here) // the slot is there since something calls it
        code_note_called(f->walk, here, f->arch->has_thumb && pc & 1 ? 1 : 0);
    struct code_slot_of *place = BASE_ADD(&f->slots);
    if (place)
        *place = (struct code_slot_of){vaddr, is_known ? UINT32_MAX : here};
    return place && !f->walk->no_memory;
}

static int by_vaddr(const void *a, const void *b)
{
    const struct code_slot_of *x = a, *y = b;
    return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

void code_sort_slots(struct code_follower *f)
{
    if (f->slots.count)
        qsort(f->slots.items, f->slots.count, sizeof *f->slots.items, by_vaddr);
}

// What a linker's stub knows: numbers, and words that are loaded from an address that is a number.
struct stub {
    struct stub_value {
        enum { STUB_UNKNOWN, STUB_NUMBER, STUB_LOADED } kind;
        uint64_t number; // or the address
    } reg[CODE_REGISTERS];
};

static const struct stub_value *stub_value(const struct stub *stub, unsigned reg)
{
    static const struct stub_value none = {STUB_NUMBER, 0}, unknown = {STUB_UNKNOWN, 0};
    return reg == CODE_REG_NONE ? &none : reg < CODE_REGISTERS ? &stub->reg[reg] : &unknown;
}

static void apply(const struct code_follower *f, struct stub *stub, const struct code_instruction *in)
{
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        if (op->kind == CODE_OP_STORE || op->kind == CODE_OP_COMPARE || op->to >= CODE_REGISTERS)
            continue;
        struct stub_value from = *stub_value(stub, op->from), other = *stub_value(stub, op->other);
        struct stub_value value = {STUB_UNKNOWN, 0};
        bool is_number = from.kind == STUB_NUMBER && other.kind == STUB_NUMBER && op->shift < 64;
        uint64_t added = other.number << (op->shift & 63);
        if (op->kind == CODE_OP_SET && from.kind == STUB_NUMBER)
            value = (struct stub_value){STUB_NUMBER, from.number + (uint64_t)op->number};
        else if (op->kind == CODE_OP_ADD && is_number)
            value =
                (struct stub_value){STUB_NUMBER, from.number + (op->negative ? -added : added) + (uint64_t)op->number};
        else if ((op->kind == CODE_OP_LOAD || op->kind == CODE_OP_INDEXED) && op->other == CODE_REG_NONE &&
                 from.kind == STUB_NUMBER && op->size_bytes == f->arch->word_bytes)
            value = (struct stub_value){STUB_LOADED, from.number + (uint64_t)op->number};
        if (f->arch->word_bytes == 4)
            value.number &= UINT32_MAX;
        stub->reg[op->to] = value;
    }
}

// The slot that is gone through; NULL: it is not known, or nothing is known of it.
static const struct code_slot_of *slot_of(const struct code_follower *f, const struct stub *stub,
                                          const struct code_instruction *in)
{
    const struct stub_value *to = stub_value(stub, in->through);
    const struct code_slot_of key = {.vaddr = to->number};
    return to->kind != STUB_LOADED ? NULL
                                   : bsearch(&key, f->slots.items, f->slots.count, sizeof *f->slots.items, by_vaddr);
}

// A function of this file that is called through a slot may be another's at last, which is to do the same.
static bool slot_ends(struct code_follower *f, const struct code_slot_of *slot)
{
    const struct code_function *function = slot && slot->pc != UINT32_MAX ? code_function_at(f, slot->pc) : NULL;
    return slot && (slot->pc == UINT32_MAX || (function && function->never_returns));
}

bool code_stub_ends(struct code_follower *f, uint32_t pc)
{
    enum { STUB_INSTRUCTIONS_MAX = 6 };
    uint16_t *marks = &f->marks[pc];
    if (!f->slots.count || (*marks & CODE_MARK_ASKED && !(*marks & CODE_MARK_STUB)))
        return false;
    *marks |= CODE_MARK_ASKED;
    struct stub stub = {0};
    struct code_instruction in;
    const struct code_slot_of *slot = NULL;
    for (unsigned i = 0; i < STUB_INSTRUCTIONS_MAX && pc < f->text_size && code_read(f, pc, &in); i++) {
        apply(f, &stub, &in);
        // riscv64's stubs leave where they are in t1, as calls do.
        if ((in.flow == CODE_JUMP || in.flow == CODE_CALL) && !in.conditional && in.through != CODE_REG_NONE)
            slot = slot_of(f, &stub, &in);
        if (in.flow != CODE_NEXT)
            break;
        pc += in.size_bytes;
    }
    *marks |= slot ? CODE_MARK_STUB : 0;
    return slot_ends(f, slot);
}

bool code_call_ends(struct code_follower *f, const struct code_instruction *in)
{
    if (!f->slots.count)
        return false;
    if (in->through == CODE_REG_NONE) {
        uint32_t callee = code_callee_of(f, in);
        return callee != UINT32_MAX && code_stub_ends(f, callee);
    }
    // Where the linker makes no stubs: `call *abort@GOTPCREL(%rip)`.
    struct stub stub = {0};
    apply(f, &stub, in);
    return slot_ends(f, slot_of(f, &stub, in));
}
