/*
 * Opening a dictionary as a data set: which ranks load from it together, and
 * what differs from files. All ranks that share an order must see the same
 * keys, so they compare what they list.
 */
#include <string.h>

#include "comm/comm.h"
#include "ddict/dictionary.h"
#include "engine/dataset.h"
#include "sampler/sampler.h"

int pen__dict_ranks(struct pen_dataset *ds, struct pen_err *err)
{
	struct pen_spec *s = ds->spec;
	struct pen_comm *c;
	int rc;

	if (s->ranked && s->world == 1)
		return 0; /* loads alone */
	c = s->dict ? pen__ddict_comm(s->dict) : s->comm;
	if (!c && !s->dict) {
		rc = pen__comm_open(&c, err);
		if (rc)
			return rc;
		ds->own_comm = true;
	}
	if (c && c->size == 1) {
		if (ds->own_comm)
			pen__comm_close(c);
		ds->own_comm = false;
		return 0;
	}
	ds->with.comm = c;
	if (c && !s->ranked) {
		s->rank = c->rank;
		s->world = c->size;
	}
	return 0;
}

int pen__dict_prepare(struct pen_dataset *ds, struct pen_err *err)
{
	struct pen_spec *s = ds->spec;

	s->kept = NULL; /* keys and values may have changed */
	ds->with.given = s->dict;
	ds->with.world = s->world > 0 ? (uint64_t)s->world : 1;
	ds->with.batch = s->batch_size;
	return pen_spec_set(s, "store", "dictionary", err);
}

void pen__dict_begin(struct pen_dataset *ds)
{
	pen__dict_join(ds->store, &ds->with);
}

int pen__dict_settle(struct pen_dataset *ds, struct pen_err *err)
{
	const char *sampler = pen__spec_sampler(ds->spec);
	const struct pen_sampler_ops *ops = pen__sampler_find(sampler);

	ds->resident = -1;
	ds->why_store = "the path names a dictionary";
	if (pen__dict_local(ds->store) && ops && !ops->in_order)
		return pen__fail(err, P_CONFLICT, "store.local",
				 "has no effect with sampler=%s, which mixes "
				 "the keys of all shards; omit one of them",
				 sampler);
	return pen__store_bind(ds->store, &ds->objs, err);
}
