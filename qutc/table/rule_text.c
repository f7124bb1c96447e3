// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/rule_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <qut/frame.h>

struct writer {
    char *at;
    size_t left;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(w->at, w->left, format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : (size_t)length < w->left ? (size_t)length : w->left - 1;
    w->at += used;
    w->left -= used;
}

static void put_register(struct writer *w, const struct arch *arch, unsigned reg)
{
    if (reg < arch->register_count)
        put(w, "%s", arch->register_names[reg]);
    else
        put(w, "r%u?", reg);
}

static void put_offset(struct writer *w, int32_t offset_bytes)
{
    put(w, "%+" PRId32, offset_bytes);
}

static void put_cfa(struct writer *w, const struct arch *arch, const struct qut_cfa *cfa)
{
    bool is_read = cfa->how == QUT_CFA_DEREF || cfa->how == QUT_CFA_INDEXED;
    put(w, "cfa=%s", is_read ? "*(" : "");
    put_register(w, arch, cfa->reg);
    if (cfa->how == QUT_CFA_INDEXED) {
        put(w, "+%u*", 1u << (cfa->shift & 31));
        put_register(w, arch, cfa->reg2);
    }
    put_offset(w, cfa->offset_bytes);
    if (is_read) {
        put(w, ")");
        put_offset(w, cfa->add_bytes);
    }
    if (cfa->how == QUT_CFA_PLT)
        put(w, "+%u*((pc&%u)>=%u)", 1u << (cfa->shift & 31), cfa->plt.mask, cfa->plt.threshold);
    if (cfa->how == QUT_CFA_VECTOR)
        put(w, "%+" PRId32 "*%s", cfa->vector_count, arch->vector_bytes_name ? arch->vector_bytes_name : "vector?");
}

static void put_place(struct writer *w, const struct arch *arch, const struct qut_reg_rule *place)
{
    bool is_read = place->how == QUT_REG_AT_CFA || place->how == QUT_REG_AT_REG || place->how == QUT_REG_AT_ALIGNED ||
                   place->how == QUT_REG_AT_SHADOW;
    put(w, "%s", is_read ? "[" : "");
    if (place->how == QUT_REG_AT_ALIGNED) {
        put(w, "((cfa");
        put_offset(w, place->bias_bytes);
        put(w, ")&-%u)", 1u << (place->reg & 31));
    } else if (place->how == QUT_REG_AT_REG || place->how == QUT_REG_IN_REG) {
        put_register(w, arch, place->reg);
    } else {
        put(w, "cfa");
    }
    if (place->offset_bytes)
        put_offset(w, place->offset_bytes);
    if (place->how == QUT_REG_AT_SHADOW)
        put(w, "-2^%u", place->reg & 63u);
    put(w, "%s", is_read ? "]" : "");
}

static void put_ra(struct writer *w, const struct arch *arch, const struct qut_reg_rule *ra)
{
    put(w, " ra=");
    if (ra->how == QUT_REG_SAME)
        put_register(w, arch, arch->ra_reg);
    else if (ra->how == QUT_REG_UNDEFINED)
        put(w, "undefined (outermost frame)");
    else
        put_place(w, arch, ra);
}

static void put_tracked(struct writer *w, const struct arch *arch, const struct qut_rule *rule, unsigned slot)
{
    const struct qut_reg_rule *place = &rule->tracked[slot];
    bool is_frame_pointer = slot == 0;
    if (place->how == QUT_REG_SAME && !is_frame_pointer)
        return;
    put(w, " ");
    if (is_frame_pointer)
        put(w, "fp");
    else
        put_register(w, arch, arch->tracked[slot]);
    put(w, "=");
    if (place->how == QUT_REG_SAME)
        put(w, "same");
    else if (place->how == QUT_REG_UNDEFINED)
        put(w, "undefined");
    else
        put_place(w, arch, place);
}

static void put_marks(struct writer *w, const struct arch *arch, const struct qut_rule *rule)
{
    if (rule->dex_pc_reg != QUT_NO_REGISTER) {
        put(w, " dex-pc=");
        put_register(w, arch, rule->dex_pc_reg);
    }
    if (rule->flags & QUT_RULE_SIGNAL)
        put(w, " signal");
    if (rule->flags & QUT_RULE_RA_SIGNED)
        put(w, rule->flags & QUT_RULE_RA_KEY_B ? " ra-signed-b" : " ra-signed");
    if (rule->flags & QUT_RULE_BODY_ONLY)
        put(w, " body-only");
    if (rule->origin == QUT_RULE_FROM_CODE)
        put(w, " from-code");
    if (rule->origin == QUT_RULE_DOUBTFUL)
        put(w, " doubtful");
}

// "mcall rsp+8": of a stack switch that is known, and where its frame ends on the stack it was called on.
static void put_switch(struct writer *w, const struct arch *arch, const struct qut_rule *rule)
{
    static const char *const names[QUT_SWITCH_END] = {
        [QUT_SWITCH_SYSTEM_STACK] = "systemstack",
        [QUT_SWITCH_MCALL] = "mcall",
        [QUT_SWITCH_MORE_STACK] = "morestack",
        [QUT_SWITCH_GOGO] = "gogo",
        [QUT_SWITCH_CALL_C] = "asmcgocall",
        [QUT_SWITCH_CALLED_BY_C] = "cgocallback",
        [QUT_SWITCH_SAVED] = "saved",
        [QUT_SWITCH_NEW_THREAD] = "clone",
    };
    if (rule->stack_switch == QUT_SWITCH_UNKNOWN || rule->stack_switch >= QUT_SWITCH_END)
        return;
    put(w, " %s ", names[rule->stack_switch]);
    put_register(w, arch, rule->cfa.reg);
    put(w, "%+d", (int)rule->cfa.offset_bytes);
}

const char *table_rule_text(const struct arch *arch, const struct qut_rule *rule, char text[TABLE_RULE_TEXT_BYTES])
{
    struct writer w = {text, TABLE_RULE_TEXT_BYTES};
    if (rule->kind == QUT_RULE_HOLE) {
        put(&w, "hole");
    } else if (rule->kind == QUT_RULE_REFUSED) {
        put(&w, "refused: %s", qut_refusal_name(rule->reason));
        put_switch(&w, arch, rule);
    } else {
        put_cfa(&w, arch, &rule->cfa);
        put_ra(&w, arch, &rule->ra);
        for (unsigned i = 0; i < arch->tracked_count; i++)
            put_tracked(&w, arch, rule, i);
        if (rule->sp.how == QUT_REG_UNDEFINED) {
            put(&w, " sp=undefined");
        } else if (rule->sp.how != QUT_REG_SAME) {
            put(&w, " sp=");
            put_place(&w, arch, &rule->sp);
        }
        put_marks(&w, arch, rule);
    }
    return text;
}
