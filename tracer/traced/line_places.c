// SPDX-License-Identifier: Apache-2.0
// Places that are a line of source: where its code begins, in each function and each inlined copy of one.
#include <stdio.h>

#include "tracer/names/lines.h"
#include "tracer/traced/finding.h"
#include "tracer/traced/probe.h"

// The function of the plan whose code an address is; -1: none.
static int64_t function_at(const struct calls_plan *plan, uint64_t vaddr)
{
    size_t low = 0, high = plan->header->function_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (plan->functions[middle].entry_vaddr <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return -1;
    const struct qut_plan_function *function = &plan->functions[low - 1];
    return vaddr - function->entry_vaddr < function->size_bytes ? (int64_t)low - 1 : -1;
}

static void note_refusal(struct traced_result *result, uint64_t vaddr)
{
    if (!result->places_refused++)
        snprintf(result->first_place_refused, sizeof result->first_place_refused, "0x%llx: no function is known there",
                 (unsigned long long)vaddr);
}

static int add_all(struct traced_finding *found, size_t index, const struct names_lines *lines,
                   struct base_error *error)
{
    struct traced_result *result = &found->process->result;
    int status = 0;
    for (size_t i = 0; status == 0 && i < lines->count; i++) {
        const int64_t function = function_at(found->module->plan, lines->items[i]);
        if (function >= 0)
            status = traced_places_add(found, (uint32_t)function, lines->items[i],
                                       found->process->options->probe->places[index].programs, error);
        else
            note_refusal(result, lines->items[i]);
    }
    result->places_seen[index].matches += lines->count;
    traced_place_saw(&result->places_seen[index], lines->has_file, lines->before, lines->after);
    return status;
}

int traced_places_find_line(struct traced_finding *found, size_t index, struct base_error *error)
{
    const struct traced_place *place = &found->process->options->probe->places[index];
    const struct input_image_options options = {.read_files = true};
    struct input_image *image;
    struct names_lines lines = {.count = 0};
    if (input_image_open(found->file_path, NULL, 0, 0, &options, &image, error) != 0)
        return -1;
    struct names_inlines *inlines = names_inlines_open(image);
    int status = 0;
    if (inlines && !names_lines_find(inlines, place->file, place->line, &lines))
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    if (status == 0)
        status = add_all(found, index, &lines, error);
    names_lines_free(&lines);
    names_inlines_close(inlines);
    input_image_close(image);
    return status;
}
