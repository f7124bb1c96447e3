// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/go_special.h"

#include <string.h>

enum { FUNCTION_BYTES_MAX = 4096, MOVE_BYTES = 3 };

static const struct {
    const char *name;
    uint8_t manner, which;
    bool is_prefix;
} known[] = {
    {"runtime.systemstack", INPUT_GO_SWITCHES, QUT_SWITCH_SYSTEM_STACK, false},
    {"runtime.mcall", INPUT_GO_SWITCHES, QUT_SWITCH_MCALL, false},
    {"runtime.morestack", INPUT_GO_SWITCHES, QUT_SWITCH_MORE_STACK, false},
    {"runtime.gogo", INPUT_GO_SWITCHES, QUT_SWITCH_GOGO, false},
    {"gogo", INPUT_GO_SWITCHES, QUT_SWITCH_GOGO, false},
    {"runtime.asmcgocall", INPUT_GO_SWITCHES, QUT_SWITCH_CALL_C, false},
    {"runtime.cgocallback", INPUT_GO_SWITCHES, QUT_SWITCH_CALLED_BY_C, false},
    {"runtime.clone", INPUT_GO_SWITCHES, QUT_SWITCH_NEW_THREAD, false},
    {"runtime.asyncPreempt", INPUT_GO_INTERRUPTED, 0, false},
    {"runtime.sigpanic", INPUT_GO_INTERRUPTED, 0, false},
    {"runtime.sigpanic0", INPUT_GO_INTERRUPTED, 0, false},
    // What handlers return to: sigreturn, from Go 1.20 on sigreturn__sigaction. Its bytes tell what it is.
    {"runtime.sigreturn", INPUT_GO_INTERRUPTED, 0, true},
    {"runtime.sigtramp", INPUT_GO_ON_SIGNAL, 0, false},
    {"runtime.cgoSigtramp", INPUT_GO_ON_SIGNAL, 0, false},
};

// Of x86-64: mov %rsp, %REG; ...; mov %REG, %rsp. C code keeps these registers.
static const struct {
    uint8_t reg; // DWARF number
    uint8_t keep[MOVE_BYTES], restore[MOVE_BYTES];
} moves[] = {
    {12, {0x49, 0x89, 0xe4}, {0x4c, 0x89, 0xe4}}, // r12: nanotime1, walltime
    {3, {0x48, 0x89, 0xe3}, {0x48, 0x89, 0xdc}},  // rbx: callCgoSigaction, callCgoMmap
    {6, {0x48, 0x89, 0xe5}, {0x48, 0x89, 0xec}},  // rbp: sigfwd
};

// Where these bytes stand, if they do so once; else 0.
static size_t only_place(struct base_bytes code, const uint8_t bytes[MOVE_BYTES])
{
    size_t found = 0;
    for (size_t at = 1; at + MOVE_BYTES <= code.size; at++) {
        if (memcmp(code.data + at, bytes, MOVE_BYTES) != 0)
            continue;
        if (found)
            return 0;
        found = at;
    }
    return found;
}

static void find_kept(const struct input_image *image, const struct input_go_function *function,
                      struct input_go_special *special)
{
    uint64_t size = function->end - function->start;
    if (size > FUNCTION_BYTES_MAX)
        return;
    struct base_bytes code = input_image_some(image, function->start, size);
    for (size_t i = 0; code.size == size && i < sizeof moves / sizeof *moves; i++) {
        size_t keep = only_place(code, moves[i].keep), restore = only_place(code, moves[i].restore);
        if (!keep || restore <= keep)
            continue;
        // Two that could be the one are none.
        bool is_second = special->which == QUT_SWITCH_SAVED;
        special->which = is_second ? QUT_SWITCH_UNKNOWN : QUT_SWITCH_SAVED;
        special->kept_start = function->start + keep + MOVE_BYTES;
        special->kept_end = function->start + restore + MOVE_BYTES;
        special->kept_reg = moves[i].reg;
        if (is_second)
            return;
    }
}

void input_go_special(const struct input_image *image, const struct input_go_functions *functions,
                      const struct input_go_function *function, struct input_go_special *special)
{
    struct base_bytes name = functions->names;
    name.data += function->name_offset;
    name.size -= function->name_offset;
    *special = (struct input_go_special){0};
    // What is known is known of x86-64's code; elsewhere functions that write sp are refused, by their mark.
    bool is_known_arch = !image->arch->ra_in_register && image->arch->word_bytes == 8;
    for (size_t i = 0; is_known_arch && i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].name) + !known[i].is_prefix; // with its NUL
        if (name.size < length || memcmp(name.data, known[i].name, length) != 0)
            continue;
        // Functions of Go that only call the one in assembly have its name, too.
        if (known[i].manner == INPUT_GO_SWITCHES && !(function->flags & INPUT_GO_WRITES_SP))
            return;
        special->manner = (enum input_go_manner)known[i].manner;
        special->which = (enum qut_stack_switch)known[i].which;
        return;
    }
    if (!(function->flags & INPUT_GO_WRITES_SP) || function->flags & INPUT_GO_TOP_FRAME)
        return;
    special->manner = INPUT_GO_SWITCHES;
    if (is_known_arch)
        find_kept(image, function, special);
}
