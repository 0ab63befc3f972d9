#include "support_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/npy.h"
#include "tensor/npy_header.h"
#include "util/memory.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/fxtap-test-npy-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* A version-`major` file of this dictionary text, followed by `n_data` bytes 0, 1, 2, ...; freed by the caller. */
static unsigned char *image(int major, const char *dictionary, size_t n_data, size_t *n_out)
{
    size_t length = strlen(dictionary);
    size_t prefix = major == 1 ? 10 : 12;
    unsigned char *bytes = malloc(prefix + length + n_data + 1);
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)major;
    bytes[7] = 0;
    for (size_t i = 8; i < prefix; i++) {
        bytes[i] = (unsigned char)(length >> (8 * (i - 8)));
    }
    memcpy(bytes + prefix, dictionary, length);
    for (size_t i = 0; i < n_data; i++) {
        bytes[prefix + length + i] = (unsigned char)i;
    }
    *n_out = prefix + length + n_data;
    return bytes;
}

static fxtap_status open_image(int major, const char *dictionary, size_t n_data, fxtap_npy **out,
                               unsigned char **bytes_out)
{
    size_t n;
    *bytes_out = image(major, dictionary, n_data, &n);
    return fxtap_npy_open_bytes("image", *bytes_out, n, out);
}

static void expect_status(int major, const char *dictionary, size_t n_data, fxtap_status wanted)
{
    fxtap_npy *npy = NULL;
    unsigned char *bytes;
    fxtap_status status = open_image(major, dictionary, n_data, &npy, &bytes);
    if (status != wanted) {
        fail_msg("%s: %s, not %s: %s", dictionary, fxtap_status_name(status), fxtap_status_name(wanted),
                 fxtap_error_message());
    }
    if (status == FXTAP_OK) {
        fxtap_npy_close(npy);
    } else {
        assert_null(npy);
        assert_true(strncmp(fxtap_error_message(), "image: ", 7) == 0);
        assert_string_equal(fxtap_error_path(), "image");
    }
    free(bytes);
}

static void test_headers_that_are_read(void **state)
{
    (void)state;
    static const char *const dictionaries[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}",
        "  {'descr':'=f4' , 'fortran_order' :False,'shape': ( 2 , 3 , ) } \t\r\n\f ",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2L, 3L)}",
        "{u'descr': u'|f4', 'fortran_order': False, 'shape': (02, 3)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '>c8', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<c16', 'fortran_order': False, 'shape': ()}",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (24,)}",
        "{'descr': '<U6', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (7,)}",
    };
    for (size_t i = 0; i < COUNT_OF(dictionaries); i++) {
        for (int major = 1; major <= 3; major++) {
            expect_status(major, dictionaries[i], 24, FXTAP_OK);
        }
    }
}

static void test_headers_that_are_no_headers(void **state)
{
    (void)state;
    static const char *const dictionaries[] = {
        "",
        " ",
        "{",
        "}",
        "{}",
        "[]",
        "None",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,,3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1e3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': false, 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (6,)}",
        "{'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (6,)}",
        "{'descr' '<f4', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)",
        "{'descr': '<f4",
        "{descr: '<f4', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<ixy', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<x', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<float32', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f44444444444444444444444', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<U99999999999999999999', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<U999999999999', 'fortran_order': False, 'shape': (999999999999,)}",
        "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': 4, 'fortran_order': False, 'shape': (6,)}",
        "{'descr': None, 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'shape': (6,)}",
    };
    for (size_t i = 0; i < COUNT_OF(dictionaries); i++) {
        expect_status(1, dictionaries[i], 24, FXTAP_E_FORMAT);
        expect_status(3, dictionaries[i], 24, FXTAP_E_FORMAT);
    }
}

