// SPDX-License-Identifier: Apache-2.0
#include "tracer/prototypes/prototypes.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/image.h"
#include "tracer/names/dwarf_unit.h"
#include "tracer/prototypes/inside.h"

bool prototypes_built(void)
{
    return true;
}

static struct names_inlines *open_debug_information(const struct input_image *image, struct base_error *error)
{
    if (image->arch->elf_machine != EM_X86_64 || !image->is_64) {
        base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "where arguments are is known of x86-64 only");
        return NULL;
    }
    errno = 0; // libdw does not say why it gives up
    struct names_inlines *inlines = names_inlines_open(image);
    if (!inlines && errno == ENOMEM)
        base_fail_errno(error, ENOMEM);
    else if (!inlines)
        base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "it has no debug information: its arguments have no names");
    return inlines;
}

struct prototypes *prototypes_open(const char *path, const char *debug_root, struct base_error *error)
{
    const struct input_image_options options = {.debug_root = debug_root, .read_files = true};
    struct input_image *image;
    struct prototypes *prototypes = calloc(1, sizeof *prototypes);
    if (!prototypes) {
        base_fail_errno(error, ENOMEM);
        return NULL;
    }
    if (input_image_open(path, NULL, 0, 0, &options, &image, error) != 0) {
        free(prototypes);
        return NULL;
    }
    prototypes->image = image;
    prototypes->inlines = open_debug_information(image, error);
    if (prototypes->inlines)
        return prototypes;
    prototypes_close(prototypes);
    return NULL;
}

void prototypes_close(struct prototypes *prototypes)
{
    if (!prototypes)
        return;
    names_inlines_close(prototypes->inlines);
    input_image_close(prototypes->image);
    free(prototypes);
}

char *prototypes_text(struct prototypes *prototypes, uint64_t entry_vaddr, const char *name, struct base_error *error)
{
    struct prototypes_function function;
    Dwarf_Die die;
    bool is_cpp;
    if (!names_inlines_function(prototypes->inlines, entry_vaddr, &die) || !prototypes_is_known(&die, &is_cpp)) {
        base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "debug information does not have this function, of C or C++");
        return NULL;
    }
    prototypes_list(&die, &function);
    char *text = prototypes_function_text(&function, name);
    if (!text)
        base_fail_errno(error, ENOMEM);
    return text;
}

static int refuse(struct probe_unresolved *why, const char *text)
{
    why->step = 0;
    snprintf(why->text, sizeof why->text, "%s", text);
    return -1;
}

int prototypes_resolve(struct prototypes *prototypes, uint64_t entry_vaddr, const char *name,
                       const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why)
{
    struct prototypes_function function;
    Dwarf_Die die;
    const char *text;
    *why = (struct probe_unresolved){.text = ""};
    if (!names_inlines_function(prototypes->inlines, entry_vaddr, &die))
        return refuse(why, "debug information does not have this function");
    prototypes_list(&die, &function);
    if (!prototypes_pass(&function, entry_vaddr, name, &text))
        return refuse(why, text);
    return prototypes_follow(&function, path, recipe, why);
}
