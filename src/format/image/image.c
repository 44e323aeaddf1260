/*
 * What formats of one image a file share: the blob (a size and a number of
 * channels), the field, the unit. Decoding is theirs. Refuses images beyond
 * max_pixels, before anything is allocated for them, and files of different
 * depth in one data set.
 */
#include "format/image/image.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/quote.h"
#include "format/array.h"

int pen__image_other(struct pen_peek *pk, const char *kind, struct pen_err *err)
{
	const size_t n = pk->size < 8 ? (size_t)pk->size : 8;
	uint8_t b[8];
	int rc = n ? pk->read(pk, 0, b, n, err) : 0;

	return rc ? rc
		  : pen__fail(err, PEN_EDATA, pk->name,
			      "is not a %s file: it begins with %s", kind,
			      pen__quoted(b, n).s);
}

int pen__image_found(const struct pen_format *f, struct pen_peek *pk,
		     const struct pen_image *m, struct pen_found *found,
		     struct pen_err *err)
{
	const struct pen_images *p = f->priv;

	if (!m->width || !m->height)
		return pen__fail(err, PEN_EDATA, pk->name,
				 "is an image without pixels");
	if ((uint64_t)m->width * m->height > p->max_pixels)
		return pen__fail(err, PEN_ENOTSUP, pk->name,
				 "has %" PRIu32 "x%" PRIu32 " pixels, more "
				 "than format.max_pixels=%" PRIu64,
				 m->width, m->height, p->max_pixels);
	pen__buf_le(&found->blob, m->width, 4);
	pen__buf_le(&found->blob, m->height, 4);
	pen__buf_le(&found->blob, m->channels, 1);
	pen__buf_le(&found->blob, m->dtype, 1);
	pen__buf_le(&found->blob, m->kind, 1);
	found->nsamples = 1;
	return found->blob.bad ? pen__fail_nomem(err, pk->name, 16) : 0;
}

static bool take_image(struct pen_span s, struct pen_image *m)
{
	struct pen_bytes b = pen__bytes(s.p, s.n);

	m->width = pen__take_u32(&b);
	m->height = pen__take_u32(&b);
	m->channels = pen__take_u8(&b);
	m->dtype = pen__take_u8(&b);
	m->kind = pen__take_u8(&b);
	return !b.bad && m->width && m->height && m->channels &&
	       m->channels <= 4 && (m->dtype == PEN_U8 || m->dtype == PEN_U16);
}

static int misfit(const struct pen_index *ix, uint64_t blob,
		  struct pen_err *err)
{
	char name[256];

	pen__blob_name(ix, blob, name, sizeof(name));
	return pen__fail(err, PEN_EDATA, name,
			 "has other channels or another depth than images "
			 "before it, and cannot be shown as those");
}

/* More channels for all: any 8-bit image can be shown as RGB or RGBA. */
static int settle_channels(struct pen_format *f, const struct pen_index *ix,
			   unsigned want, struct pen_err *err)
{
	struct pen_images *p = f->priv;
	unsigned c = want ? want : p->image[0].channels;

	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_image *m = &p->image[i];

		if (!want && m->channels != c)
			c = m->channels == 4 || c == 4 || m->channels == 2 ||
					    c == 2
				    ? 4
				    : 3;
		if (m->dtype != p->image[0].dtype ||
		    (m->dtype != PEN_U8 && m->channels != c))
			return misfit(ix, i, err);
	}
	p->channels = (uint8_t)c;
	return 0;
}

/* Objects left out by on_error=skip have an empty blob, and here the look of
 * one that is there. */
static int take_images(struct pen_format *f, const struct pen_index *ix,
		       struct pen_err *err)
{
	struct pen_images *p = f->priv;
	const struct pen_image *some = NULL;

	for (uint64_t i = 0; i < ix->nblobs; i++) {
		if (!ix->blob(ix, i).n)
			continue;
		if (!take_image(ix->blob(ix, i), &p->image[i]))
			return pen__fail(err, PEN_EDATA, f->ops->name,
					 "damaged index entry");
		some = &p->image[i];
	}
	for (uint64_t i = 0; some && i < ix->nblobs; i++)
		if (!p->image[i].channels)
			p->image[i] = *some;
	return some ? 0
		    : pen__fail(err, PEN_ENOTFOUND, f->ops->name, "no images");
}

