/* See ahead.h. Pieces circulate between two rings: read, and free. */
#include "format/ahead.h"

#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"

#define PIECE ((size_t)256 << 10) /* two of them fit into the CPU's caches */
#define PIECES 3u

struct piece {
	size_t n;
	int rc;
	struct pen_err err;
	uint8_t *mem;
};

struct pen_ahead {
	struct pen_peek *pk;
	struct pen_ring *full, *empty;
	struct pen_team *team;
	struct piece piece[PIECES];
	struct piece *lent; /* to the caller */
	uint64_t taken;	    /* bytes */
};

static void run(void *arg, unsigned thread)
{
	struct pen_ahead *a = arg;
	uint64_t at = 0;
	struct piece *p;

	(void)thread;
	while (at < a->pk->size && (p = pen__ring_pop(a->empty, NULL, true))) {
		const uint64_t left = a->pk->size - at;

		p->n = left < PIECE ? (size_t)left : PIECE;
		pen__err_reset(&p->err);
		p->rc = a->pk->read(a->pk, at, p->mem, p->n, &p->err);
		at += p->n;
		if (!pen__ring_push(a->full, 0, p) || p->rc)
			return;
	}
}

int pen__ahead_new(struct pen_ahead **out, struct pen_peek *pk,
		   struct pen_err *err)
{
	struct pen_ahead *a = pen__calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return pen__fail_nomem(err, pk->name, sizeof(*a));
	a->pk = pk;
	rc = pen__ring_new(&a->full, PIECES, -1);
	if (!rc)
		rc = pen__ring_new(&a->empty, PIECES, -1);
	for (unsigned i = 0; !rc && i < PIECES; i++) {
		a->piece[i].mem = pen__alloc(PIECE, 1);
		rc = a->piece[i].mem ? 0 : PEN_ENOMEM;
		if (!rc)
			pen__ring_push(a->empty, 0, &a->piece[i]);
	}
	rc = rc ? pen__fail_nomem(err, pk->name, PIECES * PIECE)
		: pen__team_start(&a->team, 1, "pen-ahead", run, a, err);
	if (rc)
		pen__ahead_free(a);
	else
		*out = a;
	return rc;
}

int pen__ahead_next(struct pen_ahead *a, struct pen_span *out,
		    struct pen_err *err)
{
	struct piece *p = a->lent;

	if (p)
		pen__ring_push(a->empty, 0, p);
	a->lent = NULL;
	if (a->taken == a->pk->size)
		return PEN_END;
	a->lent = p = pen__ring_pop(a->full, NULL, true);
	if (p->rc) {
		a->taken = a->pk->size; /* end of the object */
		if (err)
			*err = p->err;
		return p->rc;
	}
	a->taken += p->n;
	*out = (struct pen_span){ p->mem, p->n };
	return 0;
}

void pen__ahead_free(struct pen_ahead *a)
{
	if (!a)
		return;
	if (a->full)
		pen__ring_close(a->full);
	if (a->empty)
		pen__ring_close(a->empty);
	pen__team_join(a->team);
	pen__ring_free(a->full);
	pen__ring_free(a->empty);
	for (unsigned i = 0; i < PIECES; i++)
		pen__free(a->piece[i].mem);
	pen__free(a);
}
