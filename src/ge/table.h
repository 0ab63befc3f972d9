/*
 * table.h - the definitions of the GE operators, as data (written by scripts/make-ge-table from measured dumps).
 *
 * Names are separated by spaces. An input `x*` is a list of tensors, `bias?` is optional, `perm!` takes a bare integer
 * as int64 regardless of the other inputs. Attributes are `name:kind=default`, separated by " | ", kinds i f b s (as in
 * the text format), dt (a data type), li lf ls (lists); one without a default is required. Layouts are the format of
 * each input, ">", and of each output; "-" for none; "" if there are none at all. A leading "=" sets them in the
 * descriptions immediately, without attributes, until the optimisation.
 */
#ifndef FX_GE_TABLE_H
#define FX_GE_TABLE_H

#include <stddef.h>

typedef struct fx_ge_def {
    const char *type;
    const char *api; /* the name in py if it differs from the type; else NULL */
    const char *inputs;
    const char *outputs;
    const char *attributes;
    const char *layouts;
} fx_ge_def;

extern const fx_ge_def fx_ge_defs[]; /* sorted by type */
extern const size_t fx_n_ge_defs;

/* The definition of a type; NULL for an unknown type. */
const fx_ge_def *fx_ge_def_find(const char *type);

#endif
