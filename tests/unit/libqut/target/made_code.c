// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/target/made_code.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct made_descriptor __jit_debug_descriptor = {.version = 1}, __dex_debug_descriptor = {.version = 1};
struct made_shared *made_shared;
int made_pipe[2];
struct made_entry made_entries[MADE_ENTRIES];
unsigned made_frame_bytes[SLOTS] = {24, 136, 40, 8};

// Its frame has made_frame_bytes[slot] bytes between the return address and what it calls.
void made_write_slot(unsigned slot)
{
    uint32_t size = made_frame_bytes[slot];
    uint8_t *code = (uint8_t *)(uintptr_t)(FRAME_TEXT + slot * SLOT_BYTES);
    const uint8_t bytes[] = {0x48, 0x81, 0xec, (uint8_t)size, (uint8_t)(size >> 8), 0, 0, 0xff, 0xd7, // call *%rdi
                             0x48, 0x81, 0xc4, (uint8_t)size, (uint8_t)(size >> 8), 0, 0, 0xc3};
    memcpy(code, bytes, sizeof bytes);
}

void made_begin(void)
{
    void *at = (void *)(uintptr_t)FRAME_TEXT;
    void *code = mmap(at, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (code != at)
        _exit(77);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        made_write_slot(slot);
}

static struct frame_asm frames_of(enum input_frame_kind kind, struct frame_cie *cie, unsigned first, unsigned count,
                                  int too_large)
{
    struct frame_asm a = frame_asm(&arch_x86_64, kind);
    frame_add_cie(&a, cie);
    for (unsigned slot = first; slot < first + count; slot++) {
        unsigned size = made_frame_bytes[slot] + 8 + (unsigned)too_large;
        const uint8_t program[] = {CFA_ADVANCE_LOC | 7,
                                   CFA_DEF_CFA_OFFSET,
                                   (uint8_t)(size | 0x80),
                                   (uint8_t)(size >> 7),
                                   CFA_ADVANCE_LOC | 9,
                                   CFA_DEF_CFA_OFFSET,
                                   8};
        frame_add_fde(&a, &(struct frame_fde){.cie = cie,
                                              .start = (uint64_t)slot * SLOT_BYTES,
                                              .size = SLOT_BYTES,
                                              .program = program,
                                              .program_size = sizeof program});
    }
    return a;
}

static struct build_section text_of(unsigned first, unsigned count)
{
    return (struct build_section){".text",
                                  SHT_NOBITS,
                                  SHF_ALLOC | SHF_EXECINSTR,
                                  FRAME_TEXT + (uint64_t)first * SLOT_BYTES,
                                  NULL,
                                  (size_t)count * SLOT_BYTES,
                                  16};
}

struct build_buffer made_file(unsigned first, unsigned count, int too_large)
{
    struct frame_cie cie = {.augmentation = "zR", .pointer_encoding = PE_UDATA8};
    struct frame_asm a = frames_of(INPUT_FRAME_DEBUG, &cie, first, count, too_large);
    struct build_elf spec = {
        .sections = {text_of(first, count), {".debug_frame", SHT_PROGBITS, 0, 0, a.bytes.data, a.bytes.size, 8}}};
    struct build_buffer file = build_elf(&spec);
    frame_free(&a);
    return file;
}

struct build_buffer made_loaded_file(unsigned first, unsigned count)
{
    struct frame_cie cie = {.pointer_encoding = PE_PCREL | PE_SDATA4};
    struct frame_asm a = frames_of(INPUT_FRAME_EH, &cie, first, count, 0);
    void *at = (void *)(uintptr_t)FRAME_VADDR;
    if (mmap(at, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
        _exit(77);
    memcpy(at, a.bytes.data, a.bytes.size);
    memset(a.bytes.data, 0x55, a.bytes.size);
    struct build_elf spec = {
        .type = ET_REL,
        .sections = {text_of(first, count),
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAME_VADDR, a.bytes.data, a.bytes.size, 8}}};
    struct build_buffer file = build_elf(&spec);
    frame_free(&a);
    return file;
}

void made_set_layout(int layout)
{
    struct made_descriptor *d = &__jit_debug_descriptor;
    if (layout == ANY_LAYOUT)
        return;
    memcpy(d->magic, "Android", 7);
    d->magic[7] = (char)layout;
    d->descriptor_bytes = sizeof *d;
    d->entry_bytes = layout == ANDROID1 ? 40 : 48;
}

struct made_entry *made_add(struct made_descriptor *d, unsigned index, const void *symfile, size_t size,
                            uint64_t timestamp)
{
    struct made_entry *entry = &made_entries[index];
    d->seqlock++;
    *entry = (struct made_entry){.next = d->first,
                                 .symfile = symfile,
                                 .symfile_bytes = size,
                                 .timestamp = timestamp,
                                 .seqlock = (entry->seqlock | 1) + 1};
    if (d->first)
        d->first->previous = entry;
    d->first = d->relevant = entry;
    d->action = 1;
    d->timestamp = timestamp;
    d->seqlock++;
    return entry;
}

struct made_entry *made_add_file(unsigned index, struct build_buffer file, uint64_t timestamp)
{
    return made_add(&__jit_debug_descriptor, index, file.data, file.size, timestamp);
}

__attribute__((noinline)) void made_leaf(void)
{
    static char byte;
    made_shared->ready++;
    // As a sleeping thread has to: its frames, and this system call's, do without other registers.
    long result = syscall(SYS_read, made_pipe[0], &byte, 1);
    __asm__ volatile("" : "+r"(result));
}

__attribute__((noinline)) static void call_slot(unsigned slot, made_function function)
{
    ((void (*)(made_function))(uintptr_t)(FRAME_TEXT + slot * SLOT_BYTES))(function);
    __asm__ volatile("");
}

static void through_slot_1(void)
{
    call_slot(1, made_leaf);
    __asm__ volatile("");
}

// main, ..., slot 0, through_slot_1, slot 1, made_leaf, read.
void made_descend(void)
{
    call_slot(0, through_slot_1);
    __asm__ volatile("");
}

// ---- code that comes and goes

void made_reused(void)
{
    struct build_buffer file = made_file(0, 2, 0);
    made_add_file(0, file, 1);
    made_descend();
    made_frame_bytes[1] += CHANGE_BYTES;
    made_write_slot(1);
    __jit_debug_descriptor.first = NULL;
    struct build_buffer other = made_file(0, 2, 0);
    memcpy(file.data, other.data, other.size);
    made_add_file(0, file, 1);
    made_descend();
}

void made_entry_reused(void)
{
    made_add_file(0, made_file(0, 2, 0), 1);
    made_descend();
    made_frame_bytes[1] += CHANGE_BYTES;
    made_write_slot(1);
    __jit_debug_descriptor.first = NULL;
    made_add_file(0, made_file(0, 2, 0), 1);
    made_descend();
}

void made_replaced(void)
{
    made_set_layout(ANDROID2);
    made_add_file(0, made_file(0, 2, 0), 1);
    made_descend();
    made_frame_bytes[1] += CHANGE_BYTES;
    made_write_slot(1);
    made_add_file(1, made_file(0, 2, 0), 2); // the old one is still there
    made_descend();
}

static void remove_all(struct made_descriptor *d)
{
    d->seqlock++;
    for (struct made_entry *entry = d->first; entry; entry = entry->next)
        entry->seqlock |= 1;
    d->action = 2;
    d->relevant = d->first;
    d->first = NULL;
    d->timestamp++;
    d->seqlock++;
}

static void spin(void)
{
    enum { ROUNDS = 30000 };
    for (unsigned i = 0; i < ROUNDS; i++)
        __asm__ volatile("");
}

static void spin_in_slot_1(void)
{
    call_slot(1, spin);
    __asm__ volatile("");
}

void made_storm(void)
{
    made_shared->ready++;
    for (unsigned round = 1;; round++) {
        made_frame_bytes[0] = 8 + 16 * (round * 7 % 50);
        made_frame_bytes[1] = 8 + 16 * (round * 11 % 50);
        made_write_slot(0);
        made_write_slot(1);
        struct build_buffer file = made_file(0, 2, 0);
        made_add_file(round % MADE_ENTRIES, file, 2 * round);
        call_slot(0, spin_in_slot_1);
        remove_all(&__jit_debug_descriptor);
        free(file.data); // the next one may lie there
    }
}