static void test_what_is_not_supported(void **state)
{
    (void)state;
    static const char *const dictionaries[] = {
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': 'O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [(\"a'shape': (9,)}\", '<i4')], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<m8[D]', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|S5', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|V2', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<c32', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    for (size_t i = 0; i < COUNT_OF(dictionaries); i++) {
        expect_status(1, dictionaries[i], 24, FXTAP_E_UNSUPPORTED);
    }
    expect_status(4, dictionaries[0], 24, FXTAP_E_UNSUPPORTED);
}

/* Exact copies of the bytes, so that sanitisers detect reads past the end. */
static void test_files_cut_anywhere(void **state)
{
    (void)state;
    static const char dictionary[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    for (int major = 1; major <= 2; major++) {
        size_t n;
        unsigned char *whole = image(major, dictionary, 24, &n);
        for (size_t cut = 0; cut < n; cut++) {
            fxtap_npy *npy = NULL;
            unsigned char *part = malloc(cut > 0 ? cut : 1);
            assert_non_null(part);
            memcpy(part, whole, cut);
            assert_int_equal(fxtap_npy_open_bytes("cut", part, cut, &npy), FXTAP_E_FORMAT);
            free(part);
        }
        memset(whole, 0, 10);
        fxtap_npy *npy = NULL;
        assert_int_equal(fxtap_npy_open_bytes("zeroed", whole, n, &npy), FXTAP_E_FORMAT);
        free(whole);
    }
}

static void test_hostile_header_length(void **state)
{
    (void)state;
    const unsigned char bytes[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xF0, 0xFF, 0xFF, 0xFF};
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_npy_open_bytes("hostile", bytes, sizeof bytes, &npy), FXTAP_E_FORMAT);
}

/* Padding to 1024 bytes, to 76,084, to the limit, and over it. */
static void test_padded_headers(void **state)
{
    (void)state;
    const size_t lengths[] = {1024 - 10, 65535, 76084, FX_NPY_MAX_HEADER, FX_NPY_MAX_HEADER + 1};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        char *dictionary = malloc(lengths[i] + 1);
        assert_non_null(dictionary);
        int n = snprintf(dictionary, lengths[i], "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}");
        memset(dictionary + n, ' ', lengths[i] - (size_t)n);
        dictionary[lengths[i] - 1] = '\n';
        dictionary[lengths[i]] = '\0';
        expect_status(lengths[i] > 65535 ? 2 : 1, dictionary, 24,
                      lengths[i] > FX_NPY_MAX_HEADER ? FXTAP_E_UNSUPPORTED : FXTAP_OK);
        free(dictionary);
    }
}

static void test_properties_of_a_file(void **state)
{
    (void)state;
    fxtap_npy *npy = NULL;
    unsigned char *bytes;
    assert_int_equal(open_image(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 17, &npy, &bytes),
                     FXTAP_OK);
    const fxtap_view *view = fxtap_npy_view(npy);
    assert_int_equal(view->dtype, FXTAP_INT16);
    assert_int_equal(view->flags, FXTAP_VIEW_BIG_ENDIAN);
    assert_int_equal(view->ndim, 2);
    assert_int_equal(view->strides[0], 1);
    assert_int_equal(view->strides[1], 2);
    assert_true(fxtap_npy_fortran_order(npy));
    assert_string_equal(fxtap_npy_descr(npy), ">i2");
    assert_int_equal(fxtap_npy_data_bytes(npy), 12);
    assert_int_equal(fxtap_npy_trailing_bytes(npy), 5);
    int16_t out[6];
    assert_int_equal(fxtap_view_gather(view, 0, 6, out), FXTAP_OK);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[5], 0x0A0B);
    const char *text;
    assert_int_equal(fxtap_npy_text(npy, &text), FXTAP_E_INVALID);
    fxtap_npy_close(npy);
    free(bytes);
}

/* The bytes that NumPy 2.4 writes for np.save(f, np.arange(12, dtype='<i4').reshape(3, 4)), up to the data. */
static void test_header_is_numpys(void **state)
{
    (void)state;
    char header[2048];
    size_t n;
    const int64_t shape[] = {3, 4};
    assert_int_equal(fxtap_npy_header("<i4", false, 2, shape, header, sizeof header, &n), FXTAP_OK);
    assert_int_equal(n, 128);
    assert_memory_equal(header, "\x93NUMPY\x01\x00\x76\x00{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }",
                        69);
    for (size_t i = 69; i < 127; i++) {
        assert_int_equal(header[i], ' ');
    }
    assert_int_equal(header[127], '\n');
    assert_int_equal(fxtap_npy_header("<i4", false, 2, shape, header, 127, &n), FXTAP_E_INVALID);
    assert_int_equal(fxtap_npy_header("<i4", false, 65, shape, header, sizeof header, &n), FXTAP_E_INVALID);
}

