// SPDX-License-Identifier: Apache-2.0
// A table that was made for one user's process is kept for processes of that user: what these say of their files is no
// word to others. Usage: agent_tables_test FILE (with a build-id)
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qutc/include/qutc/provide.h"
#include "qutc/input/image.h"
#include "tests/support/tap.h"
#include "tracer/record/agent_tables.h"

static struct tables tables;
static struct agent_channel_table asked;

// Waits for the answer; how many tables were made then.
static uint64_t ask(uint32_t uid)
{
    int ends[2];
    char answer[sizeof(struct agent_channel_answer)];
    if (!CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "no sockets"))
        return 0;
    const struct server_peer peer = {.pid = (uint32_t)getpid(), .process_fd = -1, .uid = uid};
    record_tables_ask(&tables, &asked, &peer, -1, ends[1]);
    CHECK(read(ends[0], answer, sizeof answer) > 0, "no answer");
    close(ends[0]);
    // It is kept behind the answer.
    for (bool is_busy = true; is_busy; usleep(1000)) {
        pthread_mutex_lock(&tables.mutex);
        is_busy = tables.busy_count != 0;
        pthread_mutex_unlock(&tables.mutex);
    }
    return tables.made;
}

TEST(kept_for_processes_of_one_user)
{
    CHECK(ask(1000) == 1 && tables.refused == 0, "made");
    CHECK(ask(1000) == 1, "kept");
    CHECK(ask(1001) == 2, "not for another user");
    CHECK(ask(1001) == 2 && ask(1000) == 2, "kept for both");
}

int main(int argc, char **argv)
{
    struct input_image *image;
    struct base_error error = {0};
    if (argc != 2 || input_image_open(argv[1], NULL, 0, 0, NULL, &image, &error) != 0 ||
        record_tables_begin(&tables, NULL, NULL, NULL, &error) != 0)
        return 1;
    asked.build_id_bytes = image->identity_size;
    memcpy(asked.build_id, image->identity, image->identity_size);
    snprintf(asked.path, sizeof asked.path, "%s", argv[1]);
    input_image_close(image);
    RUN(kept_for_processes_of_one_user);
    record_tables_end(&tables);
    return tap_finish();
}
