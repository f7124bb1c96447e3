// SPDX-License-Identifier: Apache-2.0
// What differs between releases of Go.
#include "libqut/go/go.h"

#include <string.h>

// 1.17, the first whose functions say that they change stacks, up to the newest whose records are known.
enum { MINOR_MIN = 17, MINOR_SHORT_SCHED = 25, MINOR_MAX = 27 };

static bool take_number(const char **at, const char *end, unsigned *number)
{
    const char *begin = *at;
    *number = 0;
    for (; *at < end && **at >= '0' && **at <= '9' && *number < 1000; (*at)++)
        *number = *number * 10 + (unsigned)(**at - '0');
    return *at != begin;
}

bool go_layout_of(const char *version, size_t size, struct go_layout *layout)
{
    static const char begin[] = {'g', 'o', '1', '.'};
    const char *at = version + sizeof begin, *end = version + size;
    unsigned minor;
    *layout = (struct go_layout){0};
    // "go1.19", "go1.19.8", "go1.21rc2 X:..."; "devel ..." is none of these.
    if (size <= sizeof begin || memcmp(version, begin, sizeof begin) != 0 || !take_number(&at, end, &minor) ||
        minor < MINOR_MIN || minor > MINOR_MAX)
        return false;
    // g: stack, two guards, panic, defer, m, sched. m: g0, morebuf (as long as sched), divmod, procid, gsignal,
    // goSigStack, sigmask, tls, mstartfn, curg. In 1.25 sched lost its word `ret`.
    uint16_t lost = minor >= MINOR_SHORT_SCHED ? 8 : 0;
    *layout = (struct go_layout){.is_known = true,
                                 .g_m = 48,
                                 .g_sched = 56,
                                 .m_procid = (uint16_t)(72 - lost),
                                 .m_gsignal = (uint16_t)(80 - lost),
                                 .m_curg = (uint16_t)(192 - lost)};
    return true;
}

// ---- .go.buildinfo: magic, size of a pointer, flags; from 1.18 on (a flag) the version stands behind it

enum { ALIGN = 16, HEAD_BYTES = 32, FLAGS_AT = 15, POINTER_AT = 16, FLAG_INLINE = 2 };

static size_t short_text(const struct elf_art_memory *memory, const uint8_t *bytes, size_t size,
                         char version[GO_VERSION_BYTES])
{
    if (bytes[FLAGS_AT] & FLAG_INLINE) {
        size_t length = size > HEAD_BYTES ? bytes[HEAD_BYTES] : 0; // one byte of a LEB128 number
        if (length == 0 || length >= 0x80 || size - HEAD_BYTES - 1 < length)
            return 0;
        length = length < GO_VERSION_BYTES ? length : GO_VERSION_BYTES;
        memcpy(version, bytes + HEAD_BYTES + 1, length);
        return length;
    }
    uint64_t string, text[2]; // the address of a string: that of its text, and its length
    memcpy(&string, bytes + POINTER_AT, sizeof string);
    if (!elf_art_read(memory, string, text, sizeof text) || text[1] == 0)
        return 0;
    size_t length = text[1] < GO_VERSION_BYTES ? (size_t)text[1] : GO_VERSION_BYTES;
    return elf_art_read(memory, text[0], version, length) ? length : 0;
}

size_t go_version_in(const struct elf_art_memory *memory, const uint8_t *bytes, size_t size,
                     char version[GO_VERSION_BYTES])
{
    static const uint8_t magic[] = {0xff, ' ', 'G', 'o', ' ', 'b', 'u', 'i', 'l', 'd', 'i', 'n', 'f', ':'};
    for (size_t at = 0; at + HEAD_BYTES <= size; at += ALIGN) {
        if (memcmp(bytes + at, magic, sizeof magic) != 0)
            continue;
        size_t length = short_text(memory, bytes + at, size - at, version);
        if (length)
            return length;
    }
    return 0;
}
