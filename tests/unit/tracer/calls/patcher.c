// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/calls/patcher.h"

#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "formats/qut_calls.h"
#include "tests/support/elf_builder.h"

enum { COUNTER_AT = 16, STUB_AT = 32, COUNT_STUB_AT = 48, CODE_AT = 80, CODE_BYTES = 4 };

// What the agent's thread has, as far as thunks know it.
static struct own {
    uint64_t others[QUT_CALLS_OWN_COUNTS_AT / 8];
    uint64_t *counts;
} own;
static __thread struct own *own_of_thread = &own;

static const struct patcher *trapping; // whose traps are met

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uint64_t entry = (uint64_t)*pc - 1 - trapping->load_bias;
    uint32_t low = 0, high = trapping->plan->header->function_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trapping->plan->functions[middle].entry_vaddr <= entry)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || !trapping->thunks[low - 1])
        abort();
    *pc = (greg_t)trapping->thunks[low - 1];
}

bool patcher_open(struct patcher *patcher, const char *path)
{
    struct base_error error = {0};
    char text[256];
    *patcher = (struct patcher){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL), .path = strdup(path)};
    if (!patcher->library) {
        printf("SKIP: %s\n", dlerror());
        free(patcher->path);
        return false;
    }
    struct link_map *map;
    ck_assert_int_eq(dlinfo(patcher->library, RTLD_DI_LINKMAP, &map), 0);
    patcher->load_bias = map->l_addr;
    ck_assert_msg(calls_plan_make(map->l_name, NULL, &patcher->plan, &error) == 0, "%s",
                  base_error_text(&error, text, sizeof text));
    patcher->thunks = calloc(patcher->plan->header->function_count + 1u, sizeof *patcher->thunks);
    return true;
}

bool patcher_open_copy(struct patcher *patcher, const char *path, const char *directory)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("SKIP: there is no %s\n", path);
        return false;
    }
    struct build_buffer bytes = {0};
    uint8_t part[65536];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        build_add(&bytes, part, got);
    fclose(file);
    char *copy = build_file(directory, strrchr(path, '/') + 1, bytes.data, bytes.size);
    bool opened = patcher_open(patcher, copy);
    free(bytes.data);
    free(copy);
    return opened;
}

const struct qut_plan_function *patcher_find(const struct patcher *patcher, const char *name)
{
    for (uint32_t i = 0; i < patcher->plan->header->function_count; i++)
        if (strcmp(calls_plan_name(patcher->plan, &patcher->plan->functions[i]), name) == 0)
            return &patcher->plan->functions[i];
    ck_abort_msg("no function %s", name);
    return NULL;
}

void *patcher_address(const struct patcher *patcher, const char *name)
{
    void *address = dlsym(patcher->library, name);
    ck_assert_msg(address != NULL, "no symbol %s", name);
    return address;
}

