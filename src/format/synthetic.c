/*
 * DLIO's synthetic data: files whose content (a number as text) is never read,
 * and identical samples. Measures everything except storage and decoding.
 */
#include <stdio.h>

#include "codec/array_copy.h"
#include "format/value.h"

struct synthetic {
	/* options */
	char *dtype, *shape;
	uint64_t samples, index;
	int64_t fill;
	/* from open() on */
	struct pen_array a;
};

#define OFF(x) offsetof(struct synthetic, x)
static const struct pen_opt synthetic_opts[] = {
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = OFF(dtype),
	  .dflt = "uint8",
	  .help = "data type of the elements: uint8, float32, ..." },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = OFF(shape),
	  .dflt = "1",
	  .help = "shape of a sample, such as 3x224x224" },
	{ .name = "samples",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(samples),
	  .dflt = "1",
	  .min = 1,
	  .max = 1e15,
	  .help = "samples per file" },
	{ .name = "fill",
	  .type = PEN_OPT_INT,
	  .off = OFF(fill),
	  .dflt = "0",
	  .min = 0,
	  .max = 255,
	  .help = "value of every byte of every sample" },
	{ .name = "index",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(index),
	  .dflt = "0",
	  .help = "writing: number to store in the file" },
	{ .name = NULL },
};

static int synthetic_open(struct pen_format *f, struct pen_err *err)
{
	struct synthetic *p = f->priv;

	return pen__parse_array(p->dtype, p->shape ? p->shape : "1", &p->a,
				err);
}

static int synthetic_index(const struct pen_format *f, struct pen_peek *pk,
			   struct pen_found *found, struct pen_err *err)
{
	(void)pk;
	(void)err;
	found->nsamples = ((const struct synthetic *)f->priv)->samples;
	return 0;
}

static int synthetic_bind(struct pen_format *f, const struct pen_index *ix,
			  struct pen_err *err)
{
	const struct synthetic *p = f->priv;

	(void)err;
	f->ix = ix;
	f->field[0] = (struct pen_field){ .name = "x",
					  .dtype = p->a.dtype,
					  .ndim = p->a.ndim,
					  .max_bytes = p->a.nbytes };
	memcpy(f->field[0].shape, p->a.shape, p->a.ndim * sizeof(*p->a.shape));
	f->nfields = f->units_per_sample = 1;
	f->all_plain = f->uniform = false;
	return 0;
}

static void synthetic_shape(const struct pen_format *f, uint32_t object,
			    uint64_t k, uint32_t field, int64_t *shape)
{
	const struct synthetic *p = f->priv;

	(void)object;
	(void)k;
	(void)field;
	memcpy(shape, p->a.shape, p->a.ndim * sizeof(*shape));
}

/* Nothing is fetched. */
static void synthetic_locate(const struct pen_format *f, uint32_t object,
			     uint64_t k, struct pen_unit *u)
{
	(void)f;
	(void)object;
	(void)k;
	*u = (struct pen_unit){ .object = PEN_NO_OBJECT };
}

static int synthetic_emit(const struct pen_format *f, const struct pen_row *r,
			  struct pen_err *err)
{
	const struct synthetic *p = f->priv;

	if (r->dst_len[0] != p->a.nbytes)
		return pen__sample_fail(
			f, r->object, r->k,
			"the sample does not fit its row in the batch", err);
	memset(r->dst[0], (int)p->fill, p->a.nbytes);
	return 0;
}

static void synthetic_describe(const struct pen_format *f,
			       struct pen_describe *d)
{
	(void)f;
	d->fact(d->arg, "content", "not read");
}

static int synthetic_write(const struct pen_format *f,
			   const struct pen_table *t, struct pen_out *out,
			   struct pen_err *err)
{
	const struct synthetic *p = f->priv;
	char text[24];
	int n = snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)p->index);

	(void)t;
	return out->write(out, text, (size_t)n, err);
}

static const char *const synthetic_suffixes[] = { ".synthetic", NULL };

const struct pen_format_ops pen__format_synthetic = {
	.name = "synthetic",
	.help = "identical synthetic samples; files are not read",
	.suffixes = synthetic_suffixes,
	.opts = synthetic_opts,
	.priv_size = sizeof(struct synthetic),
	.open = synthetic_open,
	.index = synthetic_index,
	.bind = synthetic_bind,
	.shape = synthetic_shape,
	.locate = synthetic_locate,
	.emit = synthetic_emit,
	.describe = synthetic_describe,
	.write = synthetic_write,
};
