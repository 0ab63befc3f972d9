/*
 * table.h - aligned tables that fit a terminal: where they are too wide, columns that may be elided shrink, then the
 * least important ones are left out, and at last names shrink.
 */
#ifndef TABLE_H
#define TABLE_H

#include "text.h"

typedef enum column_elide {
    ELIDE_NEVER,
    ELIDE_END,
    ELIDE_MIDDLE,
    ELIDE_START, /* paths: shrink before all others */
    ELIDE_TYPE,  /* "f32[2, 3]": loses its spaces, then its end */
    ELIDE_NAME,  /* what the user types back: in the middle, once nothing else helps */
} column_elide;

typedef struct table_column {
    const char *title;
    bool is_right;      /* aligned */
    column_elide elide;
    size_t least;       /* columns that it keeps at least when elided */
    int importance;     /* 0: never left out; else the smallest goes first; 5 goes after names were elided */
} table_column;

typedef struct text_table text_table;

text_table *table_create(const table_column *columns, size_t n_columns); /* columns are borrowed */
void table_free(text_table *table);

/* Cells are filled left to right, row by row. Text is cleaned. */
void table_cell(text_table *table, text_style style, const char *text);
/* What the buffer holds (clean already), which is emptied. */
void table_take(text_table *table, text_style style, fxtap_buffer *text);
/* The same for text that runs on over the empty cells behind it: its column need not be as wide. */
void table_take_over(text_table *table, text_style style, fxtap_buffer *text);

/* A line of titles, then the rows. Columns that are empty in all rows are left out. */
void table_print(text_table *table, fxtap_buffer *out);

#endif
