/* Interprets recipes: expressions by precedence, statements, and calls of GE operators. */
#include "ge/recipe.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"
#include "util/number.h"

#define MAX_ARGS 24
#define MAX_REPEATS 1000 /* of a list, by a number from the graph */

static const fx_val NONE = {.kind = FX_VAL_NONE};

/* ---- words ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void blanks(fx_reader *r)
{
    while (*r->at == ' ' || *r->at == '\n') {
        r->at++;
    }
}

static bool sign(fx_reader *r, const char *text)
{
    size_t length = strlen(text);
    blanks(r);
    if (*r->at != *text || strncmp(r->at, text, length) != 0) {
        return false;
    }
    r->at += length;
    return true;
}

/* A whole word: "in" does not match "index". */
static bool keyword(fx_reader *r, const char *text)
{
    size_t length = strlen(text);
    blanks(r);
    if (*r->at != *text || strncmp(r->at, text, length) != 0 || is_name_char(r->at[length])) {
        return false;
    }
    r->at += length;
    return true;
}

static const char *name(fx_reader *r, size_t *length_out)
{
    blanks(r);
    const char *start = r->at;
    while (is_name_char(*r->at)) {
        r->at++;
    }
    *length_out = (size_t)(r->at - start);
    return start;
}

static bool is_live(const fx_reader *r)
{
    return !r->skip && !r->returned && r->lower->raised == NULL && r->lower->status == FXTAP_OK;
}

static void bad(fx_reader *r, const char *what)
{
    fx_lower_raise(r->lower, "recipe of %s: %s at \"%.20s\"", r->lower->desc.target, what, r->at);
}

/* ---- names ---- */

const fx_val *fx_scope_get(const fx_scope *scope, const char *text, size_t length)
{
    for (size_t i = scope->n; i-- > 0;) {
        if (scope->names[i].length == length && memcmp(scope->names[i].name, text, length) == 0) {
            return &scope->names[i].value;
        }
    }
    return NULL;
}

bool fx_scope_set(fx_reader *r, const char *text, size_t length, const fx_val *value)
{
    fx_scope *scope = r->scope;
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->names[i].length == length && memcmp(scope->names[i].name, text, length) == 0) {
            scope->names[i].value = *value;
            return true;
        }
    }
    if (scope->n == FX_MAX_NAMES) {
        bad(r, "too many names");
        return false;
    }
    scope->names[scope->n].name = text;
    scope->names[scope->n].length = length;
    scope->names[scope->n++].value = *value;
    return true;
}

/* ---- literals ---- */

static fx_val read_number(fx_reader *r)
{
    fx_val value = {.kind = FX_VAL_INT};
    double number = 0;
    size_t n_int = fx_read_i64(r->at, &value.u.i), n_float = fx_read_double(r->at, &number);
    if (n_float > n_int) {
        value.kind = FX_VAL_FLOAT;
        value.u.f = number;
    }
    r->at += n_float;
    return value;
}

static fx_val read_text(fx_reader *r)
{
    const char *start = ++r->at;
    fx_val value = {.kind = FX_VAL_TEXT};
    while (*r->at != 0 && *r->at != '\'') {
        r->at++;
    }
    value.u.text.bytes = start;
    value.u.text.length = (size_t)(r->at - start);
    if (*r->at != 0) {
        r->at++;
    } else {
        bad(r, "unterminated string");
    }
    return value;
}

static fx_val read_list(fx_reader *r)
{
    fx_val items[MAX_ARGS];
    size_t n = 0;
    while (!sign(r, "]") && *r->at != 0) {
        fx_val item = fx_read_expression(r);
        if (n == MAX_ARGS) {
            bad(r, "list too long");
        } else {
            items[n++] = item;
        }
        sign(r, ",");
    }
    if (r->at[-1] != ']') {
        bad(r, "no ]");
    }
    return is_live(r) ? fx_val_list(r->lower, items, n) : NONE;
}

static fx_val read_parentheses(fx_reader *r)
{
    fx_val value = fx_read_expression(r);
    if (sign(r, ",)")) {
        value = is_live(r) ? fx_val_list(r->lower, &value, 1) : NONE;
        value.kind = value.kind == FX_VAL_LIST ? FX_VAL_TUPLE : value.kind;
        return value;
    }
    if (!sign(r, ")")) {
        bad(r, "no )");
    }
    return value;
}

/* ---- calls ---- */

