// SPDX-License-Identifier: Apache-2.0
// Which thread ticks how often.
#include "libqut/os/process.h"
#include "libqut/sample/inside.h"

// ---- fnmatch, for handlers: libc's may allocate

// One character of the pattern, and where the next one is. `set` is behind a '['; NULL: it is not closed, so it is a
// '[' like others.
static const char *match_set(const char *set, char character, bool *matches)
{
    bool is_not = *set == '!' || *set == '^', found = false;
    const char *at = set + is_not;
    do {
        if (!*at)
            return NULL;
        char first = *at++, last = first;
        if (at[0] == '-' && at[1] && at[1] != ']') {
            last = at[1];
            at += 2;
        }
        found = found ||
                ((unsigned char)character >= (unsigned char)first && (unsigned char)character <= (unsigned char)last);
    } while (*at != ']');
    *matches = found != is_not;
    return at + 1;
}

static bool match_one(const char **pattern, char character)
{
    const char *at = *pattern;
    bool matches;
    const char *behind = *at == '[' ? match_set(at + 1, character, &matches) : NULL;
    if (behind) {
        *pattern = behind;
        return matches;
    }
    if (*at == '?') {
        *pattern = at + 1;
        return true;
    }
    if (*at == '\\' && at[1])
        at++;
    *pattern = at + 1;
    return *at == character;
}

// Both are short.
static bool matches(const char *pattern, const char *name)
{
    const char *behind_star = NULL, *star_name = NULL;
    while (*name) {
        if (*pattern == '*') {
            behind_star = ++pattern;
            star_name = name;
        } else if (*pattern && match_one(&pattern, *name)) {
            name++;
        } else if (behind_star) {
            pattern = behind_star;
            name = ++star_name;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

// ---- groups

uint64_t sample_pace_of(uint32_t tid, const char *name)
{
    for (uint32_t i = 0; i < sample_sampler.group_count; i++) {
        const struct sample_pace_group *group = &sample_sampler.groups[i];
        if (group->is_main_thread ? tid == (uint32_t)os_own_pid() : matches(group->pattern, name))
            return group->period_ns;
    }
    return sample_sampler.period_ns;
}

bool sample_pace_asks_for_names(void)
{
    for (uint32_t i = 0; i < sample_sampler.group_count; i++)
        if (!sample_sampler.groups[i].is_main_thread)
            return true;
    return false;
}
