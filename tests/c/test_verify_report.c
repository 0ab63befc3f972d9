/* test_verify_report.c - results collected under their operators, printed, serialised and merged. */
#include "support_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/verify.h"
#include "util/memory.h"
#include "verify/print.h"

static fxtap_verification *create(const char *golden)
{
    fxtap_verification *verification = NULL;
    assert_int_equal(fxtap_verification_create(golden, "bad", &verification), FXTAP_OK);
    return verification;
}

static const int64_t shape[] = {2, 3};

static fxtap_verify_place place_of(const char *node, int64_t order)
{
    fxtap_verify_place place;
    fxtap_verify_place_init(&place);
    place.graph = 1;
    place.call = 4;
    place.order = order;
    place.node = node;
    place.operator_name = "aten.gelu.default";
    place.slot = "OUTPUT 0";
    place.source_file = "/home/user/model.py";
    place.source_line = 12;
    place.source_function = "forward";
    place.source_code = "return self.act(x)";
    place.module_path = "L['self'].layer.3";
    place.dtype = FXTAP_BFLOAT16;
    place.ndim = 2;
    place.shape = shape;
    return place;
}

static void add(fxtap_verification *verification, const char *node, int64_t order, fxtap_verify_verdict verdict,
                const char *reason)
{
    fxtap_verify_place place = place_of(node, order);
    assert_int_equal(fxtap_verification_add(verification, &place, verdict, reason), FXTAP_OK);
}

/* A measured result with one element of six off by a factor; all of a size that rounding allows if it is 1. */
static void add_measured(fxtap_verification *verification, const char *node, int64_t order, double factor)
{
    const double reference[] = {1, 2, 3, 4, 5, 6}, spread[6] = {0};
    float saved[] = {1, 2, 3, 4, 5, 6};
    const float third[] = {1, 2, 3, 4, 5, 6};
    saved[4] = (float)(5 * factor);
    fxtap_verify_input input;
    fxtap_verify_input_init(&input);
    input.dtype = FXTAP_BFLOAT16;
    input.n_elems = 6;
    input.saved = saved;
    input.reference = reference;
    input.third = third;
    input.spread = spread;
    input.spread_runs = 15;
    fxtap_verify_need need;
    fxtap_verify_verdict verdict;
    assert_int_equal(fxtap_verification_judge(verification, &input, &need, &verdict), FXTAP_OK);
    assert_int_equal(need, FXTAP_NEED_NOTHING);
    add(verification, node, order, verdict, NULL);
}

static char *print(const fxtap_verification *verification, fxtap_report_format format, bool quiet)
{
    fxtap_report_options options = {.struct_size = sizeof options, .format = format, .quiet = quiet};
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    assert_int_equal(fxtap_verification_print(verification, &options, &out), FXTAP_OK);
    return out.bytes; /* the caller frees it */
}

static void prints(const fxtap_verification *verification, bool quiet, const char *expected)
{
    char *text = print(verification, FXTAP_REPORT_TEXT, quiet);
    assert_string_equal(text, expected);
    fxtap_free(text);
}

static void test_the_worst_result_decides(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    add_measured(v, "gelu", 0, 1);
    add_measured(v, "gelu", 0, 1.5);
    add(v, "gelu", 0, FXTAP_VERIFY_ROUNDING, NULL);
    add(v, "rand", 1, FXTAP_VERIFY_NOT_REPLAYED, "random");
    add(v, "rand", 1, FXTAP_VERIFY_EXACT, NULL);
    assert_int_equal(fxtap_verification_result_count(v), 5);
    assert_int_equal(fxtap_verification_operator_count(v), 2);
    const fxtap_verify_operator *gelu = fxtap_verification_operator(v, 0);
    assert_int_equal(gelu->verdict, FXTAP_VERIFY_WRONG);
    assert_int_equal(gelu->n_results, 3);
    assert_int_equal(gelu->worst, 1);
    assert_int_equal(fxtap_verification_operator(v, 1)->verdict, FXTAP_VERIFY_EXACT);
    assert_null(fxtap_verification_operator(v, 2));
    assert_int_equal(fxtap_verification_count(v, FXTAP_VERIFY_WRONG), 1);
    assert_int_equal(fxtap_verification_count(v, FXTAP_VERIFY_EXACT), 1);
    assert_int_equal(fxtap_verification_count(v, FXTAP_VERIFY_NOT_REPLAYED), 0);
    assert_true(fxtap_verification_is_wrong(v));
    const fxtap_verify_result *result = fxtap_verification_result(v, 1);
    assert_true(result->is_measured && result->has_third);
    assert_int_equal(result->error.misrounded, 1);
    assert_int_equal(result->error.worst[0].index, 4);
    assert_true(result->error.worst[0].saved == 7.5);
    assert_int_equal(result->third.misrounded, 0);
    assert_false(fxtap_verification_result(v, 2)->is_measured); /* a measurement is recorded once */
    fxtap_verification_free(v);
}

