/* The tables of recipes, and the search for an operator. */
#include <stdlib.h>
#include <string.h>

#include "ge/lower.h"

static const fx_recipe_table *const TABLES[] = {
    &fx_recipes_elementwise, &fx_recipes_compare, &fx_recipes_reduce,  &fx_recipes_views,   &fx_recipes_matmul,
    &fx_recipes_convolution, &fx_recipes_norm,    &fx_recipes_index,   &fx_recipes_pooling, &fx_recipes_creation,
    &fx_recipes_random,      &fx_recipes_symbol,  &fx_recipes_foreach, &fx_recipes_loss,    &fx_recipes_misc,
};

#define N_TABLES (sizeof TABLES / sizeof TABLES[0])
static int by_target(const void *a, const void *b)
{
    const fx_recipe *const *x = a, *const *y = b;
    return strcmp((*x)->target, (*y)->target);
}

bool fx_collect_recipes(fx_arena *arena, fx_recipe_list *out)
{
    size_t n = 0;
    for (size_t i = 0; i < N_TABLES; i++) {
        n += TABLES[i]->n;
    }
    out->n = 0;
    out->recipes = fx_arena_calloc(arena, n + 1, sizeof *out->recipes);
    if (out->recipes == NULL) {
        return false;
    }
    for (size_t i = 0; i < N_TABLES; i++) {
        for (size_t j = 0; j < TABLES[i]->n; j++) {
            out->recipes[out->n++] = &TABLES[i]->recipes[j];
        }
    }
    qsort(out->recipes, n, sizeof *out->recipes, by_target);
    return true;
}

const fx_recipe *fx_find_recipe(const fx_recipe_list *list, const char *target)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(list->recipes[middle]->target, target);
        if (order == 0) {
            return list->recipes[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool fx_lower_is_view(const fx_recipe_list *recipes, const char *target)
{
    const fx_recipe *recipe = fx_find_recipe(recipes, target);
    return strcmp(target, "aten.view.default") == 0 || strcmp(target, "aten.alias.default") == 0 ||
           (recipe != NULL && recipe->is_view);
}
