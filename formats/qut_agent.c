// SPDX-License-Identifier: Apache-2.0
// The text is KEY=VALUE;KEY=VALUE;... with one letter a key, the version first. Numbers are decimal, groups
// PATTERN:PERIOD_NS. Or it is FOLDER;KEY=VALUE;...: what is usual for a folder, which the others change. A setting is a
// field of struct agent_settings and a row below; groups, which are many, are written out.
#include "formats/qut_agent.h"

#include <errno.h>
#include <string.h>

#define FIELD(name) offsetof(struct agent_settings, name), sizeof((struct agent_settings *)NULL)->name

static const struct field { // in the order of the text
    char key;
    uint16_t offset_bytes, size_bytes; // of a number: 1, 4 or 8
    uint64_t most;                     // of a number; 0: it is a text
} fields[] = {
    {'t', FIELD(token), 0},
    {'k', FIELD(socket), 0},
    {'c', FIELD(cache), 0},
    {'P', FIELD(preload), 0},
    {'T', FIELD(trigger), UINT32_MAX},
    {'S', FIELD(signal_number), 64},
    {'p', FIELD(period_ns), UINT64_MAX},
    {'i', FIELD(sync_interval_ns), UINT64_MAX},
    {'f', FIELD(fault_period), UINT64_MAX},
    {'b', FIELD(segment_bytes), UINT64_MAX},
    {'l', FIELD(blocked_least_ns), UINT64_MAX},
    {'s', FIELD(sync), UINT32_MAX},
    {'m', FIELD(metric_mask), UINT32_MAX},
    {'F', FIELD(follow), 1},
    {'N', FIELD(keep_newest), 1},
    {'X', FIELD(call_ring_bytes), UINT64_MAX},
    {'B', FIELD(traps), 1},
    {'d', FIELD(folder), 0},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

// ---- writing

struct writer {
    char *text;
    size_t size, used;
    bool failed;
};

static void put(struct writer *writer, const char *bytes, size_t length)
{
    if (writer->failed || length >= writer->size - writer->used) {
        writer->failed = true;
        return;
    }
    memcpy(writer->text + writer->used, bytes, length);
    writer->used += length;
    writer->text[writer->used] = '\0';
}

static void put_key(struct writer *writer, char key)
{
    char start[3] = {';', key, '='};
    size_t skip = writer->used == 0;
    put(writer, start + skip, sizeof start - skip);
}

static void put_text(struct writer *writer, char key, const char *text)
{
    if (strpbrk(text, ";\n\r"))
        writer->failed = true;
    put_key(writer, key);
    put(writer, text, strlen(text));
}

static void put_digits(struct writer *writer, uint64_t value)
{
    char digits[20];
    size_t first = sizeof digits;
    do
        digits[--first] = (char)('0' + value % 10);
    while (value /= 10);
    put(writer, digits + first, sizeof digits - first);
}

static uint64_t load(const void *number, size_t size_bytes)
{
    if (size_bytes == sizeof(uint64_t))
        return *(const uint64_t *)number;
    return size_bytes == sizeof(uint32_t) ? *(const uint32_t *)number : *(const uint8_t *)number;
}

static void put_field(struct writer *writer, const struct field *field, const struct agent_settings *settings)
{
    const void *at = (const char *)settings + field->offset_bytes;
    if (field->key == 'd' && settings->folder[0] == '\0') // came later, as the two below
        return;
    if (field->most == 0) {
        put_text(writer, field->key, at);
        return;
    }
    uint64_t value = load(at, field->size_bytes);
    if (value > field->most)
        writer->failed = true;
    if (value == 0 &&
        (field->key == 'X' || field->key == 'B')) // came later: where it is not asked for, the text is what it was
        return;
    put_key(writer, field->key);
    put_digits(writer, value);
}

size_t agent_settings_write(const struct agent_settings *settings, char *text, size_t size)
{
    struct writer writer = {.text = text, .size = size};
    if (size == 0 || settings->group_count > AGENT_GROUPS_MAX)
        return 0;
    text[0] = '\0';
    put_key(&writer, 'v');
    put_digits(&writer, AGENT_VERSION);
    for (size_t i = 0; i < FIELD_COUNT; i++)
        put_field(&writer, &fields[i], settings);
    for (uint32_t i = 0; i < settings->group_count; i++) {
        put_text(&writer, 'g', settings->groups[i].pattern);
        put(&writer, ":", 1);
        put_digits(&writer, settings->groups[i].period_ns);
    }
    return writer.failed ? 0 : writer.used;
}

// ---- reading

static bool get_number(const char *text, size_t length, uint64_t most, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (digit > most || *value > (most - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return length > 0;
}

static bool get_text(const char *text, size_t length, char *to, size_t to_bytes)
{
    if (length >= to_bytes)
        return false;
    memcpy(to, text, length);
    memset(to + length, 0, to_bytes - length); // a key that comes twice may have had a longer text before
    return true;
}

static bool get_group(struct agent_settings *settings, const char *text, size_t length)
{
    if (settings->group_count == AGENT_GROUPS_MAX)
        return false;
    struct agent_group *group = &settings->groups[settings->group_count++];
    size_t pattern = length; // its last ':' ends it
    while (pattern > 0 && text[pattern - 1] != ':')
        pattern--;
    return pattern > 0 && get_text(text, pattern - 1, group->pattern, sizeof group->pattern) &&
           get_number(text + pattern, length - pattern, UINT64_MAX, &group->period_ns);
}

static bool get_field(const struct field *field, struct agent_settings *settings, const char *text, size_t length)
{
    void *at = (char *)settings + field->offset_bytes;
    uint64_t value;
    if (field->most == 0)
        return get_text(text, length, at, field->size_bytes);
    bool is_good = get_number(text, length, field->most, &value);
    if (field->size_bytes == sizeof(uint64_t))
        *(uint64_t *)at = value;
    else if (field->size_bytes == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)value;
    else
        *(uint8_t *)at = (uint8_t)value;
    return is_good;
}

static bool get(struct agent_settings *settings, char key, const char *text, size_t length)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (fields[i].key == key)
            return get_field(&fields[i], settings, text, length);
    return key != 'g' || get_group(settings, text, length); // others are of a later writer
}

// Of this version always: nothing stands between who writes such a text and the agent that reads it.
static bool get_folder(struct agent_settings *settings, const char *text, size_t length)
{
    settings->period_ns = 1000000000 / AGENT_FOLDER_HZ;
    settings->segment_bytes = AGENT_FOLDER_SEGMENT_BYTES;
    settings->follow = settings->keep_newest = true;
    memcpy(settings->cache, AGENT_FOLDER_CACHE, sizeof AGENT_FOLDER_CACHE);
    return get_text(text, length, settings->folder, sizeof settings->folder);
}

static bool get_first(struct agent_settings *settings, const char *text, size_t length, uint64_t *version)
{
    *version = AGENT_VERSION;
    if (text[0] == '/')
        return get_folder(settings, text, length);
    return strncmp(text, "v=", 2) == 0 && get_number(text + 2, length - 2, UINT32_MAX, version);
}

int agent_settings_read(struct agent_settings *settings, const char *text)
{
    size_t length = strcspn(text, ";");
    uint64_t version;
    memset(settings, 0, sizeof *settings);
    if (strnlen(text, AGENT_SETTINGS_BYTES) == AGENT_SETTINGS_BYTES || !get_first(settings, text, length, &version))
        return -EINVAL;
    for (const char *at = text + length + (text[length] == ';'); *at;) {
        // Those two are the same in every version: the recorder is told of it.
        bool is_known = version == AGENT_VERSION || at[0] == 't' || at[0] == 'k';
        length = strcspn(at, ";");
        if (is_known && (length < 2 || at[1] != '=' || !get(settings, at[0], at + 2, length - 2)))
            return -EINVAL;
        at += length + (at[length] == ';');
    }
    if (settings->token[0] == '\0' && settings->folder[0] == '\0')
        return -EINVAL;
    return version == AGENT_VERSION ? 0 : -EPROTONOSUPPORT;
}