static void test_headlines(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    prints(v, true, "NOTHING VERIFIED  there is no operator to verify\n");
    add(v, "rand", 0, FXTAP_VERIFY_NOT_REPLAYED, "random");
    prints(v, true, "NOTHING VERIFIED  no operator could be replayed; 1 not replayed (random)\n");
    add_measured(v, "gelu", 1, 1);
    prints(v, true,
           "NOTHING WRONG  1 operator is right within bfloat16's rounding; 1 not replayed\n"
           "               (random)\n");
    fxtap_verification_free(v);
    v = create("good");
    add_measured(v, "gelu", 0, 1);
    add_measured(v, "gelu_1", 1, 1);
    prints(v, true, "NOTHING WRONG  2 operators do what golden's do within bfloat16's rounding\n");
    fxtap_verify_place place = place_of("mul", 2);
    place.dtype = FXTAP_FLOAT32;
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_EXACT, NULL), FXTAP_OK);
    prints(v, true,
           "NOTHING WRONG  3 operators do what golden's do within bfloat16's and float32's\n"
           "               rounding\n");
    fxtap_verification_free(v);
    v = create(NULL);
    place.dtype = FXTAP_INT64;
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_EXACT, NULL), FXTAP_OK);
    prints(v, true, "NOTHING WRONG  1 operator is right\n");
    fxtap_verification_free(v);
}

static void test_text_of_a_wrong_operator(void **state)
{
    (void)state;
    fxtap_verification *v = create("good");
    add_measured(v, "gelu", 0, 1);
    add_measured(v, "gelu_1", 1, 1.5);
    add_measured(v, "gelu_2", 2, NAN);
    add(v, "rand", 3, FXTAP_VERIFY_NOT_REPLAYED, "random");
    prints(v, false,
           "WRONG  gelu_1  aten.gelu.default\n"
           "       2 of 3 operators do not do what golden's do; 1 not replayed (random)\n"
           "\n"
           "  source  /home/user/model.py:12\n"
           "          return self.act(x)\n"
           "  module  L['self'].layer.3\n"
           "  where   graph 1, step 0, OUTPUT 0\n"
           "  result  bfloat16 [2, 3]\n"
           "  size    error 85 times what rounding allows, at the worst element 160 times\n"
           "  shape   17 % of its results are not the correctly rounded ones; none is usual\n"
           "          for gelu in bfloat16\n"
           "  worst   at [1, 1]: saved 7.5, exact 5\n"
           "\n"
           "Also wrong\n"
           "          gelu_2  aten.gelu.default\n"
           "            graph 1, step 0: 1 value is NaN or infinite on one side only\n"
           "\n"
           "Result  exact 1, wrong 2, not replayed 1\n"
           "Not replayed\n"
           "          1  random\n");
    fxtap_verification_free(v);
}

static void test_many_wrong_operators_are_counted(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    char node[32];
    for (int i = 0; i < 30; i++) {
        snprintf(node, sizeof node, "gelu_%d", i);
        add(v, node, i, FXTAP_VERIFY_WRONG, "its mask was given back wrong");
    }
    char *text = print(v, FXTAP_REPORT_TEXT, false);
    assert_non_null(strstr(text, "gelu_10  aten"));
    assert_null(strstr(text, "gelu_11  aten"));
    assert_non_null(strstr(text, "\n          and 19 more\n"));
    assert_non_null(strstr(text, "  reason  its mask was given back wrong\n"));
    fxtap_free(text);
    fxtap_verification_free(v);
}

