// SPDX-License-Identifier: Apache-2.0
// The part of QEMU's plugin interface, version 1, that the oracle and bench/count use, and what qemu-user 7.2 exports
// besides.
// Debian's qemu-user ships no header for either.
#ifndef TESTS_SUPPORT_QEMU_PLUGIN_H
#define TESTS_SUPPORT_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

// What qemu_plugin_install is told.
struct qemu_info {
    const char *target_name;
    struct {
        int minimum, current;
    } version;
    bool system_emulation;
};

enum { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_CB_R_REGS = 1 };

typedef void (*qemu_plugin_tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_insn_cb)(unsigned vcpu_index, void *user);
typedef void (*qemu_plugin_syscall_cb)(qemu_plugin_id_t id, unsigned vcpu_index, int64_t number, uint64_t a1,
                                       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                                       uint64_t a8);
typedef void (*qemu_plugin_exit_cb)(qemu_plugin_id_t id, void *user);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_trans_cb cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_insn_cb cb, int flags,
                                            void *user);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_insn_cb cb, int flags, void *user);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, qemu_plugin_syscall_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_exit_cb cb, void *user);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *insn); // NULL: none

// Ours, found by qemu by name.
extern int qemu_plugin_version;
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

// Exported by the qemu-user binaries because plugins need the others.
extern uintptr_t guest_base;
void *qemu_get_cpu(int index);
int page_get_flags(uint64_t guest_address);
enum { QEMU_PAGE_READ = 1, QEMU_PAGE_EXEC = 4 };

#endif
