// SPDX-License-Identifier: Apache-2.0
#include "tracer/modules.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/target/target.h"
#include "tracer/dex_names.h"

static const size_t memory_image_max_bytes = (size_t)256 << 20;

struct stack_module *stack_module_at(struct stack_modules *modules, uint64_t address)
{
    struct qut_module_info info;
    if (!qut_target_module(modules->target, address, &info))
        return NULL;
    for (size_t i = 0; i < modules->count; i++)
        if (modules->items[i]->info.start == info.start && modules->items[i]->info.file_offset == info.file_offset)
            return modules->items[i];
    if (modules->count == modules->capacity) {
        size_t capacity = modules->capacity ? 2 * modules->capacity : 32;
        struct stack_module **items = realloc(modules->items, capacity * sizeof(struct stack_module *));
        if (!items)
            return NULL;
        modules->items = items;
        modules->capacity = capacity;
    }
    struct stack_module *module = calloc(1, sizeof *module);
    if (!module)
        return NULL;
    module->info = info;
    modules->items[modules->count++] = module;
    return module;
}

uint64_t stack_module_base(const struct stack_module *module)
{
    return module->info.is_elf ? module->info.load_bias : module->info.start;
}

static struct qutc_image *open_file(const struct stack_modules *modules, const struct qut_module_info *info)
{
    // Names may come from a file that somebody truncates while we read: then they are missing, and nothing else.
    const struct qutc_image_options options = {.debug_root = modules->debug_root, .read_files = true};
    struct qutc_image *image = NULL;
    if (!*info->file_path || qutc_image_open(info->file_path, NULL, info->file_offset, 0, &options, &image, NULL) != 0)
        return NULL;
    // Another build has other functions at these addresses.
    bool is_other = info->build_id_size && image->identity_kind == QUTC_BUILD_ID &&
                    (image->identity_size > info->build_id_size ||
                     memcmp(image->identity, info->build_id, image->identity_size) != 0);
    if (is_other || (info->build_id_size && image->identity_kind != QUTC_BUILD_ID)) {
        qutc_image_close(image);
        return NULL;
    }
    return image;
}

struct memory_image {
    struct qut_target *target;
    uint64_t start;
};

static size_t read_memory(void *context, uint64_t position, void *bytes, size_t size)
{
    const struct memory_image *image = context;
    return qut_target_read(image->target, image->start + position, bytes, size);
}

bool stack_head_in_memory(const struct stack_modules *modules, uint64_t start, struct qut_elf_head *head)
{
    struct memory_image memory = {modules->target, start};
    return qut_elf_head_read(head, read_memory, &memory);
}

// The vdso is mapped whole, section headers and all. What is behind it is zero, or whatever is mapped there.
static void *copy_whole(const struct stack_modules *modules, const struct qut_module_info *info, size_t *size)
{
    enum { VDSO_MAX_BYTES = 65536 };
    *size = VDSO_MAX_BYTES;
    void *bytes = qut_os_pages(VDSO_MAX_BYTES, false);
    if (bytes)
        qut_target_read(modules->target, info->start, bytes, VDSO_MAX_BYTES);
    return bytes;
}

// What has no file any more, or never had one.
static struct qutc_image *open_memory(const struct stack_modules *modules, const struct qut_module_info *info)
{
    bool is_kernels = info->path[0] == '[', incomplete;
    struct qut_elf_head head;
    if ((!is_kernels && !info->deleted) || !stack_head_in_memory(modules, info->start, &head))
        return NULL;
    struct qutc_image *image = NULL;
    const struct qutc_image_options options = {.debug_root = modules->debug_root, .as_mapped = !is_kernels};
    size_t size;
    void *bytes = is_kernels ? copy_whole(modules, info, &size)
                             : qut_target_rebuild(modules->target, &head, info->load_bias, &size, &incomplete);
    if (bytes && size <= memory_image_max_bytes)
        qutc_image_open_memory((struct qutc_bytes){bytes, size}, NULL, &options, &image, NULL);
    if (bytes)
        qut_os_free_pages(bytes, size);
    return image;
}

static void read_symbols(const struct stack_modules *modules, struct stack_module *module)
{
    if (!module->info.is_elf)
        return;
    struct qutc_image *image = open_file(modules, &module->info);
    uint64_t load_bias = 0;
    if (!image) {
        image = open_memory(modules, &module->info);
        load_bias = module->info.load_bias;
    }
    if (image)
        module->symbols = qut_symbols_read(image, load_bias, NULL);
}

bool stack_module_symbol(struct stack_modules *modules, struct stack_module *module, uint64_t vaddr,
                         struct qut_symbol *symbol)
{
    if (!module->is_read) {
        module->is_read = true;
        read_symbols(modules, module);
    }
    return module->symbols && qut_symbols_find(module->symbols, vaddr, symbol);
}

void stack_modules_free(struct stack_modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        qut_symbols_free(modules->items[i]->symbols);
        free(modules->items[i]);
    }
    free(modules->items);
    stack_jit_free(modules);
    stack_dex_free(modules);
    *modules = (struct stack_modules){0};
}
