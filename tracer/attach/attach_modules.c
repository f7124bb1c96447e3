// SPDX-License-Identifier: Apache-2.0
// What is mapped in the process, and its tables. All of it while the process runs.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "libqut/arch/native.h"
#include "libqut/os/os.h"
#include "tracer/attach/inside.h"

enum {
    MAPS_EACH_NS = 250000000, // what was unloaded is noticed so late; what was loaded, at the first frame in it
    MAPS_AGAIN_NS = 20000000, // ... but not more often than so
    MAPS_SHARE = 50,          // at most 1/50 of our time goes into reading maps
};

static size_t read_auxv(pid_t tid, char *bytes, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, size);
    if (fd >= 0)
        close(fd);
    return got > 0 ? (size_t)got : 0;
}

int attach_open_target(struct attach_session *session, struct attach_error *error)
{
    const struct attach_options *options = session->options;
    const struct qut_target_options target_options = {.size = sizeof target_options,
                                                      .cache_directory = options->cache_directory,
                                                      .compile = qutc_compile_for_qut,
                                                      .compile_context = session->provide,
                                                      .sysroot = options->sysroot,
                                                      .frame_pointers = true};
    struct qut_target_error why;
    session->target = qut_target_process(options->pid, &target_options, &why);
    if (!session->target) {
        char state = 0;
        attach_read_state(options->pid, &state);
        return state == 0 || state == 'Z' || state == 'X' ? attach_fail(error, "%d: has ended", (int)options->pid)
                                                          : attach_fail(error, "%s", why.text);
    }
    const struct arch *arch = session->target->arch;
    bool is_native = arch->id == arch_native_arch.id || arch->id == arch_native_arch.tracee_id;
    if (!is_native || !arch->core_registers) {
        attach_fail(error, "%d: is of %s, and this qut of %s: record it with a qut of its own architecture",
                    (int)options->pid, arch->name, arch_native_arch.name);
        qut_target_close(session->target);
        session->target = NULL;
        return -1;
    }
    session->auxv_bytes = read_auxv(attach_live(session)->memory_tid, session->auxv, sizeof session->auxv);
    session->maps_ns = os_now_ns();
    return 0;
}

void attach_make_tables(struct attach_session *session)
{
    const struct attach_options *options = session->options;
    struct qut_target *target = session->target;
    for (size_t i = 0; i < target->range_count; i++) {
        if (options->preparing)
            options->preparing(options->progress_context, (unsigned)i, (unsigned)target->range_count);
        if (target->ranges[i].image->is_elf)
            target_make_table(target, target->ranges[i].image);
    }
    if (options->preparing)
        options->preparing(options->progress_context, (unsigned)target->range_count, (unsigned)target->range_count);
}

// The kernel lays out each program's memory anew.
static bool became_another(struct attach_session *session)
{
    char auxv[sizeof session->auxv];
    size_t size = read_auxv(attach_live(session)->memory_tid, auxv, sizeof auxv);
    return size && (size != session->auxv_bytes || memcmp(auxv, session->auxv, size) != 0);
}

static bool reopen(struct attach_session *session)
{
    struct attach_error error;
    struct qut_target *old = session->target;
    if (attach_open_target(session, &error) != 0) {
        session->target = old;
        return false;
    }
    qut_target_close(old);
    session->result->execs++;
    attach_python_new_target(session);
    attach_v8_new_target(session);
    session->known_links = 1;
    for (size_t i = 0; i < session->threads.count; i++)
        session->threads.items[i].stack_top = session->threads.items[i].stack_needed =
            session->threads.items[i].second_start = 0;
    attach_store_modules(session);
    return true;
}

bool attach_refresh(struct attach_session *session, bool now)
{
    uint64_t begin_ns = os_now_ns(), since_ns = begin_ns - session->maps_ns;
    uint64_t least_ns = now ? MAPS_AGAIN_NS : MAPS_EACH_NS;
    if (least_ns < MAPS_SHARE * session->maps_cost_ns)
        least_ns = MAPS_SHARE * session->maps_cost_ns;
    if (since_ns < least_ns)
        return false;
    const struct target_code_range *before = session->target->ranges;
    struct qut_target_error error;
    bool changed = false;
    if (became_another(session)) {
        changed = reopen(session);
    } else if (target_live_refresh_maps(session->target, &error) == 0 && session->target->ranges != before) {
        // The list of ranges is made anew when the text of the maps is another one.
        attach_store_modules(session);
        changed = true;
    }
    session->maps_ns = os_now_ns();
    session->maps_cost_ns = session->maps_ns - begin_ns;
    return changed;
}