static void test_headers_read_back(void **state)
{
    (void)state;
    int64_t shape[FXTAP_MAX_DIMS];
    for (int32_t i = 0; i < FXTAP_MAX_DIMS; i++) {
        shape[i] = i == 5 ? 0 : INT64_MAX - i;
    }
    for (int32_t ndim = 0; ndim <= FXTAP_MAX_DIMS; ndim += ndim == 0 || ndim == 6 ? 1 : 5) {
        char bytes[2048];
        size_t n;
        fx_npy_header header;
        if (ndim > 0 && ndim < 6) {
            shape[0] = 1;
        }
        int32_t used = ndim == 1 ? 1 : ndim;
        assert_int_equal(fxtap_npy_header("<f8", true, used, shape, bytes, sizeof bytes, &n), FXTAP_OK);
        assert_int_equal(n % 64, 0);
        assert_int_equal(fx_npy_parse("header", bytes, n, &header), FXTAP_OK);
        assert_int_equal(header.ndim, used);
        assert_int_equal(header.data_offset, n);
        assert_true(header.fortran_order);
        assert_memory_equal(header.shape, shape, (size_t)used * sizeof *shape);
    }
}

/* A descr too long for version 1: version 2 says so in its length, and the reader finds no dtype in it. */
static void test_long_headers_are_version_2(void **state)
{
    (void)state;
    enum { N = 70000 };
    char *descr = malloc(N + 1);
    char *bytes = malloc(2 * N);
    size_t n;
    assert_non_null(descr);
    assert_non_null(bytes);
    memset(descr, 'f', N);
    descr[N] = '\0';
    assert_int_equal(fxtap_npy_header(descr, false, 0, NULL, bytes, 2 * N, &n), FXTAP_OK);
    assert_int_equal(bytes[6], 2);
    assert_int_equal(n % 64, 0);
    fx_npy_header header;
    assert_int_equal(fx_npy_parse("long", bytes, n, &header), FXTAP_E_FORMAT);
    assert_non_null(strstr(fxtap_error_message(), "too long"));
    free(descr);
    free(bytes);
}

static const char *path_in_folder(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Saves, opens, compares each element with the gathered view, and removes the file. */
static void expect_round_trip(const fxtap_view *view, const char *descr)
{
    const char *path = path_in_folder("round.npy");
    fxtap_npy *npy;
    uint64_t n_bytes;
    uint64_t count;
    assert_int_equal(fxtap_npy_save(path, view), FXTAP_OK);
    assert_int_equal(fxtap_npy_open(path, &npy), FXTAP_OK);
    assert_int_equal(fxtap_view_saved_bytes(view, &n_bytes), FXTAP_OK);
    assert_int_equal(fxtap_npy_data_bytes(npy), n_bytes);
    assert_int_equal(fxtap_npy_trailing_bytes(npy), 0);
    assert_string_equal(fxtap_npy_descr(npy), descr);
    assert_int_equal(fxtap_npy_fortran_order(npy), fxtap_view_order(view) == FXTAP_ORDER_FORTRAN);
    assert_int_equal((uintptr_t)fxtap_npy_view(npy)->data % 16, 0);
    char *wanted = malloc(n_bytes + 1);
    char *got = malloc(n_bytes + 1);
    assert_non_null(wanted);
    assert_non_null(got);
    assert_int_equal(fxtap_view_count(fxtap_npy_view(npy), &count), FXTAP_OK);
    assert_int_equal(fxtap_view_gather(view, 0, count, wanted), FXTAP_OK);
    assert_int_equal(fxtap_view_gather(fxtap_npy_view(npy), 0, count, got), FXTAP_OK);
    assert_memory_equal(wanted, got, n_bytes);
    free(wanted);
    free(got);
    fxtap_npy_close(npy);
    assert_int_equal(unlink(path), 0);
}

static float numbers[300 * 200];

static void test_save(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        numbers[i] = (float)i * 0.5f;
    }
    const int64_t shape[] = {300, 200};
    const int64_t column_major[] = {1, 300};
    const int64_t half[] = {150, 200};
    const int64_t every_second[] = {400, 1};
    const int64_t none[] = {300, 0};
    const struct {
        fxtap_view view;
        const char *descr;
    } cases[] = {
        {{numbers, FXTAP_FLOAT32, 2, 0, shape, NULL}, "<f4"},
        {{numbers, FXTAP_FLOAT32, 2, 0, shape, column_major}, "<f4"},
        {{numbers, FXTAP_FLOAT32, 2, 0, half, every_second}, "<f4"},
        {{numbers, FXTAP_FLOAT32, 0, 0, NULL, NULL}, "<f4"},
        {{NULL, FXTAP_FLOAT64, 2, 0, none, NULL}, "<f8"},
        {{numbers, FXTAP_BFLOAT16, 2, 0, shape, column_major}, "<f4"},
        {{numbers, FXTAP_COMPLEX32, 2, FXTAP_VIEW_CONJ, half, NULL}, "<c8"},
        {{numbers, FXTAP_FLOAT8_E4M3FN, 2, 0, shape, NULL}, "<f4"},
        {{numbers, FXTAP_FLOAT4_E2M1FN_X2, 2, 0, shape, column_major}, "<f4"},
        {{numbers, FXTAP_FLOAT32, 2, FXTAP_VIEW_BIG_ENDIAN, half, every_second}, "<f4"},
        {{numbers, FXTAP_BITS16, 2, 0, half, NULL}, "<u2"},
        {{numbers, FXTAP_BOOL, 2, 0, shape, NULL}, "|b1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_round_trip(&cases[i].view, cases[i].descr);
    }
}

static char *read_whole(const char *path, size_t *n_out)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 16);
    assert_non_null(file);
    assert_non_null(bytes);
    *n_out = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    return bytes;
}

