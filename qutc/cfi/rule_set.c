// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/rule_set.h"

#include <string.h>

enum { USUAL_COUNT = 256 }; // of a large library

int cfi_rule_set_init(struct cfi_rule_set *set, struct base_error *error)
{
    memset(set, 0, sizeof *set);
    struct qut_rule hole = cfi_rule_hole();
    if (!base_vector_reserve(&set->vector, USUAL_COUNT, sizeof hole) || !base_hash_reserve(&set->index, USUAL_COUNT) ||
        cfi_rule_set_intern(set, &hole) != CFI_RULE_HOLE_ID)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    return 0;
}

void cfi_rule_set_free(struct cfi_rule_set *set)
{
    base_vector_free(&set->vector);
    base_hash_free(&set->index);
}

uint32_t cfi_rule_set_intern(struct cfi_rule_set *set, const struct qut_rule *rule)
{
    uint64_t hash = base_hash_bytes(0, rule, sizeof *rule);
    for (uint32_t step = 0, id; (id = base_hash_next(&set->index, hash, &step)) != BASE_HASH_NONE;)
        if (memcmp(&set->rules[id], rule, sizeof *rule) == 0)
            return id;
    uint32_t id = (uint32_t)set->count;
    struct qut_rule *added = base_vector_add(&set->vector, sizeof *added);
    if (!added || !base_hash_add(&set->index, hash, id))
        return CFI_RULE_NO_MEMORY;
    *added = *rule;
    return id;
}
