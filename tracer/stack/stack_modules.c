// SPDX-License-Identifier: Apache-2.0
#include "tracer/stack/stack_modules.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/target/opened_target.h"

static const size_t memory_image_max_bytes = (size_t)256 << 20;

struct stack_module *stack_module_at(struct stack_modules *modules, uint64_t address)
{
    struct qut_module_info info;
    if (!qut_target_module(modules->target, address, &info))
        return NULL;
    uint64_t hash = base_hash_word(base_hash_word(0, info.start), info.file_offset);
    for (uint32_t step = 0, i; (i = base_hash_next(&modules->index, hash, &step)) != BASE_HASH_NONE;)
        if (modules->items[i]->info.start == info.start && modules->items[i]->info.file_offset == info.file_offset)
            return modules->items[i];
    struct stack_module *module = BASE_RESERVE(modules, 1) ? calloc(1, sizeof *module) : NULL;
    if (!module || !base_hash_add(&modules->index, hash, (uint32_t)modules->count)) {
        free(module);
        modules->no_memory = true;
        return NULL;
    }
    module->info = info;
    *BASE_ADD(modules) = module;
    return module;
}

uint64_t stack_module_base(const struct stack_module *module)
{
    return module->info.is_elf ? module->info.load_bias : module->info.start;
}

static struct input_image *open_file(struct stack_modules *modules, const struct qut_module_info *info)
{
    // Names may come from a file that is truncated while we read: then they are missing, and nothing else.
    const struct input_image_options options = {.debug_root = modules->debug_root, .read_files = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (!*info->file_path ||
        input_image_open(info->file_path, NULL, info->file_offset, 0, &options, &image, &error) != 0) {
        modules->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
        return NULL;
    }
    // Another build has other functions at these addresses.
    bool is_other = info->build_id_size && image->identity_kind == INPUT_BUILD_ID &&
                    (image->identity_size > info->build_id_size ||
                     memcmp(image->identity, info->build_id, image->identity_size) != 0);
    if (is_other || (info->build_id_size && image->identity_kind != INPUT_BUILD_ID)) {
        input_image_close(image);
        return NULL;
    }
    return image;
}

// The vdso is mapped whole, section headers and all. What is behind it is zero, or whatever is mapped there.
static void *copy_whole(const struct stack_modules *modules, const struct qut_module_info *info, size_t *size)
{
    enum { VDSO_MAX_BYTES = 65536 };
    *size = VDSO_MAX_BYTES;
    void *bytes = os_pages(VDSO_MAX_BYTES, false);
    if (bytes)
        qut_target_read(modules->target, info->start, bytes, VDSO_MAX_BYTES);
    return bytes;
}

// What has no file any more, or never had one.
static struct input_image *open_memory(struct stack_modules *modules, const struct qut_module_info *info)
{
    bool is_kernels = info->path[0] == '[', incomplete;
    struct elf_head head;
    if ((!is_kernels && !info->deleted) || !managed_head_in_memory(modules->target, info->start, &head))
        return NULL;
    struct input_image *image = NULL;
    const struct input_image_options options = {.debug_root = modules->debug_root, .as_mapped = !is_kernels};
    size_t size;
    void *bytes = is_kernels ? copy_whole(modules, info, &size)
                             : target_rebuild(modules->target, &head, info->load_bias, &size, &incomplete);
    struct base_error error = {0};
    if (bytes && size <= memory_image_max_bytes)
        input_image_open_memory((struct base_bytes){bytes, size}, NULL, &options, &image, &error);
    modules->no_memory |= error.reason == BASE_ERR_NO_MEMORY || (is_kernels && !bytes);
    if (bytes)
        os_free_pages(bytes, size);
    return image;
}

static void read_symbols(struct stack_modules *modules, struct stack_module *module)
{
    if (!module->info.is_elf)
        return;
    struct input_image *image = open_file(modules, &module->info);
    uint64_t load_bias = 0;
    if (!image) {
        image = open_memory(modules, &module->info);
        load_bias = module->info.load_bias;
    }
    if (image)
        module->symbols = symbols_read(image, load_bias, NULL);
    modules->no_memory |= image && !module->symbols;
}

// Compiled Java code without symbols.
static bool find_method(struct stack_modules *modules, struct stack_module *module, uint64_t vaddr,
                        struct symbol *symbol)
{
    const struct input_image *image = symbols_image(module->symbols);
    const struct qut_module_info *info = &module->info;
    if (!image->oat.present || !*info->file_path)
        return false;
    if (!module->oat_is_read) {
        struct base_error error = {0};
        // What stands before the module's own path is where the other system's root is.
        size_t length = strlen(info->file_path), own = strlen(info->path);
        bool is_below = length > own && strcmp(info->file_path + length - own, info->path) == 0;
        char *root = strndup(info->file_path, is_below ? length - own : 0);
        module->oat_is_read = true;
        module->oat = root ? dex_oat_open(image, info->file_path, root, &error) : NULL;
        modules->no_memory |= !root || error.reason == BASE_ERR_NO_MEMORY;
        free(root);
    }
    return module->oat && dex_oat_find(module->oat, vaddr, symbol);
}

// Once for each module, and only if something has no name.
static bool find_elsewhere(struct stack_modules *modules, struct stack_module *module, uint64_t vaddr,
                           struct symbol *symbol)
{
    const struct qut_module_info *info = &module->info;
    if (!module->is_asked_for) {
        module->is_asked_for = true;
        struct input_image *image =
            info->is_elf ? elsewhere_image(modules->elsewhere, info->build_id, info->build_id_size) : NULL;
        module->theirs = image ? symbols_read(image, 0, NULL) : NULL;
        modules->no_memory |= image && !module->theirs;
    }
    return module->theirs && symbols_find(module->theirs, vaddr, symbol);
}

bool stack_module_symbol(struct stack_modules *modules, struct stack_module *module, uint64_t vaddr,
                         struct symbol *symbol)
{
    if (!module->is_read) {
        module->is_read = true;
        read_symbols(modules, module);
    }
    if (module->symbols &&
        (symbols_find(module->symbols, vaddr, symbol) || find_method(modules, module, vaddr, symbol)))
        return true;
    return find_elsewhere(modules, module, vaddr, symbol);
}

void stack_modules_free(struct stack_modules *modules)
{
    for (size_t i = 0; i < modules->count; i++) {
        symbols_free(modules->items[i]->symbols);
        symbols_free(modules->items[i]->theirs);
        dex_oat_free(modules->items[i]->oat);
        free(modules->items[i]);
    }
    base_vector_free(&modules->vector);
    base_hash_free(&modules->index);
    stack_jit_free(modules);
    stack_made_free(modules);
    managed_dex_free(&modules->dex);
    *modules = (struct stack_modules){0};
}
