// SPDX-License-Identifier: Apache-2.0
// The word that somebody may have meant: one that is spelt nearly so, or one that is called so elsewhere.
#include <stdio.h>
#include <string.h>

#include "cli/nearest.h"
#include "tracer/probe/inside.h"

// What bpftrace, DTrace and BTrace call what scripts have here.
static const struct foreign {
    const char *theirs, *ours;
} foreign[] = {{"uprobe", "entry"},    {"fentry", "entry"},   {"uretprobe", "return"},   {"fexit", "return"},
               {"exit", "return"},     {"malloc", "alloc"},   {"mutex", "lock"},         {"interval", "timer"},
               {"profile", "timer"},   {"tick", "timer"},     {"start", "begin"},        {"nsecs", "time"},
               {"elapsed", "time"},    {"timestamp", "time"}, {"walltimestamp", "time"}, {"thread", "tid"},
               {"process", "pid"},     {"ret", "retval"},     {"result", "retval"},      {"ustack", "stack"},
               {"jstack", "stack"},    {"copyinstr", "str"},  {"string", "str"},         {"quantize", "hist"},
               {"lquantize", "lhist"}, {"histogram", "hist"}, {"average", "avg"},        {"trace", "printf"},
               {"printa", "print"},    {"println", "printf"}, {"delete", "clear"},       {"zero", "clear"},
               {"trunc", "clear"},     {"elif", "else"},      {"elseif", "else"},        {"bytes", "size"},
               {"uint8", "u8"},        {"uint16", "u16"},     {"uint32", "u32"},         {"uint64", "u64"},
               {"int8", "s8"},         {"int16", "s16"},      {"int32", "s32"},          {"int64", "s64"}};

static const char *called_elsewhere(const char *text, size_t length, const char *const *words, size_t count)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        for (size_t k = 0; k < count; k++)
            if (strlen(foreign[i].theirs) == length && memcmp(foreign[i].theirs, text, length) == 0 &&
                strcmp(foreign[i].ours, words[k]) == 0)
                return words[k];
    return NULL;
}

struct probe_hint probe_hint(const struct probe_compiler *c, const struct probe_token *token, const char *const *words,
                             size_t count)
{
    struct probe_hint hint = {.text = ""};
    struct cli_nearest nearest;
    const char *text = c->text + token->at, *word = called_elsewhere(text, token->length, words, count);
    cli_nearest_begin(&nearest, text, token->length);
    for (size_t i = 0; i < count; i++)
        cli_nearest_offer(&nearest, words[i]);
    word = word ? word : nearest.word;
    if (word)
        snprintf(hint.text, sizeof hint.text, ": did you mean \"%.32s\"?", word);
    return hint;
}

struct probe_hint probe_map_hint(const struct probe_compiler *c, const struct probe_token *name)
{
    const char *names[QUT_PROBE_MAPS_MAX];
    size_t count = 0;
    const struct probe_token token = {.at = name->at + 1, .length = name->length - 1}; // without "@"
    struct probe_hint hint = {.text = ""};
    struct cli_nearest nearest;
    for (size_t i = 0; i < c->script->maps.count; i++)
        if (c->filled_maps >> i & 1 && !probe_map_is_hidden(&c->script->maps.items[i]))
            names[count++] = c->script->maps.items[i].name;
    cli_nearest_begin(&nearest, c->text + token.at, token.length);
    for (size_t i = 0; i < count; i++)
        cli_nearest_offer(&nearest, names[i]);
    if (nearest.word || count == 1)
        snprintf(hint.text, sizeof hint.text, ": did you mean \"@%.32s\"?", nearest.word ? nearest.word : names[0]);
    return hint;
}
