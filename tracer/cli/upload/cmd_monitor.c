// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "base/hash_index.h"
#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/upload/options.h"
#include "tracer/monitor/monitor.h"
#include "tracer/record/left_alone.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t look_ns = 2000000000; // what a ring keeps reaches far longer back
enum { LONGER_MAX = 4 }; // windows that last 16 times as long: beyond it the newest that are kept might not reach

struct watch {
    struct upload_options options;
    struct upload_spool *spool, *rings; // rings NULL: none
    struct monitor *monitor;
    sigset_t signals;  // that are waited for
    unsigned halvings; // of the rate, by budgets
    uint64_t triggered, too_soon;
    uint64_t rings_again_ns; // until then triggers are counted only
    int status;
};

static void say(void *context, const char *name, const char *text)
{
    struct watch *watch = context;
    cli_report(stderr, name, "%s", text);
    watch->status = upload_options_worse(watch->status, CLI_NO);
}

static void take_window(struct watch *watch)
{
    struct base_error error = {0};
    if (monitor_window(watch->monitor, &error) != 0) {
        cli_report_error(stderr, watch->options.spool, &error);
        watch->status = CLI_BAD;
    }
    if (watch->options.has_target && upload_options_send(&watch->options, watch->spool) != CLI_OK)
        watch->status = CLI_BAD;
    watch->halvings = monitor_keep_budget(watch->monitor);
}

// When the next window ends: a host's own time within each, so that not all send at once.
static uint64_t wait_ns_of(const struct upload_options *options, unsigned halvings)
{
    const char *host = options->wanted.labels.host;
    const uint64_t window_ns = options->window_s * second_ns << (halvings < LONGER_MAX ? halvings : LONGER_MAX),
                   phase_ns = base_hash_bytes(0, host, strlen(host)) % window_ns;
    return window_ns - (base_clock_ns(CLOCK_REALTIME) - phase_ns) % window_ns;
}

static void take_rings(struct watch *watch)
{
    struct base_error error = {0};
    uint64_t taken;
    if (monitor_rings(watch->monitor, watch->rings, &taken, &error) != 0) {
        cli_report_error(stderr, watch->options.rings, &error);
        watch->status = CLI_BAD;
    } else if (!watch->options.quiet) {
        cli_report(stderr, watch->options.rings, "%" PRIu64 " traces taken", taken);
    }
}

static void say_trigger(const struct watch *watch, const struct monitor_triggered *triggered)
{
    const struct monitor_trigger *trigger = &watch->options.triggers[triggered->trigger];
    if (trigger->slow_ns)
        cli_report(stderr, trigger->name, "took %s in process %" PRIu32, base_quantity_time(triggered->took_ns).text,
                   triggered->pid);
    else
        cli_report(stderr, trigger->name, "in process %" PRIu32, triggered->pid);
}

// Who marks all the time does not fill the spool.
static void look(struct watch *watch)
{
    struct base_error error = {0};
    struct monitor_triggered triggered;
    const uint64_t now_ns = base_clock_now_ns();
    if (monitor_look(watch->monitor, &triggered, &error) != 0) {
        cli_report_error(stderr, watch->options.rings, &error);
        watch->status = CLI_BAD;
    }
    watch->triggered += triggered.count;
    if (!triggered.count)
        return;
    const bool is_soon = now_ns < watch->rings_again_ns;
    watch->too_soon += triggered.count - (is_soon ? 0u : 1u);
    if (is_soon)
        return;
    if (!watch->options.quiet)
        say_trigger(watch, &triggered);
    take_rings(watch);
    watch->rings_again_ns = now_ns + watch->options.window_s * second_ns;
}

// False: it is to end.
static bool wait_for_window(struct watch *watch, uint64_t end_ns)
{
    const uint64_t now_ns = base_clock_now_ns(), left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
    uint64_t wait_ns = wait_ns_of(&watch->options, watch->halvings);
    if (wait_ns > left_ns)
        wait_ns = left_ns;
    const uint64_t until_ns = now_ns + wait_ns;
    for (uint64_t at_ns = now_ns; at_ns < until_ns; at_ns = base_clock_now_ns()) {
        const bool looks = watch->options.trigger_count && until_ns - at_ns > look_ns;
        const uint64_t rest_ns = looks ? look_ns : until_ns - at_ns;
        const struct timespec rest = {.tv_sec = (time_t)(rest_ns / second_ns), .tv_nsec = (long)(rest_ns % second_ns)};
        const int number = sigtimedwait(&watch->signals, NULL, &rest);
        if (number == SIGUSR1)
            take_rings(watch);
        else if (number > 0)
            return false;
        else if (watch->options.trigger_count)
            look(watch);
    }
    return wait_ns < left_ns;
}

