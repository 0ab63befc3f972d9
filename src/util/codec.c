#include "util/codec.h"

#include <string.h>

#include "util/error.h"

#define NO_TEXT UINT32_MAX

fx_codec fx_codec_writer(const char *what, fxtap_buffer *out)
{
    return (fx_codec){.what = what, .out = out};
}

fx_codec fx_codec_reader(const char *what, const void *bytes, size_t n_bytes, fx_arena *arena)
{
    return (fx_codec){.what = what, .at = bytes, .left = n_bytes, .arena = arena};
}

bool fx_codec_is_writing(const fx_codec *codec)
{
    return codec->out != NULL;
}

void fx_codec_fail(fx_codec *codec, const char *what)
{
    if (codec->status == FXTAP_OK) {
        codec->status = fx_error(FXTAP_E_FORMAT, "%s: %s", codec->what, what);
    }
}

void fx_encode_number(unsigned char *out, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        out[i] = (unsigned char)(value >> (8 * i));
    }
}

uint64_t fx_decode_number(const unsigned char *bytes, size_t n_bytes)
{
    uint64_t value = 0;
    for (size_t i = n_bytes; i > 0; i--) {
        value = value << 8 | bytes[i - 1];
    }
    return value;
}

void fx_codec_bytes(fx_codec *codec, const void **bytes, uint64_t n_bytes)
{
    if (fx_codec_is_writing(codec)) {
        fxtap_buffer_append(codec->out, *bytes, (size_t)n_bytes);
        return;
    }
    if (n_bytes > codec->left) {
        fx_codec_fail(codec, "truncated");
    }
    *bytes = codec->status == FXTAP_OK ? codec->at : NULL;
    if (*bytes != NULL) {
        codec->at += n_bytes;
        codec->left -= (size_t)n_bytes;
    }
}

static uint64_t number(fx_codec *codec, uint64_t value, size_t n_bytes)
{
    unsigned char encoded[8];
    const void *bytes = encoded;
    fx_encode_number(encoded, value, n_bytes);
    fx_codec_bytes(codec, &bytes, n_bytes);
    return bytes == NULL ? 0 : fx_decode_number(bytes, n_bytes);
}

void fx_codec_u8(fx_codec *codec, uint8_t *value)
{
    *value = (uint8_t)number(codec, *value, 1);
}

void fx_codec_u64(fx_codec *codec, uint64_t *value)
{
    *value = number(codec, *value, 8);
}

void fx_codec_magic(fx_codec *codec, uint64_t magic)
{
    if (number(codec, magic, 8) != magic) {
        fx_codec_fail(codec, "not a shard, or of another version");
    }
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
    uint64_t read = number(codec, *value, 1);
    if (read > 1) {
        fx_codec_fail(codec, "invalid truth value");
    }
    *value = read != 0;
}

void fx_codec_enum(fx_codec *codec, int *value, int count)
{
    uint64_t read = number(codec, (uint64_t)(unsigned)*value, 4);
    if (read >= (uint64_t)count) {
        fx_codec_fail(codec, "invalid enumeration value");
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
    const void *bytes = NULL;
    if (length != NO_TEXT) {
        fx_codec_bytes(codec, &bytes, length);
    }
    *text = bytes == NULL ? NULL : fx_text_copy(codec->arena, bytes, length);
    if (bytes != NULL && *text == NULL) {
        codec->status = FXTAP_E_NOMEM;
    }
}

static void check_count(fx_codec *codec, size_t *count, size_t item_bytes)
{
    if (!fx_codec_is_writing(codec) && *count > codec->left / item_bytes) {
        fx_codec_fail(codec, "truncated");
        *count = 0;
    }
}

void fx_codec_count(fx_codec *codec, size_t *count, size_t item_bytes)
{
    fx_codec_size(codec, count);
    check_count(codec, count, item_bytes);
}

void fx_codec_count32(fx_codec *codec, size_t *count, size_t item_bytes)
{
    *count = (size_t)number(codec, *count, 4);
    check_count(codec, count, item_bytes);
}

void *fx_codec_room(fx_codec *codec, size_t n, size_t item_bytes)
{
    void *room = NULL;
    if (!fx_codec_is_writing(codec) && codec->status == FXTAP_OK) {
        room = fx_arena_calloc(codec->arena, n, item_bytes);
        codec->status = room == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    }
    return room;
}
