// SPDX-License-Identifier: Apache-2.0
// Names come from files and from strangers: what is no UTF-8 must not get into formats that promise it.
#ifndef BASE_UTF8_INLINE_H
#define BASE_UTF8_INLINE_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD

// Bytes of the well-formed sequence that `text`, which ends with NUL, begins with (RFC 3629: no overlong ones, no
// surrogates, at most U+10FFFF). 0: there is none.
static inline size_t base_utf8_sequence(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    if (at[0] < 0x80)
        return at[0] != 0;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    uint8_t least = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t most = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < least || at[1] > most)
        return 0;
    size_t length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

// The character of a well-formed sequence.
static inline uint32_t base_utf8_character(const char *text, size_t length)
{
    const uint8_t *at = (const uint8_t *)text;
    uint32_t character = length < 2 ? at[0] : at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (at[i] & 0x3f);
    return character;
}

// Characters beyond ASCII that are no text: C1 controls, which terminals obey; line ends; and what turns the direction
// of the text around it, so that it is read otherwise than it is written.
static inline int base_utf8_steers(uint32_t character)
{
    return (character >= 0x80 && character < 0xa0) || character == 0x61c || character == 0x200e ||
           character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

// Bytes at the beginning of `text` that can stand as they are: no control characters of either kind, nor one of
// `taken`, which are ASCII. What follows is the end, one such character, or a byte that belongs to no well-formed
// sequence.
static inline size_t base_utf8_plain(const char *text, const char *taken)
{
    for (size_t plain = 0;; plain++) {
        uint8_t byte = (uint8_t)text[plain];
        if (byte < 0x20 || byte == 0x7f)
            return plain;
        if (byte >= 0x80) {
            size_t length = base_utf8_sequence(text + plain);
            if (!length || base_utf8_steers(base_utf8_character(text + plain, length)))
                return plain;
            plain += length - 1;
            continue;
        }
        for (const char *one = taken; *one; one++)
            if ((uint8_t)*one == byte)
                return plain;
    }
}

#endif
