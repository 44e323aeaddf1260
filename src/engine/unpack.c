/* See unpack.h. */
#include "engine/unpack.h"

/* Unpacks through memory that stays in the CPU's cache, if possible: the unit
 * may turn out to be smaller than declared. */
static int unpack(struct pen_worker *w, struct pen_live *live,
		  struct pen_span raw, struct pen_err *err)
{
	const size_t cap = w->room.cap, size = live->unit.size;
	const bool direct = size > w->l->room_limit;
	int rc = direct ? 0 : pen__block_reserve(&w->room, size);

	/* on failure the old block is gone */
	pen__pool_account(w->l->pool, (int64_t)w->room.cap - (int64_t)cap);
	if (rc)
		return pen__fail_nomem(err, "unpacking", size);
	rc = w->f->ops->unpack(w->f, &live->unit, raw,
			       direct ? live->mem.p : w->room.p, &w->scratch,
			       err);
	if (rc < 0)
		return rc;
	if (direct && rc)
		live->n = (size_t)rc;
	if (!direct && pen__units_fill(&w->l->units, live, w->room.p,
				       rc ? (size_t)rc : size))
		return pen__fail_nomem(err, "shared units", size);
	return 0;
}

int pen__unpack(struct pen_worker *w, struct pen_live *live,
		struct pen_span raw, struct pen_err *err)
{
	const uint64_t before = w->inner_ns, t0 = pen__now_ns();
	const int rc = unpack(w, live, raw, err);

	pen__inner_end(w, &w->meter.unpack_ns, t0, before);
	return rc;
}