/*
 * Files written by NumPy 2.4's np.save, with all dtypes and orders: reading and saving reproduces them byte for byte.
 */
static void test_saved_files_are_numpys(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        char original[256];
        const char *copy = path_in_folder("copy.npy");
        fxtap_npy *npy;
        size_t n_wanted;
        size_t n_got;
        snprintf(original, sizeof original, FXTAP_TEST_DATA "/npy/numpy_%d.npy", i);
        assert_int_equal(fxtap_npy_open(original, &npy), FXTAP_OK);
        assert_int_equal(fxtap_npy_save(copy, fxtap_npy_view(npy)), FXTAP_OK);
        fxtap_npy_close(npy);
        char *wanted = read_whole(original, &n_wanted);
        char *got = read_whole(copy, &n_got);
        assert_int_equal(n_got, n_wanted);
        assert_memory_equal(got, wanted, n_wanted);
        free(wanted);
        free(got);
        unlink(copy);
    }
}

static void test_save_overwrites_nothing(void **state)
{
    (void)state;
    const int64_t shape[] = {4};
    const fxtap_view view = {numbers, FXTAP_FLOAT32, 1, 0, shape, NULL};
    const char *path = path_in_folder("there.npy");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("mine", file);
    fclose(file);
    assert_int_equal(fxtap_npy_save(path, &view), FXTAP_E_EXISTS);
    assert_string_equal(fxtap_error_path(), path);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 4);
    unlink(path);
}

static void test_save_failures(void **state)
{
    (void)state;
    const int64_t shape[] = {4};
    fxtap_view view = {numbers, FXTAP_FLOAT32, 1, 0, shape, NULL};
    const char *path = path_in_folder("nowhere/x.npy");
    assert_int_equal(fxtap_npy_save(path, &view), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), ENOENT);
    assert_string_equal(fxtap_error_path(), path);
    view.dtype = FXTAP_QINT8;
    assert_int_equal(fxtap_npy_save(path, &view), FXTAP_E_UNSUPPORTED);
    view.dtype = FXTAP_FLOAT32;
    view.data = NULL;
    assert_int_equal(fxtap_npy_save(path, &view), FXTAP_E_INVALID);
}

