// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/attach/recording.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qutc/cache.h"

enum { TEXT_BYTES = 1 << 20 };

double recording_seconds = 1;

// ---- subjects

void begin(struct subject *subject, const char *path, const char *mode, const char *argument)
{
    int in[2], out[2];
    char line[256];
    ck_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    subject->pid = fork();
    ck_assert(subject->pid >= 0);
    if (subject->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl(path, path, mode, argument, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    subject->in = in[1];
    subject->out = out[0];
    size_t size = 0;
    while (size < sizeof line - 1 && read(subject->out, line + size, 1) == 1 && line[size] != '\n')
        size++;
    line[size] = 0;
    ck_assert_msg(strncmp(line, "ready", 5) == 0, "%s %s says \"%s\"", path, mode, line);
    sscanf(line, "ready %lx %lx %lx", &subject->three, &subject->one, &subject->hold);
}

// Returns its status, and what it said.
int finish(struct subject *subject, char *text, size_t size)
{
    int status;
    size_t done = 0;
    close(subject->in);
    for (ssize_t got; text && done < size - 1 && (got = read(subject->out, text + done, size - 1 - done)) > 0;)
        done += (size_t)got;
    if (text)
        text[done] = 0;
    ck_assert_int_eq(waitpid(subject->pid, &status, 0), subject->pid);
    close(subject->out);
    return status;
}

char *read_file(pid_t pid, const char *name)
{
    char path[64], *text = calloc(1, TEXT_BYTES);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    size_t done = 0;
    for (ssize_t got; (got = read(fd, text + done, TEXT_BYTES - 1 - done)) > 0;)
        done += (size_t)got;
    close(fd);
    return text;
}

long status_number(pid_t pid, const char *field)
{
    char *text = read_file(pid, "status"), *at = strstr(text, field);
    long number = at ? strtol(at + strlen(field), NULL, 10) : -1;
    free(text);
    return number;
}

char state_of(pid_t pid)
{
    char *text = read_file(pid, "status"), *at = strstr(text, "State:\t");
    char state = at ? at[7] : 0;
    free(text);
    return state;
}

// ---- recording

void prepare(struct recording *recording, pid_t pid, unsigned hz, bool wall)
{
    static char *cache;
    if (!cache)
        qutc_cache_directory(&cache, NULL);
    *recording = (struct recording){.options = {
                                        .pid = pid,
                                        .period_ns = 1000000000u / hz,
                                        .wall = wall,
                                        .duration_ns = (uint64_t)(recording_seconds * 1e9),
                                        .stop_fd = -1,
                                        .file_fd = memfd_create("trace", MFD_CLOEXEC),
                                        .cache_directory = cache,
                                    }};
}

void read_back(struct recording *recording)
{
    struct base_error error;
    char text[256];
    ck_assert_msg(recording->status == 0, "%s", recording->error.text);
    const struct attach_result *result = &recording->result;
    ck_assert_msg(result->collect_error.reason == 0, "%s", base_error_text(&result->collect_error, text, sizeof text));
    ck_assert_msg(trace_read_fd(recording->options.file_fd, "trace", &recording->trace, &error) == 0, "%s",
                  base_error_text(&error, text, sizeof text));
    ck_assert(recording->trace.is_complete);
    struct trace_balance balance = trace_balance(&recording->trace);
    ck_assert(balance.hits_missing == 0 && balance.samples_missing == 0);
    ck_assert_uint_eq(recording->trace.present_samples, result->taken + result->intervals);
    ck_assert_uint_eq(result->due, result->taken + result->covered + result->missed_asleep + result->missed_woke +
                                       result->missed_slow + result->missed_gone + result->missed_registers);
    ck_assert_uint_eq(result->disturbed, 0);
}

void record(struct recording *recording)
{
    recording->status = attach_record(&recording->options, &recording->result, &recording->error);
    read_back(recording);
}

void done(struct recording *recording)
{
    trace_free(&recording->trace);
    close(recording->options.file_fd);
}
