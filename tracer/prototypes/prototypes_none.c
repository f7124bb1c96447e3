// SPDX-License-Identifier: Apache-2.0
// A build without libdw.
#include <stdio.h>

#include "tracer/prototypes/prototypes.h"

bool prototypes_built(void)
{
    return false;
}

struct prototypes *prototypes_open(const char *path, const char *debug_root, struct base_error *error)
{
    (void)path, (void)debug_root;
    base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "this build reads no debug information");
    return NULL;
}

void prototypes_close(struct prototypes *prototypes)
{
    (void)prototypes;
}

char *prototypes_text(struct prototypes *prototypes, uint64_t entry_vaddr, const char *name, struct base_error *error)
{
    (void)prototypes, (void)entry_vaddr, (void)name, (void)error;
    return NULL;
}

int prototypes_resolve(struct prototypes *prototypes, uint64_t entry_vaddr, const char *name,
                       const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why)
{
    (void)prototypes, (void)entry_vaddr, (void)name, (void)path, (void)recipe;
    snprintf(why->text, sizeof why->text, "this build reads no debug information");
    return -1;
}
