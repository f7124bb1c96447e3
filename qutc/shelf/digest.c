// SPDX-License-Identifier: Apache-2.0
// SHA-256 and Ed25519, by libcrypto. Keys are the PEM files that `openssl genpkey -algorithm ed25519` writes.
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/late.h"
#include "qutc/shelf/inside.h"

static_assert(SHELF_SIGNATURE_BYTES == 64, "RFC 8032");

// libcrypto's functions. A command that hashes nothing does not wait for its 21,000 relocations.
static struct {
    __typeof__(ERR_clear_error) *clear_error;
    __typeof__(EVP_Digest) *digest;
    __typeof__(EVP_DigestSign) *sign;
    __typeof__(EVP_DigestSignInit) *sign_init;
    __typeof__(EVP_DigestVerify) *verify;
    __typeof__(EVP_DigestVerifyInit) *verify_init;
    __typeof__(EVP_MD_CTX_free) *context_free;
    __typeof__(EVP_MD_CTX_new) *context_new;
    __typeof__(EVP_PKEY_free) *key_free;
    __typeof__(EVP_PKEY_is_a) *key_is_a;
    __typeof__(EVP_sha256) *sha256;
    __typeof__(PEM_read_PUBKEY) *read_public;
    __typeof__(PEM_read_PrivateKey) *read_private;
} crypto;

#define FUNCTION(NAME, PLACE)                                                                                          \
    {                                                                                                                  \
#NAME, offsetof(__typeof__(crypto), PLACE)                                                                     \
    }
static const struct base_late_function functions[] = {
    FUNCTION(ERR_clear_error, clear_error),
    FUNCTION(EVP_Digest, digest),
    FUNCTION(EVP_DigestSign, sign),
    FUNCTION(EVP_DigestSignInit, sign_init),
    FUNCTION(EVP_DigestVerify, verify),
    FUNCTION(EVP_DigestVerifyInit, verify_init),
    FUNCTION(EVP_MD_CTX_free, context_free),
    FUNCTION(EVP_MD_CTX_new, context_new),
    FUNCTION(EVP_PKEY_free, key_free),
    FUNCTION(EVP_PKEY_is_a, key_is_a),
    FUNCTION(EVP_sha256, sha256),
    FUNCTION(PEM_read_PUBKEY, read_public),
    FUNCTION(PEM_read_PrivateKey, read_private),
};
#undef FUNCTION
enum { FUNCTIONS = sizeof functions / sizeof *functions };
static_assert(FUNCTIONS * sizeof(void *) == sizeof crypto, "each is looked up");

static struct base_error failure;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    base_late_load("libcrypto", "libcrypto.so.3", functions, FUNCTIONS, &crypto, &failure);
}

static bool has_crypto(struct base_error *error)
{
    pthread_once(&once, load);
    if (failure.reason != BASE_OK)
        base_fail_as(error, &failure);
    return failure.reason == BASE_OK;
}

int shelf_hash(struct base_bytes bytes, uint8_t hash[SHELF_HASH_BYTES], struct base_error *error)
{
    unsigned size = 0;
    if (!has_crypto(error))
        return -1;
    if (crypto.digest(bytes.data, bytes.size, hash, &size, crypto.sha256(), NULL) == 1 && size == SHELF_HASH_BYTES)
        return 0;
    crypto.clear_error();
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "SHA-256");
}

static int no_password(char *text, int size, int is_written, void *unused)
{
    (void)text, (void)size, (void)is_written, (void)unused;
    return -1;
}

static EVP_PKEY *read_key(const char *path, bool is_private, struct base_error *error)
{
    FILE *file = has_crypto(error) ? fopen(path, "re") : NULL;
    if (!file) {
        base_fail(error, BASE_ERR_IO, "", 0, "cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    EVP_PKEY *key = is_private ? crypto.read_private(file, NULL, no_password, NULL)
                               : crypto.read_public(file, NULL, no_password, NULL);
    fclose(file);
    if (key && crypto.key_is_a(key, "ED25519"))
        return key;
    crypto.clear_error();
    crypto.key_free(key);
    base_fail(error, BASE_ERR_MALFORMED, "", 0, "%s is no %s key of Ed25519 in a PEM file", path,
              is_private ? "private" : "public");
    return NULL;
}

int shelf_sign(const char *key_path, struct base_bytes bytes, uint8_t signature[SHELF_SIGNATURE_BYTES],
               struct base_error *error)
{
    EVP_PKEY *key = read_key(key_path, true, error);
    if (!key)
        return -1;
    EVP_MD_CTX *context = crypto.context_new();
    size_t size = SHELF_SIGNATURE_BYTES;
    bool is_signed = context && crypto.sign_init(context, NULL, NULL, NULL, key) == 1 &&
                     crypto.sign(context, signature, &size, bytes.data, bytes.size) == 1 &&
                     size == SHELF_SIGNATURE_BYTES;
    crypto.context_free(context);
    crypto.key_free(key);
    crypto.clear_error();
    return is_signed ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "cannot sign with %s", key_path);
}

int shelf_verify(const char *key_path, struct base_bytes bytes, struct base_bytes signature, struct base_error *error)
{
    EVP_PKEY *key = read_key(key_path, false, error);
    if (!key)
        return -1;
    EVP_MD_CTX *context = crypto.context_new();
    bool is_good = context && signature.size == SHELF_SIGNATURE_BYTES &&
                   crypto.verify_init(context, NULL, NULL, NULL, key) == 1 &&
                   crypto.verify(context, signature.data, signature.size, bytes.data, bytes.size) == 1;
    crypto.context_free(context);
    crypto.key_free(key);
    crypto.clear_error();
    return is_good ? 0 : base_fail(error, BASE_ERR_MALFORMED, "", 0, "its signature is not of the key %s", key_path);
}
