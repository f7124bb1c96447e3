// SPDX-License-Identifier: Apache-2.0
// What both commands do with a spool.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "cli/diagnostics.h"
#include "tracer/cli/upload/options.h"

int upload_options_worse(int one, int other)
{
    return one > other ? one : other;
}

bool upload_options_can_send(const struct upload_options *options, const char *command, const char *instead)
{
    signal(SIGPIPE, SIG_IGN); // a receiver that goes away, and a limit of files, are errors like others
    signal(SIGXFSZ, SIG_IGN);
    if (!options->has_target || upload_is_built())
        return true;
    cli_report(stderr, command, "this qut was built without libcurl (-Dfetch): %s", instead);
    return false;
}

static void say_of_request(void *context, const char *id, const char *text)
{
    const struct upload_options *options = context;
    if (!options->quiet)
        cli_report(stderr, id, "%s", text);
}

int upload_options_send(const struct upload_options *options, struct upload_spool *spool)
{
    struct base_error error = {0};
    struct upload_target target = options->target;
    target.say = say_of_request;
    target.context = (void *)(uintptr_t)options;
    if (upload_send(spool, &target, &error) >= 0)
        return CLI_OK;
    cli_report_error(stderr, "--to", &error); // not the URL: it may be secret
    return CLI_BAD;
}

void upload_options_show(const struct upload_balance *balance)
{
    printf("taken %" PRIu64 " = sent %" PRIu64 " + waiting %" PRIu64 " + dropped %" PRIu64, balance->taken,
           balance->sent, balance->waiting, balance->dropped);
    for (size_t i = 0; i < balance->reason_count; i++)
        printf("%s%s %" PRIu64, i ? ", " : " (", balance->reasons[i].text, balance->reasons[i].count);
    printf("%s", balance->reason_count ? ")" : "");
    if (balance->rejected)
        printf("; profiles rejected: %" PRIu64, balance->rejected);
    if (balance->split)
        printf("; split in two: %" PRIu64, balance->split);
    putchar('\n');
}
