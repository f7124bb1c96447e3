// SPDX-License-Identifier: Apache-2.0
// A table that was made for one user's process is kept for processes of that user: what these say of their files is no
// word to others. Who asks for one table is going to ask for all of its files: these are made meanwhile. That of a
// program is made from its beginning on. Usage: agent_tables_test FILE (with a build-id)
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qutc/include/qutc/provide.h"
#include "qutc/input/image.h"
#include "tests/support/tap.h"
#include "tracer/record/agent_tables.h"

static struct tables tables;
static struct agent_channel_table asked, asked_of_self;

static void wait_for_all(void)
{
    for (bool is_busy = true; is_busy; usleep(1000)) {
        pthread_mutex_lock(&tables.mutex);
        is_busy = tables.busy_count != 0 || tables.ahead;
        pthread_mutex_unlock(&tables.mutex);
    }
}

// Waits for the answer, and for all that is done beside it; how many tables were made for who asked then.
static uint64_t ask_of(const struct agent_channel_table *table, uint32_t uid, uint32_t pid)
{
    int ends[2];
    struct agent_channel_answer answer = {0};
    if (!CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "no sockets"))
        return 0;
    const struct server_peer peer = {.pid = pid, .process_fd = -1, .uid = uid};
    record_tables_ask(&tables, table, &peer, -1, ends[1]);
    CHECK(read(ends[0], &answer, sizeof answer) == sizeof answer && answer.type == AGENT_CHANNEL_OK, "no table");
    close(ends[0]);
    wait_for_all(); // it is kept behind the answer
    return tables.made;
}

static uint64_t ask(uint32_t uid)
{
    return ask_of(&asked, uid, 0);
}

TEST(kept_for_processes_of_one_user)
{
    CHECK(ask(1000) == 1 && tables.refused == 0, "made");
    CHECK(ask(1000) == 1, "kept");
    CHECK(ask(1001) == 2, "not for another user");
    CHECK(ask(1001) == 2 && ask(1000) == 2, "kept for both");
}

TEST(made_ahead)
{
    const uint64_t made = tables.made;
    CHECK(tables.made_ahead == 0, "nobody is known who would ask");
    CHECK(ask_of(&asked, 1000, (uint32_t)getpid()) == made, "kept");
    const uint64_t made_ahead = tables.made_ahead;
    CHECK(made_ahead >= 2, "%ju: this program, and libc", (uintmax_t)made_ahead);
    CHECK(ask_of(&asked_of_self, 1000, (uint32_t)getpid()) == made, "made ahead");
    CHECK(tables.made_ahead == made_ahead, "once");
    CHECK(ask_of(&asked_of_self, 1001, (uint32_t)getpid()) == made + 1, "not for another user");
}

static int take_nothing(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                        char *reason, size_t reason_size)
{
    (void)context, (void)request, (void)table, (void)table_size;
    snprintf(reason, reason_size, "there is none");
    return -1;
}

static void expect(qut_compile_fn take, const struct program *program)
{
    struct base_error error = {0};
    CHECK(record_tables_begin(&tables, NULL, take, NULL, &error) == 0, "%s", error.detail);
    record_tables_expect(&tables, program);
    wait_for_all();
}

TEST(made_from_a_programs_beginning_on)
{
    struct program program, without;
    struct base_error error = {0};
    CHECK(record_program_find(&program, asked.path, &error) == 0, "%s", error.detail);
    CHECK(program.build_id_bytes == asked.build_id_bytes &&
              memcmp(program.build_id, asked.build_id, asked.build_id_bytes) == 0,
          "its build-id");
    without = program;
    without.build_id_bytes = 0;
    expect(NULL, &without);
    CHECK(tables.made_ahead == 0, "nothing by which it would be known");
    record_tables_end(&tables);
    expect(take_nothing, &program);
    CHECK(tables.made_ahead == 0, "others are asked first");
    record_tables_end(&tables);
    expect(NULL, &program);
    CHECK(tables.made_ahead == 1 && ask(geteuid()) == 0 && tables.refused == 0, "made before it is asked for");
    record_tables_end(&tables);
}

static bool fill(struct agent_channel_table *table, const char *path)
{
    struct input_image *image;
    struct base_error error = {0};
    if (input_image_open(path, NULL, 0, 0, NULL, &image, &error) != 0)
        return false;
    table->build_id_bytes = image->identity_size;
    memcpy(table->build_id, image->identity, image->identity_size);
    snprintf(table->path, sizeof table->path, "%s", path);
    input_image_close(image);
    return true;
}

int main(int argc, char **argv)
{
    struct base_error error = {0};
    char self[PATH_MAX] = "";
    if (argc != 2 || readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !fill(&asked, argv[1]) ||
        !fill(&asked_of_self, self))
        return 1;
    RUN(made_from_a_programs_beginning_on);
    if (record_tables_begin(&tables, NULL, NULL, NULL, &error) != 0)
        return 1;
    RUN(kept_for_processes_of_one_user);
    RUN(made_ahead);
    record_tables_end(&tables);
    return tap_finish();
}