int pen__image_bind(struct pen_format *f, const struct pen_index *ix,
		    unsigned want, struct pen_err *err)
{
	struct pen_images *p = f->priv;
	struct pen_field *d = &f->field[0];
	size_t bytes;
	int rc;

	pen__image_close(f);
	f->ix = ix;
	if (!ix->nblobs || !ix->nsamples)
		return pen__fail(err, PEN_ENOTFOUND, f->ops->name, "no images");
	p->image = pen__calloc((size_t)ix->nblobs, sizeof(*p->image));
	if (!p->image)
		return pen__fail_nomem(err, f->ops->name, ix->nblobs);
	rc = take_images(f, ix, err);
	if (!rc)
		rc = settle_channels(f, ix, want, err);
	if (rc)
		return rc;
	*d = (struct pen_field){ .name = "x",
				 .dtype = p->image[0].dtype,
				 .ndim = p->channels > 1 ? 3 : 2 };
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		const struct pen_image *m = &p->image[i];
		const int64_t shape[3] = { m->height, m->width, p->channels };

		for (unsigned j = 0; j < 3; j++)
			d->shape[j] = i && d->shape[j] != shape[j] ? -1
								   : shape[j];
		if (!pen__shape_bytes(shape, 3, d->dtype, &bytes))
			return misfit(ix, i, err);
		if (bytes > d->max_bytes)
			d->max_bytes = bytes;
	}
	f->nfields = f->units_per_sample = 1;
	f->all_plain = f->uniform = false;
	f->decodes = true;
	return 0;
}

void pen__image_close(struct pen_format *f)
{
	struct pen_images *p = f->priv;

	pen__free(p->image);
	p->image = NULL;
}

const struct pen_image *pen__image_of(const struct pen_format *f,
				      uint32_t object)
{
	const struct pen_images *p = f->priv;

	return &p->image[f->ix->blob_of(f->ix, object)];
}

void pen__image_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_image *m = pen__image_of(f, object);

	(void)k;
	shape[0] = m->height;
	shape[1] = m->width;
	if (f->field[field].ndim == 3)
		shape[2] = ((const struct pen_images *)f->priv)->channels;
}

void pen__image_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *u)
{
	(void)k;
	*u = (struct pen_unit){ .len = f->ix->size_of(f->ix, object),
				.object = object };
}

void pen__image_describe(const struct pen_format *f, struct pen_describe *d)
{
	static const char *const names[] = { "", "grey", "grey and alpha",
					     "RGB", "RGBA" };
	const struct pen_images *p = f->priv;

	d->fact(d->arg, "pixels", names[p->channels]);
	d->fact(d->arg, "compression", f->ops->name);
	if (f->field[0].shape[0] < 0 || f->field[0].shape[1] < 0)
		d->advice(d->arg, "sizes differ: batches are ragged; "
				  "shapes=padded makes them dense");
}

const void *pen__image_take(const struct pen_table *t, struct pen_image *m,
			    void **mem, struct pen_err *err)
{
	const struct pen_field *d = t->field;

	*mem = NULL;
	if (t->nfields != 1 || t->nsamples != 1 || d->ndim < 2 || d->ndim > 3 ||
	    d->shape[0] < 1 || d->shape[1] < 1 || d->shape[0] > INT32_MAX ||
	    d->shape[1] > INT32_MAX) {
		pen__fail(err, PEN_EINVAL, "image",
			  "is one sample a file, of a shape like 224x224 or "
			  "224x224x3");
		return NULL;
	}
	*m = (struct pen_image){
		.height = (uint32_t)d->shape[0],
		.width = (uint32_t)d->shape[1],
		.channels = d->ndim == 2 || d->shape[2] < 1 || d->shape[2] > 4
				    ? d->ndim == 2
				    : (uint8_t)d->shape[2],
		.dtype = (uint8_t)d->dtype,
	};
	return pen__table_get(t, 0, mem, err);
}