static void show_left(const struct monitor_balance *balance)
{
    char text[128];
    const char *before = " (";
    struct left_counts counts;
    memcpy(counts.of, balance->left, sizeof counts.of);
    const uint64_t sum = record_left_sum(&counts);
    if (!sum)
        return;
    printf(", %" PRIu64 " left alone", sum);
    for (unsigned why = 0; why < AGENT_LEFT_COUNT; why++) {
        if (!counts.of[why])
            continue;
        printf("%s%" PRIu64 " %s", before, counts.of[why], record_left_reason(why));
        before = ", ";
        if (why == AGENT_LEFT_FAILED && balance->failed_error) {
            record_left_call(balance->failed_call, balance->failed_error, text, sizeof text);
            printf(": %s", text);
        }
    }
    putchar(')');
}

static void show_balance(const struct monitor_balance *balance, const struct watch *watch)
{
    printf("windows %" PRIu64 "; processes %" PRIu64 " now, %" PRIu64 " ended", balance->windows, balance->processes,
           balance->ended);
    if (balance->vanished)
        printf(", %" PRIu64 " whose segment vanished", balance->vanished);
    show_left(balance);
    if (watch->options.wanted.window_share_percent)
        printf("; %u %% of windows are taken", watch->options.wanted.window_share_percent);
    if (watch->halvings)
        printf("; the rate is halved %u times", watch->halvings);
    printf("\nsamples told %" PRIu64 " = in windows %" PRIu64 " + left out %" PRIu64 " + overwritten %" PRIu64
           " + unreadable %" PRIu64 " + cut off %" PRIu64,
           balance->told, balance->in_windows, balance->left_out, balance->overwritten, balance->unreadable,
           balance->cut_off);
    if (balance->lost)
        printf("; before they were stored: %" PRIu64, balance->lost);
    putchar('\n');
}

static uint64_t missing_of(const struct monitor_balance *balance)
{
    return balance->overwritten + balance->unreadable + balance->cut_off + balance->lost + balance->vanished;
}

static void show_rings(const struct watch *watch)
{
    struct upload_balance balance;
    if (!watch->rings)
        return;
    upload_spool_balance(watch->rings, &balance);
    if (watch->options.trigger_count)
        printf("triggers %" PRIu64 ", too soon after another %" PRIu64 "\n", watch->triggered, watch->too_soon);
    printf("rings: ");
    upload_options_show(&balance);
}

static void run(struct watch *watch)
{
    const struct upload_options *options = &watch->options;
    struct monitor_balance before, after;
    struct upload_balance spool_before, spool_after;
    const uint64_t end_ns = options->duration_s ? base_clock_now_ns() + options->duration_s * second_ns : UINT64_MAX;
    monitor_balance(watch->monitor, &before);
    upload_spool_balance(watch->spool, &spool_before);
    for (bool goes_on = !options->once; goes_on;) {
        goes_on = wait_for_window(watch, end_ns);
        if (goes_on)
            take_window(watch);
    }
    take_window(watch);
    monitor_balance(watch->monitor, &after);
    upload_spool_balance(watch->spool, &spool_after);
    show_balance(&after, watch);
    upload_options_show(&spool_after);
    show_rings(watch);
    if (missing_of(&after) > missing_of(&before) || spool_after.dropped > spool_before.dropped ||
        spool_after.rejected > spool_before.rejected || (options->has_target && spool_after.waiting))
        watch->status = upload_options_worse(watch->status, CLI_NO);
}

static void show_process(void *context, const struct monitor_process *process)
{
    static const char *const states[MONITOR_PRELOADED_COUNT] = {"samples", "no segment yet", "no agent", "injected"};
    (void)context;
    printf("%7" PRIu32 "  %-14s  ", process->pid, states[process->state]);
    cli_print_name(stdout, process->command);
    printf("  ");
    cli_print_name(stdout, process->folder);
    putchar('\n');
}

