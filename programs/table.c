#include "table.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define GAP 2
#define MAX_COLUMNS 32
#define TYPE_WIDTH 17
#define IMPORTANCE_AS_NAME 5 /* a column of this importance is removed only after names were elided */

typedef struct cell {
    size_t offset; /* in text */
    size_t length;
    size_t width;
    text_style style;
    bool runs_on; /* over the empty cells after it */
} cell;

struct text_table {
    const table_column *columns;
    size_t n_columns;
    fxtap_buffer text;
    cell *cells;
    size_t n_cells;
    size_t capacity;
};

text_table *table_create(const table_column *columns, size_t n_columns)
{
    text_table *made = must_realloc(NULL, 1, sizeof *made);
    *made = (text_table){.columns = columns, .n_columns = n_columns};
    fxtap_buffer_init(&made->text);
    return made;
}

void table_free(text_table *table)
{
    if (table != NULL) {
        fxtap_buffer_clear(&table->text);
        free(table->cells);
        free(table);
    }
}

static void add_cell(text_table *table, size_t offset, text_style style)
{
    if (table->n_cells == table->capacity) {
        table->capacity = table->capacity > 0 ? table->capacity * 2 : 64;
        table->cells = must_realloc(table->cells, table->capacity, sizeof *table->cells);
    }
    cell made = {.offset = offset, .length = table->text.length - offset, .style = style};
    made.width = made.length > 0 ? text_columns(table->text.bytes + offset, made.length) : 0;
    table->cells[table->n_cells++] = made;
}

void table_cell(text_table *table, text_style style, const char *text)
{
    size_t offset = table->text.length;
    text_append(&table->text, text);
    add_cell(table, offset, style);
}

void table_take(text_table *table, text_style style, fxtap_buffer *text)
{
    size_t offset = table->text.length;
    fxtap_buffer_append(&table->text, text->bytes, text->length);
    add_cell(table, offset, style);
    fxtap_buffer_clear(text);
}

void table_take_over(text_table *table, text_style style, fxtap_buffer *text)
{
    table_take(table, style, text);
    table->cells[table->n_cells - 1].runs_on = true;
}

/* ---- widths ---- */

/* The room of the cell in `column` of a row; *next_out: the column after it. */
static size_t room_for(const text_table *table, const size_t *widths, const cell *row, size_t column, size_t *next_out)
{
    size_t room = widths[column], next = column + 1;
    for (; row[column].runs_on && next < table->n_columns && row[next].length == 0; next++) {
        room += widths[next] > 0 ? widths[next] + (room > 0 ? GAP : 0) : 0;
    }
    *next_out = next;
    return room;
}

static void natural_widths(const text_table *table, size_t *widths)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        widths[i] = 0;
    }
    assert(table->n_columns > 0 || table->n_cells == 0);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t *width = &widths[i % table->n_columns];
        *width = !table->cells[i].runs_on && table->cells[i].width > *width ? table->cells[i].width : *width;
    }
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns, next;
        size_t room =
            table->cells[i].runs_on ? room_for(table, widths, &table->cells[i - column], column, &next) : SIZE_MAX;
        widths[column] += table->cells[i].width > room ? table->cells[i].width - room : 0;
    }
    for (size_t i = 0; i < table->n_columns; i++) {
        size_t title = strlen(table->columns[i].title);
        widths[i] = widths[i] > 0 && widths[i] < title ? title : widths[i];
    }
}

static size_t total_width(const size_t *widths, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += widths[i] > 0 ? widths[i] + (total > 0 ? GAP : 0) : 0;
    }
    return total;
}

/* Paths shrink first; names that users type only if `names_too`. */
static int turn_to_shrink(column_elide elide, bool names_too)
{
    switch (elide) {
    case ELIDE_NEVER:
        return 0;
    case ELIDE_NAME:
        return names_too ? 1 : 0;
    case ELIDE_START:
        return 3;
    default:
        return 2;
    }
}

/* Most types fit in TYPE_WIDTH columns. */
static size_t least_width(const table_column *column, bool names_too)
{
    bool is_type = column->elide == ELIDE_TYPE && !names_too;
    return is_type && column->least < TYPE_WIDTH ? TYPE_WIDTH : column->least;
}

/* The widest column that may shrink in this round; n if there is none. */
static size_t next_to_shrink(const text_table *table, const size_t *widths, bool names_too)
{
    size_t next = table->n_columns;
    int turn = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        const table_column *column = &table->columns[i];
        int own = widths[i] > least_width(column, names_too) ? turn_to_shrink(column->elide, names_too) : 0;
        if (own > turn || (own > 0 && own == turn && widths[i] > widths[next])) {
            next = i;
            turn = own;
        }
    }
    return next;
}

/* The least important remaining column, below `limit`; n if there is none. */
static size_t least_important(const text_table *table, const size_t *widths, int limit)
{
    size_t least = table->n_columns;
    for (size_t i = 0; i < table->n_columns; i++) {
        int importance = table->columns[i].importance;
        if (widths[i] > 0 && importance > 0 && importance < limit &&
            (least == table->n_columns || importance < table->columns[least].importance)) {
            least = i;
        }
    }
    return least;
}

