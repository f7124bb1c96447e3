// SPDX-License-Identifier: Apache-2.0
// SHA-256 and Ed25519, by libcrypto. Keys are the PEM files that `openssl genpkey -algorithm ed25519` writes.
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "qutc/shelf/inside.h"

static_assert(SHELF_SIGNATURE_BYTES == 64, "RFC 8032");

int shelf_hash(struct base_bytes bytes, uint8_t hash[SHELF_HASH_BYTES], struct base_error *error)
{
    unsigned size = 0;
    if (EVP_Digest(bytes.data, bytes.size, hash, &size, EVP_sha256(), NULL) == 1 && size == SHELF_HASH_BYTES)
        return 0;
    ERR_clear_error();
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "SHA-256");
}

static int no_password(char *text, int size, int is_written, void *unused)
{
    (void)text, (void)size, (void)is_written, (void)unused;
    return -1;
}

static EVP_PKEY *read_key(const char *path, bool is_private, struct base_error *error)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        base_fail(error, BASE_ERR_IO, "", 0, "cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    EVP_PKEY *key = is_private ? PEM_read_PrivateKey(file, NULL, no_password, NULL)
                               : PEM_read_PUBKEY(file, NULL, no_password, NULL);
    fclose(file);
    if (key && EVP_PKEY_is_a(key, "ED25519"))
        return key;
    ERR_clear_error();
    EVP_PKEY_free(key);
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
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t size = SHELF_SIGNATURE_BYTES;
    bool is_signed = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                     EVP_DigestSign(context, signature, &size, bytes.data, bytes.size) == 1 &&
                     size == SHELF_SIGNATURE_BYTES;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return is_signed ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "cannot sign with %s", key_path);
}

int shelf_verify(const char *key_path, struct base_bytes bytes, struct base_bytes signature, struct base_error *error)
{
    EVP_PKEY *key = read_key(key_path, false, error);
    if (!key)
        return -1;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_good = context && signature.size == SHELF_SIGNATURE_BYTES &&
                   EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
                   EVP_DigestVerify(context, signature.data, signature.size, bytes.data, bytes.size) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return is_good ? 0 : base_fail(error, BASE_ERR_MALFORMED, "", 0, "its signature is not of the key %s", key_path);
}
