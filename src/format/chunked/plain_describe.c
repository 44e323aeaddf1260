/* Output of inspect for plain arrays: how they are stored, and what that costs.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"
#include "format/chunked/plain.h"

static void advise(const struct pen_plain_view *v, const char *name,
		   struct pen_describe *d)
{
	char text[256];

	if (v->a.layout == PEN_CHUNKED_EMPTY && v->n)
		snprintf(
			text, sizeof(text),
			"%s was never written: all samples have the fill value",
			name);
	else if (v->a.layout != PEN_CHUNKED_GRID)
		return;
	else if (!v->alone && !v->in_rows && v->per > 1)
		snprintf(text, sizeof(text),
			 "a chunk of %s has %u samples (%" PRIu64
			 " bytes), and a random sample reads all of it; use "
			 "sampler=block, or store one sample per chunk",
			 name, v->per, v->a.chunk_bytes);
	else if (v->ncross > 4)
		snprintf(text, sizeof(text),
			 "a sample of %s spans %u chunks, each a separate "
			 "read; store it in one chunk",
			 name, v->ncross);
	else if (!v->a.filters.n)
		snprintf(text, sizeof(text),
			 "%s is chunked but not compressed; contiguous data "
			 "needs fewer, larger reads",
			 name);
	else
		return;
	d->advice(d->arg, text);
}

void pen__plain_describe(const struct pen_format *f, struct pen_describe *d)
{
	static const char *const layouts[] = { "compact", "contiguous",
					       "chunked" };
	const struct pen_plain *p = f->priv;
	char name[96], text[192];

	if (p->nleft_out) {
		snprintf(text, sizeof(text),
			 "%s excluded: not numeric, or not as long as the "
			 "fields; select others with fields=",
			 pen__show_counted(p->nleft_out, "array").s);
		d->advice(d->arg, text);
	}
	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_plain_view *v =
			&p->view[p->first * f->nfields + i];
		const char *field = f->field[i].name;

		snprintf(name, sizeof(name), "%s layout", field);
		snprintf(text, sizeof(text), "%s%s", layouts[v->stored % 3],
			 v->a.swap ? ", big-endian" : "");
		d->fact(d->arg, name, text);
		if (v->a.layout == PEN_CHUNKED_GRID) {
			snprintf(name, sizeof(name), "%s chunk", field);
			pen__shape_text(p->dims + v->dims + v->a.ndim,
					v->a.ndim, text, sizeof(text));
			d->fact(d->arg, name, text);
			snprintf(name, sizeof(name), "%s filters", field);
			pen__filters_text(&v->a.filters, text, sizeof(text));
			d->fact(d->arg, name, text);
		}
		advise(v, field, d);
		if (v->a.swap)
			d->advice(d->arg, "big-endian data is byte-swapped on "
					  "every read");
	}
}
