// SPDX-License-Identifier: Apache-2.0
// What the folder's files share.
#ifndef TRACER_UPLOAD_INSIDE_H
#define TRACER_UPLOAD_INSIDE_H

#include "base/hash_index.h"
#include "base/vector.h"
#include "tracer/upload/upload.h"

// ---- account.c

// A line of 128 bytes, of which the last ones are a checksum.
struct upload_record {
    char word[9];                     // "taken", "sent", "dropped"; "split": it is two now, which are taken behind it;
                                      // "known": sent once, counted elsewhere; "+sent": a sum
    char id[UPLOAD_ID_CHARS];         // "-": none
    uint64_t number;                  // bytes of what was taken; profiles rejected; how many a sum is of
    char form[9];                     // "-": none
    char reason[UPLOAD_REASON_CHARS]; // "-": none
};

enum { UPLOAD_RECORD_BYTES = 128 };

// A file of records with room behind them that is the file's already: what was taken can be written off on a full disk.
struct upload_account {
    int fd;
    uint64_t used, room;
};

int upload_account_create(struct upload_account *account, const char *path, struct base_error *error);
// Of one that is there: calls `each` for all records, in their order. What was being written when a process ended is
// none.
int upload_account_open(struct upload_account *account, const char *path,
                        int (*each)(void *context, const struct upload_record *record, struct base_error *error),
                        void *context, struct base_error *error);
// Room for so many records more.
int upload_account_reserve(struct upload_account *account, uint64_t records, struct base_error *error);
int upload_account_add(struct upload_account *account, const struct upload_record *record, struct base_error *error);
void upload_account_close(struct upload_account *account);

// ---- spool.c, recover.c

enum upload_state { UPLOAD_STATE_WAITS, UPLOAD_STATE_SENT, UPLOAD_STATE_DROPPED, UPLOAD_STATE_SPLIT };

struct upload_item {
    char id[UPLOAD_ID_CHARS];
    enum upload_form form;
    enum upload_state state;
    uint64_t bytes;
    bool has_file; // while the folder is looked through
};

struct upload_spool {
    char *folder;
    int lock, at; // descriptors: of the lock, and of the folder
    uint64_t max_bytes;
    struct upload_account account;
    BASE_VECTOR(struct upload_item); // in the order in which they were taken
    struct base_hash_index index;
    struct upload_balance balance;
};

enum { UPLOAD_FILE_CHARS = 48 };
// "ID.otlp"
const char *upload_file_name(const struct upload_item *item, char name[UPLOAD_FILE_CHARS]);
struct upload_item *upload_spool_find(struct upload_spool *spool, const char *id); // NULL: it is not known
// A record, and what it does to items and balance.
int upload_spool_note(struct upload_spool *spool, const struct upload_record *record, struct base_error *error);
int upload_spool_apply(void *spool, const struct upload_record *record, struct base_error *error);
int upload_spool_drop(struct upload_spool *spool, struct upload_item *item, const char *reason,
                      struct base_error *error);
int upload_spool_sent(struct upload_spool *spool, struct upload_item *item, uint64_t rejected,
                      struct base_error *error);
struct upload_record upload_record_of(const char *word, const struct upload_item *item, uint64_t number,
                                      const char *reason);
// The folder against the account.
int upload_spool_recover(struct upload_spool *spool, struct base_error *error);
// The account anew, without what is over, if it has become long.
void upload_spool_shorten(struct upload_spool *spool, const char *account_path);
char *upload_path(const char *folder, const char *name); // NULL: no memory

// ---- form.c

enum { UPLOAD_UUID_CHARS = 37 };
const char *upload_uuid(const char *id, char uuid[UPLOAD_UUID_CHARS]); // the id as receivers of pushes want it

// ---- halve.c, split.c

// Half 0 or 1 of a request, by samples, under the id that it will have. 0; 1: it has no two, or its form knows none;
// -1, *error filled: no memory, or it is no such request.
int upload_halve(enum upload_form form, struct base_bytes body, unsigned half, const char *id, struct sink *into,
                 struct base_error *error);
// How many samples it says, equal ones as one. 0 too where it is no such request, or its form knows none.
uint64_t upload_count_samples(enum upload_form form, struct base_bytes body);
// Of one that waits. 0; 1: it cannot be, and waits; -1, *error filled: no memory, or the account cannot be written.
int upload_spool_split(struct upload_spool *spool, size_t place, struct base_error *error);
// Of one whose split was begun, and whose file is there.
int upload_spool_finish_split(struct upload_spool *spool, size_t place, struct base_error *error);

// ---- answer.c

struct upload_answer {
    long status;          // 0: there was none
    bool is_broken;       // the connection did not come about, or did not last
    char why[120];        // in words
    char retry_after[64]; // the header's value
    uint8_t body[4096];   // as much as there is room for
    size_t body_bytes;
};

// Milliseconds from now on; -1: neither seconds nor a date.
int64_t upload_retry_after_ms(const char *value, int64_t now_s);
// Of OTLP: profiles that the receiver did not take, 0 where it says nothing of that. False: it is no such answer.
bool upload_partial_success(struct base_bytes body, uint64_t *rejected);
bool upload_is_again(const struct upload_answer *answer); // the specification has it sent again

// ---- post.c

struct upload_client;
struct upload_client *upload_client_open(const struct upload_target *target, struct base_error *error);
// 0 with *answer; -1, *error filled: nothing can be sent like that.
int upload_client_send(struct upload_client *client, const struct upload_item *item, const char *path,
                       struct upload_answer *answer, struct base_error *error);
bool upload_client_takes_many(const struct upload_client *client); // each has its own address
void upload_client_close(struct upload_client *client);

#endif