static int list(const struct upload_options *options)
{
    struct base_error error = {0};
    struct monitor_listed listed;
    if (monitor_list(options->files, (size_t)options->file_count, show_process, NULL, &listed, &error) != 0) {
        cli_report_error(stderr, "/proc", &error);
        return CLI_BAD;
    }
    printf("preloaded %" PRIu64 ": %" PRIu64 " sample, %" PRIu64 " have no segment yet, %" PRIu64 " have no agent",
           listed.of[MONITOR_SAMPLES] + listed.of[MONITOR_NO_SEGMENT] + listed.of[MONITOR_NO_AGENT],
           listed.of[MONITOR_SAMPLES], listed.of[MONITOR_NO_SEGMENT], listed.of[MONITOR_NO_AGENT]);
    if (listed.of[MONITOR_INJECTED])
        printf("; injected %" PRIu64, listed.of[MONITOR_INJECTED]);
    if (listed.hidden)
        printf("; %" PRIu64 " may not be looked at", listed.hidden);
    putchar('\n');
    return CLI_OK;
}

// One of each process that has a segment.
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// False: it has said why.
static bool open_rings(struct watch *watch)
{
    struct base_error error = {0};
    if (!watch->options.rings)
        return true;
    watch->rings = upload_spool_open(watch->options.rings, watch->options.spool_bytes, &error);
    if (watch->rings)
        return true;
    cli_report_error(stderr, watch->options.rings, &error);
    watch->status = CLI_BAD;
    return false;
}

static int monitor_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    static char host[256];
    struct watch watch = {.spool = NULL};
    struct base_error error = {0};
    const int status = upload_options_parse(&watch.options, MONITOR_COMMAND, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    if (watch.options.list)
        return list(&watch.options);
    if (watch.options.flies_only)
        return upload_options_fly(&watch.options);
    if (!upload_options_can_send(&watch.options, "monitor", "it can fill a spool"))
        return CLI_BAD;
    if (watch.options.inject_count)
        watch.status = upload_options_fly(&watch.options);
    if (!watch.options.wanted.labels.host)
        watch.options.wanted.labels.host = gethostname(host, sizeof host - 1) == 0 ? host : "";
    if (watch.options.processes)
        allow_descriptors();
    signal(SIGIO, SIG_IGN); // of a lease that lasts a moment
    sigemptyset(&watch.signals);
    sigaddset(&watch.signals, SIGTERM);
    sigaddset(&watch.signals, SIGINT);
    if (watch.options.rings)
        sigaddset(&watch.signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &watch.signals, NULL);
    const struct monitor_options wanted = {.folders = watch.options.files,
                                           .folder_count = (size_t)watch.options.file_count,
                                           .processes = watch.options.processes,
                                           .spool_folder = watch.options.spool,
                                           .wanted = watch.options.wanted,
                                           .names = {.debug_root = watch.options.debug_root,
                                                     .inlined = !watch.options.no_inlines,
                                                     .no_files = watch.options.wanted.no_names},
                                           .triggers = watch.options.triggers,
                                           .trigger_count = watch.options.trigger_count,
                                           .cpu_share_most = watch.options.cpu_percent_most / 100,
                                           .bytes_per_day_most = watch.options.mb_day_most * 1e6,
                                           .say = say,
                                           .context = &watch};
    watch.spool = upload_spool_open(watch.options.spool, watch.options.spool_bytes, &error);
    watch.monitor = watch.spool ? monitor_open(&wanted, watch.spool, &error) : NULL;
    const bool has_rings = watch.monitor && open_rings(&watch);
    if (has_rings) {
        run(&watch);
    } else if (!watch.monitor) {
        cli_report_error(stderr, watch.options.spool, &error);
        watch.status = CLI_BAD;
    }
    monitor_close(watch.monitor);
    upload_spool_close(watch.spool);
    upload_spool_close(watch.rings);
    return watch.status;
}

const struct cli_command command_monitor = {
    "monitor", "take what a host's processes sample, window by window, and send it", monitor_command, NULL};
