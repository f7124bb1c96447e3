// SPDX-License-Identifier: Apache-2.0
// A walk of the calling thread by AOSP's libunwindstack, as its libbacktrace makes it. The maps are read once and names
// are not asked for. It has no limit below 256 frames: it goes on to the end of the stack, a few frames further than
// the others.
//
// It reads each word by a system call, 20 a frame. Android's own unwinder copies pages, some 15 times faster. So there
// is a second way: this library's process_vm_readv comes before libc's (RTLD_DEEPBIND) and copies, which is faster than
// any version there is, and no walker of foreign stacks may do it.
#include <backtrace/Backtrace.h>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#define EXPORTED __attribute__((visibility("default")))

static bool reads_directly;

extern "C" EXPORTED pid_t getpid() noexcept
{
    static const pid_t pid = static_cast<pid_t>(syscall(SYS_getpid));
    return pid;
}

extern "C" EXPORTED ssize_t process_vm_readv(pid_t pid, const iovec *local, unsigned long local_count,
                                             const iovec *remote, unsigned long remote_count,
                                             unsigned long flags) noexcept
{
    if (!reads_directly || pid != getpid() || local_count != 1)
        return syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);
    size_t done = 0;
    for (unsigned long i = 0; i < remote_count && done < local->iov_len; i++) {
        const size_t room = local->iov_len - done;
        const size_t count = remote[i].iov_len < room ? remote[i].iov_len : room;
        std::memcpy(static_cast<char *>(local->iov_base) + done, remote[i].iov_base, count);
        done += count;
    }
    return static_cast<ssize_t>(done);
}

extern "C" EXPORTED void bench_aosp_read_directly(bool directly)
{
    reads_directly = directly;
}

extern "C" EXPORTED size_t bench_aosp_walk(uintptr_t *pcs, size_t max)
{
    static BacktraceMap *const map = [] {
        BacktraceMap *made = BacktraceMap::Create(BACKTRACE_CURRENT_PROCESS);
        if (made)
            made->SetResolveNames(false);
        return made;
    }();
    static thread_local std::unique_ptr<Backtrace> walker(
        Backtrace::Create(BACKTRACE_CURRENT_PROCESS, BACKTRACE_CURRENT_THREAD, map));
    if (!map || !walker || !walker->Unwind(0))
        return 0;
    size_t count = 0;
    for (const backtrace_frame_data_t &frame : *walker) {
        if (count == max)
            break;
        pcs[count++] = frame.pc;
    }
    return count;
}
