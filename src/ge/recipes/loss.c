/* Losses. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

#define REDUCTION "r = ['none', 'mean', 'sum'][reduction];"

static const fx_recipe RECIPES[] = {
    {"aten.mse_loss.default", "self, target, reduction=1", REDUCTION "MseLoss(self, target, reduction=r)", false},
    {"aten.mse_loss_backward.default", "grad, self, target, reduction",
     REDUCTION "MseLossGrad(self, target, grad, reduction=r)", false},
    {"aten.nll_loss_forward.default", "self, target, weight, reduction, ignore_index",
     REDUCTION "NLLLoss(self, to(target, i32), weight, reduction=r, ignore_index=ignore_index)", false},
    {"aten.nll_loss_backward.default", "grad, self, target, weight, reduction, ignore_index, total_weight",
     REDUCTION "if weight == None { weight = Cast(Fill(GatherV2(Shape(self), 1, 0), 1.0), dst_type=out) }"
               "NLLLossGrad(self, grad, to(target, i32), weight, total_weight, reduction=r, ignore_index=ignore_index)",
     false},
};

const fx_recipe_table fx_recipes_loss = {RECIPES, N_OF(RECIPES)};
