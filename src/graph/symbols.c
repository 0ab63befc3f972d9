/* symbols.c - canonical forms of SymPy's texts of sizes; see symbols.h. */
#include "graph/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

#define DEPTH_MAX 100   /* of the parser; far above SymPy's own texts */
#define LENGTH_MAX 4096 /* of a parsed text: joining operands takes quadratic time */

/* A tree of the expression: an atom with its text, or a head over children. */
typedef struct expr {
    const char *text;   /* the atom, or the head */
    struct expr *first; /* children; NULL for an atom */
    struct expr *next;  /* the next sibling */
    bool commutes;
} expr;

typedef struct parser {
    fx_symbols *symbols;
    const char *at;
    unsigned depth;
    bool failed; /* unsupported expression */
    bool no_memory;
} parser;

void fx_symbols_init(fx_symbols *symbols)
{
    memset(symbols, 0, sizeof *symbols);
}

void fx_symbols_clear(fx_symbols *symbols)
{
    fx_texts_clear(&symbols->names);
    fx_texts_clear(&symbols->expressions);
    fx_arena_clear(&symbols->scratch);
    fx_texts_clear(&symbols->texts);
    fx_free(symbols->canonical);
    fx_symbols_init(symbols);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool fx_is_symbol(const char *name, size_t length)
{
    size_t letters = 0;
    while (letters < length && name[letters] >= 'a' && name[letters] <= 'z') {
        letters++;
    }
    for (size_t i = letters; i < length; i++) {
        if (!is_digit(name[i])) {
            return false;
        }
    }
    return letters > 0 && letters <= 4 && letters < length;
}

/* ---- trees ---- */

static expr *new_expr(parser *p, const char *text, bool commutes)
{
    expr *e = fx_arena_alloc(&p->symbols->scratch, sizeof *e);
    if (e == NULL || text == NULL) {
        p->no_memory = p->failed = true;
        return NULL;
    }
    *e = (expr){.text = text, .commutes = commutes};
    return e;
}

static expr *atom(parser *p, const char *bytes, size_t length)
{
    char *text = fx_arena_alloc(&p->symbols->scratch, length + 1);
    if (text != NULL) {
        memcpy(text, bytes, length);
        text[length] = '\0';
    }
    return new_expr(p, text, false);
}

/* The atom of a symbol: its letters, which give the kind of size, and its number. */
static expr *symbol_atom(parser *p, const char *name, size_t length)
{
    const char *interned = fx_texts_keep(&p->symbols->names, name, length);
    if (interned == NULL) {
        p->no_memory = p->failed = true;
        return NULL;
    }
    size_t letters = 0;
    while (!is_digit(name[letters])) {
        letters++;
    }
    char text[32];
    int written = snprintf(text, sizeof text, "%.*s#%u", (int)letters, name, (unsigned)fx_texts_entry_of(interned)->id);
    return atom(p, text, (size_t)written);
}

static void append(expr *parent, expr *child)
{
    expr **end = &parent->first;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = child;
    child->next = NULL;
}

static bool is_head(const expr *e, const char *head)
{
    return e->first != NULL && strcmp(e->text, head) == 0;
}

static expr *unary(parser *p, const char *head, expr *child)
{
    expr *e = child == NULL ? NULL : new_expr(p, head, false);
    if (e != NULL) {
        append(e, child);
    }
    return e;
}

static expr *binary(parser *p, const char *head, bool commutes, expr *a, expr *b)
{
    expr *e = a == NULL || b == NULL ? NULL : new_expr(p, head, commutes);
    if (e != NULL) {
        append(e, a);
        append(e, b);
    }
    return e;
}

/* -x: of a sum, the sum of the negated terms; double negation cancels. SymPy's own form depends on names. */
static expr *negate(parser *p, expr *e)
{
    if (e == NULL || is_head(e, "neg")) {
        return e == NULL ? NULL : e->first;
    }
    if (!is_head(e, "+")) {
        return unary(p, "neg", e);
    }
    expr *sum = new_expr(p, "+", true);
    for (expr *term = e->first; sum != NULL && term != NULL;) {
        expr *next = term->next;
        expr *negated = negate(p, term);
        if (negated == NULL) {
            return NULL;
        }
        append(sum, negated);
        term = next;
    }
    return sum;
}

/* Adds an operand to an n-ary node; a node with the same head is merged. */
static void join(expr *node, expr *operand)
{
    if (!is_head(operand, node->text)) {
        append(node, operand);
        return;
    }
    for (expr *child = operand->first; child != NULL;) {
        expr *next = child->next;
        append(node, child);
        child = next;
    }
}

static expr *nary(parser *p, const char *head, expr *a, expr *b)
{
    expr *e = a == NULL || b == NULL ? NULL : new_expr(p, head, true);
    if (e != NULL) {
        join(e, a);
        join(e, b);
    }
    return e;
}

/* The sign of a product is moved outside. */
static expr *multiply(parser *p, expr *a, expr *b)
{
    bool negative = false;
    if (a != NULL && is_head(a, "neg")) {
        a = a->first;
        negative = !negative;
    }
    if (b != NULL && is_head(b, "neg")) {
        b = b->first;
        negative = !negative;
    }
    expr *product = nary(p, "*", a, b);
    return negative ? negate(p, product) : product;
}

/* ---- parsing: Python's precedence ---- */

static void skip_space(parser *p)
{
    while (*p->at == ' ') {
        p->at++;
    }
}

static bool accept(parser *p, const char *token)
{
    skip_space(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0) {
        return false;
    }
    p->at += length;
    return true;
}

static expr *fail(parser *p)
{
    p->failed = true;
    return NULL;
}

static expr *parse_any(parser *p);

static bool function_commutes(const char *name, size_t length)
{
    static const char *const names[] = {"Max", "Min", "Eq", "Ne", "And", "Or", "Add", "Mul"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* The arguments after an opening parenthesis, appended to `node`, up to the closing one. */
static expr *parse_arguments(parser *p, expr *node)
{
    while (node != NULL && !accept(p, ")")) {
        expr *argument = parse_any(p);
        if (argument == NULL) {
            return NULL;
        }
        append(node, argument);
        if (!accept(p, ",")) {
            return accept(p, ")") ? node : fail(p);
        }
    }
    return node;
}

static expr *parse_name(parser *p)
{
    const char *start = p->at;
    while (is_name_start(*p->at) || is_digit(*p->at) || *p->at == '.') {
        p->at++;
    }
    size_t length = (size_t)(p->at - start);
    if (*p->at != '(') {
        return fx_is_symbol(start, length) ? symbol_atom(p, start, length) : atom(p, start, length);
    }
    p->at++;
    expr *name = atom(p, start, length);
    expr *call = name == NULL ? NULL : new_expr(p, name->text, function_commutes(start, length));
    return parse_arguments(p, call);
}

static expr *parse_number(parser *p)
{
    const char *start = p->at;
    while (is_digit(*p->at) || *p->at == '.') {
        p->at++;
    }
    if ((*p->at == 'e' || *p->at == 'E') && p->at != start) {
        p->at++;
        p->at += *p->at == '+' || *p->at == '-';
        while (is_digit(*p->at)) {
            p->at++;
        }
    }
    return atom(p, start, (size_t)(p->at - start));
}

static expr *parse_parenthesis(parser *p)
{
    expr *inner = parse_any(p);
    if (inner != NULL && accept(p, ",")) { /* a tuple, as in Piecewise((1, s0 > 2), ...) */
        return parse_arguments(p, unary(p, "tuple", inner));
    }
    return inner == NULL || accept(p, ")") ? inner : fail(p);
}

static expr *parse_primary(parser *p)
{
    skip_space(p);
    if (is_name_start(*p->at)) {
        return parse_name(p);
    }
    if (is_digit(*p->at) || *p->at == '.') {
        return parse_number(p);
    }
    return accept(p, "(") ? parse_parenthesis(p) : fail(p);
}

static expr *parse_unary(parser *p);

static expr *parse_power(parser *p)
{
    expr *base = parse_primary(p);
    if (base != NULL && accept(p, "**")) {
        return binary(p, "**", false, base, parse_unary(p));
    }
    return base;
}

/* All nesting goes through this function. */
static expr *parse_unary(parser *p)
{
    if (++p->depth > DEPTH_MAX) {
        return fail(p);
    }
    expr *e;
    if (accept(p, "-")) {
        e = negate(p, parse_unary(p));
    } else if (accept(p, "+")) {
        e = parse_unary(p);
    } else if (accept(p, "~")) {
        e = unary(p, "~", parse_unary(p));
    } else {
        e = parse_power(p);
    }
    p->depth--;
    return e;
}

static expr *parse_product(parser *p)
{
    expr *left = parse_unary(p);
    while (left != NULL) {
        if (accept(p, "//")) {
            left = binary(p, "//", false, left, parse_unary(p));
        } else if (accept(p, "%")) {
            left = binary(p, "%", false, left, parse_unary(p));
        } else if (accept(p, "/")) {
            left = multiply(p, left, unary(p, "inv", parse_unary(p)));
        } else if (accept(p, "*")) {
            left = multiply(p, left, parse_unary(p));
        } else {
            break;
        }
    }
    return left;
}

static expr *parse_sum(parser *p)
{
    expr *left = parse_product(p);
    while (left != NULL) {
        if (accept(p, "+")) {
            left = nary(p, "+", left, parse_product(p));
        } else if (accept(p, "-")) {
            left = nary(p, "+", left, negate(p, parse_product(p)));
        } else {
            break;
        }
    }
    return left;
}

static expr *parse_bits(parser *p)
{
    expr *left = parse_sum(p);
    while (left != NULL && accept(p, "&")) {
        left = nary(p, "&", left, parse_sum(p));
    }
    return left;
}

static expr *parse_alternatives(parser *p)
{
    expr *left = parse_bits(p);
    while (left != NULL && accept(p, "|")) {
        left = nary(p, "|", left, parse_bits(p));
    }
    return left;
}

/* Comparisons; "a > b" is "b < a". */
static expr *parse_any(parser *p)
{
    expr *left = parse_alternatives(p);
    if (left == NULL) {
        return NULL;
    }
    if (accept(p, "==")) {
        return binary(p, "Eq", true, left, parse_alternatives(p));
    }
    if (accept(p, "!=")) {
        return binary(p, "Ne", true, left, parse_alternatives(p));
    }
    if (accept(p, "<=")) {
        return binary(p, "<=", false, left, parse_alternatives(p));
    }
    if (accept(p, ">=")) {
        return binary(p, "<=", false, parse_alternatives(p), left);
    }
    if (accept(p, "<")) {
        return binary(p, "<", false, left, parse_alternatives(p));
    }
    return accept(p, ">") ? binary(p, "<", false, parse_alternatives(p), left) : left;
}

/* ---- texts ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *text_of(parser *p, const expr *e);

static const char *join_texts(parser *p, const char *head, const char *const *texts, size_t n_texts)
{
    size_t length = strlen(head) + 3;
    for (size_t i = 0; i < n_texts; i++) {
        length += strlen(texts[i]) + 1;
    }
    char *text = fx_arena_alloc(&p->symbols->scratch, length);
    if (text == NULL) {
        return NULL;
    }
    char *end = stpcpy(stpcpy(text, "("), head);
    for (size_t i = 0; i < n_texts; i++) {
        end = stpcpy(stpcpy(end, " "), texts[i]);
    }
    stpcpy(end, ")");
    return text;
}

/* Recurses as deep as the tree, which the parser bounds. */
static const char *text_of(parser *p, const expr *e)
{
    size_t n_children = 0;
    for (const expr *child = e->first; child != NULL; child = child->next) {
        n_children++;
    }
    if (n_children == 0) {
        return e->text;
    }
    const char **texts = fx_arena_alloc(&p->symbols->scratch, n_children * sizeof *texts);
    if (texts == NULL) {
        return NULL;
    }
    size_t i = 0;
    for (const expr *child = e->first; child != NULL; child = child->next) {
        texts[i] = text_of(p, child);
        if (texts[i++] == NULL) {
            return NULL;
        }
    }
    if (e->commutes) {
        qsort(texts, n_children, sizeof *texts, by_text);
    }
    return join_texts(p, e->text, texts, n_children);
}

/* For a text that is not an expression: renames symbols, removes spaces, and keeps everything else. */
static const char *rename_tokens(parser *p, const char *expression)
{
    size_t room = strlen(expression) * 8 + 8; /* the shortest symbol is "s1", the longest name "s#4294967295" */
    char *text = fx_arena_alloc(&p->symbols->scratch, room);
    if (text == NULL) {
        return NULL;
    }
    char *end = text;
    for (const char *at = expression; *at != '\0';) {
        size_t length = 1;
        if (is_name_start(*at)) {
            while (is_name_start(at[length]) || is_digit(at[length])) {
                length++;
            }
        }
        if (is_name_start(*at) && at[length] != '(' && fx_is_symbol(at, length)) {
            const expr *renamed = symbol_atom(p, at, length);
            if (renamed == NULL) {
                return NULL;
            }
            end = stpcpy(end, renamed->text);
        } else if (*at != ' ') {
            memcpy(end, at, length);
            end += length;
        }
        at += length;
    }
    *end = '\0';
    return text;
}

static const char *canonical_text(fx_symbols *symbols, const char *expression)
{
    parser p = {.symbols = symbols, .at = expression};
    const expr *e = strlen(expression) > LENGTH_MAX ? fail(&p) : parse_any(&p);
    skip_space(&p);
    if (p.no_memory) {
        return NULL;
    }
    return e != NULL && !p.failed && *p.at == '\0' ? text_of(&p, e) : rename_tokens(&p, expression);
}

bool fx_symbols_see(fx_symbols *symbols, const char *name)
{
    return fx_texts_keep(&symbols->names, name, strlen(name)) != NULL;
}

const char *fx_symbols_canonical(fx_symbols *symbols, const char *expression)
{
    const char *interned = fx_texts_keep(&symbols->expressions, expression, strlen(expression));
    if (interned == NULL) {
        return NULL;
    }
    size_t id = fx_texts_entry_of(interned)->id;
    size_t before = symbols->canonical_capacity;
    if (!fx_grow((void **)&symbols->canonical, &symbols->canonical_capacity, id + 1, sizeof *symbols->canonical)) {
        return NULL;
    }
    memset(symbols->canonical + before, 0, (symbols->canonical_capacity - before) * sizeof *symbols->canonical);
    if (symbols->canonical[id] == NULL) {
        const char *text = canonical_text(symbols, interned);
        symbols->canonical[id] = text == NULL ? NULL : fx_texts_keep(&symbols->texts, text, strlen(text));
        fx_arena_reset(&symbols->scratch); /* much more than the text: the texts of all parts, joined level by level */
    }
    return symbols->canonical[id];
}
