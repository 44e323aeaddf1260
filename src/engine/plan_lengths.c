/* See plan_lengths.h. A length is the product of the axes that vary: the number
 * of elements of a list, the number of pixels of an image. */
#include "engine/plan_lengths.h"

#include <string.h>

#include "base/mem.h"
#include "engine/loader.h"

/* Lengths in tables are clamped here; nothing that long fits anywhere. */
#define MOST UINT32_MAX

static bool usable(const struct pen_field *d, bool flat)
{
	return flat ? d->ndim == 1 : d->ndim > 0;
}

int pen__lengths_field(struct pen_lengths *ls, const struct pen_dataset *ds,
		       const uint32_t *varying, bool flat, struct pen_err *err)
{
	const struct pen_format *f = ds->format;
	bool hide[PEN_MAX_FIELDS];
	int rc = pen__fields_hide(ds, hide, err);
	int best = -1;

	if (rc)
		return rc;
	for (uint32_t i = 0; i < f->nfields && best < 0; i++)
		if (!hide[i] && varying[i] && usable(&f->field[i], flat))
			best = (int)i;
	for (uint32_t i = 0; i < f->nfields && best < 0; i++)
		if (!hide[i] && usable(&f->field[i], flat))
			best = (int)i;
	if (best < 0)
		return PEN_ENOTFOUND;
	ls->f = f;
	ls->field = (uint32_t)best;
	ls->axes = varying[best];
	if (!ls->axes)
		ls->constant = (uint64_t)f->field[best].shape[0];
	return 0;
}

static uint64_t ask(const struct pen_lengths *ls, uint64_t element)
{
	int64_t shape[PEN_MAX_DIMS];
	uint32_t object;
	uint64_t k, n = 1;

	if (!ls->axes)
		return ls->constant;
	pen__index_find(ls->f->ix, pen__choice_at(ls->c, element), &object, &k);
	ls->f->ops->shape(ls->f, object, k, ls->field, shape);
	for (uint32_t i = 0; ls->axes >> i; i++)
		if (ls->axes >> i & 1 &&
		    __builtin_mul_overflow(n, (uint64_t)shape[i], &n))
			return UINT64_MAX;
	return n;
}

uint64_t pen__length_of(const struct pen_lengths *ls, uint64_t element)
{
	return ls->table ? ls->table[element] : ask(ls, element);
}

void pen__lengths_measure(struct pen_lengths *ls)
{
	const uint64_t n = ls->axes || ls->table ? ls->c->n : 1;
	double sum = 0;

	ls->shortest = UINT64_MAX;
	ls->longest = 0;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t len = pen__length_of(ls, i);

		sum += (double)len;
		if (len < ls->shortest)
			ls->shortest = len;
		if (len > ls->longest) {
			ls->longest = len;
			ls->longest_of = i;
		}
	}
	ls->mean = n ? sum / (double)n : 0;
}

int pen__lengths_tabulate(struct pen_lengths *ls, struct pen_err *err)
{
	if (ls->table)
		return 0;
	ls->own = pen__alloc(ls->c->n, sizeof(*ls->own));
	if (!ls->own)
		return pen__fail_nomem(err, "lengths",
				       ls->c->n * sizeof(*ls->own));
	for (uint64_t i = 0; i < ls->c->n; i++) {
		const uint64_t len = ask(ls, i);

		ls->own[i] = len < MOST ? (uint32_t)len : MOST;
	}
	ls->table = ls->own;
	return 0;
}

void pen__lengths_fini(struct pen_lengths *ls)
{
	pen__free(ls->own);
	ls->own = NULL;
}