// Near the library: somewhere below it.
static void map_block(struct patcher *patcher)
{
    patcher->block_bytes = CODE_AT + (size_t)QUT_CALLS_THUNK_BYTES_MAX * patcher->plan->header->function_count;
    uint64_t at = (patcher->load_bias + patcher->plan->header->text_start) & ~(uint64_t)0xfff;
    void *block = MAP_FAILED;
    for (unsigned tries = 0; block == MAP_FAILED && tries < 1500; tries++) {
        at -= (uint64_t)1 << 20;
        block = mmap((void *)at, patcher->block_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    ck_assert_msg(block != MAP_FAILED, "no room near %s", patcher->path);
    patcher->block = block;
    uint64_t stub = (uint64_t)patcher->block + STUB_AT;
    uint64_t count_stub = (uint64_t)patcher->block + COUNT_STUB_AT;
    memcpy(patcher->block + QUT_CALLS_BLOCK_ENTER_AT, &stub, 8);
    memcpy(patcher->block + QUT_CALLS_BLOCK_COUNT_AT, &count_stub, 8);
    // lock incq counter(%rip); jmp *-40(%rsp)
    static const uint8_t code[] = {0xf0, 0x48, 0xff, 0x05, 0, 0, 0, 0, 0xff, 0x64, 0x24, 0xd8};
    memcpy(patcher->block + STUB_AT, code, sizeof code);
    int32_t distance = COUNTER_AT - (STUB_AT + 8);
    memcpy(patcher->block + STUB_AT + CODE_BYTES, &distance, 4);
    // The same with mov -24(%rsp), %rax before it: the thunk had used rax.
    static const uint8_t take_rax[] = {0x48, 0x8b, 0x44, 0x24, 0xe8};
    memcpy(patcher->block + COUNT_STUB_AT, take_rax, sizeof take_rax);
    memcpy(patcher->block + COUNT_STUB_AT + sizeof take_rax, code, sizeof code);
    distance = COUNTER_AT - (COUNT_STUB_AT + (int)sizeof take_rax + 8);
    memcpy(patcher->block + COUNT_STUB_AT + sizeof take_rax + CODE_BYTES, &distance, 4);
    patcher->used_bytes = CODE_AT;
}

static void protect_text(const struct patcher *patcher, int protection)
{
    const struct qut_plan_header *header = patcher->plan->header;
    uint64_t start = (header->text_start + patcher->load_bias) & ~(uint64_t)0xfff;
    uint64_t end = header->text_end + patcher->load_bias;
    ck_assert_int_eq(mprotect((void *)start, end - start, protection), 0);
}

static void exchange(const struct calls_patch *patch, bool back)
{
    for (unsigned i = 0; i < patch->piece_count; i++) {
        const struct calls_patch_piece *piece = &patch->pieces[i];
        const uint8_t *expected = back ? piece->bytes : piece->original;
        ck_assert_mem_eq((void *)piece->address, expected, piece->size_bytes);
        memcpy((void *)piece->address, back ? piece->original : piece->bytes, piece->size_bytes);
    }
}

static void *thread_pointer(void)
{
    void *pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

void patcher_give_cells(const struct patcher *patcher)
{
    own.counts = calloc(patcher->plan->header->function_count + 1u, sizeof *own.counts);
    ck_assert_ptr_nonnull(own.counts);
}

void patcher_take_cells(void)
{
    free(own.counts);
    own.counts = NULL;
}

uint64_t patcher_cell(const struct patcher *patcher, const struct qut_plan_function *function)
{
    return own.counts[function - patcher->plan->functions + 1];
}

static struct calls_thunk_place place_of(const struct patcher *patcher, uint32_t i, uint64_t address)
{
    return (struct calls_thunk_place){.load_bias = patcher->load_bias,
                                      .thunk_address = address,
                                      .block_address = (uint64_t)patcher->block,
                                      .function_id = i + 1,
                                      .is_counted = patcher->counts,
                                      .architecture = patcher->plan->header->architecture,
                                      .own_tls_offset = (char *)&own_of_thread - (char *)thread_pointer()};
}

unsigned patcher_patch(struct patcher *patcher)
{
    unsigned patched = 0;
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    trapping = patcher;
    sigaction(SIGTRAP, &action, NULL);
    map_block(patcher);
    protect_text(patcher, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (uint32_t i = 0; i < patcher->plan->header->function_count; i++) {
        const struct qut_plan_function *function = &patcher->plan->functions[i];
        struct calls_thunk thunk;
        struct calls_patch patch;
        uint64_t address = (uint64_t)patcher->block + patcher->used_bytes;
        struct calls_thunk_place place = place_of(patcher, i, address);
        if (function->kind == QUT_PLAN_REFUSED)
            continue;
        ck_assert(calls_thunk_make(function, &place, &thunk) && calls_patch_make(function, &place, &patch));
        memcpy((void *)address, thunk.bytes, thunk.size_bytes);
        patcher->thunks[i] = address;
        patcher->used_bytes += (thunk.size_bytes + 15u) & ~15u;
        exchange(&patch, false);
        patched++;
    }
    protect_text(patcher, PROT_READ | PROT_EXEC);
    return patched;
}

void patcher_restore(struct patcher *patcher)
{
    protect_text(patcher, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (uint32_t i = 0; i < patcher->plan->header->function_count; i++) {
        struct calls_patch patch;
        struct calls_thunk_place place = place_of(patcher, i, patcher->thunks[i]);
        if (!patcher->thunks[i])
            continue;
        ck_assert(calls_patch_make(&patcher->plan->functions[i], &place, &patch));
        exchange(&patch, true);
        patcher->thunks[i] = 0;
    }
    protect_text(patcher, PROT_READ | PROT_EXEC);
}

uint64_t patcher_entries(const struct patcher *patcher)
{
    uint64_t entries;
    memcpy(&entries, patcher->block + COUNTER_AT, 8);
    return entries;
}

void patcher_close(struct patcher *patcher)
{
    if (patcher->block)
        munmap(patcher->block, patcher->block_bytes);
    calls_plan_free(patcher->plan);
    dlclose(patcher->library);
    free(patcher->thunks);
    free(patcher->path);
}
