/* Interprets recipes: statements, the binding of arguments, and whole recipes. */
#include <string.h>

#include "ge/recipe.h"

static void blanks(fx_reader *r)
{
    while (*r->at == ' ' || *r->at == '\n') {
        r->at++;
    }
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool keyword(fx_reader *r, const char *text)
{
    size_t length = strlen(text);
    blanks(r);
    if (strncmp(r->at, text, length) != 0 || is_name_char(r->at[length])) {
        return false;
    }
    r->at += length;
    return true;
}

static void block(fx_reader *r, bool skip)
{
    bool before = r->skip;
    r->skip = before || skip;
    blanks(r);
    if (*r->at == '{') {
        r->at++;
    }
    fx_read_program(r);
    if (*r->at == '}') {
        r->at++;
    }
    r->skip = before;
}

static void read_if(fx_reader *r)
{
    fx_val condition = fx_read_expression(r);
    bool holds = fx_val_truth(&condition);
    block(r, !holds);
    if (!keyword(r, "else")) {
        return;
    }
    if (keyword(r, "if")) {
        bool before = r->skip;
        r->skip = before || holds;
        read_if(r);
        r->skip = before;
    } else {
        block(r, holds);
    }
}

static void read_for(fx_reader *r)
{
    blanks(r);
    const char *name = r->at;
    while (is_name_char(*r->at)) {
        r->at++;
    }
    size_t length = (size_t)(r->at - name);
    keyword(r, "in");
    fx_val list = fx_read_expression(r);
    const char *start = r->at;
    bool is_list = list.kind == FX_VAL_LIST || list.kind == FX_VAL_TUPLE;
    if (r->skip || !is_list || list.u.list.n == 0) {
        block(r, true);
        return;
    }
    for (size_t i = 0; i < list.u.list.n; i++) {
        r->at = start;
        fx_scope_set(r, name, length, &list.u.list.items[i]);
        block(r, false);
    }
}

/* `a, b = expression`: true if the statement is one; the text is then after it. */
static bool read_assignment(fx_reader *r)
{
    struct {
        const char *name;
        size_t length;
    } targets[16];
    size_t n = 0;
    const char *start = r->at;
    for (;;) {
        blanks(r);
        const char *name = r->at;
        while (is_name_char(*r->at)) {
            r->at++;
        }
        if (r->at == name || n == 16) {
            break;
        }
        targets[n].name = name;
        targets[n++].length = (size_t)(r->at - name);
        blanks(r);
        if (*r->at != ',') {
            break;
        }
        r->at++;
    }
    if (n == 0 || r->at[0] != '=' || r->at[1] == '=') {
        r->at = start;
        return false;
    }
    r->at++;
    fx_val value = fx_read_expression(r);
    if (r->skip || r->returned || r->lower->raised != NULL) {
        return true;
    }
    bool is_list = value.kind == FX_VAL_LIST || value.kind == FX_VAL_TUPLE;
    if (n > 1 && (!is_list || value.u.list.n < n)) {
        fx_lower_raise(r->lower, "not enough values to unpack");
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        fx_scope_set(r, targets[i].name, targets[i].length, n == 1 ? &value : &value.u.list.items[i]);
    }
    return true;
}

void fx_read_program(fx_reader *r)
{
    for (;;) {
        blanks(r);
        if (*r->at == ';') {
            r->at++;
            continue;
        }
        if (*r->at == 0 || *r->at == '}' || r->lower->raised != NULL || r->lower->status != FXTAP_OK) {
            return;
        }
        if (keyword(r, "if")) {
            read_if(r);
        } else if (keyword(r, "for")) {
            read_for(r);
        } else if (keyword(r, "return")) {
            fx_val value = fx_read_expression(r);
            if (!r->skip && !r->returned) {
                r->result = value;
                r->returned = true;
            }
        } else if (!read_assignment(r)) {
            fx_val value = fx_read_expression(r);
            if (!r->skip && !r->returned) {
                r->result = value;
            }
        }
    }
}

/* ---- arguments ---- */

static bool given_by_name(const fxtap_node_desc *desc, const char *name, size_t length, fxtap_value *out)
{
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        if (strlen(desc->kwarg_names[i]) == length && memcmp(desc->kwarg_names[i], name, length) == 0) {
            *out = desc->kwarg_values[i];
            return true;
        }
    }
    return false;
}

/*
 * The values of the node's arguments, which may emit operators. Lists of sizes come first, then everything else, each
 * in the order of the arguments.
 */
bool fx_lower_arguments(fx_lower *lower, fx_val *positional, fx_val *named)
{
    const fxtap_node_desc *desc = &lower->desc;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < desc->n_args; i++) {
            if (fx_is_size_list(lower, desc->args[i]) == (pass == 0)) {
                positional[i] = fx_lower_value(lower, desc->args[i]);
            }
        }
        for (size_t i = 0; i < desc->n_kwargs; i++) {
            if (fx_is_size_list(lower, desc->kwarg_values[i]) == (pass == 0)) {
                named[i] = fx_lower_value(lower, desc->kwarg_values[i]);
            }
        }
    }
    return lower->raised == NULL && lower->status == FXTAP_OK && !lower->ge->arena.failed;
}

static bool bind_parameters(fx_reader *r, const char *params, const fx_val *positional, const fx_val *named)
{
    const fxtap_node_desc *desc = &r->lower->desc;
    r->at = params;
    for (size_t i = 0;; i++) {
        blanks(r);
        if (*r->at == 0) {
            return true;
        }
        const char *name = r->at;
        while (is_name_char(*r->at)) {
            r->at++;
        }
        size_t length = (size_t)(r->at - name);
        bool has_default = *r->at == '=';
        fx_val value = {.kind = FX_VAL_NONE};
        fxtap_value given;
        if (has_default) {
            r->at++;
            value = fx_read_expression(r);
        }
        if (i < desc->n_args) {
            value = positional[i];
        } else if (given_by_name(desc, name, length, &given)) {
            for (size_t j = 0; j < desc->n_kwargs; j++) {
                if (desc->kwarg_values[j] == given && strncmp(desc->kwarg_names[j], name, length) == 0) {
                    value = named[j];
                }
            }
        } else if (!has_default) {
            fx_lower_raise(r->lower, "missing argument %.*s", (int)length, name);
            return false;
        }
        if (!fx_scope_set(r, name, length, &value)) {
            return false;
        }
        blanks(r);
        if (*r->at == ',') {
            r->at++;
        } else if (*r->at != 0) {
            fx_lower_raise(r->lower, "invalid parameters: %s", params);
            return false;
        }
    }
}

fx_val fx_run_recipe(fx_lower *lower, const fx_recipe *recipe)
{
    fx_val nothing = {.kind = FX_VAL_NONE};
    fx_scope scope;
    fx_reader reader = {.lower = lower, .scope = &scope, .result = {.kind = FX_VAL_NONE}};
    fx_arena *arena = &lower->ge->arena;
    fx_val *positional = fx_arena_calloc(arena, lower->desc.n_args + 1, sizeof *positional);
    fx_val *named = fx_arena_calloc(arena, lower->desc.n_kwargs + 1, sizeof *named);
    scope.n = 0;
    if (positional == NULL || named == NULL || !fx_lower_arguments(lower, positional, named)) {
        return nothing;
    }
    if (recipe->body == NULL) {
        fx_lower_raise(lower, "TorchAir has no lowering for it");
        return nothing;
    }
    if (!bind_parameters(&reader, recipe->params, positional, named)) {
        return nothing;
    }
    reader.at = recipe->body;
    fx_read_program(&reader);
    return lower->raised == NULL ? reader.result : nothing;
}
