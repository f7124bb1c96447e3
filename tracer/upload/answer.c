// SPDX-License-Identifier: Apache-2.0
// What receivers answer: bytes of others.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracer/export/protobuf.h"
#include "tracer/upload/inside.h"

enum { MS = 1000, WIRE_FIXED32 = 5, SECONDS_DIGITS = 9 };

// Seconds since 1970 of a date of the Gregorian calendar in UTC, without the system's zone.
static int64_t seconds_of(int64_t year, int64_t month, int64_t day)
{
    // Years begin in March: a leap day is the last one.
    const int64_t y = month < 3 ? year - 1 : year, m = (month + 9) % 12;
    const int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1;
    return (days - 719468) * 86400; // from 1 March of year 0 to 1 January 1970
}

static bool read_digits(const char **at, unsigned digits, int64_t *number)
{
    *number = 0;
    for (unsigned i = 0; i < digits; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *number = 10 * *number + (**at - '0');
    }
    return true;
}

static bool read_month(const char **at, int64_t *month)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (unsigned i = 0; i < 12; i++)
        if (strncmp(*at, months + 3 * i, 3) == 0) {
            *at += 3;
            *month = i + 1;
            return true;
        }
    return false;
}

static bool skip(const char **at, const char *text)
{
    const size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

// "Sun, 06 Nov 1994 08:49:37 GMT", the one form that is sent today. The day of the week is not looked at.
static bool read_date(const char *at, int64_t *seconds)
{
    int64_t year, month, day, hour, minute, second;
    at = strlen(at) > 5 && at[3] == ',' && at[4] == ' ' ? at + 5 : "";
    if (!read_digits(&at, 2, &day) || !skip(&at, " ") || !read_month(&at, &month) || !skip(&at, " ") ||
        !read_digits(&at, 4, &year) || !skip(&at, " ") || !read_digits(&at, 2, &hour) || !skip(&at, ":") ||
        !read_digits(&at, 2, &minute) || !skip(&at, ":") || !read_digits(&at, 2, &second) || !skip(&at, " GMT"))
        return false;
    if (*at || !day || day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    *seconds = seconds_of(year, month, day) + 3600 * hour + 60 * minute + second;
    return true;
}

int64_t upload_retry_after_ms(const char *value, int64_t now_s)
{
    int64_t seconds;
    const size_t digits = strspn(value, "0123456789");
    if (digits && !value[digits])
        return digits > SECONDS_DIGITS ? INT64_MAX : (int64_t)strtoll(value, NULL, 10) * MS;
    if (!read_date(value, &seconds))
        return -1;
    return seconds > now_s ? (seconds - now_s) * MS : 0;
}

// The last value of a field, as protobuf has it. False: it is no message.
static bool read_field(struct base_bytes message, unsigned field, uint64_t *number, struct base_bytes *bytes)
{
    struct base_cursor cursor = base_cursor(message);
    while (base_cursor_left(&cursor)) {
        const uint64_t tag = base_read_uleb(&cursor);
        uint64_t value = 0;
        struct base_bytes inside = {.data = NULL};
        switch (tag & 7) {
        case PROTOBUF_VARINT: value = base_read_uleb(&cursor); break;
        case PROTOBUF_FIXED64: base_read_u64(&cursor); break;
        case PROTOBUF_LENGTH: inside = base_read_bytes(&cursor, base_read_uleb(&cursor)); break;
        case WIRE_FIXED32: base_read_u32(&cursor); break;
        default: return false;
        }
        if (cursor.failed || cursor.overlong || tag >> 3 == 0)
            return false;
        if (tag == ((uint64_t)field << 3 | PROTOBUF_VARINT))
            *number = value;
        if (tag == ((uint64_t)field << 3 | PROTOBUF_LENGTH))
            *bytes = inside;
    }
    return true;
}

bool upload_partial_success(struct base_bytes body, uint64_t *rejected)
{
    struct base_bytes partial = {.data = body.data}, none = {.data = NULL};
    uint64_t unused = 0;
    *rejected = 0;
    if (!read_field(body, 1, &unused, &partial) || !read_field(partial, 1, rejected, &none))
        return false;
    if (*rejected > INT64_MAX) // it is a signed number
        *rejected = 0;
    return true;
}

bool upload_is_again(const struct upload_answer *answer)
{
    return answer->is_broken || answer->status == 429 || answer->status == 502 || answer->status == 503 ||
           answer->status == 504;
}
