// SPDX-License-Identifier: Apache-2.0
// Functions with a place at which everything matters: flags, what lies below the stack pointer, all general registers,
// vectors. Each checks what it computes, in threads and in signal handlers.
//
//     places_subject offsets               prints NAME and the place's distance from its function, a line each
//     places_subject THREADS ROUNDS        prints NAME and how often its place was passed, then "wrong N"
//     places_subject THREADS wait          prints "ready"; the same, until its standard input ends
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define FUNCTION(name) ".globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"
#define END(name)      ".cfi_endproc\n.size " #name ", . - " #name "\n"
#define PLACE(name)    ".globl " #name "_place\n" #name "_place:\n"

__asm__(
    ".text\n.balign 16\n"
    // The carry and the zero flag of each round are used behind the place: sums of rdi, ..., 1 with 64 carries.
    FUNCTION(places_flags) "xorl %eax, %eax\nxorl %edx, %edx\nmovq %rdi, %rcx\nmovabsq $0x8000000000000001, %rsi\n"
                           "1: addq %rsi, %rax\n" PLACE(
                               places_flags) "leaq 0(%rax,%rax,1), %r8\nmovq %rcx, %r9\nadcq $0, %rdx\n"
                                             "decq %rcx\njnz 1b\nmovq %rdx, %rax\nret\n" END(places_flags)
    // A leaf that keeps what it has below the stack pointer, to the last byte that it may.
    ".balign 16\n" FUNCTION(places_below) "movq %rdi, -8(%rsp)\nmovq %rdi, -64(%rsp)\nmovq %rdi, -128(%rsp)\n" PLACE(
        places_below) "movq -128(%rsp), %rax\naddq -64(%rsp), %rax\naddq -8(%rsp), %rax\nret\n" END(places_below)
    // Every register has its own number there.
    ".balign 16\n" FUNCTION(
        places_registers) "pushq %rbx\n.cfi_adjust_cfa_offset 8\npushq %rbp\n.cfi_adjust_cfa_offset 8\npushq %r12\n"
                          ".cfi_adjust_cfa_offset 8\npushq %r13\n.cfi_adjust_cfa_offset 8\npushq "
                          "%r14\n.cfi_adjust_cfa_offset 8\n"
                          "pushq %r15\n.cfi_adjust_cfa_offset 8\n"
                          "movl $1, %eax\nmovl $2, %ebx\nmovl $4, %ecx\nmovl $8, %edx\nmovl $16, %esi\nmovl $32, "
                          "%ebp\nmovl $64, %r8d\n"
                          "movl $128, %r9d\nmovl $256, %r10d\nmovl $512, %r11d\nmovl $1024, %r12d\nmovl $2048, "
                          "%r13d\nmovl $4096, %r14d\n"
                          "movl $8192, %r15d\n" PLACE(
                              places_registers) "addq %rbx, %rax\naddq %rcx, %rax\naddq %rdx, %rax\naddq %rsi, "
                                                "%rax\naddq %rbp, %rax\naddq %r8, %rax\n"
                                                "addq %r9, %rax\naddq %r10, %rax\naddq %r11, %rax\naddq %r12, "
                                                "%rax\naddq %r13, %rax\naddq %r14, %rax\n"
                                                "addq %r15, %rax\naddq %rdi, %rax\npopq %r15\n.cfi_adjust_cfa_offset "
                                                "-8\npopq %r14\n.cfi_adjust_cfa_offset -8\n"
                                                "popq %r13\n.cfi_adjust_cfa_offset -8\npopq "
                                                "%r12\n.cfi_adjust_cfa_offset -8\npopq %rbp\n"
                                                ".cfi_adjust_cfa_offset -8\npopq %rbx\n.cfi_adjust_cfa_offset "
                                                "-8\nret\n" END(places_registers)
    // Sums over vectors that are live in a loop.
    ".balign 16\n" FUNCTION(
        places_vectors) "movq %rdi, %xmm0\nmovdqa %xmm0, %xmm7\nmovdqa %xmm0, %xmm8\n"
                        "movdqa %xmm0, %xmm15\nmovl $4, %ecx\n2:\n" PLACE(
                            places_vectors) "paddq %xmm7, %xmm0\npaddq %xmm8, %xmm0\npaddq %xmm15, %xmm0\ndecl "
                                            "%ecx\njnz 2b\nmovq %xmm0, %rax\nret\n" END(places_vectors)
    // Nothing can be put there: a jump leads into the second instruction, and none begins behind the first byte.
    ".balign 16\n" FUNCTION(places_none) "movl %edi, %eax\n" PLACE(places_none) "nop\n3: decl %eax\njg 3b\nret\n" END(
        places_none) ".section .note.GNU-stack, \"\", @progbits\n.text\n");

long places_flags(long rounds);
long places_below(long number);
long places_registers(long number);
long places_vectors(long number);
long places_none(long rounds);
extern const char places_flags_place[], places_below_place[], places_registers_place[], places_vectors_place[],
    places_none_place[];

static long passed[4], wrong;
static volatile bool is_over;

static void round_of(long i)
{
    const long rounds = i % 7 + 1;
    long own_wrong = places_flags(rounds) != rounds / 2; // each second one carries
    own_wrong += places_below(i) != 3 * i;
    own_wrong += places_registers(i) != 16383 + i;
    own_wrong += places_vectors(i) != 13 * i;
    own_wrong += places_none(2) != 0;
    __atomic_fetch_add(&passed[0], rounds, __ATOMIC_RELAXED);
    __atomic_fetch_add(&passed[1], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&passed[2], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&passed[3], 4, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, own_wrong, __ATOMIC_RELAXED);
}

static void on_signal(int number)
{
    round_of(number);
}

static void *run(void *rounds)
{
    for (long i = 0; i < (long)(intptr_t)rounds && !is_over; i++)
        round_of(i);
    return NULL;
}

static void print_offset(const char *name, const char *place, long (*function)(long))
{
    printf("%s %ld\n", name, (long)(place - (const char *)(uintptr_t)function));
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"places_flags", "places_below", "places_registers", "places_vectors"};
    pthread_t threads[16];
    if (argc == 2 && strcmp(argv[1], "offsets") == 0) {
        print_offset(names[0], places_flags_place, places_flags);
        print_offset(names[1], places_below_place, places_below);
        print_offset(names[2], places_registers_place, places_registers);
        print_offset(names[3], places_vectors_place, places_vectors);
        print_offset("places_none", places_none_place, places_none);
        return 0;
    }
    const int count = argc == 3 ? atoi(argv[1]) : 0;
    if (count < 1 || count > 16)
        return 2;
    const bool waits = strcmp(argv[2], "wait") == 0;
    const long rounds = waits ? INT64_MAX : atol(argv[2]);
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)rounds) != 0)
            return 2;
    if (waits) {
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF || !feof(stdin))
            clearerr(stdin); // a signal came
        is_over = true;
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 4; i++)
        printf("%s %ld\n", names[i], passed[i]);
    printf("wrong %ld\n", wrong);
    return wrong != 0;
}
