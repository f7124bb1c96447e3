// SPDX-License-Identifier: Apache-2.0
// A plugin of qemu-user: judges a program while it runs. Each instruction must be a translation block of its own
// (-singlestep): then the emulator's registers are up to date before each.
//   qemu-ARCH -singlestep -plugin liboracle.so,out=FILE[,walk=N][,spoil=SEED][,known=FILE] PROGRAM...
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/oracle/report.h"
#include "tests/support/qemu_plugin.h"

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static struct oracle oracle;
static const struct arch *target_arch;
static const char *out_path, *known_path;
static uint64_t walk_every, until_walk;
static bool opened, silent; // silent: a forked child, or a register that was not found

static void before_instruction(unsigned vcpu_index, void *user)
{
    struct judged_pc *at = user;
    struct arch_frame_regs regs;
    if (silent)
        return;
    if (vcpu_index != 0) {
        oracle.other_threads++;
        return;
    }
    guest_registers(&oracle.guest, at->pc, &regs);
    shadow_arrive(&oracle.shadow, &regs, at->kind, at->next_pc);
    const struct shadow_frame *top = shadow_top(&oracle.shadow);
    judge_instruction(&oracle.judge, at, &regs, top);
    if (walk_every && (--until_walk == 0 || (top && top->kind == SHADOW_SIGNAL))) {
        if (until_walk == 0)
            until_walk = walk_every;
        whole_walk(&oracle.walks, &regs, &oracle.shadow);
    }
}

static void open_oracle(void)
{
    opened = true;
    const char *fault = guest_open(&oracle.guest, target_arch);
    if (fault) {
        fprintf(stderr, "oracle: %s\n", fault);
        silent = true;
    }
    shadow_open(&oracle.shadow, &oracle.guest);
    modules_open(&oracle.modules, &oracle.guest);
    oracle.judge.guest = &oracle.guest;
    oracle.judge.modules = &oracle.modules;
    known_open(&oracle.known, &oracle.guest, known_path);
    oracle.walks.known = &oracle.known;
    oracle.walks.guest = &oracle.guest;
    oracle.walks.modules = &oracle.modules;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    if (!opened)
        open_oracle();
    bool thumb = !silent && guest_is_thumb(&oracle.guest);
    for (size_t i = 0; !silent && i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct judged_pc *at = judge_prepare(&oracle.judge, qemu_plugin_insn_vaddr(insn), thumb,
                                             qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
        qemu_plugin_register_vcpu_insn_exec_cb(insn, before_instruction, QEMU_PLUGIN_CB_R_REGS, at);
    }
}

// Few of a program's calls map code, but which ones differs by architecture: any with arguments like a mapping's.
static void on_syscall(qemu_plugin_id_t id, unsigned vcpu_index, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)vcpu_index, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    static const int64_t mapping_calls[QUT_ARCH_END][5] = {
        [QUT_ARCH_X86_64] = {9, 10, 11, 25, -1}, // mmap mprotect munmap mremap
        [QUT_ARCH_AARCH64] = {222, 226, 215, 216, -1},
        [QUT_ARCH_ARM] = {192, 125, 91, 163, -1},
        [QUT_ARCH_X86] = {192, 125, 91, 163, 90},
    };
    for (unsigned i = 0; i < 5; i++)
        if (mapping_calls[target_arch->id][i] == number)
            oracle.modules.stale = true;
}

static void on_exit_of_program(qemu_plugin_id_t id, void *user)
{
    (void)id, (void)user;
    if (silent || !out_path)
        return;
    FILE *out = fopen(out_path, "w");
    if (!out) {
        perror(out_path);
        return;
    }
    report(&oracle, out);
    fclose(out);
}

static void in_forked_child(void)
{
    silent = true;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
                                                               int argc, char **argv)
{
    target_arch = guest_arch(info->target_name);
    if (!target_arch)
        return -1;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0)
            out_path = strdup(argv[i] + 4);
        else if (strncmp(argv[i], "walk=", 5) == 0)
            walk_every = until_walk = strtoull(argv[i] + 5, NULL, 10);
        else if (strncmp(argv[i], "spoil=", 6) == 0)
            oracle.judge.spoil_seed = strtoull(argv[i] + 6, NULL, 10);
        else if (strncmp(argv[i], "known=", 6) == 0)
            known_path = strdup(argv[i] + 6);
        else
            return -1;
    }
    pthread_atfork(NULL, NULL, in_forked_child);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}