/* The number of outputs of an operator with a variable number: from split and unpack, else from the list. */
static size_t list_outputs(const fx_val *args, size_t n_args, const fx_named_val *attrs, size_t n_attrs)
{
    for (size_t i = 0; i < n_attrs; i++) {
        if ((attrs[i].name_length == 9 && memcmp(attrs[i].name, "num_split", 9) == 0) ||
            (attrs[i].name_length == 3 && memcmp(attrs[i].name, "num", 3) == 0)) {
            return attrs[i].value.kind == FX_VAL_INT && attrs[i].value.u.i >= 0 ? (size_t)attrs[i].value.u.i : 0;
        }
    }
    for (size_t i = 0; i < n_args; i++) {
        if (args[i].kind == FX_VAL_LIST) {
            return args[i].u.list.n;
        }
    }
    return 0;
}

static fx_val outputs_of(fx_lower *lower, fx_ge_op *op)
{
    bool is_list = op->n_outputs != 1 || strchr(op->def->outputs, '*') != NULL;
    fx_val *items = fx_arena_calloc(&lower->ge->arena, op->n_outputs + 1, sizeof *items);
    if (items == NULL) {
        return NONE;
    }
    for (size_t i = 0; i < op->n_outputs; i++) {
        fx_ref ref = {op, (int32_t)i};
        items[i] = fx_val_ref(ref);
    }
    return is_list ? fx_val_list(lower, items, op->n_outputs) : items[0];
}

static fx_val call_operator(fx_reader *r, const char *type, size_t length, const fx_val *args, size_t n_args,
                            const fx_named_val *attrs, size_t n_attrs)
{
    char text[64];
    if (length >= sizeof text) {
        return NONE;
    }
    memcpy(text, type, length);
    text[length] = 0;
    fx_ge_op *op =
        fx_ge_call(r->lower->ge, text, args, n_args, attrs, n_attrs, list_outputs(args, n_args, attrs, n_attrs));
    if (op == NULL) {
        if (fx_ge_graph_status(r->lower->ge) == FXTAP_OK) {
            fx_lower_raise(r->lower, "%s", fxtap_error_message());
        }
        return NONE;
    }
    return outputs_of(r->lower, op);
}

static fx_val read_call(fx_reader *r, const char *callee, size_t length)
{
    fx_val args[MAX_ARGS];
    fx_named_val attrs[MAX_ARGS];
    size_t n_args = 0, n_attrs = 0;
    while (!sign(r, ")") && *r->at != 0 && n_args < MAX_ARGS && n_attrs < MAX_ARGS) {
        const char *before = r->at;
        size_t word_length;
        const char *word = name(r, &word_length);
        if (word_length > 0 && r->at[0] == '=' && r->at[1] != '=') {
            r->at++;
            attrs[n_attrs].name = word;
            attrs[n_attrs].name_length = word_length;
            attrs[n_attrs++].value = fx_read_expression(r);
        } else {
            r->at = before;
            args[n_args++] = fx_read_expression(r);
        }
        sign(r, ",");
    }
    if (r->at[-1] != ')') {
        bad(r, "no )");
    }
    if (!is_live(r)) {
        return NONE;
    }
    if (callee[0] >= 'A' && callee[0] <= 'Z') {
        return call_operator(r, callee, length, args, n_args, attrs, n_attrs);
    }
    fx_val value = NONE;
    if (!fx_call_function(r, callee, length, args, n_args, &value)) {
        bad(r, "unknown function");
    }
    return value;
}

static bool constant(const char *text, size_t length, fx_val *out)
{
    static const struct {
        const char *text;
        fx_val value;
    } WORDS[] = {{"None", {.kind = FX_VAL_NONE}},
                 {"True", {.kind = FX_VAL_BOOL, .u.b = true}},
                 {"False", {.kind = FX_VAL_BOOL, .u.b = false}},
                 {"inf", {.kind = FX_VAL_FLOAT, .u.f = (double)INFINITY}},
                 {"nan", {.kind = FX_VAL_FLOAT, .u.f = (double)NAN}}};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strlen(WORDS[i].text) == length && memcmp(WORDS[i].text, text, length) == 0) {
            *out = WORDS[i].value;
            return true;
        }
    }
    int dtype;
    if (!fx_ge_dtype_by_name(text, length, &dtype)) {
        return false;
    }
    *out = fx_val_dtype(dtype);
    return true;
}

static fx_val read_name(fx_reader *r)
{
    size_t length;
    const char *text = name(r, &length);
    fx_val value = NONE;
    if (length == 0) {
        bad(r, "expected an expression");
        r->at += *r->at != 0;
        return NONE;
    }
    if (*r->at == '(') {
        r->at++;
        return read_call(r, text, length);
    }
    const fx_val *known = fx_scope_get(r->scope, text, length);
    if (known != NULL) {
        return *known;
    }
    if (constant(text, length, &value) || !is_live(r)) {
        return value;
    }
    if (!fx_call_function(r, text, length, NULL, 0, &value)) {
        bad(r, "undefined name");
    }
    return value;
}

