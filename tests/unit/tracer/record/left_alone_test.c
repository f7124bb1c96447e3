// SPDX-License-Identifier: Apache-2.0
// Processes that are left alone count once each, however often they are told of, and whichever process had their number
// before.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/tap.h"
#include "tracer/record/left_alone.h"

static struct left left;

static uint64_t tell(uint32_t pid, enum agent_left why, bool is_child, bool is_taken)
{
    const struct agent_channel_left told = {.why = why, .is_child = is_child, .is_taken = is_taken};
    record_left_take(&left, &told, pid);
    return record_left_sum(&left.counts);
}

TEST(one_process_counts_once)
{
    left = (struct left){.next = 0};
    CHECK(tell(7, AGENT_LEFT_STATIC, false, false) == 1, "told of");
    CHECK(tell(7, AGENT_LEFT_LIBC, false, false) == 1 && left.counts.of[AGENT_LEFT_STATIC] == 0, "the last reason");
    CHECK(tell(7, AGENT_LEFT_LIBC, true, false) == 2, "a child of it");
    CHECK(tell(7, AGENT_LEFT_LIBC, false, true) == 1, "taken back");
    CHECK(tell(7, AGENT_LEFT_LIBC, false, true) == 1, "nothing is left to be taken back");
}

TEST(one_that_nobody_can_name_counts_each_time)
{
    left = (struct left){.next = 0};
    tell(0, AGENT_LEFT_STATIC, false, false);
    CHECK(tell(0, AGENT_LEFT_STATIC, false, false) == 2, "%llu", (unsigned long long)record_left_sum(&left.counts));
    CHECK(tell(0, AGENT_LEFT_STATIC, false, true) == 2, "%llu", (unsigned long long)record_left_sum(&left.counts));
}

TEST(a_number_is_given_again)
{
    left = (struct left){.next = 0};
    tell(7, AGENT_LEFT_STATIC, false, false);
    record_left_forget(&left, 7);
    CHECK(tell(7, AGENT_LEFT_STATIC, false, true) == 1, "its exec failed: the other one's counts");
    CHECK(tell(7, AGENT_LEFT_STATIC, false, false) == 2, "%llu", (unsigned long long)record_left_sum(&left.counts));
}

TEST(more_than_are_remembered)
{
    left = (struct left){.next = 0};
    for (uint32_t pid = 1; pid <= 3 * LEFT_REMEMBERED; pid++)
        CHECK(tell(pid, AGENT_LEFT_STATIC, false, false) == pid, "%u", pid);
    CHECK(tell(3 * LEFT_REMEMBERED, AGENT_LEFT_STATIC, false, true) == 3 * LEFT_REMEMBERED - 1, "the last one");
    CHECK(tell(1, AGENT_LEFT_STATIC, false, true) == 3 * LEFT_REMEMBERED - 1, "the first one");
}

TEST(a_call_has_its_name)
{
    char text[96];
    record_left_call(SYS_memfd_create, EPERM, text, sizeof text);
    CHECK(strcmp(text, "memfd_create: Operation not permitted") == 0, "%s", text);
    record_left_call(9999, ENOSYS, text, sizeof text);
    CHECK(strcmp(text, "system call 9999: Function not implemented") == 0, "%s", text);
    record_left_call(0, EMFILE, text, sizeof text);
    CHECK(strcmp(text, "Too many open files") == 0, "%s", text);
}

static const char token[AGENT_TOKEN_BYTES] = "0123456789abcdef0123456789abcdef";

static void note(const char *directory, const char *name, const char *with_token, uint32_t why, size_t size)
{
    struct agent_channel_left told[2] = {{.head = {.version = AGENT_VERSION, .type = AGENT_CHANNEL_LEFT},
                                          .why = why,
                                          .failed_call = SYS_connect,
                                          .failed_error = EPERM}};
    char path[128];
    strncpy(told->head.token, with_token, AGENT_TOKEN_BYTES);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && write(fd, told, size) == (ssize_t)size, "%s", path);
    close(fd);
}

TEST(notes_are_read_once_and_trusted_as_packets_are)
{
    char directory[] = "/tmp/left-alone-test-XXXXXX", path[128];
    const size_t size = sizeof(struct agent_channel_left);
    CHECK(mkdtemp(directory), "%s", directory);
    note(directory, "left-7", token, AGENT_LEFT_FAILED, size);
    note(directory, "left-8", "another", AGENT_LEFT_FAILED, size);
    note(directory, "left-9", token, AGENT_LEFT_COUNT, size);
    note(directory, "left-10", token, AGENT_LEFT_FAILED, size + 1);
    note(directory, "left-11", token, AGENT_LEFT_FAILED, 3);
    note(directory, "socket", token, AGENT_LEFT_FAILED, size);
    snprintf(path, sizeof path, "%s/left-12", directory);
    CHECK(symlink("socket", path) == 0, "a link");
    snprintf(path, sizeof path, "%s/left-13", directory);
    CHECK(mkfifo(path, 0600) == 0, "a pipe, which nobody writes to");
    left = (struct left){.next = 0};
    record_left_read_notes(directory, token, &left);
    CHECK(record_left_sum(&left.counts) == 1 && left.counts.of[AGENT_LEFT_FAILED] == 1, "%llu",
          (unsigned long long)record_left_sum(&left.counts));
    CHECK(left.failed_call == SYS_connect && left.failed_error == EPERM, "what it failed for");
    record_left_read_notes(directory, token, &left);
    CHECK(record_left_sum(&left.counts) == 1, "they are gone");
    snprintf(path, sizeof path, "%s/socket", directory);
    CHECK(unlink(path) == 0 && rmdir(directory) == 0, "nothing else is");
}

int main(void)
{
    RUN(a_call_has_its_name);
    RUN(notes_are_read_once_and_trusted_as_packets_are);
    RUN(one_process_counts_once);
    RUN(one_that_nobody_can_name_counts_each_time);
    RUN(a_number_is_given_again);
    RUN(more_than_are_remembered);
    return tap_finish();
}
