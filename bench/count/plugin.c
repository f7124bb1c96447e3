// SPDX-License-Identifier: Apache-2.0
// A plugin of qemu-user: counts the instructions that a thread of the emulated program executes from each call of
// bench_count_on (bench/walk/marks.h) to the next one of bench_count_off. Writes a line for each such bracket: its
// number, from 0, and the count. The program's own symbols must be there.
//   qemu-ARCH -plugin libcount.so,out=FILE PROGRAM...
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/qemu_plugin.h"

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum role { ROLE_NONE, ROLE_ON, ROLE_OFF };

// A translation block ends at the first jump, so that it is executed as a whole or not at all, but for a fault.
struct block {
    uint32_t instruction_count;
    enum role role;
};

static FILE *out;
static _Atomic unsigned counted;      // 1 + the number of the thread that turned it on; 0: nothing is counted
static uint64_t count, bracket_count; // of that thread

static void before_block(unsigned vcpu_index, void *user)
{
    const struct block *block = user;
    if (block->role == ROLE_ON) {
        atomic_store_explicit(&counted, vcpu_index + 1, memory_order_relaxed);
        count = 0;
    }
    if (atomic_load_explicit(&counted, memory_order_relaxed) != vcpu_index + 1)
        return;
    if (block->role == ROLE_OFF) {
        atomic_store_explicit(&counted, 0, memory_order_relaxed);
        fprintf(out, "%" PRIu64 " %" PRIu64 "\n", bracket_count++, count);
        return;
    }
    count += block->instruction_count;
}

// The marks are too short to be more than one block; were they more, the last one would turn it on, the first one off.
static enum role role_of(struct qemu_plugin_tb *tb)
{
    const char *symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
    if (!symbol)
        return ROLE_NONE;
    return strcmp(symbol, "bench_count_on") == 0    ? ROLE_ON
           : strcmp(symbol, "bench_count_off") == 0 ? ROLE_OFF
                                                    : ROLE_NONE;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    // As long as the code that was made of it, which the emulator may throw away and make again without telling.
    struct block *block = malloc(sizeof *block);
    if (!block)
        abort();
    *block = (struct block){(uint32_t)qemu_plugin_tb_n_insns(tb), role_of(tb)};
    qemu_plugin_register_vcpu_tb_exec_cb(tb, before_block, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void on_exit_of_program(qemu_plugin_id_t id, void *user)
{
    (void)id, (void)user;
    fclose(out);
}

static void before_fork(void)
{
    fflush(out);
}

// A child would write between its parent's lines.
static void in_forked_child(void)
{
    out = fopen("/dev/null", "w");
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
                                                               int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "out=", 4) != 0)
        return -1;
    out = fopen(argv[0] + 4, "w");
    if (!out) {
        perror(argv[0] + 4);
        return -1;
    }
    pthread_atfork(before_fork, NULL, in_forked_child);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}
