// SPDX-License-Identifier: Apache-2.0
// A plan made of a file.
#include "tracer/calls/plan.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/calls/inside.h"

static const struct calls_decoder *decoder_of(unsigned elf_machine)
{
    static const struct calls_decoder *const decoders[] = {&calls_decoder_x86_64, &calls_decoder_aarch64};
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        if (decoders[i]->elf_machine == elf_machine && decoders[i]->read)
            return decoders[i];
    return NULL;
}

bool calls_plan_is_possible(void)
{
    return decoder_of(CALLS_OWN_MACHINE) != NULL;
}

static int find_text(struct calls_work *work)
{
    const struct input_image *image = work->image;
    work->decoder = image->is_64 ? decoder_of(image->arch->elf_machine) : NULL;
    if (!work->decoder)
        return base_fail(work->error, BASE_ERR_UNSUPPORTED, "", 0, "code of %s is not decoded by this build",
                         image->arch->name);
    if (image->exec_count == 0)
        return base_fail(work->error, BASE_ERR_NO_UNWIND, "", 0, "no executable code");
    work->text_start = image->exec[0].start;
    work->text_end = image->exec[image->exec_count - 1].end;
    if (work->text_end <= work->text_start || (work->text_end - work->text_start) >> 32)
        return base_fail(work->error, BASE_ERR_LIMIT, "", 0, "text spans over 4 GiB");
    Elf64_Ehdr header;
    struct base_bytes elf = input_image_elf(image);
    if (elf.size >= sizeof header) {
        memcpy(&header, elf.data, sizeof header);
        work->is_fixed = header.e_type == ET_EXEC;
    }
    work->targets = (struct calls_marks){.start = work->text_start, .end = work->text_end};
    work->targets.bits = calloc((work->text_end - work->text_start) / 64 + 1, sizeof *work->targets.bits);
    return work->targets.bits ? 0 : base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "code");
}

static int read_frames(struct calls_work *work)
{
    // The one that the loader maps: functions that only .debug_frame tells of cannot be unwound by the program itself.
    for (unsigned i = 0; i < work->image->frame_count && !work->frames; i++)
        if (work->image->frame[i].kind == INPUT_FRAME_EH && work->image->frame[i].from == INPUT_FROM_FILE)
            work->frames = &work->image->frame[i];
    return work->frames ? cfi_frame_records_read(work->image, work->frames, work->text_start, work->text_end,
                                                 &work->records, work->error)
                        : 0;
}

static int look(struct calls_work *work, calls_use_fn use, void *context)
{
    if (find_text(work) != 0 || read_frames(work) != 0 || cfi_rule_set_init(&work->rules, work->error) != 0 ||
        cfi_program_runner_init(&work->runner, work->image->arch, &work->rules, work->error) != 0)
        return -1;
    if (calls_find_regions(work) != 0 || calls_scan(work) != 0 || calls_read_tables(work) != 0)
        return -1;
    calls_mark_landing_pads(work);
    calls_trim_gaps(work);
    if (use(work, context) != 0)
        return -1;
    return input_image_check_memory(work->image, work->error);
}

static void free_work(struct calls_work *work)
{
    if (work->runner.forms.arch)
        cfi_program_runner_free(&work->runner);
    cfi_rule_set_free(&work->rules);
    cfi_frame_records_free(&work->records);
    cfi_row_list_free(&work->rows);
    base_vector_free(&work->regions.vector);
    base_vector_free(&work->gaps.vector);
    base_vector_free(&work->sleds.vector);
    base_vector_free(&work->leas.vector);
    base_vector_free(&work->resolvers.vector);
    free(work->targets.bits);
}

const char *calls_module_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int calls_look(const char *path, const char *name, calls_use_fn use, void *context, struct base_error *error)
{
    struct input_image *image;
    // Names only: unwind information that the loader does not map is not asked.
    const struct input_image_options options = {.debug_root = "/usr/lib/debug"};
    if (input_image_open(path, NULL, 0, 0, &options, &image, error) != 0)
        return -1;
    struct symbols *symbols = symbols_read(image, 0, error);
    if (!symbols)
        return -1;
    struct calls_work work = {.image = symbols_image(symbols),
                              .symbols = symbols,
                              .error = error,
                              .module = name ? name : calls_module_name(path)};
    const int result = look(&work, use, context);
    free_work(&work);
    symbols_free(symbols);
    return result;
}

struct listed {
    uint8_t *bytes;
    size_t size_bytes;
};

static int list(struct calls_work *work, void *context)
{
    struct listed *listed = context;
    return calls_list(work, &listed->bytes, &listed->size_bytes);
}

int calls_plan_make(const char *path, const char *name, struct calls_plan **plan, struct base_error *error)
{
    struct listed listed = {NULL, 0};
    return calls_look(path, name, list, &listed, error) == 0
               ? calls_plan_take(listed.bytes, listed.size_bytes, plan, error)
               : -1;
}
