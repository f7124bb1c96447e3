// SPDX-License-Identifier: Apache-2.0
// Which virtual machines there are, by the lists that they publish for debuggers, and what is in these lists.
#include "libqut/target/machine.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/elf/dynamic_symbol.h"
#include "libqut/os/file.h"

static size_t read_target(void *context, uint64_t address, void *bytes, size_t size)
{
    return target_read_any(context, address, bytes, size);
}

static void read_pieces_of_target(void *context, struct elf_art_piece *pieces, size_t count)
{
    struct qut_target *target = context;
    target->kind->read_pieces(target, pieces, count);
}

struct target_machine *target_machine(struct qut_target *target)
{
    if (!target->machine) {
        target->machine = calloc(1, sizeof *target->machine);
        if (target->machine) {
            target->machine->target = target;
            target->machine->moment = 1;
            target->machine->memory =
                (struct elf_art_memory){.read = read_target,
                                        .read_pieces = target->kind->read_pieces ? read_pieces_of_target : NULL,
                                        .context = target,
                                        .arch = target->arch,
                                        .never_changes = !target->kind->stop};
        }
    }
    return target->machine;
}

// ---- where the lists begin

static const char *const names[TARGET_EXPORT_COUNT] = {
    [TARGET_MACHINE_CODE] = "__jit_debug_descriptor",
    [TARGET_MACHINE_DEX] = "__dex_debug_descriptor",
    [TARGET_EXPORT_HOTSPOT_STRUCTS] = "gHotSpotVMStructs",
    [TARGET_EXPORT_HOTSPOT_TYPES] = "gHotSpotVMTypes",
    [TARGET_EXPORT_CPYTHON] = "_PyRuntime",
    [TARGET_EXPORT_V8] = "v8dbg_off_fp_function",
};

// An image's file, read by virtual address.
struct file_view {
    const struct target_image *image;
    int fd;
};

static size_t read_file(void *context, uint64_t vaddr, void *bytes, size_t size)
{
    const struct file_view *view = context;
    const struct elf_head *head = view->image->head;
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct elf_segment *load = &head->loads[i];
        uint64_t into = vaddr - load->vaddr;
        if (into >= load->file_size)
            continue;
        uint64_t left = load->file_size - into;
        return os_read_at(view->fd, view->image->file_offset + load->offset + into, bytes,
                          left < size ? (size_t)left : size);
    }
    return 0;
}

// What tells where symbols are need not be among the memory that was kept of a process.
static void find_in_file(struct target_machine *machine, struct target_image *image)
{
    struct file_view view = {image, os_open_file(image->file_path, NULL)};
    const struct elf_art_memory file = {.read = read_file, .context = &view, .arch = machine->target->arch};
    if (view.fd < 0)
        return;
    uint64_t vaddrs[TARGET_EXPORT_COUNT];
    elf_art_find_symbols(&file, 0, image->head->dynamic.vaddr, names, TARGET_EXPORT_COUNT, vaddrs, NULL);
    for (unsigned i = 0; i < TARGET_EXPORT_COUNT; i++)
        if (vaddrs[i])
            image->exports[i] = vaddrs[i] + image->load_bias;
    os_close_file(view.fd);
}

uint64_t target_machine_export(struct target_machine *machine, const struct target_image *image, const char *name,
                               uint64_t *size_bytes)
{
    const struct elf_head *head = image->head;
    *size_bytes = 0;
    if (!head || head->dynamic.file_size == 0)
        return 0;
    uint64_t mask = machine->target->arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
    if (!image->file_path)
        return elf_art_find_sized_symbol(&machine->memory, image->load_bias,
                                         (image->load_bias + head->dynamic.vaddr) & mask, name, size_bytes) &
               mask;
    struct file_view view = {image, os_open_file(image->file_path, NULL)};
    const struct elf_art_memory file = {.read = read_file, .context = &view, .arch = machine->target->arch};
    if (view.fd < 0)
        return 0;
    uint64_t vaddr = elf_art_find_sized_symbol(&file, 0, head->dynamic.vaddr, name, size_bytes);
    os_close_file(view.fd);
    return vaddr ? (vaddr + image->load_bias) & mask : 0;
}

static void find_exports(struct target_machine *machine, struct target_image *image)
{
    if (image->exports_are_known)
        return;
    image->exports_are_known = true;
    const struct elf_head *head = image->head;
    if (!head || head->dynamic.file_size == 0 || head->machine != machine->target->arch->elf_machine)
        return;
    uint64_t mask = machine->target->arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
    if (image->file_path) {
        find_in_file(machine, image);
    } else {
        uint64_t dynamic = (image->load_bias + head->dynamic.vaddr) & mask;
        elf_art_find_symbols(&machine->memory, image->load_bias, dynamic, names, TARGET_EXPORT_COUNT, image->exports,
                             NULL);
    }
    for (unsigned i = 0; i < TARGET_EXPORT_COUNT; i++)
        image->exports[i] &= mask;
}

bool target_machine_is_art(const struct target_image *image)
{
    const char *slash = strrchr(image->path, '/');
    const char *base = slash ? slash + 1 : image->path;
    return strncmp(base, "libart.so", 9) == 0 || strncmp(base, "libartd.so", 10) == 0;
}

static void free_lists(struct target_machine *machine, enum target_machine_subject subject)
{
    for (unsigned i = 0; i < machine->list_count[subject]; i++)
        art_jit_list_free(&machine->lists[subject][i].list);
    free(machine->lists[subject]);
    machine->lists[subject] = NULL;
    machine->list_count[subject] = 0;
}