/* No text of a dump steers the terminal, and no line is wider than the page. */
static void test_text_is_safe(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    fxtap_verify_place place = place_of("\033[31mred\n\x9b", 0);
    char wide[500];
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    place.operator_name = place.slot = place.source_file = place.source_code = place.module_path = wide;
    for (int i = 0; i < 3; i++) {
        place.order = i;
        assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_WRONG, i == 1 ? "\033]0;x" : wide), FXTAP_OK);
        assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_WRONG, NULL), FXTAP_OK);
    }
    place.order = 9;
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_NOT_REPLAYED, wide), FXTAP_OK);
    char *text = print(v, FXTAP_REPORT_TEXT, false);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        assert_true(strcspn(line, "\n") <= 80);
    }
    assert_null(strchr(text, '\033'));
    fxtap_free(text);
    char *json = print(v, FXTAP_REPORT_JSON, false);
    assert_null(strchr(json, '\033'));
    fxtap_free(json);
    fxtap_verification_free(v);
}

static void test_json(void **state)
{
    (void)state;
    fxtap_verification *v = create("good");
    add_measured(v, "gelu_1", 1, 1.5);
    char *json = print(v, FXTAP_REPORT_JSON, false);
    static const char *const parts[] = {
        "\"format\": 1",
        "\"golden\": \"good\"",
        "\"target\": \"bad\"",
        "\"verdict\": \"wrong\"",
        "\"counts\": {\n    \"operators\": 1,\n    \"not replayed\": 0,\n    \"exact\": 0,\n    \"rounding\": 0,\n"
        "    \"biased\": 0,\n    \"wrong\": 1\n  }",
        "\"node\": \"gelu_1\"",
        "\"target\": \"aten.gelu.default\"",
        "\"source\": \"/home/user/model.py:12\"",
        "\"misrounded\": 0.16666666666666666",
        "\"misrounded_usual\": 0.0",
        "\"index\": 4,",
        "\"saved\": 7.5",
        "\"exact\": 5.0"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (strstr(json, parts[i]) == NULL) {
            fail_msg("no %s in %s", parts[i], json);
        }
    }
    fxtap_free(json);
    fxtap_verification_free(v);
}

static void test_csv(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    add(v, "rand", 3, FXTAP_VERIFY_NOT_REPLAYED, "random, \"seeded\"");
    add_measured(v, "gelu", 5, 1);
    char *csv = print(v, FXTAP_REPORT_CSV, false);
    const char *second = strchr(csv, '\n') + 1, *third = strchr(second, '\n') + 1;
    static const char expected[] =
        "0,1,0,rand,aten.gelu.default,OUTPUT 0,bfloat16,\"2,3\",not replayed,\"random, \"\"seeded\"\"\",,,,,,,,,,,,,,"
        "/home/user/model.py:12,return self.act(x),L['self'].layer.3\r\n";
    assert_memory_equal(second, expected, sizeof expected - 1);
    assert_memory_equal(third, "0,1,0,gelu,aten.gelu.default,OUTPUT 0,bfloat16,\"2,3\",exact,,0.0,,0.0,,0.0,0.0,0.0,",
                        70);
    fxtap_free(csv);
    fxtap_verification_free(v);
}

/* ---- shards ---- */

typedef struct shard {
    void *bytes;
    size_t n_bytes;
} shard;

static shard serialise(const fxtap_verification *v)
{
    shard out = {NULL, 0};
    assert_int_equal(fxtap_verification_serialise(v, &out.bytes, &out.n_bytes), FXTAP_OK);
    return out;
}

/* Results 0..11 whose number is `part` mod `n_parts`; every third operator has two results, some ranks and calls. */
static fxtap_verification *build(int part, int n_parts)
{
    static const double factors[] = {1, 1.004, 1.5, NAN};
    fxtap_verification *v = create("good");
    for (int i = 0; i < 12; i++) {
        if (i % n_parts != part) {
            continue;
        }
        fxtap_verify_place place = place_of(i % 2 == 0 ? "gelu" : "gelu_1", i % 4);
        place.rank = i / 8;
        place.call = i / 4;
        if (i % 3 == 0) {
            add_measured(v, "scratch", 0, factors[i % 4]); /* a measurement for the next */
            const fxtap_verify_result *last = fxtap_verification_result(v, fxtap_verification_result_count(v) - 1);
            assert_true(last->is_measured);
        }
        assert_int_equal(fxtap_verification_add(v, &place, (fxtap_verify_verdict)(i % FXTAP_VERIFY_COUNT), "why"),
                         FXTAP_OK);
        assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_EXACT, NULL), FXTAP_OK);
    }
    return v;
}