/* ---- expressions ---- */

static fx_val slice_of(fx_reader *r, const fx_val *list, const fx_val *from, const fx_val *to)
{
    if (list->kind != FX_VAL_LIST && list->kind != FX_VAL_TUPLE) {
        fx_lower_raise(r->lower,
                       "cannot slice a value that is not a list"); /* an invalid argument in a hand-made graph */
        return NONE;
    }
    int64_t n = (int64_t)list->u.list.n;
    int64_t first = from->kind == FX_VAL_INT ? from->u.i : 0, last = to->kind == FX_VAL_INT ? to->u.i : n;
    first = first < 0 ? first + n : first;
    last = last < 0 ? last + n : last;
    first = first < 0 ? 0 : first;
    last = last > n ? n : last;
    first = first > n ? n : first;
    return fx_val_list(r->lower, list->u.list.items + first, last > first ? (size_t)(last - first) : 0);
}

static fx_val item_of(fx_reader *r, const fx_val *list, int64_t index)
{
    bool is_list = list->kind == FX_VAL_LIST || list->kind == FX_VAL_TUPLE;
    int64_t n = is_list ? (int64_t)list->u.list.n : 0;
    index = index < 0 ? index + n : index;
    if (index < 0 || index >= n) {
        fx_lower_raise(r->lower, "index out of range");
        return NONE;
    }
    return list->u.list.items[index];
}

static fx_val read_atom(fx_reader *r)
{
    fx_val value;
    blanks(r);
    if ((*r->at >= '0' && *r->at <= '9')) {
        value = read_number(r);
    } else if (*r->at == '\'') {
        value = read_text(r);
    } else if (sign(r, "[")) {
        value = read_list(r);
    } else if (sign(r, "(")) {
        value = read_parentheses(r);
    } else {
        value = read_name(r);
    }
    while (*r->at == '[') {
        r->at++;
        fx_val from = NONE, to = NONE;
        bool is_slice = sign(r, ":");
        if (!is_slice) {
            from = fx_read_expression(r);
            is_slice = sign(r, ":");
        }
        bool is_closed = sign(r, "]");
        if (is_slice && !is_closed) {
            to = fx_read_expression(r);
            is_closed = sign(r, "]");
        }
        if (!is_closed) {
            bad(r, "no ]");
        }
        if (is_live(r)) {
            value = is_slice ? slice_of(r, &value, &from, &to) : item_of(r, &value, from.u.i);
        }
    }
    return value;
}

static fx_val read_unary(fx_reader *r)
{
    blanks(r);
    if (!sign(r, "-")) {
        return read_atom(r);
    }
    fx_val value = read_unary(r);
    if (value.kind == FX_VAL_INT) {
        value.u.i = (int64_t)(0 - (uint64_t)value.u.i);
    } else if (value.kind == FX_VAL_FLOAT) {
        value.u.f = -value.u.f;
    }
    return value;
}

static fx_val integer_result(fx_reader *r, char op, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool failed;
    if (op == '+') {
        failed = __builtin_add_overflow(a, b, &result);
    } else if (op == '-') {
        failed = __builtin_sub_overflow(a, b, &result);
    } else if (op == '*') {
        failed = __builtin_mul_overflow(a, b, &result);
    } else {
        failed = b == 0 || (b == -1 && a == INT64_MIN);
        if (!failed) {
            result = op == '/' ? a / b : a % b;
        }
    }
    if (failed) {
        fx_lower_raise(r->lower, "integer out of range, or division by zero");
    }
    return fx_val_int(result);
}

static double float_result(char op, double a, double b)
{
    return op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
}

static fx_val list_arithmetic(fx_reader *r, char op, const fx_val *a, const fx_val *b)
{
    bool is_repeat = op == '*' && b->kind == FX_VAL_INT;
    size_t n_a = a->u.list.n, n_b = is_repeat ? 0 : b->u.list.n;
    size_t times = is_repeat ? (b->u.i > 0 ? (size_t)b->u.i : 0) : 1, n_items;
    if (times > MAX_REPEATS || !fx_mul_size(n_a, times, &n_items)) {
        fx_lower_raise(r->lower, "list repeated more than %d times", MAX_REPEATS);
        return NONE;
    }
    fx_val list = fx_val_list(r->lower, NULL, 0);
    fx_val *items = fx_arena_calloc(&r->lower->ge->arena, n_a * times + n_b + 1, sizeof *items);
    if (items == NULL || list.kind != FX_VAL_LIST) {
        return NONE;
    }
    for (size_t i = 0; i < times && n_a > 0; i++) {
        memcpy(items + i * n_a, a->u.list.items, n_a * sizeof *items);
    }
    if (n_b > 0) {
        memcpy(items + n_a * times, b->u.list.items, n_b * sizeof *items);
    }
    list.u.list.items = items;
    list.u.list.n = n_a * times + n_b;
    return list;
}

