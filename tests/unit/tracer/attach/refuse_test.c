// SPDX-License-Identifier: Apache-2.0
// What cannot be sampled is refused, with a reason; and the small parts: durations by size, calls that were
// interrupted.
//     attach_refuse_test SUBJECT
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tracer/attach/inside.h"

enum { NOBODY = 65534 };

static const char *subject_path;

static int try(pid_t pid, pid_t tid, struct attach_error *error)
{
    struct attach_result result;
    const struct attach_options options = {
        .pid = pid, .tid = tid, .duration_ns = 50000000, .stop_fd = -1, .file_fd = memfd_create("trace", MFD_CLOEXEC)};
    int status = attach_record(&options, &result, error);
    close(options.file_fd);
    return status;
}

static void expect_refused(pid_t pid, pid_t tid, const char *why)
{
    struct attach_error error;
    ck_assert_int_eq(try(pid, tid, &error), -1);
    ck_assert_msg(strstr(error.text, why) != NULL, "\"%s\" does not say \"%s\"", error.text, why);
    printf("%s\n", error.text);
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();
    ck_assert(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

START_TEST(who_is_not_there)
{
    pid_t pid = start_sleeper();
    end(pid);
    expect_refused(pid, 0, "no such process");
    expect_refused(0, 0, "no such process");
    expect_refused(getpid(), 0, "this process");
    expect_refused(getpid() ? getppid() : 0, 4194304 + 1, "has no thread");
}
END_TEST

START_TEST(the_kernel)
{
    char path[64], line[64] = "";
    snprintf(path, sizeof path, "/proc/2/comm");
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file) && strncmp(line, "kthreadd", 8) == 0)
        expect_refused(2, 0, "kernel thread");
    else
        printf("SKIP: no kernel threads to be seen here\n");
    if (file)
        fclose(file);
}
END_TEST

START_TEST(the_dead)
{
    siginfo_t info;
    pid_t pid = start_sleeper();
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    expect_refused(pid, 0, "has ended");
    end(pid);
}
END_TEST

START_TEST(who_is_traced)
{
    char path[64];
    pid_t pid = start_sleeper();
    ck_assert_int_eq((int)ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
    snprintf(path, sizeof path, "is being traced by %d", (int)getpid());
    expect_refused(pid, 0, path);
    end(pid);
}
END_TEST

// As an ordinary user: another user's process, and one that protects itself.
START_TEST(who_is_not_ours)
{
    if (geteuid() != 0) {
        printf("SKIP: only root can be somebody else\n");
        return;
    }
    pid_t of_root = start_sleeper();
    pid_t us = fork();
    ck_assert(us >= 0);
    if (us == 0) {
        ck_assert(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        prctl(PR_SET_DUMPABLE, 1);
        expect_refused(of_root, 0, "belongs to user 0");
        pid_t own = start_sleeper();
        pid_t secret = fork();
        if (secret == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_DUMPABLE, 0);
            for (;;)
                pause();
        }
        usleep(50000);
        expect_refused(secret, 0, "not dumpable");
        // A descendant may be traced whatever yama's scope below 2 is.
        struct attach_error error;
        int status = try(own, 0, &error);
        ck_assert_msg(status == 0 || strstr(error.text, "ptrace_scope"), "%s", error.text);
        end(secret);
        end(own);
        exit(0);
    }
    int status;
    waitpid(us, &status, 0);
    end(of_root);
    ck_assert_int_eq(status, 0);
}
END_TEST

// In namespaces of its own: other numbers, other files.
START_TEST(who_is_elsewhere)
{
    int ready[2];
    char line[128];
    struct attach_result result;
    struct attach_error error;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t outer = fork();
    ck_assert(outer >= 0);
    if (outer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
            _exit(errno == EPERM ? 77 : 3);
        pid_t inner = fork();
        if (inner == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int never[2]; // nothing comes, and it does not end: both ends are its own
            if (pipe(never) != 0)
                _exit(5);
            dup2(never[0], 0);
            dup2(ready[1], 1);
            execl(subject_path, subject_path, "locks", "5", (char *)NULL);
            _exit(4);
        }
        int status;
        waitpid(inner, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    close(ready[1]);
    if (read(ready[0], line, sizeof line) <= 0) {
        int status;
        waitpid(outer, &status, 0);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 77, "status %x", status);
        printf("SKIP: no namespace to be had here\n");
        return;
    }
    // The inner one, by its number out here.
    pid_t inner = 0;
    for (char path[64]; inner == 0;) {
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)outer, (int)outer);
        FILE *file = fopen(path, "re");
        ck_assert(file && fscanf(file, "%d", &inner) == 1);
        fclose(file);
    }
    const struct attach_options options = {.pid = inner,
                                           .period_ns = 1000000,
                                           .wall = true,
                                           .duration_ns = 500000000,
                                           .stop_fd = -1,
                                           .file_fd = memfd_create("trace", MFD_CLOEXEC)};
    ck_assert_msg(attach_record(&options, &result, &error) == 0, "%s", error.text);
    ck_assert_uint_gt(result.taken, 0);
    ck_assert_uint_ge(result.roots * 1000, result.taken * 995);
    struct trace trace;
    struct base_error trace_error;
    ck_assert_int_eq(trace_read_fd(options.file_fd, "trace", &trace, &trace_error), 0);
    ck_assert_uint_eq(trace.pid, (uint32_t)inner);
    // Owners of locks are told by the numbers of out here.
    uint64_t owner, owners = 0;
    for (size_t i = 0; i < trace.sample_count; i++)
        if (trace_extra(&trace, &trace.samples[i], QUT_TRACE_EXTRA_OWNER_TID, &owner)) {
            bool is_known = false;
            for (size_t t = 0; t < trace.thread_count; t++)
                is_known = is_known || trace.threads[t].tid == owner;
            ck_assert(is_known);
            owners++;
        }
    ck_assert_uint_gt(owners, 0);
    trace_free(&trace);
    close(options.file_fd);
    end(outer);
    close(ready[0]);
}
END_TEST

