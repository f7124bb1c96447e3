// SPDX-License-Identifier: Apache-2.0
// The text is KEY=VALUE;KEY=VALUE;... with one letter a key, v=1 first. Numbers are decimal, groups PATTERN:PERIOD_NS.
#include "tracer/agent/settings.h"

#include <assert.h>
#include <string.h>

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

static void put_number(struct writer *writer, char key, uint64_t value)
{
    put_key(writer, key);
    put_digits(writer, value);
}

size_t agent_settings_write(const struct agent_settings *settings, char *text, size_t size)
{
    struct writer writer = {.text = text, .size = size};
    if (size == 0 || settings->group_count > AGENT_GROUPS_MAX || settings->signal_number < 0)
        return 0;
    text[0] = '\0';
    put_number(&writer, 'v', AGENT_VERSION);
    put_text(&writer, 't', settings->token);
    put_text(&writer, 'k', settings->socket);
    put_text(&writer, 'c', settings->cache);
    put_text(&writer, 'P', settings->preload);
    put_number(&writer, 'T', settings->trigger);
    put_number(&writer, 'S', (uint64_t)settings->signal_number);
    put_number(&writer, 'p', settings->period_ns);
    put_number(&writer, 'i', settings->sync_interval_ns);
    put_number(&writer, 'f', settings->fault_period);
    put_number(&writer, 'b', settings->segment_bytes);
    put_number(&writer, 'l', settings->blocked_least_ns);
    put_number(&writer, 's', settings->sync);
    put_number(&writer, 'm', settings->metric_mask);
    put_number(&writer, 'F', settings->follow);
    put_number(&writer, 'N', settings->keep_newest);
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
    to[length] = '\0';
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

static bool get_32(const char *text, size_t length, uint32_t *to)
{
    uint64_t value;
    bool good = get_number(text, length, UINT32_MAX, &value);
    *to = (uint32_t)value;
    return good;
}

static bool get_flag(const char *text, size_t length, bool *to)
{
    uint64_t value;
    bool good = get_number(text, length, 1, &value);
    *to = value != 0;
    return good;
}

static bool get_signal(const char *text, size_t length, int32_t *to)
{
    uint64_t value;
    bool good = get_number(text, length, 64, &value);
    *to = (int32_t)value;
    return good;
}

static bool get(struct agent_settings *settings, char key, const char *text, size_t length)
{
    switch (key) {
    case 't': return get_text(text, length, settings->token, sizeof settings->token);
    case 'k': return get_text(text, length, settings->socket, sizeof settings->socket);
    case 'c': return get_text(text, length, settings->cache, sizeof settings->cache);
    case 'P': return get_text(text, length, settings->preload, sizeof settings->preload);
    case 'T': return get_32(text, length, &settings->trigger);
    case 'S': return get_signal(text, length, &settings->signal_number);
    case 'p': return get_number(text, length, UINT64_MAX, &settings->period_ns);
    case 'i': return get_number(text, length, UINT64_MAX, &settings->sync_interval_ns);
    case 'f': return get_number(text, length, UINT64_MAX, &settings->fault_period);
    case 'b': return get_number(text, length, UINT64_MAX, &settings->segment_bytes);
    case 'l': return get_number(text, length, UINT64_MAX, &settings->blocked_least_ns);
    case 's': return get_32(text, length, &settings->sync);
    case 'm': return get_32(text, length, &settings->metric_mask);
    case 'F': return get_flag(text, length, &settings->follow);
    case 'N': return get_flag(text, length, &settings->keep_newest);
    case 'g': return get_group(settings, text, length);
    default: return true; // of a later writer
    }
}

bool agent_settings_read(struct agent_settings *settings, const char *text)
{
    static const char version[] = "v=1;";
    static_assert(AGENT_VERSION == 1, "as the text says");
    memset(settings, 0, sizeof *settings);
    if (strnlen(text, AGENT_SETTINGS_BYTES) == AGENT_SETTINGS_BYTES || strncmp(text, version, strlen(version)) != 0)
        return false;
    for (const char *at = text + strlen(version); *at;) {
        size_t length = strcspn(at, ";");
        if (length < 2 || at[1] != '=' || !get(settings, at[0], at + 2, length - 2))
            return false;
        at += length + (at[length] == ';');
    }
    return settings->token[0] != '\0';
}
