// SPDX-License-Identifier: Apache-2.0
// Links libqut, libqutc and libqutc-servers: where there is a server, nobody asks it for what is at hand.
#include <qutc/provide.h>
#include <qutc/servers.h>

#include "program.h"

static struct qutc_provide_options provide = {.size = sizeof provide};

static int compile(void *context, const struct qut_compile_request *request, void **table, size_t *size, char *reason,
                   size_t reason_size)
{
    (void)context;
    return qutc_compile_for_qut(&provide, request, table, size, reason, reason_size);
}

int main(void)
{
    const char *const urls[] = {"http://127.0.0.1:9"};
    const struct qutc_servers_options from = {.size = sizeof from, .urls = urls, .url_count = 1};
    struct qutc_servers *servers = NULL;
    char reason[200] = "";
    if (qutc_servers_open(&from, &servers, reason, sizeof reason) == 0) {
        provide.take = qutc_servers_take;
        provide.take_context = servers;
    }
    printf("%s\n", reason); // without libcurl
    int result = run(compile, 3) || end.reason != QUT_END_OUTERMOST;
    qutc_servers_close(servers);
    return result;
}
