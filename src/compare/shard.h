/* shard.h - serialisation of the fields of a shard. */
#ifndef FX_COMPARE_SHARD_H
#define FX_COMPARE_SHARD_H

#include "fxtap/compare.h"
#include "util/codec.h"

void fx_pair_fields(fx_codec *c, fxtap_pair *pair);
void fx_group_fields(fx_codec *c, fxtap_group *group);
/* `pair` is the index of the origin's pair. */
void fx_origin_fields(fx_codec *c, fxtap_origin *origin, size_t *pair);
void fx_rule_fields(fx_codec *c, fxtap_rule *rule);

#endif
