// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/second_pointer.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

uintptr_t os_second_pointer(void)
{
    uintptr_t pointer = 0;
#ifdef SYS_arch_prctl // of 32-bit x86 it cannot ask for this
    enum { GET_GS = 0x1004 };
    int saved_errno = errno;
    if (syscall(SYS_arch_prctl, GET_GS, &pointer) != 0)
        pointer = 0;
    errno = saved_errno;
#endif
    return pointer;
}