static fxtap_verification *merge(const shard *shards, size_t n)
{
    const void *bytes[8];
    size_t n_bytes[8];
    for (size_t i = 0; i < n; i++) {
        bytes[i] = shards[i].bytes;
        n_bytes[i] = shards[i].n_bytes;
    }
    fxtap_verification *merged = NULL;
    assert_int_equal(fxtap_verification_merge(bytes, n_bytes, n, &merged), FXTAP_OK);
    return merged;
}

static void same_reports(const fxtap_verification *a, const fxtap_verification *b)
{
    for (int format = FXTAP_REPORT_TEXT; format <= FXTAP_REPORT_CSV; format++) {
        char *left = print(a, (fxtap_report_format)format, false);
        char *right = print(b, (fxtap_report_format)format, false);
        assert_string_equal(left, right);
        fxtap_free(left);
        fxtap_free(right);
    }
}

static void test_shards_merge_to_the_whole(void **state)
{
    (void)state;
    fxtap_verification *parts = build(0, 1);
    shard one = serialise(parts);
    fxtap_verification *whole = merge(&one, 1);
    for (int n = 2; n <= 5; n++) {
        shard shards[8];
        for (int i = 0; i < n; i++) { /* in reverse order */
            fxtap_verification *part = build(n - 1 - i, n);
            shards[i] = serialise(part);
            fxtap_verification_free(part);
        }
        fxtap_verification *merged = merge(shards, (size_t)n);
        assert_int_equal(fxtap_verification_result_count(merged), fxtap_verification_result_count(whole));
        same_reports(whole, merged);
        fxtap_verification_free(merged);
        for (int i = 0; i < n; i++) {
            fxtap_free(shards[i].bytes);
        }
    }
    fxtap_verification_free(whole);
    fxtap_verification_free(parts);
    fxtap_free(one.bytes);
}

/* What was added in order of execution is not moved by merging. */
static void test_merging_one_shard_changes_nothing(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    add(v, "a", 0, FXTAP_VERIFY_EXACT, NULL);
    add_measured(v, "b", 1, 1.5);
    add_measured(v, "b", 1, 1);
    add(v, "c", 2, FXTAP_VERIFY_NOT_REPLAYED, "random");
    shard one = serialise(v);
    fxtap_verification *merged = merge(&one, 1);
    same_reports(v, merged);
    shard again = serialise(merged);
    assert_int_equal(again.n_bytes, one.n_bytes);
    assert_memory_equal(again.bytes, one.bytes, one.n_bytes);
    fxtap_free(one.bytes);
    fxtap_free(again.bytes);
    fxtap_verification_free(merged);
    fxtap_verification_free(v);
}

/* Each prefix of a shard, and each shard with one byte changed, is refused or merged: nothing else. */
static void test_damaged_shards(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    add_measured(v, "b", 1, 1.5);
    add(v, "c", 2, FXTAP_VERIFY_NOT_REPLAYED, "random");
    shard whole = serialise(v);
    unsigned char *copy = whole.bytes;
    const void *bytes = copy;
    fxtap_verification *merged = NULL;
    for (size_t n = 0; n < whole.n_bytes; n++) {
        assert_int_equal(fxtap_verification_merge(&bytes, &n, 1, &merged), FXTAP_E_FORMAT);
    }
    for (size_t i = 0; i < whole.n_bytes; i++) {
        copy[i] ^= 0xff;
        fxtap_status status = fxtap_verification_merge(&bytes, &whole.n_bytes, 1, &merged);
        assert_true(status == FXTAP_OK || status == FXTAP_E_FORMAT);
        if (status == FXTAP_OK) {
            char *text = print(merged, FXTAP_REPORT_TEXT, false);
            fxtap_free(text);
            fxtap_verification_free(merged);
        }
        copy[i] ^= 0xff;
    }
    assert_int_equal(fxtap_verification_merge(&bytes, &whole.n_bytes, 0, &merged), FXTAP_E_INVALID);
    fxtap_free(whole.bytes);
    fxtap_verification_free(v);
}

