// SPDX-License-Identifier: Apache-2.0
// Thunks near functions, and the functions' instructions that lead to them.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/own/inside.h"
#include "libqut/host/host.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// ---- blocks

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

// The range from which all places can be reached.
static bool find_range(const struct own_place *places, size_t count, uint64_t *low, uint64_t *high)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = places[i].at < least ? places[i].at : least;
        most = places[i].at > most ? places[i].at : most;
    }
    const uint64_t reach = own_machine.reach_bytes;
    *low = most > reach ? most - reach : page_bytes();
    *high = least + reach;
    return most - least < reach;
}

// What is free, from the middle outwards.
static uint8_t *map_near(uint64_t bytes, const struct own_place *places, size_t count)
{
    enum { STEPS = 1024 };
    uint64_t low, high;
    if (!find_range(places, count, &low, &high))
        return NULL;
    const uint64_t middle = low + (high - low) / 2, step = (high - low) / 2 / STEPS;
    for (uint64_t i = 2; i < 2 * STEPS - 2; i++) {
        const uint64_t away = i / 2 * step, at = (i & 1 ? middle + away : middle - away) / page_bytes() * page_bytes();
        if (at < low || at + bytes > high)
            continue;
        void *got =
            mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == (void *)at)
            return got;
        if (got != MAP_FAILED) // a kernel that takes the address for a wish
            munmap(got, bytes);
    }
    return NULL;
}

static int fill(uint8_t *block, uint64_t bytes, struct own_place *places, size_t count, uint32_t first_id,
                uint64_t stub)
{
    uint8_t *next = block + QUT_CALLS_BLOCK_CODE_AT;
    memcpy(block + QUT_CALLS_BLOCK_ENTER_AT, &stub, sizeof stub);
    for (size_t i = 0; i < count; i++) {
        const size_t size =
            own_machine.thunk(next, places[i].at, (uint64_t)(block + QUT_CALLS_BLOCK_ENTER_AT), first_id + (uint32_t)i);
        if (size == 0)
            return -ERANGE;
        places[i].thunk = (uint64_t)next;
        next += (size + QUT_CALLS_THUNK_ALIGNMENT - 1) / QUT_CALLS_THUNK_ALIGNMENT * QUT_CALLS_THUNK_ALIGNMENT;
    }
    if (mprotect(block, bytes, PROT_READ | PROT_EXEC) != 0)
        return os_failed(SYS_mprotect);
    __builtin___clear_cache((char *)block, (char *)next);
    return 0;
}

int own_make_thunks(struct own_place *places, size_t count, uint32_t first_id, uint64_t stub)
{
    const uint64_t needed = QUT_CALLS_BLOCK_CODE_AT + count * (uint64_t)QUT_CALLS_THUNK_BYTES_MAX,
                   bytes = (needed + page_bytes() - 1) / page_bytes() * page_bytes();
    uint8_t *block = map_near(bytes, places, count);
    if (!block)
        return -ERANGE;
    const int error = fill(block, bytes, places, count, first_id, stub);
    if (error != 0)
        munmap(block, bytes);
    return error;
}

// ---- pages of code

#ifndef GNU_PROPERTY_AARCH64_FEATURE_1_AND
#define GNU_PROPERTY_AARCH64_FEATURE_1_AND 0xc0000000
#endif

struct search {
    uint64_t address;
    bool is_guarded;
};

// The loader has the pages of a module guarded whose note says that all of its code has marks.
static bool note_says_guarded(const uint8_t *at, uint64_t bytes)
{
    enum { MARKS = 1, NAME_BYTES = 4, ALIGNMENT = 8 };
    ElfW(Nhdr) note;
    if (bytes < sizeof note + NAME_BYTES)
        return false;
    memcpy(&note, at, sizeof note);
    if (note.n_type != NT_GNU_PROPERTY_TYPE_0 || note.n_namesz != NAME_BYTES ||
        note.n_descsz > bytes - sizeof note - NAME_BYTES)
        return false;
    const uint8_t *property = at + sizeof note + NAME_BYTES, *end = property + note.n_descsz;
    uint32_t head[3]; // what it is, its size, its first word
    while ((size_t)(end - property) >= sizeof head) {
        memcpy(head, property, sizeof head);
        if (head[0] == GNU_PROPERTY_AARCH64_FEATURE_1_AND && head[1] == sizeof head[2])
            return head[2] & MARKS;
        const uint64_t size = 2 * sizeof *head + ((uint64_t)head[1] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (size > (size_t)(end - property))
            return false;
        property += size;
    }
    return false;
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    bool is_here = false, is_guarded = false;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uint64_t at = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD)
            is_here |= search->address - at < header->p_memsz;
        else if (header->p_type == PT_GNU_PROPERTY)
            is_guarded = note_says_guarded((const uint8_t *)at, header->p_memsz);
    }
    search->is_guarded = is_here && is_guarded;
    return is_here;
}

// How the page of an instruction is protected.
static int protection_of(uint64_t at)
{
    struct search search = {.address = at};
    dl_iterate_phdr(look_at_module, &search);
    return PROT_READ | PROT_EXEC | (search.is_guarded ? own_machine.guarded : 0);
}

// With `thunk` 0: back.
static int exchange(uint64_t at, uint64_t thunk)
{
    void *page = (void *)(at / page_bytes() * page_bytes());
    const int protection = protection_of(at);
    if (mprotect(page, page_bytes(), protection | PROT_WRITE) != 0)
        return os_failed(SYS_mprotect);
    if (thunk)
        own_machine.lead(at, thunk);
    else
        own_machine.lead_back(at);
    return mprotect(page, page_bytes(), protection) == 0 ? 0 : os_failed(SYS_mprotect);
}

int own_lead_back(const struct own_place *places, size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count; i++) {
        const int failed = exchange(places[i].at, 0);
        error = error ? error : failed;
    }
    return error;
}

int own_lead(const struct own_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int error = exchange(places[i].at, places[i].thunk);
        if (error == 0)
            continue;
        own_lead_back(places, i + 1);
        return error;
    }
    return 0;
}