// ---- parts

START_TEST(durations)
{
    static struct attach_times times;
    ck_assert_uint_eq(attach_times_at(&times, 500), 0);
    for (uint64_t i = 1; i <= 100000; i++)
        attach_times_add(&times, i);
    const struct {
        unsigned thousandths;
        double wanted;
    } cases[] = {{500, 50000}, {990, 99000}, {1000, 100000}, {1, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = (double)attach_times_at(&times, cases[i].thousandths);
        ck_assert_double_ge(got, cases[i].wanted);
        ck_assert_double_le(got, cases[i].wanted * 1.07);
    }
    attach_times_add(&times, UINT64_MAX);
    ck_assert_uint_eq(attach_times_at(&times, 1000), UINT64_MAX);
}
END_TEST

// As NT_PRSTATUS has them, in words.
struct block {
    uint64_t words[27];
};
enum { R10 = 7, RAX = 10, RDX = 12, RDI = 14, ORIG_RAX = 15 };

static struct block block_of(long number, long result)
{
    struct block block = {{0}};
    block.words[ORIG_RAX] = (uint64_t)number;
    block.words[RAX] = (uint64_t)result;
    return block;
}

START_TEST(calls)
{
    enum { EPOLL_WAIT = 232, POLL = 7, IOCTL = 16, WRITE = 1, CLOSE = 3, RECVFROM = 45, CLONE = 56, RESTART = 514 };
    uint64_t fd = 0;
    struct block block = block_of(EPOLL_WAIT, -EINTR);
    ck_assert_int_eq(attach_mend_call(&arch_x86_64, &block, &fd), ATTACH_CALL_RESTARTED);
    ck_assert_int_eq((int)block.words[RAX], -RESTART);
    ck_assert_int_eq((int)block.words[ORIG_RAX], EPOLL_WAIT);
    const struct {
        long number, result;
        enum attach_call wanted;
    } others[] = {
        {EPOLL_WAIT, 1, ATTACH_CALL_UNTOUCHED}, {EPOLL_WAIT, 0, ATTACH_CALL_UNTOUCHED},
        {-1, -EINTR, ATTACH_CALL_UNTOUCHED},    // not in a call: a register that happens to hold that
        {POLL, -516, ATTACH_CALL_UNTOUCHED},    // the kernel's own business
        {CLOSE, -EINTR, ATTACH_CALL_UNTOUCHED}, // the descriptor has gone: never again
        {IOCTL, -EINTR, ATTACH_CALL_DISTURBED},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct block before = block = block_of(others[i].number, others[i].result);
        ck_assert_int_eq(attach_mend_call(&arch_x86_64, &block, &fd), others[i].wanted);
        ck_assert_mem_eq(&block, &before, sizeof block);
    }
    block = block_of(WRITE, 10);
    block.words[RDI] = 5;
    block.words[RDX] = 11;
    ck_assert_int_eq(attach_mend_call(&arch_x86_64, &block, &fd), ATTACH_CALL_SHORT);
    ck_assert_uint_eq(fd, 5);
    block.words[RDX] = 10;
    ck_assert_int_eq(attach_mend_call(&arch_x86_64, &block, &fd), ATTACH_CALL_UNTOUCHED);
    block = block_of(RECVFROM, 10);
    block.words[RDX] = 11;
    ck_assert_int_eq(attach_mend_call(&arch_x86_64, &block, &fd), ATTACH_CALL_UNTOUCHED);
    block.words[R10] = 0x100; // MSG_WAITALL
    ck_assert_int_eq(attach_mend_call(&arch_x86_64, &block, &fd), ATTACH_CALL_SHORT);
    block = block_of(CLONE, 0);
    ck_assert(target_live_is_newborn(&arch_x86_64, &block, NULL, 0));
    block.words[RAX] = 77;
    ck_assert(!target_live_is_newborn(&arch_x86_64, &block, NULL, 0));
    // Interrupted in user mode: mov $435, %eax; syscall; test %rax, %rax; jl; je. The kernel knows of no call any more.
    uint8_t code[] = {0x90, 0xb8, 0xb3, 0x01, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 0x01, 0x90, 0x90};
    enum { CALL_END = 8, JUMPS_END = 15 };
    block = block_of(-1, 0);
    ck_assert(target_live_is_newborn(&arch_x86_64, &block, code, CALL_END));
    ck_assert(target_live_is_newborn(&arch_x86_64, &block, code, JUMPS_END));
    ck_assert(!target_live_is_newborn(&arch_x86_64, &block, code, sizeof code));
    ck_assert(!target_live_is_newborn(&arch_x86_64, &block, code, CALL_END - 1));
    block.words[RAX] = 77;
    ck_assert(!target_live_is_newborn(&arch_x86_64, &block, code, CALL_END));
    block.words[RAX] = 0;
    code[2] = 0xb2; // another call
    ck_assert(!target_live_is_newborn(&arch_x86_64, &block, code, CALL_END));
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    subject_path = argv[1];
    Suite *suite = suite_create("attach_refuse");
    TCase *tests = tcase_create("refuse");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, who_is_not_there);
    tcase_add_test(tests, the_kernel);
    tcase_add_test(tests, the_dead);
    tcase_add_test(tests, who_is_traced);
    tcase_add_test(tests, who_is_not_ours);
    tcase_add_test(tests, who_is_elsewhere);
    tcase_add_test(tests, durations);
    tcase_add_test(tests, calls);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
