/*
 * symbols.h - symbolic sizes independent of their names.
 *
 * torch names a symbol after its source and SymPy orders the terms of a sum by name, so "s27 + s77" in one program is
 * "s14 + s35" or "s60 + s5" in the same graph of another. The canonical form numbers symbols in order of first use and
 * orders operands by their canonical text:
 *   "s77 + 2"          "(+ 2 s#0)"
 *   "s27*s77 - 1"      "(+ (* s#0 s#1) (neg 1))"
 *   "((s77 + 1)//2)"   "(// (+ 1 s#0) 2)"
 * An expression that does not parse keeps its tokens, with the symbols renamed.
 */
#ifndef FX_GRAPH_SYMBOLS_H
#define FX_GRAPH_SYMBOLS_H

#include <stdbool.h>

#include "graph/record.h"

typedef struct fx_symbols {
    fx_texts names;         /* symbols; the id of a name is its number */
    fx_texts expressions;   /* every expression so far; */
    const char **canonical; /* the canonical form, by the expression's id */
    size_t canonical_capacity;
    fx_texts texts;   /* canonical forms */
    fx_arena scratch; /* trees and texts of the parts of one expression */
} fx_symbols;

void fx_symbols_init(fx_symbols *symbols);
void fx_symbols_clear(fx_symbols *symbols);

/* A symbol as torch names it: letters and digits, as in s77, u0, zuf3; `length` bytes. */
bool fx_is_symbol(const char *name, size_t length);

/* Numbers the symbol if it is new. False: out of memory. */
bool fx_symbols_see(fx_symbols *symbols, const char *name);

/* The canonical form, borrowed from `symbols`; NULL: no memory. */
const char *fx_symbols_canonical(fx_symbols *symbols, const char *expression);

#endif
