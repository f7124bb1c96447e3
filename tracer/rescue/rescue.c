// SPDX-License-Identifier: Apache-2.0
#include "tracer/rescue/rescue.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "libqut/os/process.h"
#include "tracer/rescue/ledger.h"

enum { NAP_US = 50000 };
static const uint64_t patience_ns = 15000000000;

// ---- one at a time

// A name that lasts as long as who has it. -1: *error.
static int lock_process(pid_t pid, struct base_error *error)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const uint64_t end_ns = base_clock_now_ns() + patience_ns;
    const int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "qut-rescue-%d", (int)pid);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "socket: %s", strerror(errno));
    while (bind(fd, (const struct sockaddr *)&name, size) != 0) {
        if (errno != EADDRINUSE || base_clock_now_ns() > end_ns) {
            base_fail(error, BASE_ERR_IO, "", 0, "%d: what a killed tool left there is being put back: %s", (int)pid,
                      strerror(errno));
            close(fd);
            return -1;
        }
        os_sleep_us(NAP_US);
    }
    return fd;
}

// ---- code

// The memory of rings says that the agent is to stay where a tool was killed while it put back.
static void let_agent_go(pid_t pid, struct patch_process *patch)
{
    const uint32_t zero = 0;
    char path[64], line[4352];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long long start, offset;
        if (strstr(line, "/memfd:qut-calls") && sscanf(line, "%llx-%*x %*s %llx", &start, &offset) == 2 && offset == 0)
            patch_write(patch, start + offsetof(struct qut_calls_header, must_stay), &zero, sizeof zero, NULL);
    }
    if (file)
        fclose(file);
}

// Whether nothing leads to thunks or stubs any more.
static bool take_out(struct patch_process *patch, pid_t pid, struct rescue_figures *figures, struct base_error *error)
{
    const uint64_t end_ns = base_clock_now_ns() + patience_ns;
    bool is_out = false;
    while (!is_out && kill(pid, 0) == 0) {
        struct patch_figures now = {.put_in = 0};
        *error = (struct base_error){0};
        if (patch_take_out(patch, NULL, 0, &now, error) == 0) {
            figures->put_back += now.taken_out;
            figures->returns_put_back += now.restored_returns;
            is_out = now.in_thunks == 0;
        }
        if (!is_out && base_clock_now_ns() > end_ns)
            break;
        if (!is_out)
            os_sleep_us(NAP_US);
    }
    if (!is_out && !error->reason)
        base_fail(error, BASE_ERR_LIMIT, "", 0, "%d: a thread is on the way to a function, and stays there", (int)pid);
    return is_out;
}

static int put_code_back(pid_t pid, const struct rescue_ledgers *ledgers, struct rescue_figures *figures,
                         struct base_error *error)
{
    struct patch_process *patch = patch_open(pid, error);
    if (!patch)
        return -1;
    patch_set_stub(patch, &ledgers->stub);
    int status = patch_adopt(patch, ledgers->sites, ledgers->count, error);
    // Also where every function is as it was: return addresses may not be.
    if (status == 0)
        status = take_out(patch, pid, figures, error) ? 0 : -1;
    if (status == 0)
        let_agent_go(pid, patch);
    patch_close(patch);
    return status;
}

// ---- the agent

// One that was being loaded when its tool was killed is so by itself.
static int take_agent_out(pid_t pid, const struct inject_owner *only, const struct inject_options *how,
                          struct rescue_figures *figures, struct base_error *error)
{
    const uint64_t end_ns = base_clock_now_ns() + patience_ns;
    struct inject_found found;
    while (inject_look(pid, &found) && inject_owner_is_gone(&found.owner) &&
           (!only || inject_owner_is(only, &found.owner))) {
        const bool is_late = base_clock_now_ns() > end_ns;
        const bool is_busy = found.state == INJECT_FOUND_BUSY || (found.state == INJECT_FOUND_BEGUN && !is_late);
        if (is_busy && is_late)
            return base_fail(error, BASE_ERR_LIMIT, "", 0, "%d: an agent that a killed tool has begun to load still is",
                             (int)pid);
        if (is_busy) {
            os_sleep_us(NAP_US);
            continue;
        }
        struct injection *injection = inject_take_over(pid, how, error);
        if (!injection || inject_remove(injection, error) != 0)
            return -1;
        figures->is_agent_out = true;
    }
    return 0;
}

static int rescue_locked(pid_t pid, const struct inject_owner *only, const struct inject_options *how,
                         struct rescue_figures *figures, struct base_error *error)
{
    struct rescue_ledgers ledgers;
    int status = rescue_ledgers_read(pid, &ledgers, error);
    const bool is_meant =
        ledgers.living == 0 && (!only || ledgers.blocks == 0 || inject_owner_is(only, &ledgers.owner));
    if (status == 0 && is_meant && ledgers.blocks)
        status = put_code_back(pid, &ledgers, figures, error);
    if (status == 0 && is_meant)
        status = take_agent_out(pid, only, how, figures, error);
    rescue_ledgers_free(&ledgers);
    if (status != 0 && kill(pid, 0) != 0) { // it has ended
        *error = (struct base_error){0};
        status = 0;
    }
    return status;
}

// Whether anything of ours is there: of most processes nothing is.
static bool has_ours(pid_t pid)
{
    char path[64], line[4352];
    struct inject_found found;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !has && fgets(line, sizeof line, file))
        has = strstr(line, "libqut-agent") != NULL;
    if (file)
        fclose(file);
    return has || inject_look(pid, &found);
}

int rescue_process(pid_t pid, const struct inject_owner *only, const struct inject_options *how,
                   struct rescue_figures *figures, struct base_error *error)
{
    *figures = (struct rescue_figures){.put_back = 0};
    if (!has_ours(pid))
        return 0;
    const int lock = lock_process(pid, error);
    if (lock < 0)
        return -1;
    const int status = rescue_locked(pid, only, how, figures, error);
    close(lock);
    return status;
}
