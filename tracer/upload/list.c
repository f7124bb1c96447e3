// SPDX-License-Identifier: Apache-2.0
// What is in a body, read from its bytes: what leaves the host is what stands there, whoever wrote it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracer/export/protobuf.h"
#include "tracer/upload/inside.h"

struct part {
    unsigned field;
    const char *what;         // of a text or number; of a message NULL
    const struct part *parts; // NULL: no message
};

static const struct part any_value[] = {{1, "value", NULL}, {3, "value", NULL}, {0, NULL, NULL}};
static const struct part key_value[] = {{1, "resource attribute", NULL}, {2, NULL, any_value}, {0, NULL, NULL}};
static const struct part resource[] = {{1, NULL, key_value}, {0, NULL, NULL}};
static const struct part scope[] = {{1, "scope", NULL}, {2, "scope version", NULL}, {0, NULL, NULL}};
static const struct part profile_of_scope[] = {{3, "time", NULL}, {4, "duration", NULL}, {0, NULL, NULL}};
static const struct part scope_profiles[] = {{1, NULL, scope}, {2, NULL, profile_of_scope}, {0, NULL, NULL}};
static const struct part resource_profiles[] = {{1, NULL, resource}, {2, NULL, scope_profiles}, {0, NULL, NULL}};
static const struct part attribute[] = {{2, NULL, any_value}, {0, NULL, NULL}};
static const struct part dictionary[] = {{5, "string", NULL}, {6, NULL, attribute}, {0, NULL, NULL}};
static const struct part otlp[] = {{1, NULL, resource_profiles}, {2, NULL, dictionary}, {0, NULL, NULL}};

static const struct part label_of_sample[] = {{3, "label's number", NULL}, {0, NULL, NULL}};
static const struct part sample_of_profile[] = {{3, NULL, label_of_sample}, {0, NULL, NULL}};
static const struct part profile[] = {
    {2, NULL, sample_of_profile}, {6, "string", NULL}, {9, "time", NULL}, {10, "duration", NULL}, {0, NULL, NULL}};
static const struct part label[] = {{1, "label", NULL}, {2, "value", NULL}, {0, NULL, NULL}};
static const struct part raw_sample[] = {{1, NULL, profile}, {2, "id", NULL}, {0, NULL, NULL}};
static const struct part series[] = {{1, NULL, label}, {2, NULL, raw_sample}, {0, NULL, NULL}};
static const struct part pprof[] = {{1, NULL, series}, {0, NULL, NULL}};

struct lister {
    void (*say)(void *context, const char *what, const char *text);
    void *context;
};

enum { WIRE_FIXED32 = 5, TEXT_MAX = 4096 };

static const struct part *find(const struct part *parts, uint64_t field)
{
    while (parts->field && parts->field != field)
        parts++;
    return parts->field ? parts : NULL;
}

static void say_text(const struct lister *lister, const char *what, struct base_bytes bytes)
{
    char text[TEXT_MAX];
    if (!bytes.size)
        return;
    snprintf(text, sizeof text, "%.*s", bytes.size < TEXT_MAX ? (int)bytes.size : TEXT_MAX, (const char *)bytes.data);
    lister->say(lister->context, what, text);
}

static void say_number(const struct lister *lister, const char *what, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    lister->say(lister->context, what, text);
}

// As deep as the tables above.
static void list(const struct lister *lister, struct base_bytes bytes, const struct part *parts) // NOLINT
{
    struct base_cursor cursor = base_cursor(bytes);
    while (base_cursor_left(&cursor) && !cursor.failed) {
        const uint64_t tag = base_read_uleb(&cursor);
        const struct part *part = find(parts, tag >> 3);
        switch (tag & 7) {
        case PROTOBUF_VARINT: {
            const uint64_t number = base_read_uleb(&cursor);
            if (part && part->what)
                say_number(lister, part->what, number);
            break;
        }
        case PROTOBUF_FIXED64: {
            const uint64_t number = base_read_u64(&cursor);
            if (part && part->what)
                say_number(lister, part->what, number);
            break;
        }
        case PROTOBUF_LENGTH: {
            const struct base_bytes inside = base_read_bytes(&cursor, base_read_uleb(&cursor));
            if (part && part->parts)
                list(lister, inside, part->parts);
            else if (part)
                say_text(lister, part->what, inside);
            break;
        }
        case WIRE_FIXED32: base_read_u32(&cursor); break;
        default: return;
        }
    }
}

void upload_list(const struct upload_request *request, void (*say)(void *context, const char *what, const char *text),
                 void *context)
{
    const struct lister lister = {say, context};
    if (request->form != UPLOAD_FILE)
        list(&lister, request->body, request->form == UPLOAD_OTLP ? otlp : pprof);
}
