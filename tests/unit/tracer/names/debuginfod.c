// SPDX-License-Identifier: Apache-2.0
// Stands in for elfutils' client library: what the environment says is what a server would have answered.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void *debuginfod_begin(void);
void debuginfod_end(void *client);
int debuginfod_find_debuginfo(void *client, const unsigned char *build_id, int size, char **path);
int debuginfod_find_executable(void *client, const unsigned char *build_id, int size, char **path);

void *debuginfod_begin(void)
{
    return calloc(1, sizeof(int));
}

void debuginfod_end(void *client)
{
    free(client);
}

// So many questions of a client no server answers.
static int is_away(void *client)
{
    const char *away = getenv("NAMES_TEST_DEBUGINFO_AWAY");
    int *asked = client;
    return away && (*asked)++ < atoi(away);
}

int debuginfod_find_debuginfo(void *client, const unsigned char *build_id, int size, char **path)
{
    if (is_away(client))
        return -EHOSTUNREACH;
    const char *answer = getenv("NAMES_TEST_DEBUGINFO");
    if (!client || !build_id || size < 2 || !answer)
        return -ENOENT;
    if (strcmp(answer, "dead") == 0)
        return -EHOSTUNREACH;
    *path = strdup(answer);
    return open(answer, O_RDONLY | O_CLOEXEC);
}

int debuginfod_find_executable(void *client, const unsigned char *build_id, int size, char **path)
{
    (void)path;
    if (is_away(client))
        return -EHOSTUNREACH;
    const char *answer = getenv("NAMES_TEST_DEBUGINFO");
    return client && build_id && size && answer && strcmp(answer, "dead") == 0 ? -EHOSTUNREACH : -ENOENT;
}
