// SPDX-License-Identifier: Apache-2.0
// Names of system calls: against this machine's headers, and against the numbers that libqut knows for itself.
#include <string.h>
#include <sys/syscall.h>

#include "base/system_calls.h"
#include "libqut/arch/calls.h"
#include "libqut/arch/native.h"
#include "tests/support/run_suite.h"

START_TEST(as_headers_have_them)
{
    static const struct {
        const char *name;
        uint64_t number;
    } calls[] = {
        {"read", SYS_read},   {"write", SYS_write},   {"futex", SYS_futex}, {"epoll_pwait", SYS_epoll_pwait},
        {"mmap", SYS_mmap},   {"fsync", SYS_fsync},   {"ppoll", SYS_ppoll}, {"clone3", SYS_clone3},
        {"close", SYS_close}, {"openat", SYS_openat},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *name = base_system_call(arch_native_arch.id, calls[i].number);
        ck_assert_msg(name && strcmp(name, calls[i].name) == 0, "%s is %s", calls[i].name, name ? name : "none");
    }
}
END_TEST

START_TEST(as_stops_know_them)
{
    const struct arch_call *call;
    unsigned compared = 0;
    for (unsigned i = 0; (call = arch_call_at(i)) != NULL; i++)
        for (unsigned arch = QUT_ARCH_NONE + 1; arch < QUT_ARCH_END; arch++) {
            if (call->number[arch] < 0)
                continue;
            const char *name = base_system_call(arch, (uint64_t)call->number[arch]);
            ck_assert_msg(name != NULL, "%s of %u", call->name, arch);
            // Headers call some by their older names.
            bool is_same = strcmp(name, call->name) == 0 || strncmp(name, call->name, strcspn(call->name, "_")) == 0 ||
                           strstr(name, "select");
            ck_assert_msg(is_same, "%s of %u is %s", call->name, arch, name);
            compared++;
        }
    ck_assert_uint_gt(compared, 200);
}
END_TEST

START_TEST(none_is_made_up)
{
    ck_assert_ptr_null(base_system_call(QUT_ARCH_X86_64, 600));
    ck_assert_ptr_null(base_system_call(QUT_ARCH_X86_64, UINT64_MAX));
    ck_assert_ptr_null(base_system_call(QUT_ARCH_NONE, 0));
    ck_assert_ptr_null(base_system_call(QUT_ARCH_END, 0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("system_calls");
    tcase_add_test(tests, as_headers_have_them);
    tcase_add_test(tests, as_stops_know_them);
    tcase_add_test(tests, none_is_made_up);
    Suite *suite = suite_create("trace");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
