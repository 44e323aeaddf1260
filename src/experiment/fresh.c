/*
 * Generated data for experiments without a PATH. A sample is a function of the
 * seed and its number, so that the output of a loader can be checked. Bytes
 * form smooth images with some noise, because image formats are not meant for
 * pure noise.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "make/maker.h"
#include "make/synth.h"
#include "experiment/experiment.h"

int pen__fresh_init(struct pen_fresh *m, const char *shape, const char *dtype,
		    struct pen_err *err)
{
	int rc = pen__parse_shape(shape, m->field.shape, &m->field.ndim, err);

	if (!rc)
		rc = pen__parse_dtype(dtype, &m->field.dtype, err);
	if (!rc && (m->field.dtype == PEN_F80 || m->field.dtype == PEN_C160))
		rc = pen__fail(err, P_UNSUPPORTED_TYPE, dtype,
			       "samples of this dtype cannot be generated");
	if (!rc && (!pen__shape_bytes(m->field.shape, m->field.ndim,
				      m->field.dtype, &m->row) ||
		    !m->row || m->row > ((size_t)1 << 32)))
		rc = pen__fail(
			err, P_BAD_VALUE, shape,
			"a sample of this shape is empty or larger than 4 GiB");
	snprintf(m->field.name, sizeof(m->field.name), "x");
	return rc;
}

bool pen__fresh_is_image(const struct pen_fresh *m)
{
	const struct pen_field *f = &m->field;

	return f->dtype == PEN_U8 &&
	       (f->ndim == 2 ||
		(f->ndim == 3 && (f->shape[2] == 3 || f->shape[2] == 1)));
}

/* A gradient across and down, with a little noise. */
static void smooth(const struct pen_fresh *m, uint64_t off, uint8_t *p,
		   size_t n)
{
	const struct pen_field *f = &m->field;
	const size_t deep = f->ndim == 3 ? (size_t)f->shape[2] : 1;
	const size_t wide = (size_t)f->shape[1] * deep;

	for (size_t i = 0; i < n; i++) {
		const size_t at = (off + i) % m->row;

		p[i] = (uint8_t)(at % wide * 128 / wide + at * 90 / m->row +
				 (p[i] & 15));
	}
}

#define EXACT (1u << 24) /* integers that a float represents exactly */
#define MARK 4096	 /* the first value of a row: its number modulo this */

double pen__fresh_small(uint64_t i, uint64_t k)
{
	return (double)(k ? pen__mix64(i * 0x9e3779b97f4a7c15 + k) & 3
			  : i % MARK);
}

uint64_t pen__fresh_exact(uint64_t columns)
{
	return (EXACT - 1) / (MARK + 3 * columns);
}

static void fill_small(const struct pen_fresh *m, uint64_t at, float *to,
		       size_t n)
{
	const uint64_t cols = m->row / 4;

	for (size_t i = 0; i < n; i++, at++)
		to[i] = (float)pen__fresh_small(at / cols, at % cols);
}

void pen__fresh_fill(const struct pen_fresh *m, uint64_t off, void *to,
		     size_t n)
{
	const struct pen_synth s = { .seed = m->seed,
				     .dtype = m->field.dtype,
				     .unit = true };

	if (m->small) {
		fill_small(m, off / 4, to, n / 4);
		return;
	}
	pen__synth_fill(&s, 0, off, to, n);
	if (pen__fresh_is_image(m))
		smooth(m, off, to, n);
}

struct slice {
	const struct pen_fresh *m;
	uint64_t first;
};

static int part(const struct pen_table *t, uint32_t field, uint64_t off,
		size_t n, void *to, struct pen_err *err)
{
	const struct slice *s = t->arg;

	(void)field;
	(void)err;
	pen__fresh_fill(s->m, s->first * s->m->row + off, to, n);
	return 0;
}

int pen__fresh_write(const struct pen_fresh *m,
		     const struct pen_fresh_file *file, struct pen_err *err)
{
	struct slice s = { m, file->first };
	const struct pen_table t = { .nsamples = file->n,
				     .nfields = 1,
				     .field = &m->field,
				     .part = part,
				     .arg = &s };
	const struct pen_made_file to = { .path = file->path };
	struct pen_maker *by = NULL;
	int rc = pen__maker_open(&by, "posix", NULL, 0, err);

	if (!rc)
		rc = pen__maker_use(by, file->format, file->kv, file->nkv, err);
	if (!rc)
		rc = pen__maker_write(by, &to, &t, err);
	pen__maker_close(by);
	return rc;
}

int pen__fresh_sum(const struct pen_fresh *m, uint64_t first, uint64_t n,
		   uint64_t *sum, struct pen_err *err)
{
	void *row = pen__alloc(m->row, 1);

	if (!row)
		return pen__fail_nomem(err, "sample", m->row);
	*sum = 0;
	for (uint64_t i = first; i < first + n; i++) {
		pen__fresh_fill(m, i * m->row, row, m->row);
		*sum += pen__content_row(i, 0, row, m->row);
	}
	pen__free(row);
	return 0;
}
