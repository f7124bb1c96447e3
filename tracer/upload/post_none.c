// SPDX-License-Identifier: Apache-2.0
// In a build without libcurl: requests can be made, counted and kept, and the spool is for one that has it.
#include "tracer/upload/inside.h"

bool upload_is_built(void)
{
    return false;
}

struct upload_client *upload_client_open(const struct upload_target *target, struct base_error *error)
{
    (void)target;
    base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "this build has no libcurl (-Dfetch)");
    return NULL;
}

int upload_client_send(struct upload_client *client, const struct upload_item *item, const char *path,
                       struct upload_answer *answer, struct base_error *error)
{
    (void)client, (void)item, (void)path, (void)answer;
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "this build has no libcurl (-Dfetch)");
}

bool upload_client_takes_many(const struct upload_client *client)
{
    (void)client;
    return true;
}

void upload_client_close(struct upload_client *client)
{
    (void)client;
}
