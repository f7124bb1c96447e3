// SPDX-License-Identifier: Apache-2.0
// The numbers of system calls, against this machine's headers.
#include <string.h>
#include <sys/syscall.h>

#include "libqut/arch/calls.h"
#include "libqut/arch/native.h"
#include "tests/support/tap.h"

static const struct {
    const char *name;
    long number;
} headers[] = {
#ifdef SYS_accept
    {"accept", SYS_accept},
#endif
#ifdef SYS_accept4
    {"accept4", SYS_accept4},
#endif
#ifdef SYS_clock_nanosleep
    {"clock_nanosleep", SYS_clock_nanosleep},
#endif
#ifdef SYS_clock_nanosleep_time64
    {"clock_nanosleep_time64", SYS_clock_nanosleep_time64},
#endif
#ifdef SYS_connect
    {"connect", SYS_connect},
#endif
#ifdef SYS_epoll_pwait
    {"epoll_pwait", SYS_epoll_pwait},
#endif
#ifdef SYS_epoll_pwait2
    {"epoll_pwait2", SYS_epoll_pwait2},
#endif
#ifdef SYS_epoll_wait
    {"epoll_wait", SYS_epoll_wait},
#endif
#ifdef SYS_futex
    {"futex", SYS_futex},
#endif
#ifdef SYS_futex_time64
    {"futex_time64", SYS_futex_time64},
#endif
#ifdef SYS_futex_waitv
    {"futex_waitv", SYS_futex_waitv},
#endif
#ifdef SYS_io_getevents
    {"io_getevents", SYS_io_getevents},
#endif
#ifdef SYS_io_pgetevents
    {"io_pgetevents", SYS_io_pgetevents},
#endif
#ifdef SYS_io_pgetevents_time64
    {"io_pgetevents_time64", SYS_io_pgetevents_time64},
#endif
#ifdef SYS_io_uring_enter
    {"io_uring_enter", SYS_io_uring_enter},
#endif
#ifdef SYS_ioctl
    {"ioctl", SYS_ioctl},
#endif
#ifdef SYS_ipc
    {"ipc", SYS_ipc},
#endif
#ifdef SYS_nanosleep
    {"nanosleep", SYS_nanosleep},
#endif
#ifdef SYS_pause
    {"pause", SYS_pause},
#endif
#ifdef SYS_poll
    {"poll", SYS_poll},
#endif
#ifdef SYS_ppoll
    {"ppoll", SYS_ppoll},
#endif
#ifdef SYS_ppoll_time64
    {"ppoll_time64", SYS_ppoll_time64},
#endif
#ifdef SYS_pselect6
    {"pselect6", SYS_pselect6},
#endif
#ifdef SYS_pselect6_time64
    {"pselect6_time64", SYS_pselect6_time64},
#endif
#ifdef SYS_read
    {"read", SYS_read},
#endif
#ifdef SYS_readv
    {"readv", SYS_readv},
#endif
#ifdef SYS_recv
    {"recv", SYS_recv},
#endif
#ifdef SYS_recvfrom
    {"recvfrom", SYS_recvfrom},
#endif
#ifdef SYS_recvmmsg
    {"recvmmsg", SYS_recvmmsg},
#endif
#ifdef SYS_recvmmsg_time64
    {"recvmmsg_time64", SYS_recvmmsg_time64},
#endif
#ifdef SYS_recvmsg
    {"recvmsg", SYS_recvmsg},
#endif
#ifdef SYS_restart_syscall
    {"restart_syscall", SYS_restart_syscall},
#endif
#ifdef SYS_rt_sigsuspend
    {"rt_sigsuspend", SYS_rt_sigsuspend},
#endif
#ifdef SYS_rt_sigtimedwait
    {"rt_sigtimedwait", SYS_rt_sigtimedwait},
#endif
#ifdef SYS_rt_sigtimedwait_time64
    {"rt_sigtimedwait_time64", SYS_rt_sigtimedwait_time64},
#endif
#ifdef SYS_select
    {"select", SYS_select},
#endif
#ifdef SYS_semop
    {"semop", SYS_semop},
#endif
#ifdef SYS_semtimedop
    {"semtimedop", SYS_semtimedop},
#endif
#ifdef SYS_semtimedop_time64
    {"semtimedop_time64", SYS_semtimedop_time64},
#endif
#ifdef SYS_send
    {"send", SYS_send},
#endif
#ifdef SYS_sendfile
    {"sendfile", SYS_sendfile},
#endif
#ifdef SYS_sendfile64
    {"sendfile64", SYS_sendfile64},
#endif
#ifdef SYS_sendmmsg
    {"sendmmsg", SYS_sendmmsg},
#endif
#ifdef SYS_sendmsg
    {"sendmsg", SYS_sendmsg},
#endif
#ifdef SYS_sendto
    {"sendto", SYS_sendto},
#endif
#ifdef SYS_socketcall
    {"socketcall", SYS_socketcall},
#endif
#ifdef SYS_splice
    {"splice", SYS_splice},
#endif
#ifdef SYS_vmsplice
    {"vmsplice", SYS_vmsplice},
#endif
#ifdef SYS_wait4
    {"wait4", SYS_wait4},
#endif
#ifdef SYS_waitid
    {"waitid", SYS_waitid},
#endif
#ifdef SYS_write
    {"write", SYS_write},
#endif
#ifdef SYS_writev
    {"writev", SYS_writev},
#endif
#ifdef SYS_fcntl
    {"fcntl", SYS_fcntl},
#endif
#ifdef SYS_fcntl64
    {"fcntl64", SYS_fcntl64},
#endif
#ifdef SYS_flock
    {"flock", SYS_flock},
#endif
#ifdef SYS_mq_timedreceive
    {"mq_timedreceive", SYS_mq_timedreceive},
#endif
#ifdef SYS_mq_timedreceive_time64
    {"mq_timedreceive_time64", SYS_mq_timedreceive_time64},
#endif
#ifdef SYS_mq_timedsend
    {"mq_timedsend", SYS_mq_timedsend},
#endif
#ifdef SYS_mq_timedsend_time64
    {"mq_timedsend_time64", SYS_mq_timedsend_time64},
#endif
#ifdef SYS_waitpid
    {"waitpid", SYS_waitpid},
#endif
#ifdef SYS__newselect
    {"_newselect", SYS__newselect},
#endif
};