static void shrink(const text_table *table, size_t *widths, size_t limit, bool names_too)
{
    while (total_width(widths, table->n_columns) > limit) {
        size_t next = next_to_shrink(table, widths, names_too);
        if (next == table->n_columns) {
            return;
        }
        widths[next]--;
    }
}

/* Removing columns is better than shrinking all to nothing: remove until the rest fits, elided. */
static bool fit(const text_table *table, const size_t *natural, size_t limit, bool names_too, size_t *widths)
{
    size_t kept[MAX_COLUMNS];
    memcpy(kept, natural, table->n_columns * sizeof *kept);
    for (;;) {
        memcpy(widths, kept, table->n_columns * sizeof *widths);
        shrink(table, widths, limit, names_too);
        if (total_width(widths, table->n_columns) <= limit) {
            return true;
        }
        size_t least = least_important(table, widths, names_too ? INT_MAX : IMPORTANCE_AS_NAME);
        if (least == table->n_columns) {
            return false;
        }
        kept[least] = 0;
    }
}

/* "f32[2, 3]" as "f32[2,3]", in every type of the table. */
static void pack_types(text_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++) {
        cell *packed = &table->cells[i];
        if (table->columns[i % table->n_columns].elide != ELIDE_TYPE || packed->length == 0) {
            continue;
        }
        char *text = table->text.bytes + packed->offset;
        const char *open = memchr(text, '[', packed->length);
        size_t n = 0;
        for (size_t j = 0; j < packed->length; j++) {
            bool is_left_out = open != NULL && text + j > open && text[j] == ' ' && n > 0 && text[n - 1] == ',';
            text[n] = text[j];
            n += !is_left_out;
        }
        packed->length = n;
        packed->width = text_columns(text, n);
    }
}

static void choose_widths(text_table *table, size_t limit, size_t *widths)
{
    size_t natural[MAX_COLUMNS];
    natural_widths(table, natural);
    if (total_width(natural, table->n_columns) > limit) {
        pack_types(table);
        natural_widths(table, natural);
    }
    if (!fit(table, natural, limit, false, widths)) {
        (void)fit(table, natural, limit, true, widths);
    }
}

/* ---- printing ---- */

static void append_spaces(fxtap_buffer *out, size_t n)
{
    fxtap_buffer_printf(out, "%*s", (int)n, "");
}

static void append_elided(fxtap_buffer *out, column_elide elide, const char *text, size_t length, size_t width)
{
    size_t rest = width - 1;
    size_t tail_width = elide == ELIDE_START ? rest : elide == ELIDE_MIDDLE || elide == ELIDE_NAME ? rest / 2 : 0;
    size_t head = text_head(text, length, rest - tail_width);
    size_t tail = text_tail(text, length, tail_width);
    fxtap_buffer_append(out, text, head);
    fxtap_buffer_text(out, text_elision());
    fxtap_buffer_append(out, text + length - tail, tail);
    size_t used = text_columns(text, head) + 1 + text_columns(text + length - tail, tail);
    append_spaces(out, width > used ? width - used : 0);
}

static void append_cell(fxtap_buffer *out, const table_column *column, const char *text, size_t length, size_t width,
                        bool is_last)
{
    size_t own = length > 0 ? text_columns(text, length) : 0;
    if (own > width) {
        append_elided(out, column->elide, text, length, width);
        return;
    }
    append_spaces(out, column->is_right ? width - own : 0);
    fxtap_buffer_append(out, text, length);
    append_spaces(out, !column->is_right && !is_last ? width - own : 0);
}

static size_t last_column(const text_table *table, const size_t *widths, const cell *row)
{
    size_t last = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        size_t length = row != NULL ? row[i].length : strlen(table->columns[i].title);
        last = widths[i] > 0 && length > 0 ? i : last;
    }
    return last;
}

/* No spaces are printed after the last text of a line. */
static void print_row(const text_table *table, const size_t *widths, const cell *row, fxtap_buffer *out)
{
    size_t last = last_column(table, widths, row);
    bool is_first = true;
    for (size_t i = 0, next; i <= last; i = next) {
        size_t room = row != NULL ? room_for(table, widths, row, i, &next) : widths[i];
        next = row != NULL ? next : i + 1;
        if (widths[i] == 0) {
            continue;
        }
        text_style style = row != NULL ? row[i].style : STYLE_DIM;
        const char *text = row != NULL ? table->text.bytes + row[i].offset : table->columns[i].title;
        size_t length = row != NULL ? row[i].length : strlen(text);
        append_spaces(out, is_first ? 0 : GAP);
        fxtap_buffer_text(out, text_begin(style));
        append_cell(out, &table->columns[i], text, length, room, i == last);
        fxtap_buffer_text(out, text_end(style));
        is_first = false;
    }
    fxtap_buffer_text(out, "\n");
}

void table_print(text_table *table, fxtap_buffer *out)
{
    size_t widths[MAX_COLUMNS];
    if (table->n_cells == 0) {
        return;
    }
    choose_widths(table, text_width(), widths);
    print_row(table, widths, NULL, out);
    for (size_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns) {
        print_row(table, widths, &table->cells[i], out);
    }
}
