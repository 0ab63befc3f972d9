#include "compare/codec.h"

#include <string.h>

#include "util/error.h"

#define NO_TEXT UINT32_MAX

void fx_codec_write_to(fx_codec *codec, fxtap_buffer *out)
{
    *codec = (fx_codec){.out = out};
}

void fx_codec_read_from(fx_codec *codec, const void *bytes, size_t n_bytes, fx_arena *arena)
{
    *codec = (fx_codec){.at = bytes, .left = n_bytes, .arena = arena};
}

bool fx_codec_is_writing(const fx_codec *codec)
{
    return codec->out != NULL;
}

void fx_codec_fail(fx_codec *codec, const char *what)
{
    if (codec->status == FXTAP_OK) {
        codec->status = fx_error(FXTAP_E_FORMAT, "report shard: %s", what);
    }
}

static uint64_t number(fx_codec *codec, uint64_t value, size_t n_bytes)
{
    if (fx_codec_is_writing(codec)) {
        unsigned char bytes[8];
        for (size_t i = 0; i < n_bytes; i++) {
            bytes[i] = (unsigned char)(value >> (8 * i));
        }
        fxtap_buffer_append(codec->out, bytes, n_bytes);
        return value;
    }
    if (codec->left < n_bytes) {
        fx_codec_fail(codec, "cut short");
    }
    if (codec->status != FXTAP_OK) {
        return 0;
    }
    value = 0;
    for (size_t i = n_bytes; i > 0; i--) {
        value = value << 8 | codec->at[i - 1];
    }
    codec->at += n_bytes;
    codec->left -= n_bytes;
    return value;
}

void fx_codec_u64(fx_codec *codec, uint64_t *value)
{
    *value = number(codec, *value, 8);
}

void fx_codec_i64(fx_codec *codec, int64_t *value)
{
    *value = (int64_t)number(codec, (uint64_t)*value, 8);
}

void fx_codec_u32(fx_codec *codec, uint32_t *value)
{
    *value = (uint32_t)number(codec, *value, 4);
}

void fx_codec_i32(fx_codec *codec, int32_t *value)
{
    *value = (int32_t)(uint32_t)number(codec, (uint32_t)*value, 4);
}

void fx_codec_size(fx_codec *codec, size_t *value)
{
    *value = (size_t)number(codec, *value, 8);
}

void fx_codec_double(fx_codec *codec, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    bits = number(codec, bits, 8);
    memcpy(value, &bits, sizeof bits);
}

void fx_codec_bool(fx_codec *codec, bool *value)
{
    *value = number(codec, *value, 1) != 0;
}

void fx_codec_enum(fx_codec *codec, int *value, int count)
{
    uint64_t read = number(codec, (uint64_t)(unsigned)*value, 4);
    if (read >= (uint64_t)count) {
        fx_codec_fail(codec, "a value outside its enumeration");
        read = 0;
    }
    *value = (int)read;
}

void fx_codec_text(fx_codec *codec, const char **text)
{
    uint32_t length = *text == NULL || !fx_codec_is_writing(codec) ? NO_TEXT : (uint32_t)strlen(*text);
    fx_codec_u32(codec, &length);
    if (fx_codec_is_writing(codec)) {
        if (length != NO_TEXT) {
            fxtap_buffer_append(codec->out, *text, length);
        }
        return;
    }
    *text = NULL;
    if (length == NO_TEXT || codec->status != FXTAP_OK) {
        return;
    }
    if (length > codec->left) {
        fx_codec_fail(codec, "cut short in a text");
        return;
    }
    char *copy = fx_arena_alloc(codec->arena, (size_t)length + 1);
    if (copy == NULL) {
        codec->status = FXTAP_E_NOMEM;
        return;
    }
    memcpy(copy, codec->at, length);
    copy[length] = '\0';
    codec->at += length;
    codec->left -= length;
    *text = copy;
}

void fx_codec_count(fx_codec *codec, size_t *count, size_t item_bytes)
{
    fx_codec_size(codec, count);
    if (!fx_codec_is_writing(codec) && *count > codec->left / item_bytes) {
        fx_codec_fail(codec, "more items than bytes");
        *count = 0;
    }
}
