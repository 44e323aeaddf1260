/* See docs.h. A sequence without targets does not touch its document. */
#include "docs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

int docs_open(struct docs *d, struct pen_ranks *ranks, const struct model *m,
	      uint64_t ndocs, struct pen_err *err)
{
	const uint64_t each = doc_bytes(m) + 128; /* with key and index */
	const uint64_t n = (uint64_t)pen_ranks_size(ranks);
	char memory[40];
	const char *const settings[] = { memory };

	*d = (struct docs){ .model = m };
	/* keys are not spread quite evenly */
	snprintf(memory, sizeof(memory), "memory=%" PRIu64,
		 (ndocs / n + 1) * each * 5 / 4 + ((uint64_t)64 << 20));
	return pen_ddict_open(&d->dict, ranks, settings, 1, err);
}

void docs_close(struct docs *d)
{
	pen_ddict_close(d->dict);
	free(d->keys);
	free(d->values);
	free(d->rows);
}

static int make_room(struct docs *d, uint32_t n, struct pen_err *err)
{
	if (n <= d->room)
		return 0;
	free(d->keys);
	free(d->values);
	free(d->rows);
	d->keys = calloc(n, sizeof(*d->keys));
	d->values = calloc(n, sizeof(*d->values));
	d->rows = calloc(n, doc_bytes(d->model));
	d->room = d->keys && d->values && d->rows ? n : 0;
	return d->room ? 0 : fail_nomem(err, "the documents of a batch");
}

/* The documents of sequences with targets; returns their number. */
static uint32_t list(struct docs *d, const struct sequence *q, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		if (q[i].ntargets)
			d->keys[k++] = (struct pen_key){ NULL, q[i].doc };
	return k;
}

int docs_fetch(struct docs *d, struct sequence *q, uint32_t n,
	       struct pen_err *err)
{
	const size_t size = doc_bytes(d->model);
	struct pen_got *got;
	uint32_t k = 0;
	int rc = make_room(d, n, err);

	if (rc || !n)
		return rc;
	rc = pen_ddict_get_many(d->dict, d->keys, list(d, q, n), &got, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		const struct pen_value *v = &got->values[k];

		q[i].row = (struct doc *)(void *)(d->rows + i * size);
		if (!q[i].ntargets)
			continue;
		if (v->data && v->len == size)
			memcpy(q[i].row, v->data, size);
		else
			doc_draw(d->model, q[i].doc, q[i].row);
		k++;
	}
	pen_got_free(got);
	return 0;
}

int docs_store(struct docs *d, const struct sequence *q, uint32_t n,
	       struct pen_err *err)
{
	uint32_t k = 0;

	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (q[i].ntargets)
			d->values[k++] =
				(struct pen_value){ q[i].row,
						    doc_bytes(d->model) };
	return pen_ddict_put_many(d->dict, d->keys, d->values, list(d, q, n),
				  err);
}
