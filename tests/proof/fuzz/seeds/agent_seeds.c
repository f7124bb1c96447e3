// SPDX-License-Identifier: Apache-2.0
// A packet of each kind, sound and not; settings as the recorder writes them. The first byte is what fuzz_agent takes
// the rest for.
#include <stdio.h>
#include <string.h>

#include "formats/qut_agent.h"
#include "tests/proof/fuzz/seeds/seeds.h"

enum { SETTINGS, PACKET, OUR_PACKET, WITH_DESCRIPTOR = 0x80 | 1 }; // 0x81 % 0x80 == PACKET

static void packet_seed(const char *name, const struct agent_channel_head *packet, size_t size)
{
    char with[64];
    write_seed("agent", name, OUR_PACKET, packet, size);
    snprintf(with, sizeof with, "%s-descriptor", name);
    write_seed("agent", with, 0x80 | OUR_PACKET, packet, size);
}

void agent_seeds(void)
{
    const struct agent_channel_hello hello = {.head = {AGENT_VERSION, AGENT_CHANNEL_HELLO, ""}, .pid = 2};
    struct agent_channel_table table = {.head = {AGENT_VERSION, AGENT_CHANNEL_TABLE, ""}, .path = "/lib/libc.so.6"};
    const struct agent_channel_counts counts = {.head = {AGENT_VERSION, AGENT_CHANNEL_ADD, ""}, .due = 3};
    const struct agent_channel_left left = {.head = {AGENT_VERSION, AGENT_CHANNEL_LEFT, ""}, .why = AGENT_LEFT_STATIC};
    packet_seed("hello", &hello.head, sizeof hello);
    packet_seed("table", &table.head, sizeof table);
    packet_seed("counts", &counts.head, sizeof counts);
    packet_seed("left", &left.head, sizeof left);
    packet_seed("cut", &left.head, sizeof left / 2);
    write_seed("agent", "no-token", PACKET, &hello, sizeof hello);
    write_seed("agent", "no-token-descriptor", WITH_DESCRIPTOR, &hello, sizeof hello);
    write_seed("agent", "empty", PACKET, "", 0);
    memset(table.path, 'a', sizeof table.path);
    packet_seed("path-without-end", &table.head, sizeof table);

    struct agent_settings settings = {.token = "0123456789abcdef0123456789abcdef",
                                      .socket = "/run/qut",
                                      .cache = "/cache",
                                      .preload = "a.so:b.so",
                                      .trigger = 1,
                                      .period_ns = 1000000,
                                      .sync = AGENT_SYNC_ALL,
                                      .follow = true,
                                      .group_count = 2,
                                      .groups = {{"main", 1000}, {"work:er*", 5}}};
    char text[AGENT_SETTINGS_BYTES];
    write_seed("agent", "settings", SETTINGS, text, agent_settings_write(&settings, text, sizeof text));
    write_seed("agent", "settings-later", SETTINGS, "v=2;t=aa;Z=9;k=@x", 17);
    write_seed("agent", "settings-twice", SETTINGS, "v=1;t=aaaa;t=b", 14);
    write_seed("agent", "settings-unknown-key", SETTINGS, "v=1;t=aa;Z=9;F=2", 16);

    static const char program[] = "#! /bin/sh -e\nexit 0\n";
    write_seed("command", "script", -1, program, sizeof program - 1);
    write_seed("command", "no-interpreter", -1, "#!\n", 3);
}