static void test_invalid_places(void **state)
{
    (void)state;
    fxtap_verification *v = create(NULL);
    fxtap_verify_place place = place_of("a", 0);
    place.ndim = FXTAP_MAX_DIMS + 1;
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_EXACT, NULL), FXTAP_E_INVALID);
    place.ndim = 1;
    place.shape = NULL;
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_EXACT, NULL), FXTAP_E_INVALID);
    place = place_of("a", 0);
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_COUNT, NULL), FXTAP_E_INVALID);
    place.struct_size = 8;
    assert_int_equal(fxtap_verification_add(v, &place, FXTAP_VERIFY_EXACT, NULL), FXTAP_E_INVALID);
    assert_int_equal(fxtap_verification_result_count(v), 0);
    fxtap_verify_verdict verdict;
    assert_int_equal(fxtap_verify_verdict_from_name("biased", &verdict), FXTAP_OK);
    assert_int_equal(verdict, FXTAP_VERIFY_BIASED);
    assert_int_equal(fxtap_verify_verdict_from_name("odd", &verdict), FXTAP_E_INVALID);
    fxtap_verification_free(v);
}

/* Every allocation fails once: the message is NOMEM, and nothing leaks (under AddressSanitizer). */
/* ---- what differs only because of a wrong operator ---- */

/* An operator that reads `a` and `b` (0: nothing, negative: differs) and makes `made`, on a rank. */
static void add_step(fxtap_verification *v, int32_t rank, const char *node, int a, int b, int made,
                     fxtap_verify_verdict verdict)
{
    fxtap_verify_value inputs[2];
    size_t n = 0;
    const int given[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        if (given[i] != 0) {
            inputs[n++] = (fxtap_verify_value){(uint64_t)abs(given[i]), given[i] < 0};
        }
    }
    fxtap_verify_place place = place_of(node, (int64_t)v->n_results);
    place.rank = rank;
    place.inputs = inputs;
    place.n_inputs = n;
    place.value = (fxtap_verify_value){(uint64_t)abs(made), made < 0};
    assert_int_equal(fxtap_verification_add(v, &place, verdict, NULL), FXTAP_OK);
}

#define RIGHT FXTAP_VERIFY_ROUNDING
#define WRONG FXTAP_VERIFY_WRONG

/* The numbers of operators' downstream results, as text: "0 3 0". */
static void downstream_is(fxtap_verification *v, const char *expected)
{
    fx_downstream *found;
    char text[200] = "";
    assert_int_equal(fx_find_downstream(v, &found), FXTAP_OK);
    for (size_t i = 0; i < v->n_operators; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i > 0 ? " " : "", (int)found[i].count);
    }
    assert_string_equal(text, expected);
    fx_free(found);
    fxtap_verification_free(v);
}

static void test_downstream_follows_values(void **state)
{
    (void)state;
    fxtap_verification *v = create("good");
    add_step(v, 0, "before", 1, 0, 2, RIGHT);
    add_step(v, 0, "bad", 2, 0, -3, WRONG);
    add_step(v, 0, "reads", -3, 1, -4, RIGHT);
    add_step(v, 0, "aside", 2, 0, 5, RIGHT);
    add_step(v, 0, "healed", -3, 0, 6, RIGHT); /* the error is within the tolerance here, and leaves it again */
    add_step(v, 0, "again", 6, 5, -7, RIGHT);
    add_step(v, 1, "other rank", 3, 0, -8, RIGHT);
    downstream_is(v, "0 2 0 0 0 0 0");
}

static void test_downstream_is_only_of_one(void **state)
{
    (void)state;
    fxtap_verification *v = create("good");
    add_step(v, 0, "first", 1, 0, -2, WRONG);
    add_step(v, 0, "second", 1, 0, -3, WRONG);
    add_step(v, 0, "of first", -2, 0, -4, RIGHT);
    add_step(v, 0, "of second", -3, 0, -5, RIGHT);
    add_step(v, 0, "of both", -4, -5, -6, RIGHT);
    add_step(v, 0, "after both", -6, 0, -7, RIGHT);
    add_step(v, 0, "wrong after first", -4, 0, -8, WRONG);
    add_step(v, 0, "of two", -8, 0, -9, RIGHT);
    downstream_is(v, "1 1 0 0 0 0 0 0");
}

