// SPDX-License-Identifier: Apache-2.0
// The one reader of untrusted bytes. Every read is bounds-checked; the first read past the end marks the cursor
// failed, moves it to its end and yields zeros from then on, so that a parser may check once per record.
// Little-endian only: that is every architecture we support.
#ifndef BASE_CURSOR_INLINE_H
#define BASE_CURSOR_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct base_bytes {
    const uint8_t *data;
    size_t size;
};

struct base_cursor {
    const uint8_t *start; // for offsets in messages
    const uint8_t *at;
    const uint8_t *end;
    bool failed;   // something was read past the end
    bool overlong; // a LEB128 number did not fit 64 bits
};

static inline struct base_cursor base_cursor(struct base_bytes bytes)
{
    return (struct base_cursor){bytes.data, bytes.data, bytes.data + bytes.size, false, false};
}

static inline size_t base_cursor_left(const struct base_cursor *c)
{
    return (size_t)(c->end - c->at);
}
static inline size_t base_cursor_offset(const struct base_cursor *c)
{
    return (size_t)(c->at - c->start);
}

// Nothing was wrong so far. As one number: the two asked one after the other, gcc would keep them in memory, and read
// as a word what it wrote there as bytes, which waits.
static inline bool base_cursor_is_sound(const struct base_cursor *c)
{
    return !(c->failed | c->overlong);
}

static inline void base_cursor_fail(struct base_cursor *c)
{
    c->failed = true;
    c->at = c->end;
}

static inline bool base_cursor_need(struct base_cursor *c, uint64_t count)
{
    if (count <= base_cursor_left(c))
        return true;
    base_cursor_fail(c);
    return false;
}

static inline void base_cursor_skip(struct base_cursor *c, uint64_t count)
{
    if (base_cursor_need(c, count))
        c->at += count;
}

// Moves to an offset from the start; past the end fails.
static inline void base_cursor_seek(struct base_cursor *c, uint64_t offset)
{
    c->at = c->start;
    base_cursor_skip(c, offset);
}

static inline struct base_bytes base_read_bytes(struct base_cursor *c, uint64_t count)
{
    if (!base_cursor_need(c, count))
        return (struct base_bytes){c->end, 0};
    struct base_bytes bytes = {c->at, (size_t)count};
    c->at += count;
    return bytes;
}

#define BASE_DEFINE_READ(NAME, TYPE)                                                                                   \
    static inline TYPE NAME(struct base_cursor *c)                                                                     \
    {                                                                                                                  \
        TYPE value = 0;                                                                                                \
        if (base_cursor_need(c, sizeof value)) {                                                                       \
            memcpy(&value, c->at, sizeof value);                                                                       \
            c->at += sizeof value;                                                                                     \
        }                                                                                                              \
        return value;                                                                                                  \
    }
BASE_DEFINE_READ(base_read_u8, uint8_t)
BASE_DEFINE_READ(base_read_u16, uint16_t)
BASE_DEFINE_READ(base_read_u32, uint32_t)
BASE_DEFINE_READ(base_read_u64, uint64_t)
#undef BASE_DEFINE_READ

// The next four bytes, which stay to be read; those past the end are 0xff.
static inline uint32_t base_peek_u32(const struct base_cursor *c)
{
    uint32_t value = UINT32_MAX;
    const size_t left = base_cursor_left(c);
    if (left >= sizeof value)
        memcpy(&value, c->at, sizeof value);
    else
        for (size_t i = left; i > 0; i--)
            value = value << 8 | c->at[i - 1];
    return value;
}

// An unsigned number of 1, 2, 4 or 8 bytes.
static inline uint64_t base_read_uint(struct base_cursor *c, unsigned size)
{
    switch (size) {
    case 1: return base_read_u8(c);
    case 2: return base_read_u16(c);
    case 4: return base_read_u32(c);
    case 8: return base_read_u64(c);
    default: base_cursor_fail(c); return 0;
    }
}

static inline uint64_t base_read_uleb(struct base_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = base_read_u8(c);
        uint64_t part = byte & 0x7f;
        if (shift < 64) {
            value |= part << shift;
            if (shift == 63 && part > 1)
                c->overlong = true;
        } else if (part) {
            c->overlong = true;
        }
        if (!(byte & 0x80))
            return value;
    }
}

static inline int64_t base_read_sleb(struct base_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = base_read_u8(c);
        uint64_t part = byte & 0x7f;
        if (shift < 64)
            value |= part << shift;
        // From bit 63 on, only sign extension may follow.
        if (shift >= 63) {
            uint64_t sign = value >> 63 ? 0x7f : 0;
            if (shift == 63 ? (part != 0 && part != 0x7f) : part != sign)
                c->overlong = true;
        }
        if (!(byte & 0x80)) {
            if (shift + 7 < 64 && (byte & 0x40))
                value |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)value;
        }
    }
}

// A NUL-terminated string inside the bytes, or NULL (and the cursor failed).
static inline const char *base_read_string(struct base_cursor *c)
{
    const void *nul = memchr(c->at, 0, base_cursor_left(c));
    if (!nul) {
        base_cursor_fail(c);
        return NULL;
    }
    const char *text = (const char *)c->at;
    c->at = (const uint8_t *)nul + 1;
    return text;
}

#endif
