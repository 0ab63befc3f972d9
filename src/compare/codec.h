/*
 * codec.h - one description of a structure that serves both ways: each function writes the field, or reads it.
 *
 * Little-endian. Reading trusts nothing: lengths are held against the bytes that remain before anything is allocated;
 * the first failure sticks, and every field read after it is zero.
 */
#ifndef FX_COMPARE_CODEC_H
#define FX_COMPARE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/output.h"
#include "util/arena.h"

typedef struct fx_codec {
    fxtap_buffer *out;       /* not NULL: writing */
    const unsigned char *at; /* reading */
    size_t left;
    fx_arena *arena; /* reading: takes texts and arrays */
    fxtap_status status;
} fx_codec;

void fx_codec_write_to(fx_codec *codec, fxtap_buffer *out);
void fx_codec_read_from(fx_codec *codec, const void *bytes, size_t n_bytes, fx_arena *arena);
bool fx_codec_is_writing(const fx_codec *codec);
void fx_codec_fail(fx_codec *codec, const char *what);

void fx_codec_u64(fx_codec *codec, uint64_t *value);
void fx_codec_i64(fx_codec *codec, int64_t *value);
void fx_codec_u32(fx_codec *codec, uint32_t *value);
void fx_codec_i32(fx_codec *codec, int32_t *value);
void fx_codec_size(fx_codec *codec, size_t *value);
void fx_codec_double(fx_codec *codec, double *value);
void fx_codec_bool(fx_codec *codec, bool *value);
/* An enumeration of values 0 .. count-1. */
void fx_codec_enum(fx_codec *codec, int *value, int count);
void fx_codec_text(fx_codec *codec, const char **text); /* NULL is kept */
/* A count of items that take at least `item_bytes` each. */
void fx_codec_count(fx_codec *codec, size_t *count, size_t item_bytes);

#endif
