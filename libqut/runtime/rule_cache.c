// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/rule_cache.h"

// The offset as an entry keeps it. False: it cannot.
static bool pack_register(const struct qut_reg_rule *rule, int16_t *offset_bytes)
{
    switch (rule->how) {
    case QUT_REG_SAME: *offset_bytes = QUT_CACHED_SAME; return true;
    case QUT_REG_UNDEFINED: *offset_bytes = QUT_CACHED_LOST; return true;
    case QUT_REG_AT_CFA:
        *offset_bytes = (int16_t)rule->offset_bytes;
        return rule->offset_bytes == *offset_bytes && rule->offset_bytes > QUT_CACHED_LOST;
    default: return false;
    }
}

static bool pack(const struct qut_arch *arch, const struct qut_rule *rule, struct qut_cached_rule *packed)
{
    if (rule->kind != QUT_RULE_FRAME || rule->flags & (QUT_RULE_SIGNAL | QUT_RULE_BODY_ONLY) ||
        rule->cfa.how != QUT_CFA_REG || rule->sp.how != QUT_REG_SAME || rule->ra.how == QUT_REG_UNDEFINED ||
        !pack_register(&rule->ra, &packed->ra_offset_bytes))
        return false;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        if (!pack_register(&rule->tracked[slot], &packed->tracked_offset_bytes[slot]))
            return false;
    int slot = qut_arch_slot(arch, rule->cfa.reg);
    if (slot < 0 && rule->cfa.reg != arch->sp_reg)
        return false;
    packed->base_slot = slot < 0 ? QUT_CACHED_SP : (uint8_t)slot;
    packed->cfa_offset_bytes = rule->cfa.offset_bytes;
    return true;
}

// A handler may walk, and look here, between any two of these stores: the key goes first and comes last.
static void write_entry(struct qut_cached_rule *entry, const struct qut_cached_rule *from)
{
    struct qut_cached_rule copy = *from;
    __atomic_store_n(&entry->key, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uintptr_t key = copy.key;
    copy.key = 0;
    *entry = copy;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&entry->key, key, __ATOMIC_RELAXED);
}

void qut_cache_put(struct qut_rule_cache *cache, const struct qut_arch *arch, uintptr_t key, uint32_t epoch,
                   const struct qut_rule *rule)
{
    struct qut_cached_rule packed = {.key = key, .epoch = epoch};
    if (!pack(arch, rule, &packed))
        return;
    struct qut_cached_rule *set = qut_cache_set(cache, key);
    write_entry(&set[1], &set[0]);
    write_entry(&set[0], &packed);
}