static void test_open_failures(void **state)
{
    (void)state;
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_npy_open(path_in_folder("missing.npy"), &npy), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), ENOENT);
    assert_int_equal(fxtap_npy_open(folder, &npy), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), EISDIR);
    const char *pipe_path = path_in_folder("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(fxtap_npy_open(pipe_path, &npy), FXTAP_E_FORMAT);
    const char *empty = path_in_folder("empty.npy");
    close(open(empty, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(fxtap_npy_open(empty, &npy), FXTAP_E_FORMAT);
    assert_null(npy);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    const int64_t shape[] = {100, 200};
    const int64_t strides[] = {400, 1};
    const fxtap_view view = {numbers, FXTAP_FLOAT32, 2, 0, shape, strides};
    const char *path = path_in_folder("memory.npy");
    fxtap_status status = FXTAP_E_NOMEM;
    for (long long n = 0; status != FXTAP_OK; n++) {
        fx_memory_fail_after(n);
        status = fxtap_npy_save(path, &view);
        fx_memory_fail_after(-1);
        assert_true(status == FXTAP_OK || (status == FXTAP_E_NOMEM && access(path, F_OK) != 0));
    }
    status = FXTAP_E_NOMEM;
    fxtap_npy *npy = NULL;
    for (long long n = 0; status != FXTAP_OK; n++) {
        fx_memory_fail_after(n);
        status = fxtap_npy_open(path, &npy);
        fx_memory_fail_after(-1);
        assert_true(status == FXTAP_OK || (status == FXTAP_E_NOMEM && npy == NULL));
    }
    fxtap_npy_close(npy);
    unlink(path);
}

/* `n_data` bytes of a 0-d array of this descr are this text in UTF-8. */
static void expect_text(const char *descr, const void *data, size_t n_data, const char *wanted)
{
    char dictionary[128];
    size_t n;
    fxtap_npy *npy;
    const char *text;
    snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': ()}", descr);
    unsigned char *bytes = image(1, dictionary, n_data, &n);
    memcpy(bytes + n - n_data, data, n_data);
    assert_int_equal(fxtap_npy_open_bytes("text", bytes, n, &npy), FXTAP_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(fxtap_npy_text(npy, &text), FXTAP_OK);
        assert_string_equal(text, wanted);
    }
    fxtap_npy_close(npy);
    free(bytes);
}

static void test_text(void **state)
{
    (void)state;
    static const char letters[] = "s\0\0\0u\0\0\0m\0\0\0\0\0\0\0\0\0\0\0";
    static const unsigned char points[] = {'h', 0, 0, 0, 0xE9, 0, 0, 0, 0xAC, 0x20, 0, 0, 0x00, 0xF6, 1, 0};
    expect_text("<U5", letters, 20, "sum");
    expect_text("<U1", "\0\0\0\0", 4, "");
    expect_text("<U0", "", 0, "");
    expect_text("<U4", points, sizeof points, "h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    expect_text(">U2", "\0\0\0a\0\0\0b", 8, "ab");
}

static void test_hostile_text(void **state)
{
    (void)state;
    /* a surrogate, a code point over the last, a letter; big-endian, at an odd address */
    static const char dictionary[] = "{'descr': '>U4', 'fortran_order': False, 'shape': () }";
    static const unsigned char data[] = {0, 0, 0xD8, 0, 0x7F, 0, 0, 0, 0, 0, 0, 'a', 0, 0, 0, 0};
    size_t n;
    fxtap_npy *npy;
    const char *text;
    unsigned char *bytes = image(1, dictionary, sizeof data, &n);
    memcpy(bytes + n - sizeof data, data, sizeof data);
    assert_int_equal(fxtap_npy_open_bytes("text", bytes, n, &npy), FXTAP_OK);
    for (long long k = 0; k < 2; k++) {
        fx_memory_fail_after(k == 0 ? 0 : -1);
        assert_int_equal(fxtap_npy_text(npy, &text), k == 0 ? FXTAP_E_NOMEM : FXTAP_OK);
    }
    assert_string_equal(text, "\xef\xbf\xbd\xef\xbf\xbd"
                              "a");
    fxtap_npy_close(npy);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_that_are_read),
        cmocka_unit_test(test_headers_that_are_no_headers),
        cmocka_unit_test(test_what_is_not_supported),
        cmocka_unit_test(test_files_cut_anywhere),
        cmocka_unit_test(test_hostile_header_length),
        cmocka_unit_test(test_padded_headers),
        cmocka_unit_test(test_properties_of_a_file),
        cmocka_unit_test(test_header_is_numpys),
        cmocka_unit_test(test_headers_read_back),
        cmocka_unit_test(test_long_headers_are_version_2),
        cmocka_unit_test(test_save),
        cmocka_unit_test(test_saved_files_are_numpys),
        cmocka_unit_test(test_save_overwrites_nothing),
        cmocka_unit_test(test_save_failures),
        cmocka_unit_test(test_open_failures),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_hostile_text),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
