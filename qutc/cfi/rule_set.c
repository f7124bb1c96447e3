// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/rule_set.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

static uint64_t hash_rule(const struct qut_rule *rule)
{
    uint64_t words[sizeof *rule / 8];
    memcpy(words, rule, sizeof words);
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

static void place(struct qutc_rule_set *set, uint32_t id)
{
    uint32_t mask = set->bucket_count - 1;
    uint32_t at = (uint32_t)hash_rule(&set->rules[id]) & mask;
    while (set->buckets[at])
        at = (at + 1) & mask;
    set->buckets[at] = id + 1;
}

// Doubles the capacity and keeps the buckets at most half full.
static int grow(struct qutc_rule_set *set)
{
    uint32_t capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY;
    if (capacity > UINT32_MAX / 4)
        return -1;
    struct qut_rule *rules = realloc(set->rules, capacity * sizeof *rules);
    if (!rules)
        return -1;
    set->rules = rules;
    uint32_t *buckets = calloc((size_t)capacity * 2, sizeof *buckets);
    if (!buckets)
        return -1;
    free(set->buckets);
    set->buckets = buckets;
    set->bucket_count = capacity * 2;
    set->capacity = capacity;
    for (uint32_t id = 0; id < set->count; id++)
        place(set, id);
    return 0;
}

int qutc_rule_set_init(struct qutc_rule_set *set, struct qutc_error *error)
{
    memset(set, 0, sizeof *set);
    struct qut_rule hole = qutc_rule_hole();
    if (qutc_rule_set_intern(set, &hole) != QUTC_RULE_HOLE_ID)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "rules");
    return 0;
}

void qutc_rule_set_free(struct qutc_rule_set *set)
{
    free(set->rules);
    free(set->buckets);
    memset(set, 0, sizeof *set);
}

uint32_t qutc_rule_set_intern(struct qutc_rule_set *set, const struct qut_rule *rule)
{
    if (set->count == set->capacity && grow(set) != 0)
        return QUTC_RULE_NO_MEMORY;
    uint32_t mask = set->bucket_count - 1;
    uint32_t at = (uint32_t)hash_rule(rule) & mask;
    for (; set->buckets[at]; at = (at + 1) & mask) {
        uint32_t id = set->buckets[at] - 1;
        if (memcmp(&set->rules[id], rule, sizeof *rule) == 0)
            return id;
    }
    set->rules[set->count] = *rule;
    set->buckets[at] = set->count + 1;
    return set->count++;
}
