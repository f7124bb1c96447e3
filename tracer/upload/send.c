// SPDX-License-Identifier: Apache-2.0
// One request after the other, the oldest first; one that the receiver cannot take just now is sent again, the same
// bytes, and those behind it wait.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/upload/inside.h"

enum { PAUSE_MAX_MS = 60000, RETRY_AFTER_MAX_MS = 3600000, NS_PER_MS = 1000000, TEXT_BYTES = 200, TOO_LARGE = 413 };

struct sender {
    struct upload_spool *spool;
    const struct upload_target *target;
    struct upload_client *client;
    uint64_t end_ns;
    uint64_t random;
};

static void say(const struct sender *sender, const struct upload_item *item, const char *text)
{
    if (sender->target->say)
        sender->target->say(sender->target->context, item->id, text);
}

// From half of the pause to all of it: senders that a server has turned away together come back apart.
static uint64_t pause_ms(struct sender *sender, unsigned again, const struct upload_answer *answer)
{
    uint64_t most = (uint64_t)sender->target->wait_ms << (again < 16 ? again : 16);
    most = most < PAUSE_MAX_MS ? most : PAUSE_MAX_MS;
    sender->random = base_hash_word(sender->random, base_clock_now_ns());
    uint64_t pause = most / 2 + sender->random % (most / 2 + 1);
    const int64_t told = upload_retry_after_ms(answer->retry_after, (int64_t)time(NULL));
    if (told >= 0 && (uint64_t)told > pause)
        pause = told < RETRY_AFTER_MAX_MS ? (uint64_t)told : RETRY_AFTER_MAX_MS;
    return pause;
}

static void sleep_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * NS_PER_MS)};
    while (nanosleep(&left, &left) != 0) {
    }
}

// Two take its place, behind all that wait. 1: it cannot be split.
static int split(struct sender *sender, size_t place, struct base_error *error)
{
    const struct upload_item item = sender->spool->items[place];
    const int result = upload_spool_split(sender->spool, place, error);
    if (result == 0)
        say(sender, &item, "status 413: too large; it is sent as two");
    return result;
}

// What it was: accepted, or refused for good. -1: neither; the target is not what it should be.
static int settle(struct sender *sender, struct upload_item *item, const struct upload_answer *answer,
                  struct base_error *error)
{
    const enum upload_form form = sender->target->form;
    uint64_t rejected = 0;
    char text[TEXT_BYTES];
    // A file that is there already has the same name, so the same bytes.
    if ((answer->status >= 200 && answer->status < 300) || (form == UPLOAD_FILE && answer->status == 412)) {
        if (form == UPLOAD_OTLP &&
            !upload_partial_success((struct base_bytes){answer->body, answer->body_bytes}, &rejected))
            say(sender, item, "accepted; what was answered is no ExportProfilesServiceResponse");
        if (rejected) {
            snprintf(text, sizeof text, "%" PRIu64 " of its profiles were rejected", rejected);
            say(sender, item, text);
        }
        return upload_spool_sent(sender->spool, item, rejected, error);
    }
    if (answer->status < 400)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "status %ld is none that a receiver gives",
                         answer->status);
    snprintf(text, sizeof text, "refused with status %ld%s", answer->status,
             answer->status == TOO_LARGE ? ": too large, and it cannot be split" : "");
    say(sender, item, text);
    snprintf(text, sizeof text, "status-%ld", answer->status);
    return upload_spool_drop(sender->spool, item, text, error);
}

// 0: it is gone; 1: patience is over.
static int send_item(struct sender *sender, size_t place, struct base_error *error)
{
    struct upload_item *item = &sender->spool->items[place];
    char name[UPLOAD_FILE_CHARS], text[TEXT_BYTES];
    char *path = upload_path(sender->spool->folder, upload_file_name(item, name));
    struct upload_answer answer;
    int result = path ? 2 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    for (unsigned again = 0; result == 2; again++) {
        answer = (struct upload_answer){.status = 0};
        if (upload_client_send(sender->client, item, path, &answer, error) != 0) {
            result = -1;
            break;
        }
        if (!upload_is_again(&answer)) {
            result = answer.status == TOO_LARGE ? split(sender, place, error) : 1;
            if (result == 1)
                result = settle(sender, item, &answer, error);
            break;
        }
        const uint64_t pause = pause_ms(sender, again, &answer);
        const bool is_over = base_clock_now_ns() + pause * NS_PER_MS >= sender->end_ns;
        if (answer.is_broken)
            snprintf(text, sizeof text, "%s%s", answer.why, is_over ? "; it waits" : "");
        else
            snprintf(text, sizeof text, "status %ld%s", answer.status, is_over ? "; it waits" : "");
        say(sender, item, text);
        if (is_over)
            result = 1;
        else
            sleep_ms(pause);
    }
    free(path);
    return result;
}

static size_t count_waiting(const struct upload_spool *spool, enum upload_form form)
{
    size_t count = 0;
    for (size_t i = 0; i < spool->count; i++)
        count += spool->items[i].state == UPLOAD_STATE_WAITS && spool->items[i].form == form;
    return count;
}

int upload_send(struct upload_spool *spool, const struct upload_target *target, struct base_error *error)
{
    struct sender sender = {.spool = spool, .target = target, .client = upload_client_open(target, error)};
    const size_t waiting = count_waiting(spool, target->form);
    int result = sender.client ? 0 : -1;
    sender.end_ns = base_clock_now_ns() + target->patience_ms * NS_PER_MS;
    sender.random = base_hash_word((uint64_t)getpid(), base_clock_now_ns());
    if (result == 0 && waiting > 1 && !upload_client_takes_many(sender.client))
        result = base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                           "%zu files wait, and the URL is one file's: {id} in it makes one for each", waiting);
    for (size_t i = 0; result == 0 && i < spool->count; i++)
        if (spool->items[i].state == UPLOAD_STATE_WAITS && spool->items[i].form == target->form)
            result = send_item(&sender, i, error);
    upload_client_close(sender.client);
    return result;
}
