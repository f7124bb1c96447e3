// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program: before its main, every function of all its modules is patched that has room for a jump,
// libc included. The stub only goes on. Nothing of libc is called while entries are exchanged. $PLAN_CACHE: where plans
// are kept; $PLAN_REPORT: a file that a line is added to.
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/qut_calls.h"
#include "tracer/calls/plan.h"
#include "tracer/calls/thunk.h"

enum { MODULES_MAX = 512, STUB_AT = 32, PAGE = 4096, MIB = 1 << 20, NEAR_MIB = 1900 };

struct module {
    struct calls_plan *plan;
    uint64_t bias;
    uint8_t *block;
    size_t used_bytes;
    struct calls_patch *patches; // by function
};

static struct module modules[MODULES_MAX];
static unsigned module_count;

static bool is_own(const char *path)
{
    return strstr(path, "everywhere") || strstr(path, "linux-vdso");
}

static int plan_module(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    char self[4096];
    const char *path = info->dlpi_name;
    if (!*path) {
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        self[length > 0 ? length : 0] = 0;
        path = self;
    }
    struct calls_plan_cache cache = {.directory = getenv("PLAN_CACHE")};
    struct module *module = &modules[module_count];
    if (is_own(path) || module_count == MODULES_MAX || calls_plan_get(path, NULL, &cache, &module->plan, NULL) != 0)
        return 0;
    module->bias = info->dlpi_addr;
    module_count++;
    return 0;
}

static void *map_near(uint64_t start, uint64_t end, size_t bytes)
{
    for (uint64_t away = MIB; away < (uint64_t)NEAR_MIB * MIB; away += MIB) {
        const uint64_t places[] = {(start & ~(uint64_t)(MIB - 1)) - away, ((end + MIB) & ~(uint64_t)(MIB - 1)) + away};
        for (unsigned i = 0; i < 2; i++) {
            if (places[i] < MIB || places[i] >> 47)
                continue;
            void *block = mmap((void *)places[i], bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (block != MAP_FAILED)
                return block;
        }
    }
    return NULL;
}

static unsigned make_thunks(struct module *module)
{
    const struct qut_plan_header *header = module->plan->header;
    unsigned made = 0;
    size_t bytes = QUT_CALLS_BLOCK_CODE_AT + (size_t)QUT_CALLS_THUNK_BYTES_MAX * header->function_count;
    module->block = map_near(module->bias + header->text_start, module->bias + header->text_end, bytes);
    module->patches = calloc(header->function_count + 1u, sizeof *module->patches);
    if (!module->block || !module->patches)
        return 0;
    uint64_t stub = (uint64_t)module->block + STUB_AT;
    memcpy(module->block + QUT_CALLS_BLOCK_ENTER_AT, &stub, sizeof stub);
    memcpy(module->block + STUB_AT, (uint8_t[]){0xff, 0x64, 0x24, 0xd8}, 4); // jmp *-40(%rsp)
    module->used_bytes = QUT_CALLS_BLOCK_CODE_AT;
    for (uint32_t i = 0; i < header->function_count; i++) {
        const struct qut_plan_function *function = &module->plan->functions[i];
        struct calls_thunk thunk;
        const struct calls_thunk_place place = {.load_bias = module->bias,
                                                .thunk_address = (uint64_t)module->block + module->used_bytes,
                                                .block_address = (uint64_t)module->block,
                                                .function_id = i + 1};
        if (function->kind == QUT_PLAN_REFUSED || function->kind == QUT_PLAN_TRAP)
            continue;
        if (!calls_thunk_make(function, &place, &thunk) || !calls_patch_make(function, &place, &module->patches[i])) {
            module->patches[i].piece_count = 0;
            continue;
        }
        memcpy(module->block + module->used_bytes, thunk.bytes, thunk.size_bytes);
        module->used_bytes += (thunk.size_bytes + 15u) & ~15u;
        made++;
    }
    return made;
}

static void make_writable(uint64_t page)
{
    long result;
    register long protection __asm__("rdx") = PROT_READ | PROT_WRITE | PROT_EXEC;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_mprotect), "D"(page), "S"((long)PAGE), "r"(protection)
                     : "rcx", "r11", "memory");
}

static void exchange(const struct calls_patch_piece *piece)
{
    volatile uint8_t *at = (volatile uint8_t *)piece->address;
    make_writable(piece->address & ~(uint64_t)(PAGE - 1));
    make_writable((piece->address + piece->size_bytes - 1u) & ~(uint64_t)(PAGE - 1));
    for (unsigned i = 0; i < piece->size_bytes; i++) {
        if (at[i] != piece->original[i])
            __builtin_trap();
        at[i] = piece->bytes[i];
    }
}

static void report(unsigned functions)
{
    const char *path = getenv("PLAN_REPORT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%u functions of %u modules\n", functions, module_count);
    fclose(file);
}

__attribute__((constructor)) static void begin(void)
{
    unsigned functions = 0;
    dl_iterate_phdr(plan_module, NULL);
    for (unsigned i = 0; i < module_count; i++)
        functions += make_thunks(&modules[i]);
    report(functions);
    for (unsigned i = 0; i < module_count; i++) {
        const struct module *module = &modules[i];
        for (uint32_t k = 0; module->block && module->patches && k < module->plan->header->function_count; k++)
            for (unsigned n = 0; n < module->patches[k].piece_count; n++)
                exchange(&module->patches[k].pieces[n]);
    }
}