static int by_descriptor(const void *a, const void *b)
{
    const struct target_machine_list *x = a, *y = b;
    return (x->descriptor_address > y->descriptor_address) - (x->descriptor_address < y->descriptor_address);
}

// Each descriptor once, in ascending order: any number of images may have one.
static unsigned find_lists(const struct qut_target *target, enum target_machine_subject subject,
                           struct target_machine_list *lists)
{
    unsigned found = 0, count = 0;
    for (size_t i = 0; i < target->range_count; i++) {
        const struct target_image *image = target->ranges[i].image;
        if (image->exports[subject])
            lists[found++] = (struct target_machine_list){
                .descriptor_address = image->exports[subject],
                .frame_flags = (uint8_t)(QUT_FRAME_JIT | (target_machine_is_art(image) ? QUT_FRAME_MANAGED : 0)),
            };
    }
    if (found)
        qsort(lists, found, sizeof *lists, by_descriptor);
    for (unsigned i = 0; i < found; i++)
        if (!count || lists[count - 1].descriptor_address != lists[i].descriptor_address)
            lists[count++] = lists[i];
    return count;
}

static void search_subject(struct target_machine *machine, enum target_machine_subject subject)
{
    const struct qut_target *target = machine->target;
    size_t most = 0;
    for (size_t i = 0; i < target->range_count; i++)
        most += target->ranges[i].image->exports[subject] != 0;
    struct target_machine_list *lists = most ? calloc(most, sizeof *lists) : NULL;
    unsigned count = lists ? find_lists(target, subject, lists) : 0;
    // What was read of those that are still there is kept.
    struct target_machine_list *old = machine->lists[subject];
    unsigned old_count = machine->list_count[subject], o = 0;
    for (unsigned i = 0; i < count; i++) {
        while (o < old_count && old[o].descriptor_address < lists[i].descriptor_address)
            o++;
        if (o == old_count || old[o].descriptor_address != lists[i].descriptor_address)
            continue;
        lists[i] = old[o];
        old[o++] = (struct target_machine_list){0};
    }
    free_lists(machine, subject);
    machine->lists[subject] = lists;
    machine->list_count[subject] = count;
}

static void search_hotspot(struct target_machine *machine)
{
    const struct qut_target *target = machine->target;
    uint64_t structs = 0, types = 0;
    for (size_t i = 0; i < target->range_count && !(structs && types); i++) {
        structs = target->ranges[i].image->exports[TARGET_EXPORT_HOTSPOT_STRUCTS];
        types = target->ranges[i].image->exports[TARGET_EXPORT_HOTSPOT_TYPES];
    }
    if (structs == machine->hotspot_structs && types == machine->hotspot_types)
        return;
    hotspot_machine_free(&machine->hotspot);
    machine->hotspot_structs = structs;
    machine->hotspot_types = types;
    machine->hotspot_fault = HOTSPOT_STARTING;
    machine->hotspot_moment = 0;
    machine->hotspot_odd = 0;
}

void target_machine_search(struct target_machine *machine)
{
    const struct qut_target *target = machine->target;
    if (machine->is_searched)
        return;
    for (size_t i = 0; i < target->range_count; i++)
        find_exports(machine, target->ranges[i].image);
    search_hotspot(machine);
    for (unsigned subject = 0; subject < TARGET_MACHINE_SUBJECTS; subject++)
        search_subject(machine, subject);
    machine->is_searched = true;
    machine->code_is_current = false; // it refers to lists by their numbers
}

// ---- what is in them

static void read_list(struct target_machine *machine, struct target_machine_list *list)
{
    art_jit_list_free(&list->list);
    list->fault = art_jit_list_read(&machine->memory, list->descriptor_address, &list->list);
    list->is_read = true;
    list->moment = list->read_moment = machine->moment;
    if (list->list.descriptor.layout != ART_JIT_GDB)
        list->frame_flags |= QUT_FRAME_MANAGED;
}

bool target_machine_update(struct target_machine *machine, enum target_machine_subject subject)
{
    bool changed = false;
    target_machine_search(machine);
    for (unsigned i = 0; i < machine->list_count[subject]; i++) {
        struct target_machine_list *list = &machine->lists[subject][i];
        if (list->is_read && list->moment == machine->moment)
            continue;
        bool is_settled = list->fault != ART_JIT_BUSY && list->fault != ART_JIT_NO_MEMORY;
        if (list->is_read && is_settled && art_jit_is_unchanged(&machine->memory, &list->list.descriptor))
            list->moment = machine->moment;
        else {
            read_list(machine, list);
            changed = true;
        }
    }
    return changed;
}

bool target_machine_read_again(struct target_machine *machine, enum target_machine_subject subject)
{
    bool read = false;
    for (unsigned i = 0; i < machine->list_count[subject]; i++) {
        struct target_machine_list *list = &machine->lists[subject][i];
        if (list->list.descriptor.layout == ART_JIT_GDB && list->read_moment != machine->moment) {
            read_list(machine, list);
            read = true;
        }
    }
    return read;
}

void target_free_machine(struct qut_target *target)
{
    struct target_machine *machine = target->machine;
    if (!machine)
        return;
    for (unsigned subject = 0; subject < TARGET_MACHINE_SUBJECTS; subject++)
        free_lists(machine, subject);
    for (size_t i = 0; i < machine->blob_count; i++)
        target_machine_blob_free(machine->blobs[i]);
    hotspot_machine_free(&machine->hotspot);
    free(machine->blobs);
    free(machine->code);
    free(machine->scratch);
    free(machine);
    target->machine = NULL;
}
