// SPDX-License-Identifier: Apache-2.0
// A plugin of qemu-user: counts the instructions that a thread of the emulated program executes from each call of
// bench_count_on (bench/walk/marks.h) to the next one of bench_count_off. Writes a line for each such bracket: its
// number, from 0, and the count. The program's own symbols must be there.
//   qemu-ARCH -plugin libcount.so,out=FILE PROGRAM...
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/qemu_plugin.h"

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum role { ROLE_NONE, ROLE_ON, ROLE_OFF };

// A translation block ends at the first jump, so that it is executed as a whole or not at all.
struct block {
    uint32_t instruction_count;
    enum role role;
};

static const char *const mark_names[] = {[ROLE_ON] = "bench_count_on", [ROLE_OFF] = "bench_count_off"};
static uint64_t mark_address[ROLE_OFF + 1]; // 0: not seen yet
static FILE *out;
static bool counting;
static unsigned counted_vcpu; // the thread that turned it on
static uint64_t count, bracket_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of mark_address: threads translate at the same time

static void before_block(unsigned vcpu_index, void *user)
{
    const struct block *block = user;
    if (block->role == ROLE_ON) {
        counting = true;
        counted_vcpu = vcpu_index;
        count = 0;
    }
    if (!counting || vcpu_index != counted_vcpu)
        return;
    if (block->role == ROLE_OFF) {
        counting = false;
        fprintf(out, "%" PRIu64 " %" PRIu64 "\n", bracket_count++, count);
        return;
    }
    count += block->instruction_count;
}

// The emulator tells which symbol an address lies in, not whether it is the first there. Where a mark is called first,
// it is.
static enum role role_of(struct qemu_plugin_tb *tb)
{
    struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    const char *symbol = qemu_plugin_insn_symbol(first);
    uint64_t address = qemu_plugin_insn_vaddr(first);
    enum role found = ROLE_NONE;
    pthread_mutex_lock(&lock);
    for (enum role role = ROLE_ON; symbol && role <= ROLE_OFF; role++) {
        if (strcmp(symbol, mark_names[role]) != 0)
            continue;
        if (mark_address[role] == 0)
            mark_address[role] = address;
        if (mark_address[role] == address)
            found = role;
    }
    pthread_mutex_unlock(&lock);
    return found;
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