static void test_downstream_of_other_differences(void **state)
{
    (void)state;
    fxtap_verification *v = create("good");
    add_step(v, 0, "rounding", 1, 0, -2, RIGHT); /* differs by itself */
    add_step(v, 0, "bad", 1, 0, -3, WRONG);
    add_step(v, 0, "with rounding", -2, -3, -4, RIGHT);
    add_step(v, 0, "with an input that differs", -3, -90, -5, RIGHT);
    add_step(v, 0, "unknown", -3, 0, -6, FXTAP_VERIFY_NOT_REPLAYED); /* may be wrong, too */
    add_step(v, 0, "of unknown", -6, 0, -7, RIGHT);
    add_step(v, 0, "of bad alone", -3, 1, -8, RIGHT);
    downstream_is(v, "0 1 0 0 0 0 0");
}

static void test_downstream_is_printed(void **state)
{
    (void)state;
    fxtap_verification *v = create("good"), *merged = NULL;
    add_step(v, 0, "bad", 1, 0, -2, WRONG);
    add_step(v, 0, "dense", -2, 0, -3, RIGHT);
    add_step(v, 0, "sum", -3, 0, -4, RIGHT);
    void *bytes;
    size_t n_bytes;
    assert_int_equal(fxtap_verification_serialise(v, &bytes, &n_bytes), FXTAP_OK);
    assert_int_equal(fxtap_verification_merge((const void *const[]){bytes}, &n_bytes, 1, &merged), FXTAP_OK);
    fxtap_free(bytes);
    char *text = print(merged, FXTAP_REPORT_TEXT, false), *json = print(merged, FXTAP_REPORT_JSON, false);
    assert_non_null(strstr(text, "\n  carried 2 later tensors differ only because of it, first dense\n"
                                 "          /home/user/model.py:12\n"));
    assert_non_null(strstr(json, "\"downstream\": {\n"));
    assert_non_null(strstr(json, "\"results\": 2,"));
    assert_non_null(strstr(json, "\"first\": \"dense\","));
    assert_non_null(strstr(json, "\"first_source\": \"/home/user/model.py:12\""));
    fxtap_free(text);
    fxtap_free(json);
    fxtap_verification_free(merged);
    fxtap_verification_free(v);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    fxtap_verification *source = build(0, 1);
    shard whole = serialise(source);
    const void *bytes = whole.bytes;
    bool is_pending = false;
    for (long long n = 0; !is_pending; n++) {
        fxtap_verification *merged = NULL;
        fx_memory_fail_after(n);
        fxtap_status status = fxtap_verification_merge(&bytes, &whole.n_bytes, 1, &merged);
        fxtap_report_options options = {.struct_size = sizeof options, .format = FXTAP_REPORT_TEXT};
        fxtap_buffer out;
        fxtap_buffer_init(&out);
        if (status == FXTAP_OK) {
            fxtap_verify_place place = place_of("late", 99);
            status = fxtap_verification_add(merged, &place, FXTAP_VERIFY_WRONG, NULL);
        }
        if (status == FXTAP_OK) {
            status = fxtap_verification_print(merged, &options, &out);
        }
        is_pending = fx_memory_fail_pending();
        fx_memory_fail_after(-1);
        assert_int_equal(status, is_pending ? FXTAP_OK : FXTAP_E_NOMEM);
        fxtap_buffer_clear(&out);
        fxtap_verification_free(merged);
    }
    fxtap_free(whole.bytes);
    fxtap_verification_free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worst_result_decides),
        cmocka_unit_test(test_headlines),
        cmocka_unit_test(test_text_of_a_wrong_operator),
        cmocka_unit_test(test_many_wrong_operators_are_counted),
        cmocka_unit_test(test_text_is_safe),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_shards_merge_to_the_whole),
        cmocka_unit_test(test_merging_one_shard_changes_nothing),
        cmocka_unit_test(test_damaged_shards),
        cmocka_unit_test(test_invalid_places),
        cmocka_unit_test(test_downstream_follows_values),
        cmocka_unit_test(test_downstream_is_only_of_one),
        cmocka_unit_test(test_downstream_of_other_differences),
        cmocka_unit_test(test_downstream_is_printed),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
