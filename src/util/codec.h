/*
 * codec.h - one description of a structure for writing and reading: each function writes or reads a field.
 *
 * Little-endian. Input is not trusted: lengths are compared with the remaining bytes before anything is allocated. The
 * first failure is kept, and every field read after it is zero.
 */
#ifndef FX_UTIL_CODEC_H
#define FX_UTIL_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/output.h"

typedef struct fx_codec {
    const char *what;        /* prefix of messages: "report shard" */
    fxtap_buffer *out;       /* not NULL: writing */
    const unsigned char *at; /* reading */
    size_t left;
    fx_arena *arena;     /* reading: owns texts and arrays */
    fxtap_status status; /* reading: the first failure; when writing, the buffer has it */
} fx_codec;

fx_codec fx_codec_writer(const char *what, fxtap_buffer *out);
fx_codec fx_codec_reader(const char *what, const void *bytes, size_t n_bytes, fx_arena *arena);
bool fx_codec_is_writing(const fx_codec *codec);
void fx_codec_fail(fx_codec *codec, const char *what); /* FXTAP_E_FORMAT */

/* Which kind of shard the bytes are, and its version. */
void fx_codec_magic(fx_codec *codec, uint64_t magic);
void fx_codec_u8(fx_codec *codec, uint8_t *value);
void fx_codec_u64(fx_codec *codec, uint64_t *value);
void fx_codec_i64(fx_codec *codec, int64_t *value);
void fx_codec_u32(fx_codec *codec, uint32_t *value);
void fx_codec_i32(fx_codec *codec, int32_t *value);
void fx_codec_size(fx_codec *codec, size_t *value);
void fx_codec_double(fx_codec *codec, double *value);
void fx_codec_bool(fx_codec *codec, bool *value);
/* An enumeration of values 0 .. count-1. */
void fx_codec_enum(fx_codec *codec, int *value, int count);
void fx_codec_text(fx_codec *codec, const char **text); /* NULL is preserved */
/* A count, of 8 bytes or of 4, of items that take at least `item_bytes` each. */
void fx_codec_count(fx_codec *codec, size_t *count, size_t item_bytes);
void fx_codec_count32(fx_codec *codec, size_t *count, size_t item_bytes);
/* Raw bytes; reading borrows them, and returns NULL on failure. */
void fx_codec_bytes(fx_codec *codec, const void **bytes, uint64_t n_bytes);
/* Reading: room for `n` zeroed items in the arena, NULL with the status set on failure. Writing: NULL. */
void *fx_codec_room(fx_codec *codec, size_t n, size_t item_bytes);

void fx_encode_number(unsigned char *out, uint64_t value, size_t n_bytes);
uint64_t fx_decode_number(const unsigned char *bytes, size_t n_bytes);

#endif
