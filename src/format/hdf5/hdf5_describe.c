/* What inspect says of HDF5 files: how they are stored, and what that costs. */
#include <inttypes.h>
#include <stdio.h>

#include "format/hdf5/hdf5_fields.h"

static void advise(const struct pen_h5_view *v, const char *name,
		   struct pen_describe *d)
{
	char text[256];

	if (v->kind == PEN_H5_EMPTY && v->n)
		snprintf(text, sizeof(text),
			 "%s was never written: all its "
			 "samples are the fill value",
			 name);
	else if (v->kind != PEN_H5_CHUNKS)
		return;
	else if (!v->alone && !v->in_rows && v->per > 1)
		snprintf(text, sizeof(text),
			 "a chunk of %s holds %u samples, "
			 "%" PRIu64 " bytes: a random sample costs all of it; "
			 "read with sampler=block, or store chunks of one "
			 "sample",
			 name, v->per, v->chunk_bytes);
	else if (v->ncross > 4)
		snprintf(text, sizeof(text),
			 "a sample of %s lies in %u "
			 "chunks, each a read of its own; store it in one",
			 name, v->ncross);
	else if (!v->pipe.n)
		snprintf(text, sizeof(text),
			 "%s is chunked but not "
			 "compressed; contiguous data is read with fewer, "
			 "larger reads",
			 name);
	else
		return;
	d->advice(d->arg, text);
}

void pen__h5_describe(const struct pen_format *f, struct pen_describe *d)
{
	static const char *const layouts[] = { "compact", "contiguous",
					       "chunked" };
	const struct pen_h5_format *p = f->priv;
	char name[96], text[192];

	snprintf(text, sizeof(text), "%u", p->superblock);
	d->fact(d->arg, "superblock version", text);
	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_h5_view *v = &p->view[i];
		const char *field = f->field[i].name;

		snprintf(name, sizeof(name), "%s layout", field);
		snprintf(text, sizeof(text), "%s%s", layouts[v->layout % 3],
			 v->swap ? ", big-endian" : "");
		d->fact(d->arg, name, text);
		if (v->kind == PEN_H5_CHUNKS) {
			snprintf(name, sizeof(name), "%s chunk", field);
			pen__shape_text(p->dims + v->dims + v->ndim, v->ndim,
					text, sizeof(text));
			d->fact(d->arg, name, text);
			snprintf(name, sizeof(name), "%s filters", field);
			pen__h5_pipe_text(&v->pipe, text, sizeof(text));
			d->fact(d->arg, name, text);
		}
		advise(v, field, d);
		if (v->swap)
			d->advice(d->arg, "big-endian: swapped on every read");
	}
}
