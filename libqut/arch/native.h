// SPDX-License-Identifier: Apache-2.0
// The architecture this is built for, known to the compiler: walkers specialised for it fold its data into code.
// Each folder's native.h defines
//
//   arch_native_arch              static const struct arch, equal to the folder's arch_NAME
//   arch_native_strip(pc)         a code address without its signature
//   arch_native_vector_bytes()    what arch.vector_bytes_reg holds, where this thread may read it; 0 where there is
//   none arch_native_counter()         a counter that runs by time and that user mode may read; 0 unless
//   ARCH_NATIVE_HAS_COUNTER ARCH_NATIVE_COUNTER_CLOCK     what the kernel calls its clock where that is made of it
//   ARCH_NATIVE_RA_OFFSET_BYTES   where every frame's return address lies, from its cfa; 0 where rules say
//   ARCH_NATIVE_FRAME_IS_BELOW_FP whether what a frame saves lies below where its fp points; else above
//   ARCH_NATIVE_HAS_ADD           defined where its arch_native_add is less than an atomic instruction among threads
//   ARCH_NATIVE_FP_SLOT           slot of the tracked register that frames are found by where not by sp
//
// and each folder's capture.S the entry points qut_backtrace, qut_cursor_here and qut_trace_sample, which save what
// their caller's frame holds as struct arch_capture and go on in C.
#ifndef QUT_ARCH_NATIVE_H
#define QUT_ARCH_NATIVE_H

#include "libqut/arch/arch.h"

// Words at which capture.S stores: a return address, the stack pointer behind it, and the tracked registers in their
// order.
struct arch_capture {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t tracked[QUT_TRACKED_MAX];
};

#if defined(__x86_64__)
#include "libqut/arch/x86_64/native.h"
#elif defined(__aarch64__)
#include "libqut/arch/aarch64/native.h"
#elif defined(__arm__)
#include "libqut/arch/arm/native.h"
#elif defined(__i386__)
#include "libqut/arch/x86/native.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "libqut/arch/riscv64/native.h"
#else
#error "QUT has no local walker for this architecture"
#endif

#ifndef ARCH_NATIVE_HAS_ADD
typedef uint64_t __attribute__((aligned(8))) arch_native_sum; // on 32-bit machines, too

// To a counter of this thread's, such that no handler of this thread comes in between; other threads may read it.
static inline void arch_native_add(arch_native_sum *counter, uint64_t amount)
{
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}
#endif

// What a return address is looked up as, plus 1.
static inline uintptr_t arch_native_key(uintptr_t ra)
{
    uintptr_t stripped = (uintptr_t)arch_native_strip(ra);
    return arch_native_arch.has_thumb ? stripped & ~(uintptr_t)1 : stripped;
}

#endif