static long in_headers(const char *name)
{
    for (unsigned i = 0; i < sizeof headers / sizeof *headers; i++)
        if (strcmp(headers[i].name, name) == 0)
            return headers[i].number;
    return -1;
}

TEST(numbers_are_those_of_the_headers)
{
    const struct arch_call *call;
    unsigned known = 0;
    for (unsigned i = 0; (call = arch_call_at(i)); i++) {
        long ours = call->number[arch_native_arch.id], wanted = in_headers(call->name);
        // Headers older than a call do not know it.
        CHECK(ours == wanted || (wanted == -1 && ours >= 403), "%s: ours %ld, the headers' %ld", call->name, ours,
              wanted);
        known += ours == wanted && ours >= 0;
    }
    CHECK(known > 20, "%u", known);
}

TEST(no_number_has_two_meanings)
{
    const struct arch_call *call;
    for (unsigned i = 0; (call = arch_call_at(i)); i++)
        for (int arch = QUT_ARCH_NONE + 1; arch < QUT_ARCH_END; arch++)
            if (call->number[arch] >= 0)
                CHECK(arch_call((enum qut_arch_id)arch, call->number[arch]) == call, "%s, %d", call->name, arch);
}

TEST(others_are_not_known)
{
    CHECK(arch_call(QUT_ARCH_X86_64, -1) == NULL, "-1");
    CHECK(arch_call(QUT_ARCH_X86_64, 100000) == NULL, "100000");
    CHECK(arch_call(QUT_ARCH_NONE, 0) == NULL, "no architecture");
    CHECK(arch_call(QUT_ARCH_END, 0) == NULL, "no architecture");
}

int main(void)
{
    RUN(numbers_are_those_of_the_headers);
    RUN(no_number_has_two_meanings);
    RUN(others_are_not_known);
    return tap_finish();
}