static bool is_number(const fx_val *value)
{
    return value->kind == FX_VAL_INT || value->kind == FX_VAL_FLOAT || value->kind == FX_VAL_BOOL;
}

static fx_val arithmetic(fx_reader *r, char op, const fx_val *a, const fx_val *b)
{
    bool a_list = a->kind == FX_VAL_LIST || a->kind == FX_VAL_TUPLE;
    bool b_list = b->kind == FX_VAL_LIST || b->kind == FX_VAL_TUPLE;
    if (a_list && (b_list || (op == '*' && b->kind == FX_VAL_INT))) {
        return list_arithmetic(r, op, a, b);
    }
    if (a->kind == FX_VAL_INT && b->kind == FX_VAL_INT) {
        return integer_result(r, op, a->u.i, b->u.i);
    }
    if (!is_number(a) || !is_number(b)) {
        fx_lower_raise(r->lower, "operand is not a number");
        return NONE;
    }
    fx_val value = {.kind = FX_VAL_FLOAT, .u.f = float_result(op, fx_val_number(a), fx_val_number(b))};
    return value;
}

static fx_val read_product(fx_reader *r)
{
    fx_val value = read_unary(r);
    for (;;) {
        blanks(r);
        char op = *r->at;
        if (op != '*' && op != '/' && op != '%') {
            return value;
        }
        r->at++;
        fx_val right = read_unary(r);
        if (is_live(r)) {
            value = arithmetic(r, op, &value, &right);
        }
    }
}

static fx_val read_sum(fx_reader *r)
{
    fx_val value = read_product(r);
    for (;;) {
        blanks(r);
        char op = *r->at;
        if (op != '+' && op != '-') {
            return value;
        }
        r->at++;
        fx_val right = read_product(r);
        if (is_live(r)) {
            value = arithmetic(r, op, &value, &right);
        }
    }
}

static bool is_in(const fx_val *value, const fx_val *list)
{
    for (size_t i = 0; (list->kind == FX_VAL_LIST || list->kind == FX_VAL_TUPLE) && i < list->u.list.n; i++) {
        if (fx_val_equal(value, &list->u.list.items[i])) {
            return true;
        }
    }
    return false;
}

static fx_val read_comparison(fx_reader *r)
{
    static const char *const SIGNS[] = {"==", "!=", "<=", ">=", "<", ">"};
    fx_val left = read_sum(r);
    if (keyword(r, "in")) {
        fx_val list = read_sum(r);
        return fx_val_bool(is_in(&left, &list));
    }
    bool is_sign_char = *r->at == '=' || *r->at == '!' || *r->at == '<' || *r->at == '>';
    for (size_t i = 0; i < 6 && is_sign_char; i++) {
        if (!sign(r, SIGNS[i])) {
            continue;
        }
        fx_val right = read_sum(r);
        double a = fx_val_number(&left), b = fx_val_number(&right);
        bool holds[] = {fx_val_equal(&left, &right), !fx_val_equal(&left, &right), a <= b, a >= b, a<b, a> b};
        return fx_val_bool(holds[i]);
    }
    return left;
}

static fx_val read_not(fx_reader *r)
{
    if (!keyword(r, "not")) {
        return read_comparison(r);
    }
    fx_val value = read_not(r);
    return fx_val_bool(!fx_val_truth(&value));
}

/* `and` and `or` skip the second operand if it does not matter. */
static fx_val read_and(fx_reader *r)
{
    fx_val value = read_not(r);
    while (keyword(r, "and")) {
        bool skip = r->skip;
        r->skip = skip || !fx_val_truth(&value);
        fx_val right = read_not(r);
        if (!r->skip) {
            value = right;
        }
        r->skip = skip;
    }
    return value;
}

static fx_val read_or(fx_reader *r)
{
    fx_val value = read_and(r);
    while (keyword(r, "or")) {
        bool skip = r->skip;
        r->skip = skip || fx_val_truth(&value);
        fx_val right = read_and(r);
        if (!r->skip) {
            value = right;
        }
        r->skip = skip;
    }
    return value;
}

fx_val fx_read_expression(fx_reader *r)
{
    fx_val condition = read_or(r);
    if (!sign(r, "?")) {
        return condition;
    }
    bool skip = r->skip, holds = fx_val_truth(&condition);
    r->skip = skip || !holds;
    fx_val yes = fx_read_expression(r);
    if (!sign(r, ":")) {
        bad(r, "no :");
    }
    r->skip = skip || holds;
    fx_val no = fx_read_expression(r);
    r->skip = skip;
    return holds ? yes : no;
}
