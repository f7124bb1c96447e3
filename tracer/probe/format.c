// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/format.h"

#include <string.h>

#include "tracer/probe/inside.h"

const char *probe_format_next(const char *at, size_t *plain, struct probe_conversion *conversion)
{
    const char *begin = at;
    *conversion = (struct probe_conversion){.kind = 0};
    while (*at && (at[0] != '%' || at[1] == '%'))
        at += at[0] == '%' ? 2 : 1;
    *plain = (size_t)(at - begin);
    if (!*at)
        return NULL;
    at++;
    size_t flags = strspn(at, "-+ 0");
    flags += strspn(at + flags, "0123456789");
    if (flags < sizeof conversion->flags && strspn(at + strspn(at, "-+ 0"), "0123456789") <= 3) {
        memcpy(conversion->flags, at, flags);
        at += flags + strspn(at + flags, "l");
        if (*at && strchr("diuxXcs", *at))
            conversion->kind = *at == 'i' ? 'd' : *at;
    }
    return *at ? at + 1 : at;
}

bool probe_format_fits(struct probe_compiler *c, const char *format, const struct probe_parts *parts,
                       const struct probe_token *at)
{
    struct probe_conversion conversion;
    uint32_t count = 0;
    size_t plain;
    for (const char *next = format; (next = probe_format_next(next, &plain, &conversion)); count++) {
        if (!conversion.kind)
            return probe_fail(c, at->at, at->length, "conversion %u is none of %%d %%u %%x %%X %%c %%s", count + 1);
        if (count >= parts->count)
            continue;
        const enum probe_type type = parts->items[count].type;
        if ((conversion.kind == 's') != (type != PROBE_INTEGER))
            return probe_fail(c, at->at, at->length, "%%%c stands for %s, and value %u is %s", conversion.kind,
                              conversion.kind == 's' ? "a text" : "a number", count + 1,
                              type == PROBE_INTEGER ? "a number"
                              : type == PROBE_TEXT  ? "a text"
                                                    : "a stack");
    }
    return count == parts->count ||
           probe_fail(c, at->at, at->length, "%u conversions for %u values", count, parts->count);
}
